"""TRUST 37: no line of CSV, TSV or JSON lines changes how another one is read; types and formats
are declared.
"""

import contextlib
import json
from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import InvalidParameter, Policy
from discreet.ask.expression import Column, Comparison, Constant, Part
from discreet.ask.query import Group
from discreet.ask.scope import check_schema, column_under
from discreet.calibrate.grid import ValueGrid
from discreet.engines import textfiles
from discreet.engines.base import OnGrid, Present, Request, Rows, Squares, Total
from discreet.engines.choose import engine_of
from discreet.engines.sniffing import guess_schema
from discreet.engines.textfiles import LONGEST_LINE, LONGEST_OBJECT, Layout
from discreet.engines.unreadable import why_unreadable
from studies import without_noise

COLUMNS = {
    "place": {
        "keys": ["north", "south"],
        "other": "elsewhere",
        "trim": True,
        "casefold": True,
        "missing_values": ["?", "N/A"],
        "map": {"n": "north", "s\u00fcd": "south"},
    },
    "n": {"type": "integer", "bounds": [0, 9]},
    "x": {
        "type": "number",
        "bounds": [-4, 4],
        "decimal": ",",
        "thousands": ".",
        "trim": True,
        "missing_values": ["9"],
    },
    "born": {
        "type": "date",
        "format": ["%d/%m/%Y", "%Y-%m-%d"],
        "bounds": [date(1990, 1, 1), date(2030, 1, 1)],
    },
    "well": {"type": "truth"},
}
LINES = 30
NAMES = ["who", *COLUMNS]


def cells(at: int) -> list[str]:
    place = ["north", "south", "west", ""][at % 4]
    return [
        f"p{at}",
        place,
        str(at % 11),
        f"{at % 7 - 3},5",
        f"{at % 12 + 1:02d}/12/2001",
        "yes" if at % 2 else "no",
    ]


def written(suffix: str, lines: list[list[str]]) -> list[bytes]:
    """The lines of a file, with the header where there is one."""
    if suffix == ".jsonl":
        return [json.dumps(dict(zip(NAMES, line, strict=True))).encode() for line in lines]
    mark = "\t" if suffix == ".tsv" else ";"
    return [mark.join(line).encode() for line in [NAMES, *lines]]


def integers(file, columns=COLUMNS):
    """The schema, and integers for each place: rows, days, truths, sums."""
    policy = Policy(source=str(file), epsilon=1, columns=columns)
    encoding = "windows-1252" if file.suffix == ".txt" else None
    engine = engine_of(str(file), Layout((*columns, "who"), None, encoding))
    schema = engine.schema()
    check_schema(policy, schema)
    place, n, x, born, well = (
        column_under(name, policy.columns[name], schema[name]) for name in columns
    )
    first = Comparison("=", Part("day", born), Constant(Fraction(1), "number"))
    whole = OnGrid(n, ValueGrid(exponent=0, lower=0, upper=9, exact=True), 5)
    real = OnGrid(x, ValueGrid(exponent=-1, lower=-8, upper=8, exact=False), None)
    measures = (
        Rows(),
        Rows(first),
        Rows(well),
        Rows(born),
        Total(whole),
        Total(real),
        Squares(real),
        Present(real),
    )
    groups = (Group("place", place, ("north", "south"), "elsewhere"),)
    return dict(schema), engine.fetch(Request(measures, groups)).reveal()


PARTS = [1, 1, 1, 1, 9, 16, 256, 1]
"""How far one row moves each of the integers."""

