"""The report on gradients: right where they are right, wrong where they are wrong, and nothing left out."""

import dataclasses
import functools
import json

import pytest
import torch

import diffenvs
from diffenvs import Parameters
from diffenvs.gradients import differences, draw
from diffenvs.gradients.check import sum_up
from diffenvs.gradients.differences import STEPS, judge, tolerance
from diffenvs.gradients.probes import Probes
from diffenvs.gradients.start import REACH, draw_start, make_twin
from diffenvs.gradients.window import INPUTS, OBJECTIVES, gradients_of, run
from diffenvs.gradients.witness import Witness
from diffenvs.sim import program
from diffenvs.sim.contact import CONTACT
from diffenvs.sim.launches import Launches
from diffenvs.sim.scratch import Scratch
from tests.conftest import Counter
from tests.influence import influential, short_window, smallest

IDS = [row.id for row in diffenvs.ENVS]
HORIZONS = (1, 2, 5)


@functools.cache
def report(env_id, law):
    """A small report, made once."""
    env = diffenvs.DiffVecEnv(env_id, contact=law, config=short_window(env_id).start)
    return env.check_gradients(HORIZONS, worlds=short_window(env_id).worlds)


def twin(env_id, law, worlds):
    """The float64 environment that a check runs in."""
    env = diffenvs.DiffVecEnv(env_id, contact=law)
    return make_twin(env, env.parameters, worlds)


# --- what it says of the simulator ---


@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("env_id", IDS)
def test_every_input_is_right(env_id, law):
    found = report(env_id, law)
    inputs = influential(env_id, INPUTS, short=True)
    assert {found.verdicts[name] for name in inputs} == {"right"}, str(found)
    assert found.fault is None
    assert short_window(env_id).least_touching < found.touching < 1.0
    for entry in found.entries:
        assert entry.wrong == 0
        assert entry.probes == short_window(env_id).worlds * 2
        if entry.input in inputs and entry.worst is None:
            assert entry.size < short_window(env_id).too_small
        elif entry.input in inputs:
            assert entry.worst <= tolerance(entry.horizon)
    assert {entry.input for entry in found.entries} >= set(inputs)
    assert len(found.entries) == len(found.inputs) * len(HORIZONS) * len(OBJECTIVES)


@pytest.mark.parametrize("name", Parameters.names())
@pytest.mark.parametrize("law", CONTACT)
@pytest.mark.parametrize("env_id", IDS)
def test_every_parameter_has_a_gradient_where_differences_say_so(env_id, law, name):
    if not influential(env_id, (name,), short=True):
        pytest.skip(f"{name} has hardly any influence on {env_id}")
    entries = report(env_id, law).select(input=name, horizon=HORIZONS[-1])
    assert {entry.kind for entry in entries} == {None}
    # differences that are not zero, and a gradient that agrees with them
    assert all(entry.right > entry.idle for entry in entries)
    assert all(entry.worst <= tolerance(HORIZONS[-1]) for entry in entries)
    assert max(entry.size for entry in entries) > smallest(env_id)


# --- negative controls: simulators that are wrong ---


class NoRecompute(Launches):
    """The backward pass reads what the last forward pass happened to leave."""

    def substep(self, s, slot, total):
        return [] if total is self.scratch.total else super().substep(s, slot, total)


class OneSolver(Scratch):
    """Substeps share the solver's scratch, so that every adjoint but the last reads the last substep's."""

    def __init__(self, fields, *, substeps, **options):
        super().__init__(fields, substeps=substeps, **options)
        self.solver.slots = [self.solver.slots[0]] * substeps


class OneDynamics(Scratch):
    """Substeps share mass matrix, bias and Jacobian."""

    def __init__(self, fields, *, substeps, **options):
        super().__init__(fields, substeps=substeps, **options)
        self.dynamics.slots = [self.dynamics.slots[0]] * substeps


@pytest.mark.parametrize("law", CONTACT)
def test_a_backward_pass_without_its_recompute_is_called_wrong(law, monkeypatch):
    monkeypatch.setattr(program, "Launches", NoRecompute)
    found = diffenvs.DiffVecEnv("DiffQuadruped-v0", contact=law).check_gradients((2,), worlds=2)
    assert found.verdict == "wrong"
    assert {found.verdicts[name] for name in ("qpos", "qvel", "action", "mass")} == {"wrong"}
    assert found.fault.horizon == 2
    assert f"{law.capitalize()}(" in str(found).splitlines()[0]
    assert "the gradient is wrong" in str(found).splitlines()[0]
    assert "first fault on the way back" in str(found)


