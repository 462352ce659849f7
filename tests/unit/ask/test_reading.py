"""How a policy declares that text is read: what is taken, and what is refused."""

import pytest

from discreet import InvalidParameter, Policy
from discreet.ask.declared import Declared
from discreet.ask.scope import check_schema
from discreet.engines.base import ColumnType

CELL, TEXT = ColumnType("text", False, "VARCHAR", typed=False), ColumnType("text", False, "VARCHAR")
NUMBER, INTEGER = ColumnType("number", False, "DOUBLE"), ColumnType("number", True, "BIGINT")
DATE = ColumnType("date", False, "DATE")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": "float"}, "type: it must be"),
        ({"type": 3}, "type: it must be"),
        ({"format": "%d/%m/%Y"}, "format: it is of dates"),
        ({"type": "date", "format": "%d/%m/%y"}, "format: a format must be made of"),
        ({"type": "date", "format": "%d/%m"}, "format: a format must name year, month and day once"),
        ({"type": "date", "format": "%d/%d/%m/%Y"}, "format: a format must name"),
        ({"type": "date", "format": "%m/%b/%d/%Y"}, "format: a format must name"),
        ({"type": "date", "format": "%d/%m/%Y %M"}, "format: a format must name"),
        ({"type": "date", "format": "%d/%m/%Y (.*)"}, "format: a format must be made of"),
        ({"type": "date", "format": ""}, "format: a format must be made of"),
        ({"type": "date", "format": []}, "format: it must be a format"),
        ({"type": "date", "format": ["%d/%m/%Y", "%d/%m/%Y"]}, "format: formats must differ"),
        ({"type": "date", "format": "%Y-%m-%d" + " " * 99}, "format: a format must be made of"),
        ({"type": "number", "decimal": ";"}, "decimal: it must be one of"),
        ({"type": "number", "thousands": "0"}, "thousands: it must be one of"),
        ({"type": "number", "thousands": "."}, "thousands: it must differ from decimal"),
        ({"type": "text", "thousands": ","}, "decimal: marks are of numbers"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_key(options, message):
    with pytest.raises(InvalidParameter, match=message):
        Declared(**options)


def test_a_format_that_is_meant_is_taken():
    for written in ("%Y-%m-%d", "%d.%m.%Y %H:%M", "%d%b%Y", "%Y%m%dT%H%M%S.%f", "%b %d, %Y"):
        assert Declared(type="date", format=written).format == (written,)


@pytest.mark.parametrize(
    ("options", "column", "message"),
    [
        ({}, CELL, 'a file of text has no types; write x = { type = "text" }'),
        ({"missing": "drop"}, CELL, "a file of text has no types"),
        ({"type": "integer"}, NUMBER, "type: the column has fractions"),
        ({"type": "text"}, INTEGER, "type: the column is of kind number"),
        ({"type": "date", "format": "%d/%m/%Y"}, DATE, "format: it says how text is read"),
        ({"type": "number", "decimal": ","}, NUMBER, "decimal: it says how text is read"),
        ({"type": "date", "bounds": (0, 1)}, CELL, "bounds: they must be of the column's kind, date"),
        ({"type": "number", "keys": "discover"}, CELL, "only texts and whole numbers can be discovered"),
        ({"type": "number", "keys": ["a"]}, CELL, "keys: "),
    ],
)
def test_a_type_that_does_not_fit_the_data_is_refused(options, column, message):
    with pytest.raises(InvalidParameter) as refusal:
        check_schema(Policy(source="x", epsilon=1, columns={"x": options}), {"x": column})
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "column"),
    [
        ({"bounds": (0, 1)}, CELL), ({"bins": [0, 1]}, CELL), ({"keys": ["a"]}, CELL), ({"keys": "discover"}, CELL),
        ({"missing": 3}, CELL), ({"type": "integer", "keys": "discover"}, CELL), ({}, TEXT),
        ({"type": "number"}, INTEGER),
        ({"type": "integer"}, INTEGER), ({"type": "date"}, TEXT), ({"type": "integer", "keys": ["01", "2"]}, CELL),
    ],
)  # fmt: skip
def test_a_type_may_be_left_out_where_it_is_told(options, column):
    check_schema(Policy(source="x", epsilon=1, columns={"x": options}), {"x": column})


def test_a_policy_with_readings_is_written_and_read_again(tmp_path):
    columns = {
        "born": {"type": "date", "format": ["%d/%m/%Y", "%Y-%m-%d"]},
        "cost": {"type": "number", "decimal": ",", "thousands": "\u202f", "bounds": (0, 9)},
        "age": {"type": "integer"},
    }
    policy = Policy(source="x.csv", table="people", delimiter="\t", epsilon=1, columns=columns)
    (tmp_path / "study.toml").write_text(policy.to_toml(), "utf-8")
    again = Policy.load(tmp_path / "study.toml")
    assert (again.columns, again.table, again.delimiter) == (policy.columns, "people", "\t")
    with pytest.raises(InvalidParameter, match="delimiter: it must be one of"):
        Policy(source="x.csv", delimiter="a", epsilon=1, columns=columns)


@pytest.mark.parametrize(
    ("source", "table"),
    [
        ("people.parquet", "people"), ("a/b/people.csv.gz", "people"), ("people.JSONL.zst", "people"),
        ("a b.csv", "a b"),
        ("clinic.db#visits", "visits"), ("clinic.duckdb#main.visits", "visits"), ("clinic.db", "clinic"),
        ("postgresql://me:secret@host/db?x=1#public.people", "people"), ("spark:warehouse.people", "people"),
        ("spark:folder/people.parquet", "people"), ("data/visits", "visits"), ("data/*.csv", "data"),
        ("v1.2.csv", "v1.2"),
        ("SELECT 1 AS x", "data"), ("FROM 'people.csv'", "data"), (object(), "data"),
    ],
)  # fmt: skip
def test_a_table_is_called_as_its_file_or_table_is(source, table):
    policy = Policy(source=source, epsilon=1, columns={"x": {}})
    assert policy.table == table
    assert Policy(source=source, table="t", epsilon=1, columns={"x": {}}).table == "t"
