"""Proximal policy optimisation (Schulman et al. 2017) in the manner of RSL-RL, from samples.

One iteration: roll a window without a graph, estimate advantages, then a few passes of minibatch steps on the
clipped surrogate and the value loss, with a learning rate that follows the KL divergence. ``shac.py`` has the
same shape.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from agents.bounds import require_finite, require_fraction, require_positive
from agents.episodes import Window
from agents.networks import Actor, Critic
from agents.normalize import Normalizer
from agents.optimizer import Adam
from agents.parallel import ALONE, Alone
from agents.returns import gae


@dataclass(frozen=True)
class PpoSettings:
    """Settings of PPO; the defaults are those of Schwarke et al. 2025, Tables 5 and 6 (forward walking).

    What those tables leave open follows RSL-RL.
    """

    iterations: int = 1000
    """Windows, each with ``passes`` x ``minibatches`` steps of both networks."""
    num_envs: int = 2048
    """Worlds."""
    horizon: int = 24
    """Control steps in a window."""
    gamma: float = 0.99
    """Discount per control step."""
    lam: float = 0.95
    """Lambda of the generalised advantage estimate."""
    lr: float = 1e-3
    """First learning rate."""
    lr_range: tuple[float, float] = (1e-5, 1e-2)
    """Bounds of the learning rate."""
    desired_kl: float = 0.01
    """Divergence per minibatch step that the learning rate aims at."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of Adam's moments."""
    passes: int = 5
    """Passes over a window's samples."""
    minibatches: int = 4
    """Minibatches in a pass."""
    ratio_clip: float = 0.2
    """Bound on the change of the probability ratio."""
    value_weight: float = 1.0
    """Weight of the value loss."""
    entropy_weight: float = 0.0
    """Weight of the entropy bonus."""
    grad_clip: float = 1.0
    """Largest norm of the gradient of both networks together."""
    actor_hidden: tuple[int, ...] = (128, 64, 32)
    """Widths of the actor's hidden layers."""
    critic_hidden: tuple[int, ...] = (64, 64)
    """Widths of the critic's hidden layers."""
    layer_norm: bool = False
    """LayerNorm after every hidden layer."""
    last_gain: float = 0.1
    """Gain of the actor's last layer at the start."""
    log_std: float = 0.0
    """Logarithm of the initial action noise."""
    observation_clip: float = 10.0
    """Bound on normalised observations."""
    stagger: bool = True
    """Start the worlds at random episode ages, so that they are not truncated all at once."""

    def __post_init__(self) -> None:
        require_finite(self)
        require_positive(self, "iterations", "num_envs", "horizon", "lr", "desired_kl")
        require_positive(self, "passes", "minibatches", "ratio_clip", "grad_clip")
        require_fraction(self, "gamma", "lam")