@pytest.mark.parametrize("scratch", [OneSolver, OneDynamics])
@pytest.mark.parametrize("law", CONTACT)
def test_a_buffer_shared_between_substeps_is_called_wrong(law, scratch, monkeypatch):
    monkeypatch.setattr(program, "Scratch", scratch)
    found = diffenvs.DiffVecEnv("DiffAnymal-v0", contact=law).check_gradients((1,), worlds=2)
    assert found.verdict == "wrong"
    assert {found.verdicts[name] for name in ("qpos", "qvel", "mass", "armature")} == {"wrong"}
    assert (found.fault.horizon, found.fault.step) == (1, 0)
    assert set(found.fault.arrays.values()) == {"off"}


def test_one_substep_has_nothing_to_share(monkeypatch):
    # so the control above fails for its reason and no other
    monkeypatch.setattr(program, "Scratch", OneSolver)
    assert diffenvs.DiffVecEnv("DiffQuadruped-v0").check_gradients((1,), worlds=2).verdict == "right"


# --- negative controls: tasks that are wrong ---


class Rail(Counter):
    """Pushes a cart towards the origin; right."""

    observation_size = 2

    def observe(self, state):
        return torch.cat((state.qpos, state.qvel), -1)

    def reward(self, state, action, next_state):
        return -next_state.qpos[..., 0].square() - next_state.qvel[..., 0].square()


class Blind(Rail):
    def reward(self, state, action, next_state):
        return super().reward(state, action, next_state.detach())


class Undefined(Rail):
    def observe(self, state):
        return super().observe(state) + torch.sqrt(0.0 * state.qpos)


class Cut(Rail):
    def disturb(self, random, state):
        return state.detach() if int(state.elapsed[0]) % 3 == 0 else state


def of_cart(task, horizons=(1, 2, 4)):
    return diffenvs.DiffVecEnv(task).check_gradients(horizons, worlds=2)


def test_a_task_of_the_users_own():
    found = of_cart(Rail)
    assert found.verdict == "right"
    # no contacts, so no inputs that describe them; friction is there and does nothing
    assert set(INPUTS) - set(found.inputs) == {"contact_pos", "contact_radius"}
    assert found.touching == 0.0
    friction = next(line for line in str(found).splitlines() if line.startswith("friction"))
    assert friction.endswith("right, no influence")


def test_a_gradient_that_is_zero():
    found = of_cart(Blind)
    assert {e.kind for e in found.select(objective="return", input="qvel")} == {"zero"}
    assert {e.kind for e in found.select(objective="state", input="qvel")} == {None}
    assert found.verdict == "wrong"
    assert (found.fault.objective, found.fault.step, found.fault.gradient) == ("return", 0, 0.0)
    assert found.fault.arrays["qvel"] == "zero"
    assert found.fault.difference != 0.0


def test_a_gradient_that_is_not_finite():
    found = of_cart(Undefined)
    assert {e.kind for e in found.select(objective="observation", input="qpos")} == {"not finite"}
    assert not any(e.wrong for e in found.select(objective="return"))
    assert found.fault.arrays["qpos"] == "not finite"
    json.dumps(found.record(), allow_nan=False)


def test_the_first_step_on_the_way_back_that_loses_the_gradient_is_named():
    # world 0 begins at age 0, so the graph ends behind the step with index 2
    found = of_cart(Cut, (2,))
    assert found.verdict == "right"
    found = of_cart(Cut, (2, 3))
    assert (found.fault.objective, found.fault.horizon, found.fault.step) == ("state", 3, 2)
    assert found.fault.arrays == {"qpos": "zero", "qvel": "zero", "action": "zero"} | found.fault.arrays
    assert set(found.fault.arrays.values()) == {"zero"}
    found = of_cart(Cut, (5,))
    assert (found.fault.objective, found.fault.horizon, found.fault.step) == ("return", 5, 2)
    assert found.fault.arrays["qvel"] == "off"
    assert "from the return of 5 step(s), at step 2: the gradient to qpos, qvel" in str(found)


# --- how it knows ---


def probe(error=0.0, noise=0.0, apart=False, scale=1.0):
    """Verdict on the derivative of scale sin(x) at 0.3, wrong by a share of `error`."""
    steps = torch.tensor(STEPS, dtype=torch.float64).view(-1, 1, 1)
    shake = noise * torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64).view(-1, 1, 1)
    plus, minus = scale * torch.sin(0.3 + steps) + shake, scale * torch.sin(0.3 - steps)
    derivative = scale * torch.cos(torch.tensor([[0.3]], dtype=torch.float64)) * (1.0 + error)
    at = torch.full((len(STEPS), 1, 1), apart)
    found = judge(plus, minus, at, derivative, derivative[0].abs(), horizon=1)
    verdicts = [name for name in ("right", "wrong", "crossed") if getattr(found, name).item()]
    assert len(verdicts) <= 1
    return verdicts[0] if verdicts else "too small to tell"


