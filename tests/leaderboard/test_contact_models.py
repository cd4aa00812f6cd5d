"""The comparison table, with made-up records: every number is where the paper's column says it is."""

from dataclasses import replace

import pytest

from leaderboard.contact_models import CONTACT_MODELS, PUBLISHED, tabulate
from leaderboard.experiments import EXPERIMENTS, experiment
from leaderboard.protocol import runs
from tests.leaderboard.made_up import made_up
from tests.leaderboard.made_up import rows as made_up_rows

LAWS = ("soft", "hard", "smoothed")


def rows(table):
    """Rows by the law that they are of."""
    return {row["trained with"]: row for row in made_up_rows(table)}


def test_the_paper_stands_beside_one_seed():
    table = rows(tabulate([made_up(law, 0) for law in LAWS])[0])
    assert list(table) == list(LAWS)
    soft = table["soft"]
    # one seed: the spread is that of its episodes
    assert (soft["return, own law"], soft["return, hard law"]) == ("2000 ± 25", "300 ± 25")
    assert (soft["episode s"], soft["episode s'"]) == ("9.76 ± 0.20", "1.46 ± 0.20")
    assert soft["kept in the hard law"] == "15 %"
    assert soft["paper: own / hard"] == "2231 ± 192 / 325 ± 250"
    assert soft["paper: episode s"] == "9.69 / 1.58"
    assert soft["paper: kept"] == "15 %"
    assert table["hard"]["kept in the hard law"] == "100 %"
    assert table["smoothed"]["paper: kept"] == "98 %"


def test_several_seeds_give_mean_and_deviation_over_seeds():
    first = tabulate([made_up(law, seed) for seed in (0, 1, 2) for law in LAWS])[0]
    # 1950, 1960, 1970: mean 1960, deviation 10
    assert rows(first)["smoothed"]["return, own law"] == "1960 ± 10"
    # 1910 of 1960
    assert rows(first)["smoothed"]["kept in the hard law"] == "97 %"
    assert "seeds 0, 1, 2" in first.notes[0]
    assert "over seeds" in first.notes[0]
    # 300, 310, 320: nothing is trimmed of three, their mean is 310
    assert "soft 310 [300, 320]" in first.notes[2]


def test_laws_may_have_different_seeds():
    records = [made_up(run.entry.name, run.seed) for run in runs(CONTACT_MODELS, CONTACT_MODELS.preset("seeds"))]
    first = tabulate(records)[0]
    assert "seeds 0, 1, 2, 3, 4 (soft, smoothed) and 0, 1, 2 (hard), 100 episodes" in first.notes[0]
    # 1950 to 1990: mean 1970, deviation sqrt(250)
    assert rows(first)["smoothed"]["return, own law"] == "1970 ± 16"
    assert rows(first)["hard"]["return, own law"] == "1910 ± 10"
    # one seed of a law: its episodes' deviation, said so, and no interval
    mixed = tabulate([made_up("soft", 0), made_up("smoothed", 0), made_up("smoothed", 1)])[0]
    assert "over seeds, or the episodes where there is one seed" in mixed.notes[0]
    assert "over seeds: smoothed 1905 [" in mixed.notes[2]


def test_what_is_kept_is_said_in_a_sentence():
    first = tabulate([made_up(law, 0) for law in LAWS])[0]
    assert first.notes[1] == (
        "In the hard law the soft-trained policy keeps 15 % of its return "
        "and the smoothed-trained policy keeps 97 % of its return."
    )
    assert len(first.notes) == 2  # no interval from one seed


def test_sampled_actions_have_their_own_table():
    record = made_up("smoothed", 0)
    evaluations = {
        **record.evaluations,
        "hard-stochastic": record.evaluations["hard"] | {"return_mean": 975.0},
    }
    tables = tabulate([made_up("smoothed", 0, evaluations=evaluations)])
    assert [table.title for table in tables[:2]] == [
        "Contact models, mean action",
        "Contact models, sampled actions",
    ]
    assert rows(tables[0])["smoothed"]["kept in the hard law"] == "97 %"
    assert rows(tables[1])["smoothed"]["kept in the hard law"] == "50 %"


def test_how_they_walked():
    walking = rows(tabulate([made_up("soft", seed) for seed in (0, 1)])[2])
    assert walking["soft"]["speed in m/s, own law"] == "0.98 ± 0.00"
    assert walking["soft"]["falls, hard law"] == "6 of 200"


