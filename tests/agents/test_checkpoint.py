"""Checkpoints: exact round trips, whole files whatever moment the process dies, refusals."""

import json
import os

import pytest
import torch

from agents import atomic, checkpoint
from agents.checkpoint import CARD, TENSORS, Checkpoint


def sample(iteration=1):
    tensors = {
        "agent": {"actor": {"body.weight": torch.randn(3, 2)}, "generator": torch.Generator().get_state()},
        "env": {
            "elapsed": torch.arange(4),
            "done": torch.tensor([True, False]),
            "q": torch.randn(2).double(),
        },
        "steps": torch.tensor(7.0),
    }
    return Checkpoint({"algorithm": "shac", "env": "A-v0", "iteration": iteration, "lr": 0.1 + 0.2}, tensors)


def flat(tree):
    return dict(checkpoint.leaves(tree))


def test_round_trip(tmp_path):
    saved = sample()
    checkpoint.save(tmp_path, saved)
    loaded = checkpoint.load(tmp_path)
    assert loaded.card == saved.card | {"format": checkpoint.FORMAT}
    assert json.loads((tmp_path / CARD).read_text()) == loaded.card
    assert flat(loaded.tensors).keys() == flat(saved.tensors).keys()
    for name, tensor in flat(loaded.tensors).items():
        assert tensor.dtype == flat(saved.tensors)[name].dtype
        assert torch.equal(tensor, flat(saved.tensors)[name]), name
    assert sorted(path.name for path in tmp_path.iterdir()) == [CARD, TENSORS]


@pytest.mark.parametrize("writes_before_death", [0, 1, 2, 3])
def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path, monkeypatch, writes_before_death):
    """Four moments: while the tensors, or the card, are being written or moved into place."""
    checkpoint.save(tmp_path, sample(iteration=1))
    calls = []

    class Killed(BaseException):
        pass

    def dying(act, *, torn):
        def wrapped(*arguments, **keywords):
            calls.append(act)
            if len(calls) > writes_before_death:
                if torn:  # half of a temporary file
                    arguments[torn - 1].write_bytes(b"half")
                raise Killed
            return act(*arguments, **keywords)

        return wrapped

    monkeypatch.setattr(checkpoint, "save_file", dying(checkpoint.save_file, torn=2))
    monkeypatch.setattr(atomic.os, "replace", dying(os.replace, torn=0))
    with pytest.raises(Killed) if writes_before_death < 3 else _nothing():
        checkpoint.save(tmp_path, sample(iteration=2))
    monkeypatch.undo()

    expected = 1 if writes_before_death < 2 else 2
    loaded = checkpoint.load(tmp_path)
    assert loaded.card["iteration"] == expected
    # the readable copy has been brought up to date
    assert json.loads((tmp_path / CARD).read_text())["iteration"] == expected


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_refusals(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no checkpoint at .*nowhere"):
        checkpoint.load(tmp_path / "nowhere")
    (tmp_path / TENSORS).write_bytes(b"not tensors at all")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        checkpoint.load(tmp_path)
    checkpoint.save(tmp_path, sample())
    whole = (tmp_path / TENSORS).read_bytes()
    (tmp_path / TENSORS).write_bytes(whole[:-20])
    with pytest.raises(ValueError, match="is not a checkpoint"):
        checkpoint.load(tmp_path)
    checkpoint.save(tmp_path, Checkpoint(sample().card | {"format": 99}, {}))
    with pytest.raises(ValueError, match="format 99"):
        checkpoint.load(tmp_path)
    with pytest.raises(ValueError, match="'a/b' contains '/'"):
        checkpoint.save(tmp_path, Checkpoint({}, {"env": {"a/b": torch.zeros(1)}}))


def test_require_same(tmp_path):
    checkpoint.require_same(tmp_path, {"env": "A-v0", "seed": 1}, env="A-v0")
    with pytest.raises(ValueError, match="has env 'A-v0', not 'B-v0'"):
        checkpoint.require_same(tmp_path, {"env": "A-v0", "seed": 1}, seed=1, env="B-v0")
