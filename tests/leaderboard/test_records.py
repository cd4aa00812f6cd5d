"""Records: schema, size, whole files, facts about the machine."""

import json
from dataclasses import fields
from itertools import pairwise

import pytest

from leaderboard.records import (
    MAX_BYTES,
    Record,
    machine,
    read_record,
    read_records,
    shortened,
    thinned,
    write_record,
    write_text,
)
from tests.leaderboard.made_up import made_up


def test_a_record_comes_back_as_it_went_up_to_six_digits(tmp_path):
    record = made_up("smoothed", 3)
    path = write_record(record, tmp_path)
    assert path.name == "smoothed-3.json"
    again = read_record(path)
    for field in fields(Record):
        assert getattr(again, field.name) == shortened(getattr(record, field.name))
    assert again.curve["return"][0] is None
    assert again.curve["return"][100] == pytest.approx(record.curve["return"][100], rel=1e-5)


def test_a_full_record_is_small_and_its_lists_take_one_line_each(tmp_path):
    path = write_record(made_up("smoothed", 0), tmp_path)
    assert path.stat().st_size <= MAX_BYTES == 20_000
    assert len(made_up("smoothed", 0).curve["return"]) == 200
    assert len(path.read_text().splitlines()) < 120


def test_a_record_that_is_too_large_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"soft-0.json has \d+ bytes, more than the 20000"):
        write_record(made_up("soft", 0, versions={"padding": "x" * 20_000}), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_non_finite_number_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Out of range float"):
        write_record(made_up("soft", 0, seconds_per_iteration={"iteration": float("nan")}), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"curve": {"iteration": [1.0] * 201}}, "at most 200"),
        ({"curve": {"iteration": [1.0], "return": [1.0, 2.0]}}, "one length"),
        ({"evaluations": {}}, "no evaluation"),
        ({"wall_seconds": float("inf")}, "wall_seconds"),
        ({"nonfinite": -1}, "nonfinite"),
        ({"schema": 2}, "schema 2 is not 1"),
    ],
)
def test_a_record_that_makes_no_sense_is_refused(changes, sentence):
    with pytest.raises(ValueError, match=f"record soft-0: .*{sentence}"):
        made_up("soft", 0, **changes)


def test_reading_names_the_file_and_the_fault(tmp_path):
    path = tmp_path / "soft-0.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"soft-0.json is not JSON"):
        read_record(path)
    path.write_text("[]")
    with pytest.raises(ValueError, match=r"soft-0.json is not a record: .* list"):
        read_record(path)
    write_record(made_up("soft", 0), tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "mood": "good"}))
    with pytest.raises(ValueError, match=r"unknown fields \['mood'\]"):
        read_record(path)


def test_records_are_read_in_the_order_asked_for(tmp_path):
    for seed in (1, 0):
        write_record(made_up("soft", seed), tmp_path)
    found = read_records(tmp_path, ["soft-0", "hard-0", "soft-1"])
    assert [record.seed for record in found] == [0, 1]


def test_a_write_that_dies_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_text(tmp_path / "deep" / "page.md", "old")

    def died(*_):
        raise OSError("no space left")

    monkeypatch.setattr("leaderboard.records.os.replace", died)
    with pytest.raises(OSError, match="no space"):
        write_text(path, "new")
    assert path.read_text() == "old"


def test_thinning_keeps_both_ends_and_the_limit():
    assert thinned(5) == [0, 1, 2, 3, 4]
    assert thinned(0) == []
    kept = thinned(1000)
    assert len(kept) == len(set(kept)) == 200
    assert (kept[0], kept[-1]) == (0, 999)
    assert {after - before for before, after in pairwise(kept)} <= {5, 6}


def test_facts_do_not_name_the_machine():
    facts = machine()
    assert set(facts) == {"cpu", "cores", "system"}
    assert facts["cores"] >= 1
    assert facts["cpu"]