ANYWHERE = [
    b"", b" ", b"\0", b"\xff\xfe\xff", b"\xef\xbb\xbf", b"\x1f", b"#", b"\\", b"x" * 100_000, b'"', b"a\rb",
]  # fmt: skip
CELLS = [
    b"\\N;NULL;-;=1+1;;", b"p;north;3.7;1,5;01/13/2001;maybe", b"p;north;3;1,5;2001-12-01;yes", b"p;north",
    b"p;north;1e400;1e400;infinity;true", b"p;north;nan;inf;0001-01-01;t", b"p;north; 12 ;0x1F;1_000;yes",
    b"p;north;1;9.999.999,5;31/02/2001;no", b"p;north;1;1;01/12/2001;yes;one;more", b";;;;;", b";" * 1000,
    b"p,north,3,1.5,2001-12-01,yes", b"p\tnorth\t3\t1,5\t01/13/2001\tyes", b"p;\xff;3;1;;no", b"1" * 400 + b";" * 5,
    b"who;place;n;x;born;well", b"p;north;3;1,5;13/13/2001 25:61;yes", b"p;north\xc2\xa0;\xd9\xa1;\xe2\x88\x921;;ja",
    b'p;"north;3;1,5;01/12/2001;yes', b'p;no"rth;3;1,5;01/12/2001;yes', b'p;"no"rth;3;1;;yes', b'";";";"',
    b'p; "a";;;;', b'p;"nor""th";3;1;01/12/2001;yes', b'p;"";"";"";"";""', b'"p";"north";"3";"1,5";"01/12/2001";"yes"',
    b"p; NORTH\xc2\xa0;3;1,5;;yes", b"p;N;9;9;;no", b"p;n/a ;3;\xc2\xa01,5\t;;no", b"p;\xe2\x80\x83S\xc3\x9cD;1;1;;no",
    b"p;s\xfcd;3;1,5;;no", b"p;\x80\x81\x8d\x9f;3;\xa01,5;;yes", b"p;?;3;9;;no", b"p;" + b"\xc9" * 9000 + b";3;1;;no",
    b"p;north;3;1,5;01/12/2001;yes\r", b"p;north;3;1;;no\rp;north;3;1;;no\rp;north;3;1;;no",
]  # fmt: skip
OBJECTS = [
    b"{", b"[]", b"{}", b"null", b"7", b'{"place": "north", "n": "3.7", "x": 1e400, "born": "01/13/2001"}',
    b'{"place": ["north"], "n": {"n": 3}, "x": [1], "born": null, "well": {}}', b'{"n": 1, "n": 2, "place": "north"}',
    b'{"n": 123456789012345678901234567890, "x": -0.0}', b'{"place": "\\ud800"}', b'{"place": "\\u0000", "n": true}',
    b'{"n": 1}{"n": 2}', b'{"x": NaN, "n": Infinity}', b'{"place": "north"} ', b"[" * 5000, b'{"a":' * 5000,
    b'{"n": 1}\r{"n": 2}\r{"n": 3}', b'{"n": 1}\r', b'{"place": "\xff"}', b'{"place": "\0"}',
]  # fmt: skip
NASTY = {
    ".csv": [*ANYWHERE, *CELLS],
    ".txt": [*ANYWHERE, *CELLS],
    ".tsv": [line.replace(b";", b"\t") for line in CELLS[::3]],
    ".jsonl": [*ANYWHERE, *OBJECTS],
}

ALPHABET = 'ab01 ;,\t|"\\/.-+eE:{}[]\0\x1f\x7fé€\u2028\ufeff\ud7ff🦊\rnorth'
TEXTS = st.one_of(
    st.text(ALPHABET, max_size=40).map(str.encode),
    st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"")),
    st.lists(st.text('01/29.,-e northsouthyes"', max_size=12), min_size=5, max_size=7).map(
        lambda c: ";".join(c).encode()
    ),
)


@pytest.fixture(scope="module")
def without_a_line(tmp_path_factory):
    """The integers of a file without one of its lines."""
    found, folder = {}, tmp_path_factory.mktemp("without")

    def of(suffix: str, at: int):
        if (suffix, at) not in found:
            lines = [cells(row) for row in range(LINES) if row != at]
            file = folder / f"rows{suffix}"
            file.write_bytes(b"\n".join(written(suffix, lines)) + b"\n")
            found[suffix, at] = integers(file)
        return found[suffix, at]

    of.folder = folder
    return of


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".txt"])
@settings(max_examples=25, deadline=None)
@given(at=st.sampled_from([0, 1, 15, LINES - 1]), line=TEXTS)
def test_any_line_replaced_by_any_text_moves_an_answer_by_at_most_one_row(
    suffix, at, line, without_a_line
):
    check(suffix, at, line, without_a_line)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".txt"])
def test_lines_that_are_known_to_be_nasty(suffix, without_a_line):
    for place, line in enumerate(NASTY[suffix]):
        check(suffix, [0, LINES - 1][place % 2], line, without_a_line)


