"""What the README says of an environment is measured on it."""

import json

from diffenvs.registry import find
from leaderboard.environment_facts import read, write


def test_facts_are_measured_written_and_read(tmp_path):
    path, lines = tmp_path / "facts.json", []
    facts = write(path, lines.append, (find("DiffQuadruped-v0"),), worlds=4, repetitions=1)["DiffQuadruped-v0"]
    assert (facts.observations, facts.actions, facts.bodies, facts.contacts) == (49, 12, 13, 4)
    assert (facts.control_timestep, facts.timestep) == (0.01, 0.01)
    assert facts.forward > 0.0
    assert facts.gradient > 0.0
    # it stands with no action, for about 2 a step while it does, and falls at once with random ones
    assert 100.0 < facts.random < facts.zero < 2120.0
    kept, record = read(path)
    assert kept.keys() == {"DiffQuadruped-v0"}
    assert record == json.loads(path.read_text())
    assert record["worlds"] == 4
    assert {"machine", "commit", "versions"} <= record.keys()
    assert lines[0].startswith("DiffQuadruped-v0: ")


def test_without_a_file_there_are_none(tmp_path):
    assert read(tmp_path / "none.json") == ({}, {})
