"""The long rungs of the ladder: every input and parameter over windows of 20 and 32 control steps, float64.

`tests/test_gradients_report.py` holds the same to 1, 2 and 5 steps, `tests/test_bridge.py` one step and every entry.
"""

import pytest

import diffenvs
from diffenvs.gradients.differences import tolerance
from diffenvs.gradients.window import INPUTS
from tests.influence import influential, smallest, undecided


# soft contact takes ten times the simulation steps; with too few worlds a kink in most leaves an input undecided
@pytest.mark.parametrize(
    ("law", "horizons", "worlds"),
    [("hard", (20, 32), 8), ("smoothed", (20, 32), 8), pytest.param("soft", (20,), 3, marks=pytest.mark.slow)],
)
def test_every_input_is_right_over_a_whole_window(env_id, law, horizons, worlds):
    """No probe wrong, none idle for every input but those named, and the worst within the report's own tolerance."""
    found = diffenvs.DiffVecEnv(env_id, contact=law, threads=1).check_gradients(horizons, worlds=worlds, directions=1)
    inputs = influential(env_id, INPUTS)
    unjudged = {name for name in inputs if found.verdicts[name] != "right"}
    assert unjudged <= set(undecided(env_id)), str(found)
    assert {found.verdicts[name] for name in unjudged} <= {"undecided"}, str(found)
    assert found.fault is None
    for entry in found.entries:
        assert entry.wrong == 0
        if entry.input in inputs and (entry.worst is not None or entry.input not in unjudged):
            assert entry.worst <= tolerance(entry.horizon)
    for name in inputs:
        assert max(entry.size for entry in found.select(input=name, horizon=horizons[-1])) > smallest(env_id), name
