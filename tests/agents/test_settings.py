"""The tables of settings against the printed ones, and what is refused."""

import pytest

from agents.ppo import PpoSettings
from agents.settings import settings_for, too_few_worlds
from agents.shac import ShacSettings


def test_defaults_are_the_printed_ones():
    # Schwarke et al. 2025, Table 5 (SHAC)
    s = ShacSettings()
    assert (s.iterations, s.num_envs, s.horizon, s.gamma, s.lam) == (1000, 64, 32, 0.99, 0.95)
    assert (s.actor_lr, s.actor_lr_factor, s.critic_lr, s.critic_lr_factor) == (2e-3, 0.995, 2e-3, 0.997)
    assert (s.target_alpha, s.critic_passes, s.critic_minibatches) == (0.2, 16, 4)
    assert (s.actor_clip, s.critic_clip) == (1.0, 10.0)
    assert (s.actor_hidden, s.critic_hidden) == ((128, 64, 32), (64, 64))
    # and PPO
    p = PpoSettings()
    assert (p.iterations, p.num_envs, p.horizon, p.lr, p.desired_kl) == (1000, 2048, 24, 1e-3, 0.01)
    assert (p.gamma, p.lam, p.value_weight, p.entropy_weight) == (0.99, 0.95, 1.0, 0.0)
    assert (p.passes, p.minibatches, p.grad_clip) == (5, 4, 1.0)
    assert (p.actor_hidden, p.critic_hidden) == ((128, 64, 32), (64, 64))


def test_rows():
    assert settings_for("shac", "DiffQuadruped-v0") == ShacSettings(iterations=400, layer_norm=True, last_gain=0.5)
    anymal = settings_for("shac", "DiffAnymal-v0")
    assert (anymal.num_envs, anymal.horizon, anymal.lr_decay, anymal.stagger) == (128, 24, "linear", True)
    assert (anymal.actor_lr, anymal.actor_lr_final, anymal.critic_lr) == (2e-3, 1e-5, 2e-3)
    # Xu et al. 2022, cfg/shac of DiffRL, with fewer iterations, and 64 worlds of the hopper for 256
    published = {"lr_decay": "linear", "layer_norm": True}
    cartpole = ShacSettings(iterations=500, actor_lr=1e-2, critic_lr=1e-3, actor_hidden=(64, 64), **published)
    assert settings_for("shac", "DiffCartpole-v0") == cartpole
    assert settings_for("shac", "DiffHopper-v0") == ShacSettings(iterations=600, critic_lr=2e-4, **published)
    assert settings_for("shac", "DiffCheetah-v0") == ShacSettings(iterations=600, **published)
    mass = settings_for("shac", "DiffFallingMass-v0")
    assert (mass.horizon, mass.gamma) == (20, 1.0)
    assert settings_for("shac", "Unknown-v0") == ShacSettings()
    assert settings_for("ppo", "Unknown-v0") == PpoSettings()


def test_warning_about_few_worlds():
    assert too_few_worlds("shac", "DiffQuadruped-v0", 16) is None
    assert too_few_worlds("shac", "DiffQuadruped-v0", 15) == (
        "num_envs is 15, far below the 64 that DiffQuadruped-v0 is tuned for"
    )
    assert too_few_worlds("ppo", "Unknown-v0", 1) is None


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (ShacSettings, "num_envs", 0),
        (ShacSettings, "horizon", -1),
        (ShacSettings, "gamma", 1.5),
        (ShacSettings, "target_alpha", -0.1),
        (ShacSettings, "critic_minibatches", 0),
        (ShacSettings, "actor_lr", float("nan")),
        (PpoSettings, "minibatches", 0),
        (PpoSettings, "lam", float("nan")),
        (PpoSettings, "desired_kl", 0.0),
    ],
)
def test_refused_with_a_sentence(kind, field, value):
    with pytest.raises(ValueError, match=f"{field} is .* in {kind.__name__}: expected"):
        kind(**{field: value})
