"""TRUST 43: a pattern costs a text of one row no more than a pass over it, on every engine.

Spark's own LIKE tries all ways to share a text out among the % of a pattern: a text of 2,000
characters against '%_%_%_%_%_%q' takes minutes. The control counts the steps of such a search on
short texts.
"""

import re
import time

import pyarrow as pa
import pytest

from conforming import in_memory, on_postgresql, on_spark
from discreet.ask import expression as ask
from discreet.engines.base import Request, Rows
from discreet.engines.sql.spark import SPARK
from discreet.engines.sql.trees import column
from discreet.verify import reference
from waiting import PATIENCE

LONGEST = reference.LONGEST
TEXTS = ["a" * LONGEST, "ab" * (LONGEST // 2), ("a" * 99 + "b") * (LONGEST // 100), " " * LONGEST]
PATTERNS = [
    "%_%_%_%_%_%q",
    "%_" * 90 + "q",
    "%a" * 90 + "q",
    "%a_%b_" * 30 + "q",
    "%" + "a" * 190 + "b%",
    "%" + "a_" * 95 + "b%",
    "%a" + "_" * 190 + "q%",
    "%" + "a" * 198 + "_",
]


@pytest.fixture(
    scope="module", params=["duckdb", "postgresql", pytest.param("spark", marks=pytest.mark.spark)]
)
def engine(request):
    opened = {
        "duckdb": lambda: in_memory,
        "postgresql": lambda: on_postgresql(request.getfixturevalue("postgres")),
    }
    make = opened.get(request.param, lambda: on_spark(request.getfixturevalue("spark")))()
    return make(pa.table({"notes": TEXTS}))[0]


def test_no_pattern_takes_long_on_the_longest_texts(engine):
    """All patterns on all texts: 32 pairs in a second or two on a free machine, where one alone
    took minutes.
    """
    notes = ask.Column("notes", "text")
    request = Request(tuple(Rows(ask.Likeness(notes, pattern)) for pattern in PATTERNS))
    begin = time.monotonic()
    answers = engine.fetch(request).reveal()
    assert time.monotonic() - begin < PATIENCE
    assert answers == [[0]] * 7 + [[1]]


def test_the_pattern_that_spark_is_given_has_no_way_back():
    """Outside of groups that are never entered again, one .* is left, before the end."""
    for pattern in PATTERNS:
        tree = SPARK.like(column("notes"), pattern)
        given = bytes.fromhex(re.search("'([0-9a-f]+)'", tree.sql("spark"))[1]).decode()
        assert re.sub(r"\(\?>\.\*\?[^)]*\)", "", given).count("*") <= 1


def test_control_a_search_that_goes_back_needs_more_steps_with_each_sign():
    steps = 0

    def search(text, pattern):
        nonlocal steps
        steps += 1
        if not pattern:
            return not text
        if pattern[0] == "%":
            return any(search(text[start:], pattern[1:]) for start in range(len(text) + 1))
        return bool(text) and pattern[0] in ("_", text[0]) and search(text[1:], pattern[1:])

    taken = []
    for signs in (1, 2, 3):
        steps = 0
        assert not search("a" * 30, "%_" * signs + "q")
        taken.append(steps)
    assert taken[0] * 5 < taken[1]
    assert taken[1] * 5 < taken[2]