def check(suffix, at, line, without_a_line):
    lines = written(suffix, [cells(row) for row in range(LINES)])
    lines[at + (suffix != ".jsonl")] = line
    file = without_a_line.folder / f"replaced{suffix}"
    file.write_bytes(b"\n".join(lines) + b"\n")
    schema, found = without_a_line(suffix, at)
    try:
        here, refusal = integers(file), ""
    except InvalidParameter as error:
        here, refusal = (schema, found), str(error)
    # the one refusal that a line may cause, when the file is opened, and only by quotes or carriage
    # returns
    assert not refusal or "so that a line could" in refusal
    assert not refusal or b"\r" in line or (b'"' in line and suffix != ".jsonl")
    assert here[0] == schema
    for mine, theirs, part in zip(here[1], found, PARTS, strict=True):
        moved = [abs(one - other) for one, other in zip(mine, theirs, strict=True)]
        assert sum(moved) <= part, (line, mine, theirs)


def test_the_date_of_the_last_row_does_not_change_what_a_day_is(tmp_path):
    def first_days(last: str) -> int:
        days = [f"{at % 12 + 1:02d}/{1 if at % 12 else 12:02d}/2001" for at in range(1000)]
        (tmp_path / "people.csv").write_text("born\n" + "\n".join([*days, last]) + "\n")
        columns = {"born": {"type": "date", "format": "%m/%d/%Y"}}
        policy = Policy(
            source=str(tmp_path / "people.csv"), epsilon=1, version="1", columns=columns
        )
        with (
            discreet.Study(policy, ledger=tmp_path / f"{last.replace('/', '')}.ledger") as study,
            without_noise(),
        ):
            question = "SELECT count(*) AS n FROM people WHERE day(born) = 1"
            return study.sql(question, epsilon="0.5").release()["n"][0]

    assert abs(first_days("01/12/2001") - first_days("01/13/2001")) <= 1


def test_a_cell_changes_neither_the_types_nor_what_is_refused(tmp_path):
    for name, lines in {
        "people.csv": ["born,n", "2001-12-01,3", "never,x"],
        "people.jsonl": [
            '{"born": "2001-12-01", "n": 3}',
            '{"born": {"a": [1]}, "n": "x", "more": 1}',
        ],
    }.items():
        columns = {"born": {"type": "date"}, "n": {"type": "integer", "bounds": [0, 9]}}
        schemas = []
        for count in (len(lines) - 1, len(lines)):
            (tmp_path / name).write_text("\n".join(lines[:count]) + "\n")
            engine = engine_of(str(tmp_path / name), Layout(("born", "n")))
            check_schema(Policy(source="x", epsilon=1, columns=columns), engine.schema())
            schemas.append(dict(engine.schema()))
        assert schemas[0] == schemas[1]


def test_a_line_longer_than_a_line_may_be_is_left_out_and_no_other(tmp_path):
    rows = [b"1,a"] * 1000
    rows[500] = b"2," + b"x" * LONGEST_LINE
    (tmp_path / "rows.csv").write_bytes(b"n,name\n" + b"\n".join(rows) + b"\n")
    assert engine_of(str(tmp_path / "rows.csv")).units(None).reveal() == 999
    rows = [b'{"n": 1}'] * 1000
    rows[0] = b'{"n": "' + b"x" * LONGEST_LINE + b'"}'
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(rows))
    assert engine_of(str(tmp_path / "rows.jsonl"), Layout(("n",))).units(None).reveal() == 999
    for at, length in enumerate((LONGEST_OBJECT, LONGEST_OBJECT + 1)):
        rows[0] = b'{"n": "' + "é".encode() + b"x" * (length - 11) + b'"}'
        assert len(rows[0]) == length
        (tmp_path / "rows.jsonl").write_bytes(b"\n".join(rows))
        assert (
            engine_of(str(tmp_path / "rows.jsonl"), Layout(("n",))).units(None).reveal()
            == 1000 - at
        )


