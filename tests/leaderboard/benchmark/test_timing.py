"""Turns: order, medians, samples long enough to be measured, processors."""

import pytest

from leaderboard.benchmark.outcome import microseconds
from leaderboard.benchmark.timing import take_turns
from tests.leaderboard.benchmark.made_up import Time


def test_contestants_take_turns_with_the_reference():
    time = Time()
    courses = [time.course("a", [1.0]), time.course("b", [1.0])]
    reference = time.course("mujoco", [1.0])
    take_turns(courses, reference, repetitions=2, least_seconds=0.0, clocks=time.clocks())
    warm_up, turns = time.order[:3], time.order[3:]
    assert sorted(warm_up) == ["a", "b", "mujoco"]
    assert turns == ["a", "mujoco", "b", "mujoco"] * 2


def test_a_busy_moment_falls_on_both_and_leaves_the_median_ratio():
    time = Time()
    # the first number is the warm-up; in the third repetition everything takes ten times as long
    course = time.course("a", [9.0, 2.0, 2.0, 20.0, 2.0, 2.2], control_steps=4)
    reference = time.course("mujoco", [9.0, 1.0, 1.0, 10.0, 1.0, 1.0], control_steps=2)
    (turns,) = take_turns([course], reference, repetitions=5, least_seconds=0.0, clocks=time.clocks())
    assert [sample.seconds for sample in turns.samples] == pytest.approx([0.5, 0.5, 5.0, 0.5, 0.55])
    assert microseconds(turns.samples) == pytest.approx(0.5e6)
    assert turns.ratio == pytest.approx((2.0 / 4) / (1.0 / 2))


def test_a_short_course_runs_often_enough_for_a_sample():
    time = Time()
    course, reference = time.course("a", [0.001]), time.course("mujoco", [1.0])
    (turns,) = take_turns([course], reference, repetitions=1, least_seconds=0.01, clocks=time.clocks())
    assert time.order.count("a") == 1 + 10
    assert turns.samples[0].seconds == pytest.approx(0.001)


def test_processors_are_processor_time_over_wall_time():
    time = Time()
    course = time.course("a", [1.0], processors=1.7)
    reference = time.course("mujoco", [1.0])
    (turns,) = take_turns([course], reference, repetitions=3, least_seconds=0.0, clocks=time.clocks())
    assert [sample.processors for sample in turns.samples] == pytest.approx([1.7] * 3)


def test_no_repetitions_is_refused():
    time = Time()
    with pytest.raises(ValueError, match="repetitions is 0, expected at least 1"):
        take_turns([], time.course("mujoco", [1.0]), repetitions=0, least_seconds=0.0, clocks=time.clocks())
