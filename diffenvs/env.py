"""The vector environment: one batched, differentiable simulation behind Gymnasium's VectorEnv.

`step` is for people and for algorithms that do not look inside; `rollout` gives the same step with its graph.
Both go through `DiffVecEnv.advance`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from torch import Tensor

from diffenvs import registry, snapshot
from diffenvs.action import clip_action, read_action
from diffenvs.autoreset import read_mask, read_seeds, restart, staggered
from diffenvs.bridge import Simulator
from diffenvs.options import (
    read_autoreset_mode,
    read_choice,
    read_count,
    read_device,
    read_dtype,
    read_limit,
)
from diffenvs.parameters import Parameters
from diffenvs.random import WorldRandom
from diffenvs.randomization import Randomization, read_randomization
from diffenvs.rollout import Rollout
from diffenvs.sim.contact import resolve
from diffenvs.sim.load import load_model, mujoco_model
from diffenvs.task import Config, State, Task, require_placeable
from diffenvs.transition import Transition, advance, fork

if TYPE_CHECKING:
    from diffenvs.gradients import GradientReport


class DiffVecEnv(VectorEnv):
    """N worlds of one task in one simulation.

    Args:
        task: id of a row of `registry.ENVS`, or a `Task` subclass.
        num_envs: number of worlds N.
        config: settings of the task, a `Task.Config` or a mapping of the fields to change.
        contact: a contact law, by name ("smoothed", "hard", "soft") or as a value: `Smoothed(kappa=100.0)`.
        randomization: of physical parameters for each episode, a `Randomization` or a mapping of its ranges.
        device: "cpu"; "cuda" runs the same code and says that it is untested.
        dtype: "float32" or "float64", of the physics, observations and rewards.
        array_type: "numpy", or "torch" for tensors on `device`. What is returned is a copy: it never changes.
        threads: CPU threads that share the worlds, None for the simulator's own choice.
        max_episode_steps: control steps until a world is truncated; None: the task's own limit, -1: none.
        autoreset_mode: `AutoresetMode.SAME_STEP` (default) or `AutoresetMode.DISABLED`.
        render_mode: None or "rgb_array".

    Raises:
        ValueError, TypeError: an argument outside of the above, in one sentence.

    Attributes: task, model, simulator, contact, randomization, device, dtype, max_episode_steps (None when endless),
    autoreset_mode, and the properties state and parameters.
    """

    metadata = {"render_modes": ["rgb_array"], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        task: str | type[Task],
        num_envs: int = 1,
        *,
        config: Config | Mapping[str, Any] | None = None,
        contact: Any = "smoothed",
        randomization: Randomization | Mapping[str, Any] | None = None,
        device: str | torch.device = "cpu",
        dtype: str | torch.dtype = "float32",
        array_type: str = "numpy",
        threads: int | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        render_mode: str | None = None,
    ):
        kind = registry.find(task).task if isinstance(task, str) else task
        self.num_envs = read_count("num_envs", num_envs)
        self.array_type = read_choice("array_type", array_type, ("numpy", "torch"))
        self.render_mode = read_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self.autoreset_mode = read_autoreset_mode(autoreset_mode)
        self.max_episode_steps = read_limit(max_episode_steps, kind.max_episode_steps)
        self.contact = resolve(contact)
        self.randomization = read_randomization(randomization)
        self.device = read_device(device)
        self.dtype = read_dtype(dtype)

        self.model = load_model(registry.locate(kind.asset), limits=kind.limits)
        self.task = kind(self.model, config, dtype=self.dtype, device=self.device)
        self.simulator = Simulator(
            self.model,
            self.contact,
            self.num_envs,
            control_timestep=self.task.control_timestep,
            timestep=self.task.timestep,
            dtype=self.dtype,
            device=self.device,
            threads=threads,
        )
        self.metadata = {
            **type(self).metadata,
            "autoreset_mode": self.autoreset_mode,
            "render_fps": round(1.0 / self.task.control_timestep),
        }

        element = np.dtype(str(self.dtype).removeprefix("torch."))
        # Every observation is a finite number, and that is all that can be promised of it.
        bound = float(np.finfo(np.float32).max)
        self.single_observation_space = gym.spaces.Box(-bound, bound, (self.task.observation_size,), element)
        self.single_action_space = gym.spaces.Box(-1.0, 1.0, (self.task.action_size,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

        self._nominal: Parameters = self.simulator.default_parameters()
        self.randomization.require_possible(self._nominal, self.model)
        self._parameters = self._nominal
        self._random: WorldRandom | None = None
        self._state: State | None = None
        self._obs: Tensor | None = None
        self._rollout: Rollout | None = None
        self._worlds = torch.arange(self.num_envs, device=self.device)
        self._limit = self.max_episode_steps or torch.iinfo(torch.int64).max
        self._renderer = None

    # --- Gymnasium ---

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes.

        Args:
            seed: an int s seeds the worlds with s, s + 1, ...; a sequence seeds each; None goes on with the
                streams. A world's life depends on its own seed alone, and automatic resets go on from its
                stream.
            options: "stagger" (bool): give the worlds different ages, so that they are truncated apart.
                "reset_mask" ((N,) bool): restart these worlds only, the others go on.

        Returns observations (N, obs) and an empty info.

        Raises:
            ValueError: seeds or a mask of the wrong length, or a seed together with a mask. RuntimeError: a
            rollout is open, or the environment is closed.
        """
        self._require_idle()
        options = options or {}
        worlds = self._worlds
        if (mask := options.get("reset_mask")) is not None:
            self._require_ready()
            worlds = read_mask(mask, seed, self._worlds)
        if seed is not None:
            self._random = WorldRandom(read_seeds(seed, self.num_envs), dtype=self.dtype, device=self.device)
            if hasattr(seed, "__index__"):
                super().reset(seed=int(seed))
        elif self._random is None:
            entropy = np.random.SeedSequence().generate_state(1, np.uint32).item()
            self._random = WorldRandom(read_seeds(entropy, self.num_envs), dtype=self.dtype, device=self.device)
        with torch.inference_mode(False), torch.no_grad():
            self._restart(worlds)
            if options.get("stagger") and self.max_episode_steps:
                ages = staggered(self._random.select(worlds), self._state.elapsed[worlds], self._limit)
                elapsed = self._state.elapsed.index_copy(0, worlds, ages)
                self._state = self._state.replace(elapsed=elapsed)
            self._obs = self.task.observe(self._state)
        return self._give(self._obs), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One control step of all worlds, without a graph.

        Args:
            actions: (N, nu) real numbers, clipped to [-1, 1].

        Returns observations (N, obs), rewards (N,), terminated (N,), truncated (N,), and info:
            "metrics": what the task reports, name -> (N,). "nonfinite": (N,) bool, worlds whose physics left
            the finite numbers; they count as terminated and are restarted, and the state before the step
            stands for the one after it. When worlds ended and restarted, as Gymnasium's SAME_STEP has it:
            "final_obs" (N, obs) and "final_info", with masks "_final_obs" and "_final_info" of the worlds
            that ended.

        Raises:
            ValueError, TypeError: a wrong action; the state is unchanged. RuntimeError: a rollout is open, or
            the environment is closed. gymnasium.error.ResetNeeded: before the first reset.
        """
        self._require_idle()
        # inference mode is left, or a later rollout could not differentiate from the tensors made here
        with torch.inference_mode(False), torch.no_grad():
            transition = self.advance(actions)
            before, action, after = transition.state, transition.action, transition.next_state
            reward = self.task.reward(before, action, after)
            metrics = self.task.metrics(before, action, after)
        info = {
            "metrics": {name: self._give(value) for name, value in metrics.items()},
            "nonfinite": self._give(transition.nonfinite),
        }
        if transition.done and self.autoreset_mode is AutoresetMode.SAME_STEP:
            info["final_info"] = {
                "metrics": {name: self._give(value) for name, value in metrics.items()},
                "nonfinite": self._give(transition.nonfinite),
            }
            info["final_obs"] = self._give(transition.final_obs)
            info["_final_obs"], info["_final_info"] = (self._give(transition.ended) for _ in range(2))
        flags = self._give(transition.terminated), self._give(transition.truncated)
        return self._give(self._obs), self._give(reward), *flags, info

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One frame (height, width, 3) uint8 per world; None, with a warning, without a render mode."""
        if self.render_mode is None:
            gym.logger.warn("render() needs an environment made with render_mode='rgb_array'")
            return None
        self._require_ready()
        if self._renderer is None:
            # Imported here because most environments never draw.
            from diffenvs.render import Renderer

            self._renderer = Renderer(self.model)
        return tuple(self._renderer.frame(qpos) for qpos in self._state.qpos.cpu().double().numpy())

    def close_extras(self, **kwargs: Any) -> None:
        """Release the renderer; called by `close`."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    # --- differentiation ---

    def rollout(self, horizon: int) -> Rollout:
        """A window of at most `horizon` control steps that carry the graph; to be used in a `with`."""
        return Rollout(self, read_count("horizon", horizon))

    def advance(self, actions: Any) -> Transition:
        """The step that `step` and `Rollout.step` share. Nothing changes before the action is judged."""
        self._require_ready()
        action = clip_action(read_action(actions, self.action_space.shape, self._state.action))
        transition = advance(
            self.task,
            self.simulator,
            self._random.select(),
            self._limit,
            self._state,
            self._parameters,
            action,
        )
        self._state, self._obs = transition.successor, fork(transition.final_obs)
        if transition.done and self.autoreset_mode is AutoresetMode.SAME_STEP:
            worlds = transition.ended.nonzero().squeeze(1)
            self._restart(worlds)
            with torch.no_grad():
                fresh = self.task.observe(self._state.map(lambda value: value.detach()[worlds]))
            self._obs = self._obs.index_copy(0, worlds, fresh)
        return transition

    @property
    def observation(self) -> Tensor:
        """What to act on next, (N, obs); inside a rollout it carries the graph."""
        return self._obs

    def open_window(self, rollout: Rollout) -> None:
        """Called by a rollout that begins: cuts the graph before it and keeps everybody else out."""
        self._require_idle()
        self._require_ready()
        self._rollout = rollout
        self._cut_graph()

    def close_window(self) -> None:
        """Called by a rollout that ends: cuts the graph behind it."""
        self._rollout = None
        self._cut_graph()

    def _cut_graph(self) -> None:
        self._state, self._obs = self._state.detach(), self._obs.detach()

    # --- what is inside ---

    @property
    def state(self) -> State | None:
        """State of all worlds, None before the first reset. Assigned, it places the worlds: feet and
        observations follow.
        """
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._require_idle()
        self._require_ready()
        tensors = snapshot.flatten_state(state)
        snapshot.require_same_shapes(tensors, snapshot.flatten_state(self._state), "state")
        require_placeable(self.model, state)
        with torch.no_grad():
            state = state.map(lambda value: value.detach().to(self.device, copy=True))
            self._state = state.replace(feet=self.simulator.feet(state.qpos, self._parameters))
            self._obs = self.task.observe(self._state)

    @property
    def parameters(self) -> Parameters:
        """Physical parameters of every world, (N, ...) each.

        A field that is assigned another tensor becomes nominal: randomisation starts from it at the next resets. One
        that keeps its tensor keeps its nominal value too, so replacing one field and assigning the whole never counts a
        random draw twice. Fields may require gradients; assign them before each window.

        Raises ValueError for a wrong shape, and for a value that is not finite or cannot be physical.
        """
        return self._parameters

    @parameters.setter
    def parameters(self, parameters: Parameters) -> None:
        tensors = snapshot.flatten_parameters(parameters, "")
        self._require_idle()
        snapshot.require_same_shapes(tensors, snapshot.flatten_parameters(self._nominal, ""), "parameters")
        parameters.require_physical()
        current = zip(Parameters.names(), parameters.tensors(), self._parameters.tensors(), strict=True)
        nominal = self._nominal.replace(**{name: new for name, new, old in current if new is not old})
        self.randomization.require_possible(nominal, self.model)
        self._nominal, self._parameters = nominal, parameters

    @property
    def nonfinite_gradients(self) -> int:
        """How many times, since the start, a world's gradient was not finite and was dropped."""
        return self.simulator.nonfinite_gradients

    def check_gradients(
        self, horizons: Sequence[int] = (1, 2, 5, 20, 32), *, worlds: int = 8, directions: int = 2, seed: int = 0
    ) -> "GradientReport":
        """Is the gradient right? Compares it with central differences, in a float64 simulation of its own with this
        environment's task, contact law and nominal parameters; this environment is left alone. See
        `diffenvs.gradients.check_gradients`.
        """
        # Imported here because most environments are never checked.
        from diffenvs.gradients import check_gradients

        return check_gradients(self, self._nominal, horizons, worlds=worlds, directions=directions, seed=seed)

    def mujoco_model(self) -> Any:
        """Compiled `mujoco.MjModel` of the robot on the floor, with this environment's simulation step."""
        return mujoco_model(self.model, timestep=self.simulator.timestep, friction=self.model.friction)

    def state_dict(self) -> dict[str, Tensor]:
        """Everything needed to continue bit for bit, by name."""
        self._require_ready()
        tensors = {
            **snapshot.flatten_state(self._state, "state."),
            **snapshot.flatten_parameters(self._parameters, "parameters."),
            **snapshot.flatten_parameters(self._nominal, "nominal."),
            **{f"random.{name}": value for name, value in self._random.state_dict().items()},
            "observation": self._obs.detach(),
        }
        # Copies, because file formats such as safetensors refuse tensors that share their memory.
        return {name: value.clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue where `state_dict` was taken. Raises ValueError, and changes nothing, if that was of another
        environment, or holds numbers that no environment has.
        """
        self._require_idle()
        if self._state is None:
            self.reset(seed=0)
        snapshot.require_same_shapes(state, self.state_dict(), "state dict")
        state = {name: value.to(self.device, copy=True) for name, value in state.items()}
        parameters, nominal = (snapshot.restore_parameters(state, prefix) for prefix in ("parameters.", "nominal."))
        placed = snapshot.restore_state(state, self._state, "state.")
        for values in (parameters, nominal):
            values.require_physical()
        self.randomization.require_possible(nominal, self.model)
        require_placeable(self.model, placed)
        self._random.load_state_dict({name: state[f"random.{name}"] for name in ("key", "drawn")})
        self._parameters, self._nominal, self._state, self._obs = parameters, nominal, placed, state["observation"]

    def _restart(self, worlds: Tensor) -> None:
        """New episodes in these worlds."""
        random = self._random.select(worlds)
        self._state, self._parameters = restart(
            self.task, self.simulator, random, self._nominal, self._state, self._parameters, worlds, self.randomization
        )

    def _give(self, value: Tensor) -> Any:
        """A copy for the caller, in the array type asked for."""
        value = value.detach()
        return value.clone() if self.array_type == "torch" else value.cpu().numpy().copy()

    def _require_ready(self) -> None:
        if self._state is None:
            raise gym.error.ResetNeeded("call reset() before anything that needs a state")

    def _require_idle(self) -> None:
        if self.closed:
            raise RuntimeError("this environment is closed")
        if self._rollout is not None:
            raise RuntimeError("a rollout is open: leave its with-block first")
