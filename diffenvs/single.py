"""One world as an ordinary Gymnasium environment, in NumPy."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from diffenvs.env import DiffVecEnv
from diffenvs.randomization import Randomization
from diffenvs.task import Config, Task


class SingleEnv(gym.Env):
    """One world of a task. It has no time limit of its own: `gymnasium.make` adds the registered one, or the
    one asked for. It takes the arguments of `DiffVecEnv` that make sense for one world, and sees what world 0
    of one sees.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(
        self,
        task: str | type[Task],
        *,
        config: Config | Mapping[str, Any] | None = None,
        contact: Any = "smoothed",
        randomization: Randomization | Mapping[str, Any] | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        threads: int | None = 1,
        render_mode: str | None = None,
    ):
        self._worlds = DiffVecEnv(
            task,
            1,
            config=config,
            contact=contact,
            randomization=randomization,
            device=device,
            dtype=dtype,
            threads=threads,
            max_episode_steps=-1,
            autoreset_mode=AutoresetMode.DISABLED,
            render_mode=render_mode,
        )
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": self._worlds.metadata["render_modes"],
            "render_fps": self._worlds.metadata["render_fps"],
        }
        self.observation_space = self._worlds.single_observation_space
        self.action_space = self._worlds.single_action_space

    @property
    def worlds(self) -> DiffVecEnv:
        """The vector environment of one world behind this one."""
        return self._worlds

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a new episode; see `DiffVecEnv.reset`. Returns the observation (obs,) and an empty info."""
        super().reset(seed=seed)
        observations, info = self._worlds.reset(seed=seed, options=options)
        return observations[0], info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One control step with an action (nu,), clipped to [-1, 1].

        Returns observation (obs,), reward, terminated, truncated (always False here) and info: the task's
        metrics by name, and "nonfinite", whether the physics left the finite numbers, which counts as
        terminated.

        Raises ValueError or TypeError for a wrong action; the state is unchanged.
        """
        if np.shape(action) != self.action_space.shape:
            raise ValueError(f"action has shape {np.shape(action)}; one world expects {self.action_space.shape}")
        observations, rewards, terminated, truncated, batch = self._worlds.step(np.asarray(action)[None])
        info = {name: float(value[0]) for name, value in batch["metrics"].items()}
        info["nonfinite"] = bool(batch["nonfinite"][0])
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> np.ndarray | None:
        """A frame (height, width, 3) uint8; None, with a warning, when made without a render mode."""
        frames = self._worlds.render()
        return None if frames is None else frames[0]

    def mujoco_model(self) -> Any:
        """See `DiffVecEnv.mujoco_model`."""
        return self._worlds.mujoco_model()

    def close(self) -> None:
        """Release what the renderer holds. A closed environment refuses to step; it may be closed twice."""
        self._worlds.close()
