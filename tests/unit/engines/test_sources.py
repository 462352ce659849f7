"""A SELECT as a source, and files in other encodings than UTF-8."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import InvalidParameter, Policy
from discreet.ask.expression import Column
from discreet.engines.choose import engine_of, engine_under
from discreet.engines.textfiles import Layout


def values_of(engine, name):
    """The values of a column of texts, each with its number of rows."""
    return engine.discover(Column(name, "text"), None, 1).reveal()


def selected(folder, select, **terms):
    return engine_under(
        Policy(source=select, epsilon=1, columns={"x": {"type": "text"}}, folder=folder, **terms)
    )


@pytest.mark.parametrize(
    ("select", "reason"),
    [
        (
            "SELECT y AS x FROM 'a.csv'",
            'Binder Error: Referenced column "y" not found in FROM clause!',
        ),
        ("SELECT x FROM 'a.csv' WHERE", 'Parser Error: syntax error at or near "WHERE"'),
        (
            "SELECT blur(x) AS x FROM 'a.csv'",
            "Catalog Error: Scalar Function with name blur does not exist!",
        ),
        ("SELECT x FROM absent", "Catalog Error: Table with name absent does not exist!"),
        ("SELECT x + DATE '2020-01-01' AS x FROM 'a.csv'", "Binder Error: "),
    ],
)
def test_what_is_wrong_with_a_select_is_told_and_no_row(tmp_path, select, reason):
    (tmp_path / "a.csv").write_text("x\nWolpertinger\n")
    with pytest.raises(InvalidParameter) as refusal:
        selected(tmp_path, select)
    assert str(refusal.value).startswith(f"the SELECT of the source cannot be read: {reason}")
    assert "Wolpertinger" not in str(refusal.value)
    assert "LINE" not in str(refusal.value)
    assert refusal.value.__context__ is None


def test_paths_in_a_select_lie_beside_the_policy(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("x\nhere\n")
    pq.write_table(pa.table({"x": ["there"]}), tmp_path / "b.parquet")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    select = "SELECT x FROM 'data/a.csv' UNION ALL SELECT x FROM 'b.parquet'"
    assert values_of(selected(tmp_path, select), "x") == {"here": 1, "there": 1}
    absolute = f"SELECT x FROM '{tmp_path / 'b.parquet'}'"  # noqa: S608
    assert values_of(selected(tmp_path, absolute), "x") == {"there": 1}
    with pytest.raises(InvalidParameter, match="that names files"):
        selected(tmp_path / "elsewhere", select)


def test_no_output_replaces_a_file_that_a_select_names(tmp_path, monkeypatch):
    from discreet.files.writer import free, kept_source

    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(InvalidParameter):
        free(tmp_path / "a.csv", force=True, kept=kept_source("SELECT x FROM 'a.csv'", tmp_path))


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252"])
def test_every_byte_is_a_character_of_its_own_row(tmp_path, encoding):
    letters = [byte for byte in range(256) if byte not in b'\r\n";\0']
    rows = [b"%d;a%cb" % (byte, byte) for byte in letters]
    (tmp_path / "a.csv").write_bytes(
        b"n;n\xe4me\n" + b"\n".join(rows) + b"\n" + b'1;"a\xe9;""\nb"\n2;too;many\n\n3;\n'
    )
    engine = engine_of(str(tmp_path / "a.csv"), Layout(encoding=encoding))
    assert list(engine.schema()) == ["n", "näme"]
    python = {"windows-1252": "cp1252"}.get(encoding, encoding)
    undefined = b"\x81\x8d\x8f\x90\x9d" if encoding == "windows-1252" else b""
    expected = {
        f"a{bytes([b]).decode('latin-1' if b in undefined else python)}b": 1 for b in letters
    }
    assert values_of(engine, "näme") == {**expected, 'aé;"\nb': 1}
    assert engine.units(None).reveal() == len(letters) + 2
    packed = selected(
        tmp_path, "SELECT \"näme\" AS x FROM 'a.csv' WHERE n = '228'", encoding=encoding
    )
    assert values_of(packed, "x") == {"aäb": 1}


def test_an_encoding_is_of_csv_and_another_one_is_another_version(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"x\n\x80\n")
    versions = {
        engine_of(str(tmp_path / "a.csv"), Layout(encoding=name)).version()
        for name in ("latin-1", "windows-1252")
    }
    assert len(versions) == 2
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    with pytest.raises(InvalidParameter, match="encoding: only CSV has it"):
        engine_of(str(tmp_path / "a.jsonl"), Layout(("x",), encoding="latin-1"))
    (tmp_path / "b.csv").write_bytes(b"n\xe4me\n1\n")
    with pytest.raises(InvalidParameter, match='write encoding = "windows-1252"'):
        engine_of(str(tmp_path / "b.csv"))


@pytest.mark.parametrize("encoding", [None, "latin-1", "windows-1252"])
@pytest.mark.parametrize(
    ("text", "rows"), [("k\na\n\n\n", 3), ("k\n\n", 1), ("k\n", 0), ("k,x\na,1\n\n", 1)]
)
def test_an_empty_line_is_a_row_of_one_column_in_every_encoding(tmp_path, encoding, text, rows):
    (tmp_path / "a.csv").write_bytes(text.encode())
    engine = engine_of(str(tmp_path / "a.csv"), Layout(encoding=encoding))
    assert engine.units(None).reveal() == rows
