"""Files of CSV and JSON lines: names, marks, several files, packed ones, folders."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ask import expression as ask
from discreet.engines import textfiles
from discreet.engines.base import Request, Rows
from discreet.engines.duckdb import DuckDB
from discreet.engines.textfiles import Layout
from discreet.errors import InvalidParameter


def counts(source, *names, layout=None):
    """How many rows there are, and in how many of them each column has a value."""
    engine = DuckDB(source, layout or Layout(names))
    measures = (Rows(), *(Rows(ask.Column(name, "text")) for name in names))
    return [found for (found,) in engine.fetch(Request(measures)).reveal()]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_first_line_tells_the_mark_between_cells(tmp_path, mark):
    (tmp_path / "a.csv").write_text(
        f"x{mark}y\n1{mark}2\n,;|{mark}\n".replace(mark * 2, mark), "utf-8"
    )
    assert list(DuckDB(tmp_path / "a.csv").schema()) == ["x", "y"]


def test_a_declared_mark_stands(tmp_path):
    (tmp_path / "a.csv").write_text("x,1|y,2\n3|4\n", "utf-8")
    assert counts(tmp_path / "a.csv", "x,1", "y,2", layout=Layout((), "|")) == [1, 1, 1]


def test_files_may_have_their_columns_in_any_order_and_number(tmp_path):
    (tmp_path / "1.csv").write_text("x,y\n1,2\n", "utf-8")
    (tmp_path / "2.csv").write_text("y;x;z\r\n;1;3\r\n", "utf-8")
    assert counts(str(tmp_path / "*.csv"), "x", "y", "z") == [2, 2, 1, 1]


def test_packed_files_and_a_byte_order_mark(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfx,y\n1,2\n"))
    assert counts(tmp_path / "a.csv.gz", "x", "y") == [1, 1, 1]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'\xef\xbb\xbf{"x": 1}\n\n'))
    assert counts(tmp_path / "a.jsonl.gz", "x", "y") == [1, 1, 0]


def test_a_header_alone_is_no_row(tmp_path):
    for text in ("x,y", "x,y\n", "x,y\r\n"):
        (tmp_path / "a.csv").write_bytes(text.encode())
        assert counts(tmp_path / "a.csv", "x", "y") == [0, 0, 0]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("ends", [0, 1])
def test_lines_end_as_the_first_one_does(tmp_path, end, ends):
    text = end.join(["x,y", "1,2", '"a\r\nb\nc\rd",', ",4"]) + end * ends
    (tmp_path / "a.csv").write_bytes(text.encode())
    assert counts(tmp_path / "a.csv", "x", "y") == [3, 2, 2]


@pytest.mark.parametrize(
    "text", ["\n1,2\n", "x,X\n", "x,x\n", ",\n", '"x\ny",z\n', "x\ry\r1\r2\r", "x\0,y\n"]
)
def test_a_first_line_that_names_no_columns_is_refused(tmp_path, text):
    (tmp_path / "a.csv").write_bytes(text.encode())
    with pytest.raises(InvalidParameter, match=r"must name its columns|names that differ"):
        DuckDB(tmp_path / "a.csv")


def test_a_column_without_a_name_has_that_of_its_place(tmp_path):
    (tmp_path / "a.csv").write_text(",x\n1,2\n", "utf-8")
    assert list(DuckDB(tmp_path / "a.csv").schema()) == ["column0", "x"]


def test_a_first_line_that_is_no_utf_8_is_refused_with_the_way_to_convert_it(tmp_path):
    (tmp_path / "a.csv").write_bytes("né,n\n1,2\n".encode("latin-1"))
    with pytest.raises(InvalidParameter, match=r"^a.csv must be UTF-8 text; .*iconv"):
        DuckDB(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes("name,n\ncanary é,1\nann,1\n".encode("latin-1"))
    # elsewhere the cell is missing, and its row stays
    assert counts(tmp_path / "a.csv", "name") == [2, 1]


def test_folders_write_columns_of_texts(tmp_path):
    for year, name, text in (("2023", "a.csv", "x\n1\n"), ("2024", "b.csv", "x\n1\n2\n")):
        (tmp_path / "csv" / f"year={year}").mkdir(parents=True)
        (tmp_path / "csv" / f"year={year}" / name).write_text(text)
    assert counts(tmp_path / "csv", "x", "year") == [3, 3, 3]
    (tmp_path / "json" / "year=2023").mkdir(parents=True)
    (tmp_path / "json" / "year=2023" / "a.jsonl").write_text('{"x": 1}\n{"y": 1}\n')
    assert counts(tmp_path / "json", "x", "year") == [2, 1, 2]


def test_columns_of_folders_have_the_texts_that_duckdb_reads_for_parquet(tmp_path):
    values = ["2024", "a%20b", "%C3%A9", "NULL", "a+b", "100%", "__HIVE_DEFAULT_PARTITION__", "é"]
    for value in values:
        for suffix in ("csv", "jsonl", "parquet"):
            (tmp_path / suffix / f"part={value}").mkdir(parents=True)
        (tmp_path / "csv" / f"part={value}" / "a.csv").write_text("x\n1\n")
        (tmp_path / "jsonl" / f"part={value}" / "a.jsonl").write_text('{"x": 1}\n')
        pq.write_table(pa.table({"x": [1]}), tmp_path / "parquet" / f"part={value}" / "a.parquet")
    part = ask.Column("part", "text")
    found = [
        DuckDB(tmp_path / suffix, Layout(("x", "part"))).discover(part, None, 1).reveal()
        for suffix in ("csv", "jsonl", "parquet")
    ]
    assert found[0] == found[1] == found[2]
    assert found[2].keys() == {"2024", "a b", "é", "NULL", "a+b", "100%"}


def test_an_encoding_may_be_declared_for_files_in_folders(tmp_path):
    (tmp_path / "csv" / "year=2024").mkdir(parents=True)
    (tmp_path / "csv" / "year=2024" / "a.csv").write_bytes(b"x\ncaf\xe9\n")
    engine = DuckDB(tmp_path / "csv", Layout(("x", "year"), encoding="latin-1"))
    assert engine.discover(ask.Column("x", "text"), None, 1).reveal() == {"café": 1}


def test_keys_of_json_may_hold_anything(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"a/b~c": 1, "d\\"e": 2, "f.g": {"h": 1}, "0": [1], "$": null}\n'
    )
    assert counts(tmp_path / "a.jsonl", "a/b~c", 'd"e', "f.g", "0", "$") == [1, 1, 1, 0, 0, 0]
    with pytest.raises(InvalidParameter, match="JSON lines need declared columns"):
        DuckDB(tmp_path / "a.jsonl")


def test_blocks_that_end_within_quotes_are_read_on(tmp_path, monkeypatch):
    """Every place for the end of a block: what is sound stays sound, what is not stays refused."""
    (tmp_path / "sound.csv").write_bytes(b'x,y\r\n"a ""b""\n",""\r\n"",1\r\n')
    (tmp_path / "beside.csv").write_bytes(b'x,y\r\n"a "b""\n",""\r\n1,1\r\n')
    (tmp_path / "open.csv").write_bytes(b'x,y\r\n"a ""b""\n","\r\n')
    (tmp_path / "ends.csv").write_bytes(b'x,y\r\n"a ""b""\n",""\n')
    for size in range(1, 30):
        monkeypatch.setattr(textfiles, "_BLOCK", size)
        textfiles.csv_rows([tmp_path / "sound.csv"], textfiles.Layout(), False)
        for name in ("beside", "open", "ends"):
            with pytest.raises(InvalidParameter, match="could hide another"):
                textfiles.csv_rows([tmp_path / f"{name}.csv"], textfiles.Layout(), False)


MESSY = [
    b"1,a", b"", b"2", b"3,b,c", b'4,"c\n,""d"""', b'"5\n\n\n",e', b"6,f\xff", b"\xff\xff", b"\xff,\xff,\xff", b",",
    b'"",""', b"7," + b"g" * 50, b'"' + b"8\n" * 30 + b'",h', b"9,i", b"10,\xc3\xa9", b'"11,\n",\0',
]  # fmt: skip
"""Lines: those with two cells of at most 40 bytes together are rows."""


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("ends", [0, 1])
def test_a_file_has_the_same_rows_wherever_its_blocks_end(tmp_path, monkeypatch, start, end, ends):
    monkeypatch.setattr(textfiles, "LONGEST_LINE", 40)
    (tmp_path / "a.csv").write_bytes(start + end.join([b"x,y", *MESSY]) + end * ends)
    (tmp_path / "b.csv").write_bytes(start + end.join([b"x", *[b"1", b"", b"2"] * 9]) + end * ends)
    (tmp_path / "a.jsonl").write_bytes(
        start + end.join([b'{"x": "\xc3\xa9"}', b"", b'{"x": 1}'] * 9) + end * ends
    )
    expected = {"1": 1, "5\n\n\n": 1, "6": 1, "9": 1, "10": 1, "11,\n": 1, "4": 1}
    for size in (1, 2, 3, 5, 8, 13, 21, 34, 55, 2**22):
        monkeypatch.setattr(textfiles, "_BLOCK", size)
        found = DuckDB(tmp_path / "a.csv").discover(ask.Column("x", "text"), None, 1).reveal()
        assert found == expected, size
        assert counts(tmp_path / "a.csv", "x", "y") == [9, 7, 6], size
        assert counts(tmp_path / "b.csv", "x") == [27, 18], size
        assert counts(tmp_path / "a.jsonl", "x") == [18, 18], size


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.CSV.GZ", "a,b\n1,2\n"),
        ("a.csv.Gz", "a,b\n1,2\n"),
        ("a.TSV.GZ", "a\tb,c;d,e\n1\t2\n"),
        ("a.CSV.ZST", "a,b\n1,2\n"),
        ("a.JSONL.GZ", '{"a": 1}\n'),
    ],
)
def test_endings_are_read_in_any_case(tmp_path, name, text):
    with pa.output_stream(
        str(tmp_path / name), compression={"z": "gzip", "Z": "gzip", "T": "zstd"}[name[-1]]
    ) as out:
        out.write(text.encode())
    assert counts(tmp_path / name, "a") == [1, 1]