@pytest.mark.parametrize("before", [b"1,2", b"1,2,3", b"", b"\xff,\xff", b"longer,lines"])
@pytest.mark.parametrize("block", [2, 7, 12, 2**22])
def test_a_byte_order_mark_in_a_cell_is_a_character_whatever_is_before_it(
    tmp_path, monkeypatch, block, before
):
    """Arrow drops a mark at the start of what it reads: a line that is left out, or is longer,
    moves what that is.
    """
    monkeypatch.setattr(textfiles, "_BLOCK", block)
    file = tmp_path / "rows.csv"
    file.write_bytes(
        b"\n".join([b"\xef\xbb\xbfn,m", before, *[b"\xef\xbb\xbf5,6"] * 5, b"7,8", b""])
    )
    engine = engine_of(str(file), Layout(("n", "m")))
    asked = [
        Comparison("=", Column("n", "text"), Constant(text, "text")) for text in ("5", "\ufeff5")
    ]
    assert engine.fetch(Request(tuple(map(Rows, asked)))).reveal() == [[0], [5]]


def test_lines_within_a_quoted_cell_are_no_rows_however_many_they_are(tmp_path):
    """Several threads would each take a part of the cell for lines of the file: 5,666,688 rows,
    with DuckDB 2.0.
    """
    cell = b'4,"' + b"1,2\n" * 9_000_000 + b'"\n'
    (tmp_path / "rows.csv").write_bytes(b"a,b\n" + b"1,2\n" * 10 + cell + b"7,8\n" * 10)
    # the cell is longer than a line may be
    assert engine_of(str(tmp_path / "rows.csv")).units(None).reveal() == 20


@pytest.mark.parametrize(
    "line",
    [
        '250,"north,3',
        '"250,"north",3',
        '250,"no"rth",3',
        '250,"no\\"rth",3',
        "250,6'2\",3",
        '250, "north",3',
        "1,2,3\r",
    ],
)
@pytest.mark.parametrize("place", [0, 10, 4_999])
def test_a_line_of_csv_that_could_hide_another_is_refused_when_the_file_is_opened(
    tmp_path, line, place
):
    rows = [f'{at},"{"north" if at % 2 else "south"}",{at % 7}' for at in range(5_000)]
    rows[place] = line
    (tmp_path / "rows.csv").write_bytes(("who,place,x\n" + "\n".join(rows) + "\n").encode())
    with pytest.raises(
        InvalidParameter, match=r"rows.csv has a quote .* so that a line could hide another"
    ) as caught:
        engine_of(str(tmp_path / "rows.csv"))
    assert "north" not in str(caught.value)


def test_of_two_files_that_are_taken_no_line_of_one_hides_lines_of_the_other(tmp_path):
    """An open quote, and a quote at the end of another cell that would close it: only with both is
    the file whole.
    """
    taken = []
    for one in ('a,"5', "a,5"):
        for other in ("c,6'2\"", "c,6"):
            (tmp_path / "rows.csv").write_text(
                f"who,height\n{one}\n" + "b,6\n" * 100 + f"{other}\n"
            )
            with contextlib.suppress(InvalidParameter):
                taken.append(
                    (one, other, engine_of(str(tmp_path / "rows.csv")).units(None).reveal())
                )
    # neither of those that are taken is the other with one line changed
    assert taken == [('a,"5', "c,6'2\"", 1), ("a,5", "c,6", 102)]


def test_a_file_that_becomes_unsound_or_has_other_columns_is_refused_before_anything_is_spent(
    tmp_path,
):
    file = tmp_path / "people.csv"
    good = "age,n\n" + "1,2\n" * 50
    file.write_text(good)
    policy = Policy(
        source=str(file), epsilon=1, columns={"age": {"type": "integer", "bounds": [0, 9]}}
    )
    with discreet.Study(policy, ledger=tmp_path / "study.ledger") as study:
        plan = study.sql("SELECT sum(age) FROM people", epsilon="0.1")
        for bad, words in (('1,"2\n', "could hide"), ("n,age\n", "open the study again")):
            file.write_text(good + bad if bad[0] == "1" else bad + good[6:])
            with pytest.raises(InvalidParameter, match=words):
                plan.release()
            assert study.spent == 0
        file.write_text(good)
        plan.release()


