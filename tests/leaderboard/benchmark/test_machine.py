"""What the machine is said to be."""

from leaderboard.benchmark.machine import flags, machine


def test_flags_are_those_that_decide_on_width():
    assert flags("model name : X\nflags : fpu avx avx2 fma avx512f\nflags : sse4_2\n") == [
        "avx",
        "avx2",
        "fma",
        "avx512f",
    ]
    assert flags("Features\t: fp asimd sve\n") == ["asimd", "sve"]
    assert flags("") == []


def test_nothing_names_the_machine():
    assert set(machine()) == {"cpu", "cores", "system", "flags", "load_average"}
