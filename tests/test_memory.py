"""What a rollout keeps for its backward pass: the bytes that docs/performance.md states, whatever the contact law."""

import re
from pathlib import Path

import pytest
import torch

import diffenvs
from diffenvs.sim.contact import CONTACT

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def kept(env_id: str, law: str, worlds: int, horizon: int) -> int:
    """Bytes of all memory that torch saves for the backward pass of the physics, each counted once."""
    env = diffenvs.DiffVecEnv(env_id, num_envs=worlds, contact=law, threads=1)
    env.reset(seed=0)
    memory = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        memory[storage.data_ptr()] = storage.nbytes()
        return tensor

    actions = torch.zeros(horizon, *env.action_space.shape, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), env.rollout(horizon) as rollout:
        for action in actions:
            rollout.step(action)
        loss = rollout.discounted_return(0.99)
    assert loss.requires_grad
    return sum(memory.values())


def documented() -> dict[str, int]:
    """Bytes per world and control step, by environment."""
    rows = re.findall(r"^\| `(Diff\w+-v0)` \| ([0-9]+) B", PAGE.read_text(), re.M)
    return {env_id: int(size) for env_id, size in rows}


def test_every_environment_is_documented():
    assert set(documented()) == {row.id for row in diffenvs.ENVS}


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("env_id", [row.id for row in diffenvs.ENVS])
def test_bytes_per_world_and_control_step(env_id, law):
    """F1: linear in horizon and in worlds, flat in the number of substeps, and as documented."""
    size = documented()[env_id]
    few, more, many = kept(env_id, law, 8, 4), kept(env_id, law, 8, 12), kept(env_id, law, 24, 12)
    assert more - few == 8 * 8 * size
    # but for the task's constants, which all worlds share
    assert 0 <= 3 * more - many < 1000
