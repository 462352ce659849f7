"""TRUST 36: a column without values, or with one, of every type: one row moves no integer by more
than its part.

DuckDB's `count_if` over NULLs is NULL, which was read as 0: one row moved a sum by hundreds of its
parts. Every sum is compared with the slow reference, and that of an empty column with that of its
neighbour, which has one value.
"""

import pyarrow as pa
import pytest

from conforming import (
    EMPTY,
    GRIDS,
    empty_columns,
    empty_measures,
    empty_requests,
    in_memory,
    on_postgresql,
    on_spark,
    same,
)
from discreet.ask import expression as ask
from discreet.engines.base import Cells, OnGrid, Product, Request, Rows, Squares, Total
from discreet.engines.sql.statement import statement
from discreet.errors import EngineFailed
from discreet.verify import reference
from studies import Paper, study_of


@pytest.fixture(
    scope="module", params=["duckdb", "postgresql", pytest.param("spark", marks=pytest.mark.spark)]
)
def opened(request):
    if request.param == "duckdb":
        return in_memory
    if request.param == "postgresql":
        return on_postgresql(request.getfixturevalue("postgres"))
    return on_spark(request.getfixturevalue("spark"))


def sensitivity(measure):
    """How far one row may move a measure."""
    match measure:
        case Total(value):
            return value.grid.width
        case Squares(value):
            return value.grid.width**2
        case Product(first, second, (power, other)):
            return first.grid.width**power * second.grid.width**other
        case _:
            return 1


def neighbour(measure, names):
    """The same measure of the column beside, in which the last row has a value."""
    if isinstance(measure, Product):
        other = neighbour(Total(measure.second), names)
        return None if other is None else Product(measure.first, other.value, measure.powers)
    value = measure.value if not isinstance(measure, Rows) else None
    of = measure.of if value is None else value.of
    beside = (
        of.name.replace("null", "but_one")
        if of.name.endswith("null")
        else of.name.replace("nan", "nan_but_one")
    )
    if beside == of.name or beside not in names or of.name.endswith("but_one"):
        return None
    column = ask.Column(beside, of.kind)
    return (
        Rows(column) if value is None else type(measure)(OnGrid(column, value.grid, value.missing))
    )


def moved(request, answers, names):
    """The measures that one row moves by more than its part: in all groups together, by twice."""
    known = dict(zip(request.measures, answers, strict=True))
    for measure, answer in known.items():
        other = None if isinstance(measure, Cells) else neighbour(measure, names)
        if other in known:
            change = sum(abs(a - b) for a, b in zip(answer, known[other], strict=True))
            if change > sensitivity(measure) * (2 if request.unit else 1):
                yield measure, change


@pytest.mark.parametrize("size", [1, 10, 300])
def test_empty_columns_have_the_integers_of_the_reference_and_one_row_moves_its_part(opened, size):
    table = empty_columns(size)
    engine, rows = opened(table)
    measures = empty_measures(table)
    few, shapes = 33, slice(0, 5 if size == 10 else 3)
    if type(engine).__name__ == "Spark":  # one statement, in groups: each takes seconds there
        replaced = [
            one
            for one in measures
            if isinstance(one, Rows) or (isinstance(one, Total) and one.value.missing)
        ]
        measures, few, shapes = replaced, len(replaced), slice(1, 2)
    for start in range(0, len(measures), few):
        for request in [*empty_requests(tuple(measures[start : start + few]))][shapes]:
            answers = engine.fetch(request).reveal()
            assert same(answers, reference.fetch(request, rows))
            assert list(moved(request, answers, table.column_names)) == []


def test_cells_of_empty_columns_have_the_integers_of_the_reference():
    engine, rows = in_memory(empty_columns(10))
    columns = [ask.Column(f"real_{empty}", "number") for empty in EMPTY]
    cells = tuple(
        Cells(OnGrid(column, GRIDS[0], missing)) for column in columns for missing in (None, 3)
    )
    for request in empty_requests(cells):
        assert same(engine.fetch(request).reveal(), reference.fetch(request, rows))


def test_control_a_sum_that_is_nothing_where_all_is_missing_is_caught():
    table = empty_columns(10)
    empty, beside = (
        Total(OnGrid(ask.Column(name, "number"), GRIDS[0], GRIDS[0].upper))
        for name in ("real_null", "real_but_one")
    )
    request = Request((empty, beside))
    answers = in_memory(table)[0].fetch(request).reveal()
    assert list(moved(request, answers, table.column_names)) == []
    assert [measure for measure, _ in moved(request, [[0], answers[1]], table.column_names)] == [
        empty
    ]


def test_an_answer_over_an_empty_column_is_what_its_replacement_says():
    rows = [{"place": "west", "pay": None} for _ in range(1000)]
    columns = {"pay": {"bounds": [0, 100], "missing": 50}}
    for last in (None, 1.0):
        rows[-1]["pay"] = last
        study = study_of(rows, Paper(10**6), columns=columns)
        text = (
            "SELECT sum(pay) AS total FROM data WHERE pay IS NULL OR (place = 'west' AND pay >= 1)"
        )
        total = study.sql(text, epsilon=10**6).release().rows[0]["total"][0]
        assert total == pytest.approx(50_000 if last is None else 49_951, abs=1)


@pytest.mark.parametrize("column", ["place", "level", "m0"])
def test_a_null_from_an_engine_is_an_error_and_no_number(column):
    engine, _ = in_memory(pa.table({"x": [1.0]}))
    # a level is that of cells
    measures = (Rows(), Cells(OnGrid(ask.Column("x", "number"), GRIDS[0], None)))
    wanted = statement(Request(measures if column == "level" else measures[:1]), engine.schema())
    answer = {name: pa.array([0, 1], pa.int64()) for name in ("place", "level", "m0")}
    answer[column] = pa.array([0, None], pa.int64())
    with pytest.raises(EngineFailed, match="NULL instead of an integer"):
        wanted.answer([pa.table(answer)])
    wide = pa.table({**answer, column: pa.array([None, None], pa.decimal128(38, 0))})
    with pytest.raises(EngineFailed, match="NULL instead of an integer"):
        wanted.answer([wide])