def test_a_probe_is_judged():
    assert probe() == "right"
    assert probe(error=1e-6) == "wrong"
    assert probe(error=-1.0) == "wrong"
    assert probe(error=float("nan")) == "wrong"
    assert probe(error=1e-6, apart=True) == "crossed"
    # a difference that depends on the step size knows nothing as small as this error
    assert probe(error=1e-6, noise=1e-9) == "too small to tell"
    assert probe(error=0.1, noise=1e-9) == "wrong"
    assert probe(error=1e-6, scale=1e-6) == "too small to tell"


def test_two_neighbouring_steps_on_one_side_are_enough():
    steps = torch.tensor(STEPS, dtype=torch.float64).view(-1, 1, 1)
    # a kink at 3e-6: the two larger steps reach across it
    plus, minus = steps + (steps - 3e-6).clamp(min=0.0), -steps
    one = torch.ones(1, 1, dtype=torch.float64)
    found = judge(plus, minus, steps > 3e-6, one, one[0], horizon=1)
    assert found.right.all()
    assert not judge(plus, minus, torch.zeros_like(steps) > 0, 1.5 * one, one[0], horizon=1).right.any()


def test_a_foot_about_to_touch_is_counted_and_not_judged():
    env = twin("DiffQuadruped-v0", "hard", 2)
    start = draw_start(env, 1, 0)
    lowest = depth(env, start)
    lifted = start.values["qpos"].clone()
    lifted[:, 2] += lowest + 1e-9
    start.values["qpos"] = lifted
    assert (depth(env, start) < 0.0).all()
    up = torch.zeros_like(lifted)
    up[:, 2] = 1.0
    sides = Probes(env.task, env.simulator, start, 1, 1).move("qpos", up[None])
    assert sides.apart["touch"].all()
    plus, minus = sides.plus["state"][0], sides.minus["state"][0]
    one = torch.ones(1, 2, dtype=torch.float64)
    entry = sum_up("qpos", 1, "state", judge(plus, minus, sides.apart["touch"][0], one, one[0], 1), up, None)
    assert (entry.probes, entry.crossed, entry.right, entry.wrong) == (2, 2, 0, 0)
    assert entry.worst is None
    found = dataclasses.replace(of_cart(Rail, (1,)), entries=(entry,))
    assert found.verdict == "undecided"
    assert next(line for line in str(found).splitlines() if line.startswith("across a kink")).split()[3] == "2"


def depth(env, start):
    """Of the lowest foot at mid-step (N,) [m]."""
    witness = Witness(env.simulator, 1)
    run(env.task, witness, start, start.values, 1)
    return torch.from_numpy(witness._branches.depth()).amax(1)


@pytest.mark.parametrize("law", CONTACT)
def test_probes_see_what_the_simulator_computes(law):
    env = twin("DiffAnymal-v0", law, 2)
    start = draw_start(env, 3, 0)
    with torch.no_grad():
        ours = run(env.task, env.simulator, start, start.values, 3)
    theirs = run(env.task, Witness(env.simulator, 1), start, start.values, 3)
    for name in ("qpos", "qvel", "feet"):
        assert torch.equal(getattr(ours.states, name), getattr(theirs.states, name))
    assert torch.equal(ours.rewards, theirs.rewards)


def test_what_is_differentiated_is_a_rollout(env_id):
    env = twin(env_id, "smoothed", 2)
    start = draw_start(env, 3, 0)
    saved = env.state_dict() | {f"random.{name}": value for name, value in start.streams.items()}
    env.load_state_dict(saved)
    env.state = start.state
    leaves = {name: start.values[name].clone().requires_grad_() for name in ("action", *Parameters.names())}
    env.parameters = Parameters(*(leaves[name] for name in Parameters.names()))
    with env.rollout(3) as rollout:
        for t in range(3):
            rollout.step(leaves["action"][:, t])
    window = run(env.task, env.simulator, start, {**start.values, **leaves}, 3)
    assert torch.equal(rollout.rewards, window.rewards)
    assert torch.equal(rollout.final_observations, window.observations)
    theirs = torch.autograd.grad(rollout.rewards.sum(), list(leaves.values()))
    ours = gradients_of(window.rewards.sum(), list(leaves.values()))
    for name, mine, other in zip(leaves, ours, theirs, strict=True):
        assert torch.allclose(mine, other, rtol=1e-12, atol=1e-15), name


