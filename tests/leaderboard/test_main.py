"""The command line: the smallest experiment for real, and what it says to bad arguments."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leaderboard import conduct
from leaderboard.__main__ import folders, main
from leaderboard.contact_models import CONTACT_MODELS
from leaderboard.experiments import EXPERIMENTS
from leaderboard.records import MAX_BYTES, read_record, write_record
from tests.leaderboard.made_up import made_up

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_smoke(tmp_path):
    command = [
        sys.executable,
        "-m",
        "leaderboard",
        "run",
        "contact-models",
        "--preset",
        "smoke",
        "--out",
        str(tmp_path),
    ]
    kept = sorted(path for path in conduct.RESULTS.rglob("*")) if conduct.RESULTS.exists() else []
    first = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert first.returncode == 0, first.stdout + first.stderr
    for law in ("soft", "hard", "smoothed"):
        path = tmp_path / f"{law}-0.json"
        record = read_record(path)
        assert path.stat().st_size <= MAX_BYTES
        assert record.nonfinite == 0
        assert record.iterations == 3
        assert set(record.evaluations) >= {law, "hard", f"{law}-stochastic", "hard-stochastic"}
        assert all(test["return_mean"] > 0.0 for test in record.evaluations.values())
        assert f"{law}-0: training 3 iterations done" in first.stderr
    assert "2231 ± 192 / 325 ± 250" in first.stdout
    assert "kept in the hard law" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert kept == (sorted(path for path in conduct.RESULTS.rglob("*")) if conduct.RESULTS.exists() else [])

    # the same command again trains nothing and says the same
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 0
    assert second.stderr.count("finished before") == 3
    assert second.stdout.partition("Took")[0] == first.stdout.partition("Took")[0]


@pytest.mark.slow
@pytest.mark.parametrize("chosen", EXPERIMENTS[1:], ids=lambda chosen: chosen.name)
def test_smoke_of_the_others(chosen, tmp_path):
    """With real agents, to the end: every run recorded, the page and the figure written."""
    assert main(["run", chosen.name, "--preset", "smoke", "--out", str(tmp_path)]) == 0
    smoke = chosen.preset("smoke")
    records = conduct.kept_records(chosen, smoke, tmp_path)
    assert [(record.entry, record.iterations) for record in records] == [(entry.name, 3) for entry in chosen.entries]
    assert all(np.isfinite(record.evaluations[record.contact]["return_mean"]) for record in records)
    assert (tmp_path / "README.md").read_text() == conduct.report(chosen, smoke, records)
    assert (tmp_path / "figure.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "kappa"], "unknown experiment 'kappa'"),
        (["run", "contact-models", "--preset", "huge"], "unknown preset 'huge'"),
        (["run", "contact-models", "--cores", "0"], "--cores must be at least 1, got 0"),
        (["table", "contact-models", "--out", "nowhere"], "nowhere holds no results"),
        (
            ["run", "contact-models", "--preset", "smoke", "--out", str(conduct.RESULTS / "x")],
            "must not write among",
        ),
    ],
)
def test_bad_arguments_get_one_sentence_and_nothing_is_written(arguments, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("leaderboard: ")
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_where_things_go(tmp_path):
    quick, smoke = CONTACT_MODELS.preset("quick"), CONTACT_MODELS.preset("smoke")
    results, work = folders(CONTACT_MODELS, quick, None)
    assert results == ROOT / "leaderboard" / "results" / "contact-models" / "quick"
    assert work == ROOT / "runs" / "contact-models" / "quick"
    assert folders(CONTACT_MODELS, quick, tmp_path) == (tmp_path, tmp_path / "runs")
    for _ in range(2):
        results, work = folders(CONTACT_MODELS, smoke, None)
        assert not results.is_relative_to(ROOT)
        assert list(results.iterdir()) == []
        results.rmdir()


def test_table_makes_page_and_figure_from_the_json(tmp_path, capsys):
    for law in ("soft", "hard", "smoothed"):
        write_record(made_up(law, 0), tmp_path)
    assert main(["table", "contact-models", "--preset", "quick", "--out", str(tmp_path)]) == 0
    assert "Contact models, mean action" in capsys.readouterr().out
    page = (tmp_path / "README.md").read_text()
    assert "| soft | 2000 ± 25 |" in page
    assert "Commit 0123456789ab; 2 cores of a cpu" in page
    # what somebody changes by hand in the page does not survive; what the JSON says does
    path = tmp_path / "soft-0.json"
    record = json.loads(path.read_text())
    record["evaluations"]["soft"]["return_mean"] = 1234.0
    path.write_text(json.dumps(record))
    main(["table", "contact-models", "--preset", "quick", "--out", str(tmp_path)])
    assert "| soft | 1234 ± 25 |" in (tmp_path / "README.md").read_text()


def test_readme_is_rewritten_in_place(tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text()
    (tmp_path / "README.md").write_text(text.replace("<!-- environments -->\n", "<!-- environments -->\nold\n"))
    monkeypatch.setattr(conduct, "CHECKOUT", tmp_path)
    assert main(["readme"]) == 0
    assert (tmp_path / "README.md").read_text() == text


def test_results_that_are_kept_are_pages_of_their_json():
    """Committed results: each page is what its records say, and each record is a small one of its preset."""
    for chosen in EXPERIMENTS:
        for preset in chosen.presets:
            folder = conduct.default_results(chosen, preset)
            if folder.exists():
                records = conduct.kept_records(chosen, preset, folder)
                assert {path.stem for path in folder.glob("*.json")} == {
                    f"{record.entry}-{record.seed}" for record in records
                }
                assert (folder / "README.md").read_text() == conduct.report(chosen, preset, records)
                assert all((folder / record.filename).stat().st_size <= MAX_BYTES for record in records)
                assert {record.preset for record in records} == {preset.name}
                assert os.path.getsize(folder / "figure.png") > 10_000
