"""Tables: the two renderings, and the cells that go into them."""

import pytest

from leaderboard.tables import Table, percent, plus_minus, seconds

TABLE = Table(
    "Laws",
    ("law", "return", "kept"),
    (("soft", "1997 ± 1", "14 %"), ("smoothed", "1979", "99 %")),
    ("A **note** on `soft`.",),
)


def test_markdown():
    assert TABLE.markdown() == (
        "## Laws\n\n"
        "| law | return | kept |\n"
        "| --- | ---: | ---: |\n"
        "| soft | 1997 ± 1 | 14 % |\n"
        "| smoothed | 1979 | 99 % |\n\n"
        "A **note** on `soft`.\n"
    )
    assert TABLE.markdown(heading=None).startswith("| law |")
    assert TABLE.markdown(heading=3).startswith("### Laws")


def test_text_is_aligned():
    assert TABLE.text() == (
        "Laws\n"
        "law         return  kept\n"
        "------------------------\n"
        "soft      1997 ± 1  14 %\n"
        "smoothed      1979  99 %\n"
        "A note on soft.\n"
    )


def test_columns_of_words_are_aligned_left():
    table = Table("Worlds", ("id", "task", "size"), (("a", "walk", "49"),), labels=2)
    assert "| --- | --- | ---: |" in table.markdown()
    assert table.text().splitlines()[-1] == "a   walk    49"


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="row \\('soft',\\) has 2 cells for 3 columns"):
        Table("Laws", ("law", "return", "kept"), (("soft", "1"),))


def test_cells():
    assert plus_minus(2231.4, 191.6) == "2231 ± 192"
    assert plus_minus(9.694, 0.276, 2) == "9.69 ± 0.28"
    assert plus_minus(2231.4, None) == "2231"
    assert percent(0.976) == "98 %"
    assert seconds(241.3) == "241 s"
    assert seconds(None) == "-"