def test_chance_is_the_same_on_both_sides():
    env = twin("DiffAnymal-v0", "smoothed", 4)
    start = draw_start(env, 3, 0)
    # a push and a new command are due, and noise is drawn in every step
    for name in ("push_due", "command_due"):
        start.state.memory[name].fill_(2)
    still = torch.zeros_like(start.values["qpos"])[None]
    sides = Probes(env.task, env.simulator, start, 3, 1).move("qpos", still)
    assert torch.equal(sides.plus["observation"], sides.minus["observation"])
    assert not torch.equal(sides.plus["observation"][0], sides.plus["observation"][2])
    once = run(env.task, env.simulator, start, start.values, 3)
    assert torch.equal(once.objectives(start.weights)["return"], sides.plus["return"][:, 0, 0])
    quiet = start.state.qvel[:, :2] - once.states.qvel[1, :, :2]
    assert (quiet.abs() > 0.05).any()


def test_worlds_are_in_mid_episode_and_actions_within_bounds(env_id):
    env = twin(env_id, "smoothed", 4)
    start = draw_start(env, 5, 0)
    assert start.state.elapsed.tolist() == [0, 5, 11, 16]
    assert start.values["action"].shape == (4, 5, env.task.action_size)
    assert start.values["action"].abs().max() <= REACH < 1.0 - 10 * STEPS[0]


def test_directions_move_a_parameter_by_its_own_size():
    value = torch.tensor([[[0.0, 3.0, 4.0], [0.0, 0.0, 0.0]]], dtype=torch.float64)
    size = differences.unit("com", value)
    assert torch.allclose(size[0, 0], torch.full((3,), 5.0, dtype=torch.float64))
    assert torch.allclose(size[0, 1], torch.full((3,), (25.0 / 6.0) ** 0.5, dtype=torch.float64))
    assert torch.equal(differences.unit("damping", torch.zeros(2, 3)), torch.ones(2, 3))
    assert torch.equal(differences.unit("friction", torch.tensor([0.5, 0.8])), torch.tensor([0.5, 0.8]))
    assert torch.equal(differences.unit("qvel", 7.0 * torch.ones(2, 3)), torch.ones(2, 3))


# --- the seam ---


def test_the_environment_is_left_alone_and_its_settings_are_used():
    env = diffenvs.DiffVecEnv(Rail, 2, array_type="torch", config={"position_weight": 2.0})
    env.reset(seed=3)
    env.parameters = env.parameters.replace(damping=torch.tensor([[0.25], [0.5]]))
    before = env.state_dict()
    found = env.check_gradients((1,), worlds=3)
    assert found.verdict == "right"
    after = env.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    checked = make_twin(env, env.parameters, 3)
    assert checked.parameters.damping.flatten().tolist() == [0.25, 0.5, 0.25]
    assert (checked.dtype, checked.task.config) == (torch.float64, env.task.config)


@pytest.mark.parametrize("wrong", [{"horizons": (0,)}, {"horizons": ()}, {"worlds": 0}, {"directions": 1.5}])
def test_bad_numbers_are_refused(wrong):
    env = diffenvs.DiffVecEnv(Rail)
    with pytest.raises(ValueError, match="expected"):
        env.check_gradients(**wrong)


def test_the_record_is_json_and_the_table_holds_every_count():
    found = of_cart(Rail)
    record = json.loads(json.dumps(found.record(), allow_nan=False))
    assert record["verdict"] == "right"
    assert record["tolerance"] == {"1": 1e-7, "2": 1e-6, "4": 1e-6}
    assert len(record["entries"]) == len(found.inputs) * 3 * len(OBJECTIVES)
    lines = str(found).splitlines()
    probes = len(found.inputs) * len(OBJECTIVES) * 2 * 2
    assert any(line.startswith("across a kink") and f"of {probes} probes" in line for line in lines)
    assert sum(line.startswith("kink: ") for line in lines) == len(found.kinks[1]) == 5
    assert all(any(line.startswith(name) for line in lines) for name in found.inputs)


def test_the_figure_has_a_panel_a_report_and_a_line_an_input(tmp_path):
    found = of_cart(Rail)
    figure = draw([found, found])
    assert len(figure.axes) == 2
    for panel in figure.axes:
        assert [line.get_label() for line in panel.lines] == [*found.inputs, "tolerance"]
        assert panel.get_title().endswith("right")
    figure.savefig(tmp_path / "gradients.png")
