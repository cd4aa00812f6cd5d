"""CONTRIBUTING's table of user reports names tests that are there, and leaves no row without one in silence."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# the reports that the table answers for, gaps as in their source
REPORTS = [f"A{n}" for n in (*range(1, 9), 10, *range(12, 18), 19, 20, *range(23, 26), 28, 29, 30, 32, 33)]
REPORTS += [f"B{n}" for n in (1, 3, 4, 7, 8, 9, 11, 13, 15, 16, 17)]
REPORTS += [f"F{n}" for n in (1, 3, 5, 6, 7, 8, 10)]


def table(text):
    """Report -> what it protects, and the tests named in its row."""
    section = text.split("## User reports and their tests")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z]\d+) \| (.+?) \| (.+?) \|$", section, re.M)
    return {report: (words, re.findall(r"`([^`]+)`", tests)) for report, words, tests in rows}


def missing(tests):
    """Those of ``file::name`` that are no test function of that file."""
    found = {}
    for file in {test.split("::")[0] for test in tests}:
        path = ROOT / file
        tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
        found[file] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return sorted(test for test in tests if test.split("::")[1] not in found[test.split("::")[0]])


def test_every_report_has_its_row():
    assert list(table((ROOT / "CONTRIBUTING.md").read_text())) == REPORTS


@pytest.mark.parametrize("report", REPORTS)
def test_the_tests_of_a_report_are_there(report):
    words, tests = table((ROOT / "CONTRIBUTING.md").read_text())[report]
    assert tests or "does not arise" in words
    assert missing(tests) == []


def test_a_test_that_is_not_there_is_noticed():
    here = "tests/test_user_reports.py::"
    named = [here + "test_every_report_has_its_row", here + "test_of_yesterday", "tests/test_nowhere.py::test_it"]
    assert missing(named) == ["tests/test_nowhere.py::test_it", here + "test_of_yesterday"]