class Ppo:
    """State of a PPO training.

    Args:
        settings: see :class:`PpoSettings`.
        observation, action: widths of the spaces.
        seed: of the initial weights, the action noise and the order of the minibatches.
        dtype, device: of the networks; those of the environment.
        ranks: the processes that train it together, each on its part of the worlds.
    """

    name = "ppo"
    settings_type = PpoSettings

    def __init__(
        self,
        settings: PpoSettings,
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
            squash=False,
            **options,
        ).to(device)
        self.critic = Critic(observation, settings.critic_hidden, **options).to(device)
        self.normalizer = Normalizer(observation, settings.observation_clip, dtype=dtype, device=device)
        self.optimizer = Adam(nn.ModuleList([self.actor, self.critic]), settings.betas)
        self.learning_rate = settings.lr

    def update(self, envs, iteration: int) -> tuple[Window, dict[str, float]]:
        """One iteration on ``envs``; returns the window and the numbers to log.

        Raises:
            FloatingPointError: rewards or values are not finite though no world was flagged.
        """
        settings = self.settings
        started = time.perf_counter()
        noise = self._noise(settings.horizon, envs.num_envs)
        means = []
        with torch.no_grad(), envs.unwrapped.rollout(settings.horizon) as rollout:
            std = self.actor.log_std.exp()
            for t in range(settings.horizon):
                means.append(self.actor(self.normalizer(rollout.obs)))
                rollout.step(torch.addcmul(means[-1], std, noise[t]))
        rolled = time.perf_counter()

        window = Window.of(rollout)
        observations = self.ranks.gather(rollout.observations, 1)
        numbers = self._learn(self._samples(window, rollout, observations, torch.stack(means), noise))
        self.normalizer.update(observations)
        return window.of_all(self.ranks), {
            **numbers,
            "std": float(self.actor.log_std.detach().exp().mean()),
            "learning_rate": self.learning_rate,
            "seconds_rollout": rolled - started,
            "seconds_learning": time.perf_counter() - rolled,
        }

    def act(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Action (N, nu) for raw observations (N, obs): the mean, or a sample moved by unit ``noise``."""
        return self.actor(self.normalizer(observation), noise)

    def state_dict(self) -> dict:
        """Everything needed to continue to the same curve: nested dictionaries of tensors."""
        return {name: part.state_dict() for name, part in self._parts().items()} | {
            "generator": self.generator.get_state(),
            "learning_rate": torch.tensor(self.learning_rate, dtype=torch.float64),
        }

    def load_state_dict(self, state: dict) -> None:
        """Continues from :meth:`state_dict`."""
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        self.learning_rate = float(state["learning_rate"])

    @torch.no_grad()
    def _samples(
        self, window: Window, rollout, observations: Tensor, means: Tensor, noise: Tensor
    ) -> tuple[Tensor, ...]:
        """Per sample of all worlds: observation, action, its mean and log-probability, return, advantage.

        ``observations`` (T, N, obs) are those of all worlds, the other arguments this process's.
        """
        settings = self.settings
        observations = self.normalizer(observations)
        values = self.critic(observations[:, self.ranks.part(observations.shape[1])])
        next_values = self.critic(self.normalizer(rollout.final_observations))
        advantages = gae(
            window.rewards,
            values,
            next_values,
            window.terminated,
            window.truncated,
            settings.gamma,
            settings.lam,
        )
        log_std = self.actor.log_std.detach()
        # The sample before the environment clips it: the ratio needs the probability of what was drawn.
        actions = torch.addcmul(means, log_std.exp(), noise)
        own = (actions, means, log_probability(actions, means, log_std), advantages + values, advantages)
        *columns, advantages = self.ranks.gather_each(own, 1)
        if not bool(torch.isfinite(advantages).all()):
            raise FloatingPointError("advantages are not finite, although no world was flagged as such")
        advantages = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
        return tuple(column.flatten(0, 1) for column in (observations, *columns, advantages))

    def _learn(self, samples: tuple[Tensor, ...]) -> dict[str, float]:
        settings = self.settings
        old_log_std = self.actor.log_std.detach().clone()
        norms, skipped, squares = [], 0, 0.0
        for _ in range(settings.passes):
            order = torch.randperm(len(samples[0]), generator=self.generator, device=samples[0].device)
            squares = 0.0
            for batch in order.chunk(settings.minibatches):
                part = batch[self.ranks.part(len(batch))]
                observation, action, old_mean, old_log_prob, target, advantage = (
                    column.index_select(0, part) for column in samples
                )
                mean, log_std = self.actor(observation), self.actor.log_std
                self._adapt(mean.detach(), log_std.detach(), old_mean, old_log_std)

                ratio = (log_probability(action, mean, log_std) - old_log_prob).exp()
                clipped = ratio.clamp(1.0 - settings.ratio_clip, 1.0 + settings.ratio_clip)
                # Sums over this process's part, divided by the whole: added up they are the means.
                surrogate = -torch.minimum(ratio * advantage, clipped * advantage).sum() / len(batch)
                value_loss = functional.mse_loss(self.critic(observation), target, reduction="sum") / len(batch)
                entropy = (log_std + 0.5 * math.log(2.0 * math.pi * math.e)).sum() * (len(part) / len(batch))

                self.optimizer.zero()
                loss = surrogate + settings.value_weight * value_loss - settings.entropy_weight * entropy
                loss.backward()
                self.ranks.add(self.optimizer.gradients)
                norms.append(float(self.optimizer.clip(settings.grad_clip)))
                # A gradient that is not finite is dropped, not repaired: no part of it can be trusted.
                if math.isfinite(norms[-1]):
                    self.optimizer.step(self.learning_rate)
                else:
                    skipped += 1
                squares += float(value_loss.detach()) * len(batch)
        return {
            "grad_norm": sum(norms) / len(norms),
            "skipped": skipped,
            "value_loss": self.ranks.total(squares) / len(samples[0]),
        }

    @torch.no_grad()
    def _adapt(self, mean: Tensor, log_std: Tensor, old_mean: Tensor, old_log_std: Tensor) -> None:
        """Changes the learning rate by a factor of 1.5 when the divergence is off its aim by one of 2."""
        settings = self.settings
        moved = ((2.0 * old_log_std).exp() + (old_mean - mean) ** 2) / (2.0 * (2.0 * log_std).exp())
        kl = self.ranks.mean((log_std - old_log_std + moved - 0.5).sum(-1))
        low, high = settings.lr_range
        if kl > 2.0 * settings.desired_kl:
            self.learning_rate = max(low, self.learning_rate / 1.5)
        elif 0.0 < kl < 0.5 * settings.desired_kl:
            self.learning_rate = min(high, self.learning_rate * 1.5)

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
            "normalizer": self.normalizer,
            "optimizer": self.optimizer,
        }


def log_probability(action: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Log-density (...) of actions (..., nu) under independent Gaussians."""
    unit = (action - mean) * (-log_std).exp()
    return (-0.5 * unit**2 - log_std - 0.5 * math.log(2.0 * math.pi)).sum(-1)