def test_another_format_is_another_question(tmp_path):
    (tmp_path / "people.csv").write_text("born\n" + "01/12/2001\n02/03/2001\n" * 20)
    texts = []
    for options in (
        {"format": "%d/%m/%Y"},
        {"format": "%m/%d/%Y"},
        {},
        {"format": ["%d/%m/%Y", "%Y-%m-%d"]},
    ):
        columns = {"born": {"type": "date", **options}}
        policy = Policy(
            source=str(tmp_path / "people.csv"), epsilon=1, version="1", columns=columns
        )
        with discreet.Study(policy, ledger=tmp_path / f"{len(texts)}.ledger") as study:
            study.sql("SELECT count(born) FROM people", epsilon="0.1").release()
            texts.append(next(entry.query for entry in study.ledger.entries() if entry.query))
    assert len(set(texts)) == len(texts)
    assert """\\"born\\"::date('%d/%m/%Y')""" in texts[0]


def test_a_select_over_csv_sees_texts_and_does_not_look_at_rows_either(tmp_path):
    file = tmp_path / "people.csv"
    for last in ("01/12/2001", "01/13/2001"):
        file.write_text("born\n" + "12/12/2001\n" * 20 + last + "\n")
        assert engine_of(f"SELECT born FROM '{file}'").schema()["born"].kind == "text"  # noqa: S608
    for query in (
        "SELECT * FROM read_csv('people.csv')",
        "FROM 'people.json'",
        "SELECT * FROM read_json_auto('x')",
    ):
        with pytest.raises(InvalidParameter, match="must not say how files are read"):
            engine_of(query)
    file.write_text('born\n1\n"2\n')
    with pytest.raises(InvalidParameter, match="could hide another"):
        engine_of(f"SELECT born FROM '{file}'")  # noqa: S608


def test_the_names_of_folders_are_texts(tmp_path):
    """One folder more does not make numbers of all others texts."""
    for year in ("2023", "2024", "unknown"):
        (tmp_path / "data" / f"year={year}").mkdir(parents=True)
        (tmp_path / "data" / f"year={year}" / "a.csv").write_text("n\n1\n")
        assert engine_of(str(tmp_path / "data")).schema()["year"].kind == "text"


@pytest.mark.parametrize(
    ("name", "raw", "rows"),
    [
        ("people.csv", b"id,name\nDUCK-1,x\n2,y\n", 2),
        ("people.csv", b"age,x\n34DUCKYz,1\n2,3\n", 2),
        ("people.jsonl", b'{"nam":"DUCKWORTH"}\n{"nam":"b"}\n', 2),
        ("people.jsonl", b'SQLite format 3\0\n{"nam":"b"}\n', 1),
    ],
)
def test_the_first_bytes_of_a_row_make_no_database_of_a_text_file(tmp_path, name, raw, rows):
    """A person called Duckworth in the first line, and the file was taken for one of DuckDB and
    refused.
    """
    (tmp_path / name).write_bytes(raw)
    assert raw[8:12] == b"DUCK" or raw.startswith(b"SQLite format 3\0")
    assert engine_of(str(tmp_path / name), Layout(("nam",))).units(None).reveal() == rows
    assert why_unreadable([tmp_path / name]) is None


@pytest.mark.parametrize("block", [2, 7, 12, 2**22])
def test_a_byte_order_mark_at_the_start_of_a_line_of_json_is_dropped_whichever_line_it_is(
    tmp_path, monkeypatch, block
):
    """Dropped in the first line alone: where that line is removed, the next one was read in another
    way, too.
    """
    monkeypatch.setattr(textfiles, "_BLOCK", block)
    file, mark = tmp_path / "rows.jsonl", "\ufeff".encode()
    lines = [
        mark + b'{"n": "5"}',
        b'{"n": "5"}',
        b"no object",
        mark + b'{"n": "5"}',
        mark + mark + b'{"n": "5"}',
    ]
    for first in range(len(lines)):
        file.write_bytes(b"\n".join(lines[first:]) + b"\n")
        counted = engine_of(str(file), Layout(("n",))).units(None).reveal()
        assert counted == [3, 2, 1, 1, 0][first]


def test_what_duckdb_cannot_look_at_shows_no_line_of_a_file(tmp_path):
    (tmp_path / "deep.jsonl").write_text('{"secret":' + "[" * 5000 + "]" * 5000 + "}\n")
    assert guess_schema(str(tmp_path / "deep.jsonl")).schema == {}
