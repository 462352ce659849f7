"""How a policy declares that text is read: what is taken, and what is refused."""

import pytest

from discreet import InvalidParameter, Policy, QueryRefused
from discreet.ask.declared import Declared
from discreet.ask.expression import ColumnType
from discreet.ask.normal import text
from discreet.ask.query import canonical
from discreet.ask.reading import CAPITALS, SMALL, cleaned
from discreet.ask.scope import check_schema, column_under
from discreet.ask.sql import parse

CELL, TEXT = ColumnType("text", False, "VARCHAR", typed=False), ColumnType("text", False, "VARCHAR")
NUMBER, INTEGER = ColumnType("number", False, "DOUBLE"), ColumnType("number", True, "BIGINT")
DATE = ColumnType("date", False, "DATE")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": "float"}, "type: it must be"),
        ({"type": 3}, "type: it must be"),
        ({"format": "%d/%m/%Y"}, "format: only dates have a format"),
        ({"type": "date", "format": "%d/%m/%y"}, "format: a format must be made of"),
        (
            {"type": "date", "format": "%d/%m"},
            "format: a format must name year, month and day once",
        ),
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
        ({"type": "text", "thousands": ","}, "decimal: only numbers have such marks"),
        ({"trim": "yes"}, "trim: it must be true or false"),
        ({"casefold": 1}, "casefold: it must be true or false"),
        ({"missing_values": "n/a"}, "missing_values: it must be a list"),
        ({"missing_values": []}, "missing_values: it must be a list"),
        ({"missing_values": [9]}, "missing_values: a text must have"),
        ({"missing_values": ["a\0"]}, "missing_values: a text must have"),
        ({"map": {}}, "map: it must be up to 1,000 pairs"),
        ({"map": ["a", "b"]}, "map: it must be up to 1,000 pairs"),
        ({"map": {"a": 1}}, "map: a text must have"),
        ({"map": {"a": "x" * 1001}}, "map: a text must have"),
        ({"map": "none.csv"}, "map: the file 'none.csv' must exist beside the policy"),
        (
            {"map": {"A": "x", "a": "y"}, "casefold": True},
            "map: 'a' must have one replacement, got two",
        ),
        ({"keys": ["A", "a"], "casefold": True}, "'A' and 'a' are equal after trim and casefold"),
        ({"keys": ["a", "a "], "trim": True}, "are equal after trim and casefold"),
        (
            {"map": {"x": "HEART"}, "keys": ["Heart"], "casefold": True},
            "'Heart' and 'HEART' are equal",
        ),
        (
            {"keys": [f"K{n}" for n in range(1_001)], "casefold": True},
            "may change 1,000 texts, got 1,001",
        ),
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
        ({"type": "text"}, INTEGER, "type: the column is a number"),
        ({"type": "date", "format": "%d/%m/%Y"}, DATE, "format: it says how text is read"),
        ({"type": "number", "decimal": ","}, NUMBER, "decimal: it says how text is read"),
        (
            {"type": "date", "bounds": (0, 1)},
            CELL,
            "bounds: they must be of the column's kind, date",
        ),
        ({"trim": True}, NUMBER, "trim: it says how text is read"),
        ({"missing_values": ["9"]}, INTEGER, "missing_values: it says how text is read"),
        ({"map": {"a": "b"}}, DATE, "map: it says how text is read"),
        (
            {"type": "number", "keys": "discover"},
            CELL,
            "only texts and whole numbers can be discovered",
        ),
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


WARD = {
    "keys": ["Cardiology", "Gériatrie"],
    "trim": True,
    "casefold": True,
    "missing_values": ["N/A"],
}


def test_a_map_may_be_a_public_file(tmp_path):
    (tmp_path / "wards.csv").write_text('code,ward\nCARD,Cardiology\n"E, N",Gériatrie\n', "utf-8")
    by_file = Declared(**WARD, map="wards.csv", folder=tmp_path)
    by_hand = Declared(**WARD, map={"CARD": "Cardiology", "E, N": "Gériatrie"})
    assert by_file.reading == by_hand.reading
    assert by_file.reading.map == (
        ("card", "Cardiology"), ("cardiology", "Cardiology"), ("e, n", "Gériatrie"), ("gériatrie", "Gériatrie"),
    )  # fmt: skip
    for content in ("code\nCARD\n", "a,b,c\n1,2,3\n", "code,ward\n"):
        (tmp_path / "wards.csv").write_text(content, "utf-8")
        with pytest.raises(InvalidParameter, match=r"map: .*(two columns|1,000 pairs)"):
            Declared(map="wards.csv", folder=tmp_path)


def test_a_policy_is_written_and_read_again_with_its_reading(tmp_path):
    columns = {
        "ward": {**WARD, "map": {'C"ARD': "Cardiology"}},
        "x": {"type": "number", "missing_values": ["9", ""]},
    }
    policy = Policy(source="visits.csv", epsilon=1, encoding="latin-1", columns=columns)
    (tmp_path / "study.toml").write_text(policy.to_toml(), "utf-8")
    again = Policy.load(tmp_path / "study.toml")
    assert dict(again.columns) == dict(policy.columns)
    assert again.encoding == "latin-1"


def test_every_way_to_read_is_a_question_of_its_own():
    ways = [
        {}, {"trim": True}, {"casefold": True}, {"trim": True, "casefold": True}, {"missing_values": ["a"]},
        {"missing_values": ["a", "b"]}, {"missing_values": ["a', 'b"]}, {"map": {"a": "b"}}, {"map": {"a": "c"}},
    ]  # fmt: skip
    policies = [
        Policy(source="t.csv", epsilon=1, columns={"x": {"type": "text", **way}}) for way in ways
    ]
    texts = {canonical(parse("SELECT count(x) FROM t", policy, {"x": CELL})) for policy in policies}
    assert len(texts) == len(ways)
    assert text(column_under("x", Declared(type="text", trim=False), CELL)) == '"x"'


def test_a_literal_beside_a_column_is_read_as_a_cell_is():
    policy = Policy(
        source="t.csv", epsilon=1, columns={"ward": {**WARD, "map": {"CARD": "Cardiology"}}}
    )

    def condition(words: str) -> str:
        return canonical(parse(f"SELECT count(*) FROM t WHERE {words}", policy, {"ward": CELL}))  # noqa: S608

    same = [
        "ward = 'Cardiology'",
        "'CARDIOLOGY ' = ward",
        "ward IN ('card', ' cardiology')",
        "NOT ward <> 'CARD'",
    ]
    assert len(set(map(condition, same))) == 1
    assert (
        condition("ward = 'GÉRIATRIE'")
        == condition("ward = 'Gériatrie'")
        != condition("ward = 'Geriatrie'")
    )
    with pytest.raises(
        QueryRefused,
        match=r"'n/a' is a missing value of ward; write ward IS NULL\. Nothing was spent",
    ):
        condition("ward = 'n/a'")


def test_capitals_have_one_small_letter_each_and_stay_as_they_are():
    """A table that changed would read old ledgers anew: it is what Unicode promises to keep."""
    assert len(CAPITALS) == len(SMALL) == 299
    assert all(small == small.lower() and len(small) == 1 for small in SMALL)
    assert (
        cleaned("ÀÉÎÕÜ ŁŽŐ ΣΆ ЖЁ İ ẞ Ⅷ Ａ", trim=False, casefold=True) == "àéîõü łžő σά жё İ ẞ Ⅷ Ａ"
    )
