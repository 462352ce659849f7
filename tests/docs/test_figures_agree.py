"""Figures that stand on several pages are the same on all of them, and the tables have them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATISTICS = "docs/statistics.md"
README = "README.md"
GOALS = "docs/performance.md"
TABLES = "docs/performance-tables.md"
COMPARISON = "docs/comparison.md"

FIGURES: dict[str, dict[str, str]] = {
    "draws over numpy": {
        README: (
            r"at ([\d.]+ to [\d.]+) times the speed of numpy's unsafe generator \(scales up to 10\)"
        ),
        GOALS: r"exact draws on one thread: .*\| ([\d.]+ to [\d.]+) × at scales up to 10",
        COMPARISON: r"10⁷ draws on one thread, scales up to 10 \| ([\d.]+ to [\d.]+) × numpy's",
    },
    "draws over OpenDP": {
        GOALS: r"1,000 × OpenDP's \| ([\d,]+ to [\d,]+) × at scales up to 10",
        COMPARISON: r"numpy's unsafe ones \| ([\d,]+ to [\d,]+) × slower than discreet",
    },
    "one number": {
        GOALS: r"one number: .*\| ([\d.]+) µs",
        COMPARISON: r"one number \| ([\d.]+) µs",
        TABLES: r"One integer by `laplace_mechanism` took ([\d.]+) µs",
    },
    "a study over DuckDB, 5 million rows": {
        GOALS: r"([\d.]+) × at 5 million \|",
        COMPARISON: r"5 million rows \| ([\d.]+) × plain DuckDB",
        TABLES: r"5 million rows: ([\d.]+) × plain DuckDB",
    },
    "a study over OpenDP": {
        GOALS: r"the same: 10 × faster than OpenDP \| (\d+) ×",
        COMPARISON: r"plain DuckDB \| (\d+) × slower than discreet",
        TABLES: r"\| 5 million \| [^|]+\| (\d+) \|",
    },
    "scales of grouped sums and means": {
        COMPARISON: r"scales ([\d,]+ and [\d,]+) \| scales 21,536,586",
        TABLES: r"were 2 · ([\d,]+ · \d+), since the three are measured together",
    },
    "std on skewed data": {
        GOALS: r"79 × on data in the middle of the bounds; (\d+ × and \d+) × on skewed data",
        STATISTICS: r"beta\(2, 5\) and beta\(2, 8\) it is\s(\d+ × and \d+) × at n = 10,000",
        TABLES: (
            r"\| std \| 10,000 \| change-one \| 50 × \| 79 × ✓ \| (\d+ × missed \| \d+) × missed"
        ),
    },
    "mean of 10⁷ doubles": {
        GOALS: r"`mean` of 10⁷ doubles: .*\| ([\d.]+) ×",
        TABLES: r"\| mean \| ([\d.]+) × \(2\.53 × in another run\)",
    },
    "a report of 21 tables": {
        GOALS: r"a report of 21 tables: .*\| ([\d.]+);",
        TABLES: r"all 21 tables of one and two \| [\d.]+ \| ([\d.]+) \|",
    },
}
"""For each figure the pages on which it stands, and where; what is in brackets must be the same."""

ERRORS = {
    "mean, private n": "| mean | add-remove |",
    "variance, public n": "| variance | change-one |",
    "median, public n": "| median | change-one |",
    "median, private n": "| median | add-remove |",
}
"""Rows of the comparison, and of the table of errors at n = 10,000 and ε = 1."""


def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def number(text: str) -> list[str]:
    """The numbers of a figure, without what joins them; rounded to two digits, as a page for people
    may be.
    """
    return [f"{float(part.replace(',', '')):.2g}" for part in re.findall(r"\d[\d,.]*", text)]


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_is_the_same_on_all_of_its_pages(figure: str) -> None:
    shown = {page: re.search(pattern, read(page)) for page, pattern in FIGURES[figure].items()}
    assert all(shown.values()), f"{figure} is not where it should be: {shown}"
    values = {page: number(match[1]) for page, match in shown.items() if match}
    assert len({tuple(value) for value in values.values()}) == 1, values


@pytest.mark.parametrize("title", ERRORS)
def test_the_errors_of_the_comparison_are_those_of_the_tables(title: str) -> None:
    section = read(TABLES).split("### Errors, n = 10,000, ε = 1\n")[1].split("### ")[0]
    [line] = [line for line in section.splitlines() if line.startswith(ERRORS[title])]
    cells = [cell.strip() for cell in line.split("|")]
    [compared] = [line for line in read(COMPARISON).splitlines() if line.startswith(f"| {title}")]
    _, _, ours, theirs, _ = (cell.strip() for cell in compared.split("|"))
    assert (ours, re.match(r"[\d.e-]+", theirs)[0]) == (cells[3], cells[8])  # type: ignore[index]


def test_the_draws_are_those_of_their_table() -> None:
    """The range at scales up to 10 is that of the rows 1/2, 1 and 10."""
    rows = re.findall(
        r"^\| (?:1/2|1|10) \| ([\d.]+) × \| ([\d.]+) × \| ([\d.]+) × \| [\d.]+ \| ([\d,]+) × \|",
        read(TABLES),
        re.M,
    )
    assert len(rows) == 3
    numpy = [float(part) for row in rows for part in row[:3]]
    opendp = [int(row[3].replace(",", "")) for row in rows]
    assert f"{min(numpy):.1f} to {max(numpy):.1f} × at scales up to 10" in read(GOALS)
    assert f"{min(opendp):,} to {max(opendp):,} × at scales up to 10" in read(GOALS)


def test_control_another_figure_is_noticed() -> None:
    assert number("1,590 to 3,120") != number("1,590 to 3,420")
    assert number("426,667 and 226") == number("426,667 · 226")
