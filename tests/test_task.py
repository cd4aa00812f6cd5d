from dataclasses import dataclass

import pytest
import torch

import diffenvs
from diffenvs import task
from diffenvs.task import State, resolve_config, stack


def state(n=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    return State(
        *(torch.randn(n, k, generator=g) for k in (3, 2)),
        torch.randn(n, 4, 3, generator=g),
        torch.randn(n, 2, generator=g),
        torch.arange(n) + seed,
        {"command": torch.randn(n, 3, generator=g)},
    )


def test_stacking_adds_a_leading_dimension():
    window = stack([state(seed=0), state(seed=1)])
    assert window.qpos.shape == (2, 3, 3)
    assert window.elapsed.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert torch.equal(window.memory["command"][1], state(seed=1).memory["command"])


def test_putting_rows_is_out_of_place():
    old, new = state(), state(1, seed=5)
    copy = old.qpos.clone()
    put = old.put(torch.tensor([1]), new)
    assert torch.equal(old.qpos, copy)
    assert torch.equal(put.qpos[[0, 2]], copy[[0, 2]])
    assert torch.equal(put.qpos[1], new.qpos[0])
    assert put.elapsed.tolist() == [0, 5, 2]
    assert torch.equal(put.memory["command"][1], new.memory["command"][0])


def test_replacing_and_remembering_leave_the_rest():
    old = state()
    new = old.replace(elapsed=old.elapsed + 1).remember(command=torch.zeros(3, 3), phase=torch.ones(3))
    assert new.qpos is old.qpos
    assert new.elapsed.tolist() == [1, 2, 3]
    assert new.memory.keys() == {"command", "phase"}
    assert old.memory.keys() == {"command"}


def test_detaching_cuts_every_graph():
    old = state()
    graph = old.map(lambda value: value * torch.ones((), requires_grad=True))
    detached = graph.detach()
    assert graph.memory["command"].requires_grad
    assert not any(v.requires_grad for v in (detached.qpos, detached.feet, detached.memory["command"]))


@dataclass(frozen=True)
class Settings(task.Config):
    control_timestep: float = 0.1
    timestep: float = 0.05
    speed: float = 1.0


def test_configurations_are_resolved():
    assert resolve_config(Settings, None) == Settings()
    assert resolve_config(Settings, {"speed": 2.0}) == Settings(speed=2.0)
    own = Settings(speed=3.0)
    assert resolve_config(Settings, own) is own


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        (
            {"sped": 2.0},
            ValueError,
            "config has no field 'sped'; Settings has control_timestep, timestep, speed",
        ),
        (task.Config(0.1, 0.1), TypeError, "config is a Config; expected a Settings"),
        ([1], TypeError, "config is a list; expected a Settings"),
        ({"timestep": -0.1}, ValueError, "Settings.timestep is -0.1"),
        ({"control_timestep": float("nan")}, ValueError, "Settings.control_timestep is nan"),
    ],
)
def test_bad_configurations_are_named(config, error, words):
    with pytest.raises(error, match=words):
        resolve_config(Settings, config)


def test_actuators_know_their_coordinates():
    env = diffenvs.DiffVecEnv("DiffQuadruped-v0", 1, threads=1)
    assert env.task.joint_indices() == (list(range(7, 19)), list(range(6, 18)))


def test_a_task_of_ones_own_needs_four_functions(counter):
    env = counter(2, config={"position_weight": 2.0})
    env.reset(seed=0)
    _, reward, *_ = env.step([[0.0], [0.0]])
    assert reward.tolist() == pytest.approx((1.0 + 2.0 * env.state.qpos[:, 0]).tolist())