def test_what_training_took():
    records = [made_up("hard", 0), made_up("hard", 1, reached={}), made_up("hard", 2)]
    table = tabulate(records)[3]
    assert rows(table)["hard"] == {
        "trained with": "hard",
        "seeds": "3",
        "per iteration": "0.170 s",
        "first 1800 at iteration": "161 (2 of 3)",
        "first 1800 after": "27 s (2 of 3)",
        "training": "71 s",
    }
    never = tabulate([made_up("hard", 0, reached={})])[3]
    assert rows(never)["hard"]["first 1800 after"] == "never"


def test_non_finite_worlds_are_shown_when_there_were_any():
    clean, bad = made_up("soft", 0), made_up("smoothed", 0, nonfinite=7)
    assert "non-finite worlds" not in tabulate([clean])[3].columns
    table = rows(tabulate([clean, bad])[3])
    assert [table[law]["non-finite worlds"] for law in ("soft", "smoothed")] == ["0", "7"]


@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)])
def test_the_figure_is_drawn_the_same_every_time(tmp_path, seeds):
    records = [made_up(law, seed) for seed in seeds for law in LAWS]
    pictures = []
    for name in ("a.png", "b.png"):
        CONTACT_MODELS.draw(records, tmp_path / name)
        pictures.append((tmp_path / name).read_bytes())
    assert pictures[0] == pictures[1]
    assert pictures[0].startswith(b"\x89PNG")


def test_a_training_too_short_for_an_episode_is_drawn_without_its_curve(tmp_path):
    curve = {name: [None, None] for name in ("return", "length")} | {"iteration": [1, 2]}
    CONTACT_MODELS.draw([made_up("soft", 0, curve=curve), made_up("hard", 0)], tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_presets_are_the_scales_they_claim():
    quick, paper = CONTACT_MODELS.preset("quick"), CONTACT_MODELS.preset("paper")
    assert (len(quick.seeds), quick.iterations, quick.episodes) == (1, 400, 100)
    assert (paper.seeds, paper.iterations, paper.episodes) == (tuple(range(10)), 1000, 100)
    # issue: at most ten minutes on two cores in all, soft on one and the others on the other
    spent = {
        run.entry.name: run.preset.iterations * run.entry.seconds_per_iteration
        + len(run.entry.evaluations) * run.entry.evaluation_seconds
        for run in runs(CONTACT_MODELS, quick)
    }
    assert max(spent["soft"], spent["hard"] + spent["smoothed"]) < 600
    assert not CONTACT_MODELS.preset("smoke").kept
    seeds = runs(CONTACT_MODELS, CONTACT_MODELS.preset("seeds"))
    assert {run.iterations for run in seeds} == {400}
    names = [run.name for run in seeds]
    assert names[:3] == ["soft-0", "hard-0", "smoothed-0"]
    assert names[-4:] == ["soft-3", "smoothed-3", "soft-4", "smoothed-4"]
    assert len(names) == len(set(names)) == 5 + 3 + 5


def test_unknown_names_are_answered_with_the_known_ones():
    assert experiment("contact-models") is CONTACT_MODELS
    with pytest.raises(ValueError, match="unknown experiment 'kappa': expected one of contact-models"):
        experiment("kappa")
    with pytest.raises(
        ValueError, match="unknown preset 'huge' of contact-models: expected one of smoke, quick, seeds, paper"
    ):
        CONTACT_MODELS.preset("huge")


def test_every_experiment_has_the_presets_and_its_own_name():
    assert len({candidate.name for candidate in EXPERIMENTS}) == len(EXPERIMENTS)
    for candidate in EXPERIMENTS:
        names = [preset.name for preset in candidate.presets]
        assert [name for name in names if name != "seeds"] == ["smoke", "quick", "paper"]
        assert len(names) == len(set(names))


def test_a_preset_that_speaks_of_an_unknown_entry_is_refused():
    stray = replace(CONTACT_MODELS.preset("quick"), own_iterations={"sofft": 3})
    with pytest.raises(ValueError, match=r"preset quick of contact-models: no entry \['sofft'\]"):
        replace(CONTACT_MODELS, presets=(stray,))


def test_the_papers_numbers():
    """Table 1 of the paper, typed a second time."""
    assert {law: (row.own, row.hard) for law, row in PUBLISHED.items()} == {
        "soft": ((2231, 192), (325, 250)),
        "hard": ((2059, 125), (2059, 125)),
        "smoothed": ((2311, 62), (2255, 99)),
    }
