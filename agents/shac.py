"""Short-horizon actor-critic (Xu et al. 2022): the actor follows the gradient of a differentiable rollout.

One iteration: roll a window with its graph, differentiate its return plus the critic's value of the last
state, one actor step; then fit the critic to the TD(lambda) returns of the same window. ``ppo.py`` has the
same shape.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from agents.bounds import require_finite, require_fraction, require_positive
from agents.episodes import Window
from agents.networks import Actor, Critic
from agents.normalize import Normalizer
from agents.optimizer import Adam, flatten
from agents.parallel import ALONE, Alone
from agents.regression import ValueRegression
from agents.returns import td_lambda
from agents.schedule import Decay, learning_rate


@dataclass(frozen=True)
class ShacSettings:
    """Settings of SHAC; the defaults are those of Schwarke et al. 2025, Tables 5 and 6 (forward walking).

    What those tables leave open follows Xu et al. 2022 (tanh, Adam's betas, log_std), except ``last_gain``.
    """

    iterations: int = 1000
    """Windows, each with one actor step."""
    num_envs: int = 64
    """Worlds."""
    horizon: int = 32
    """Control steps in a window."""
    gamma: float = 0.99
    """Discount per control step."""
    lam: float = 0.95
    """Lambda of the TD(lambda) value targets."""
    lr_decay: Decay = "exponential"
    """Shape of both learning rates: start * factor^iteration, or a line from start to final."""
    actor_lr: float = 2e-3
    """Actor's first learning rate."""
    actor_lr_factor: float = 0.995
    """Actor's factor per iteration (exponential)."""
    actor_lr_final: float = 1e-5
    """Actor's last learning rate (linear)."""
    critic_lr: float = 2e-3
    """Critic's first learning rate."""
    critic_lr_factor: float = 0.997
    """Critic's factor per iteration (exponential)."""
    critic_lr_final: float = 1e-5
    """Critic's last learning rate (linear)."""
    betas: tuple[float, float] = (0.7, 0.95)
    """Decay rates of Adam's moments."""
    critic_passes: int = 16
    """Passes of the critic over a window's samples."""
    critic_minibatches: int = 4
    """Minibatches in a pass."""
    target_alpha: float = 0.2
    """Target critic <- alpha * target critic + (1 - alpha) * critic, once an iteration."""
    actor_clip: float = 1.0
    """Largest norm of the actor's gradient."""
    critic_clip: float = 10.0
    """Largest norm of a critic minibatch's gradient."""
    actor_hidden: tuple[int, ...] = (128, 64, 32)
    """Widths of the actor's hidden layers."""
    critic_hidden: tuple[int, ...] = (64, 64)
    """Widths of the critic's hidden layers."""
    layer_norm: bool = False
    """LayerNorm after every hidden layer."""
    last_gain: float = 0.1
    """Initial gain of the actor's last layer; with sqrt(2) tanh starts saturated and a robot only stands."""
    log_std: float = -1.0
    """Logarithm of the initial action noise."""
    observation_clip: float = 10.0
    """Bound on normalised observations."""
    stagger: bool = False
    """Start the worlds at random episode ages, so that they are not truncated all at once."""

    def __post_init__(self) -> None:
        require_finite(self)
        require_positive(self, "iterations", "num_envs", "horizon", "actor_lr", "critic_lr")
        require_positive(self, "critic_passes", "critic_minibatches", "actor_clip", "critic_clip")
        require_fraction(self, "gamma", "lam", "target_alpha")


class Shac:
    """State of a SHAC training.

    Args:
        settings: see :class:`ShacSettings`.
        observation, action: widths of the spaces.
        seed: of the initial weights, the action noise and the order of the minibatches.
        dtype, device: of the networks; those of the environment.
        ranks: the processes that train it together, each on its part of the worlds.
    """

    name = "shac"
    settings_type = ShacSettings

    def __init__(
        self,
        settings: ShacSettings,
        observation: int,
        action: int,
        *,
        seed: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        ranks: Alone = ALONE,
    ) -> None:
        self.settings = settings
        self.ranks = ranks
        self.generator = torch.Generator(device).manual_seed(seed)
        options = {
            "layer_norm": settings.layer_norm,
            "generator": torch.Generator().manual_seed(seed),
            "dtype": dtype,
        }
        self.actor = Actor(
            observation,
            settings.actor_hidden,
            action,
            log_std=settings.log_std,
            last_gain=settings.last_gain,
            squash=True,
            **options,
        ).to(device)
        self.critic = Critic(observation, settings.critic_hidden, **options).to(device)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.target_values, _ = flatten(self.target)
        self.normalizer = Normalizer(observation, settings.observation_clip, dtype=dtype, device=device)
        self.actor_optimizer = Adam(self.actor, settings.betas)
        self.critic_optimizer = Adam(self.critic, settings.betas)
        self.regression = ValueRegression(self.critic, self.critic_optimizer, clip=settings.critic_clip)

    def update(self, envs, iteration: int) -> tuple[Window, dict[str, float]]:
        """One iteration on ``envs``; returns the window and the numbers to log.

        Raises:
            FloatingPointError: rewards or values are not finite though no world was flagged.
        """
        settings = self.settings
        actor_lr, critic_lr = self._learning_rates(iteration)
        started = time.perf_counter()
        noise = self._noise(settings.horizon, envs.num_envs)
        with envs.unwrapped.rollout(settings.horizon) as rollout:
            for t in range(settings.horizon):
                rollout.step(self.actor(self.normalizer(rollout.obs), noise[t]))
            # This process's part of the mean over all worlds.
            parts = settings.horizon * self.ranks.size
            loss = -rollout.discounted_return(settings.gamma, value=self.value) / parts
        rolled = time.perf_counter()

        self.actor_optimizer.zero()
        dropped = getattr(envs.unwrapped, "nonfinite_gradients", 0)
        loss.backward()
        dropped = getattr(envs.unwrapped, "nonfinite_gradients", 0) - dropped
        self.ranks.add(self.actor_optimizer.gradients)
        grad_norm = float(self.actor_optimizer.clip(settings.actor_clip))
        # A gradient that is not finite is dropped, not repaired: no part of it can be trusted.
        finite = math.isfinite(grad_norm)
        if finite:
            self.actor_optimizer.step(actor_lr)
        differentiated = time.perf_counter()

        window = Window.of(rollout)
        observations = self.ranks.gather(rollout.observations, 1)
        value_loss = self._fit_critic(window, rollout, observations, critic_lr)
        self.normalizer.update(observations)
        return window.of_all(self.ranks), {
            "grad_norm": grad_norm,
            "skipped": int(not finite),
            "nonfinite_gradients": int(self.ranks.total(dropped)),
            "value_loss": value_loss,
            "std": float(self.actor.log_std.detach().exp().mean()),
            "learning_rate": actor_lr,
            "seconds_rollout": rolled - started,
            "seconds_backward": differentiated - rolled,
            "seconds_critic": time.perf_counter() - differentiated,
        }

    def value(self, observation: Tensor) -> Tensor:
        """Target critic's value (...) of raw observations (..., obs), differentiable in them."""
        return self.target(self.normalizer(observation))

    def act(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Action (N, nu) for raw observations (N, obs): the mean, or a sample moved by unit ``noise``."""
        return self.actor(self.normalizer(observation), noise)

    def state_dict(self) -> dict:
        """Everything needed to continue to the same curve: nested dictionaries of tensors."""
        return {name: part.state_dict() for name, part in self._parts().items()} | {
            "generator": self.generator.get_state()
        }

    def load_state_dict(self, state: dict) -> None:
        """Continues from :meth:`state_dict`."""
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.generator.set_state(state["generator"])

    @torch.no_grad()
    def _fit_critic(self, window: Window, rollout, observations: Tensor, critic_lr: float) -> float:
        """Fits the critic to the window's returns; ``observations`` (T, N, obs) are those of all worlds.

        Every process computes every minibatch: on 512 samples a step takes 0.8 ms, a message between two processes
        1.3 ms, so sharing the samples made 64 steps 2.5 times slower. On 4096 samples both take equally long.
        """
        settings = self.settings
        targets = td_lambda(
            window.rewards,
            self.value(rollout.final_observations.detach()),
            window.terminated,
            window.truncated,
            settings.gamma,
            settings.lam,
        )
        targets = self.ranks.gather(targets, 1)
        if not bool(torch.isfinite(targets).all()):
            raise FloatingPointError("value targets are not finite, although no world was flagged as such")
        value_loss = self.regression.fit(
            self.normalizer(observations).flatten(0, 1),
            targets.flatten(),
            passes=settings.critic_passes,
            minibatches=settings.critic_minibatches,
            learning_rate=critic_lr,
            generator=self.generator,
        )
        self.ranks.follow(self.critic_optimizer.values)  # machines may differ in the last bit
        self.target_values.lerp_(self.critic_optimizer.values, 1.0 - settings.target_alpha)
        return value_loss

    def _learning_rates(self, iteration: int) -> tuple[float, float]:
        s = self.settings
        return (
            learning_rate(
                s.lr_decay, iteration, s.iterations,
                start=s.actor_lr, factor=s.actor_lr_factor, final=s.actor_lr_final,
            ),
            learning_rate(
                s.lr_decay, iteration, s.iterations,
                start=s.critic_lr, factor=s.critic_lr_factor, final=s.critic_lr_final,
            ),
        )  # fmt: skip

    def _noise(self, steps: int, worlds: int) -> Tensor:
        """Unit normal numbers (steps, worlds, nu) of this process's worlds, out of those drawn for all."""
        like, total = self.actor.log_std, worlds * self.ranks.size
        shape = (steps, total, len(like))
        noise = torch.randn(shape, generator=self.generator, dtype=like.dtype, device=like.device)
        return noise[:, self.ranks.part(total)]

    def _parts(self) -> dict:
        return {
            "actor": self.actor,
            "critic": self.critic,
            "target": self.target,
            "normalizer": self.normalizer,
            "actor_optimizer": self.actor_optimizer,
            "critic_optimizer": self.critic_optimizer,
        }
