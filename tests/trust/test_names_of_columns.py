"""TRUST 37: what names say, of columns and of files, is neither mistaken nor forgotten."""

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet import InvalidParameter
from discreet.ask.expression import Column, Missing
from discreet.engines.base import Request, Rows
from discreet.engines.duckdb import DuckDB
from discreet.engines.textfiles import Layout


@pytest.mark.parametrize(
    "names", [["age", "Seen", "seen"], ["age", "seen", "seen"], ["seen_1", "SEEN", "seen"]]
)
@pytest.mark.parametrize("source", ["{}", "SELECT * FROM '{}'"])
def test_parquet_with_columns_that_duckdb_takes_for_one_is_refused(tmp_path, names, source):
    """One of them would be read under another name, and pass the check of times in milliseconds."""
    for far in (0, 2**62):
        seen = pa.array([far, 0], pa.int64()).cast(pa.timestamp("ms"))
        parquet.write_table(
            pa.table([pa.array([1, 2]), pa.array([1, 2]), seen], names=names),
            tmp_path / "p.parquet",
        )
        with pytest.raises(InvalidParameter, match="names that differ"):
            DuckDB(source.format(tmp_path / "p.parquet"))


def test_control_names_within_a_struct_may_be_those_of_columns(tmp_path):
    deep = pa.array([{"seen": 1, "AGE": {"name": [2]}}])
    table = pa.table({"age": [1], "deep": deep, "list": [[1]], "seen": [1], "name": ["x"]})
    parquet.write_table(table, tmp_path / "p.parquet")
    assert list(DuckDB(str(tmp_path / "p.parquet")).schema()) == ["age", "seen", "name"]


def test_control_a_folder_may_write_a_column_that_its_files_have(tmp_path):
    (tmp_path / "year=2024").mkdir()
    parquet.write_table(pa.table({"age": [1], "year": ["x"]}), tmp_path / "year=2024" / "p.parquet")
    engine = DuckDB(str(tmp_path / "year=2024"))
    assert engine.fetch(Request((Rows(Missing(Column("year", "text"))),))).reveal() == [[0]]


def version(source, *columns):
    return DuckDB(str(source), Layout(columns)).version()


def test_tables_of_two_schemas_have_two_versions(tmp_path):
    with duckdb.connect(tmp_path / "x.duckdb") as made:
        made.execute(
            "CREATE TABLE people AS SELECT 1 AS age; CREATE SCHEMA other; CREATE TABLE other.people"
            " AS FROM people"
        )
    assert version(tmp_path / "x.duckdb#people") != version(tmp_path / "x.duckdb#other.people")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_what_folders_say_of_the_rows_is_in_the_version(tmp_path, suffix):
    found = set()
    for year in (2024, 2025):
        file = tmp_path / f"year={year}" / f"p{suffix}"
        file.parent.mkdir()
        if suffix == ".parquet":
            parquet.write_table(pa.table({"age": [5]}), file)
        else:
            file.write_text("age\n5\n" if suffix == ".csv" else '{"age": 5}\n')
        found.add(version(file, "age", "year"))
        assert version(file, "age") == version(file, "age")
    assert len(found) == 2


def test_control_a_file_that_is_moved_or_renamed_has_the_same_version(tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("a.csv", "b.CSV", "folder/a.csv"):
        (tmp_path / name).write_text("age\n5\n")
    assert len({version(tmp_path / name) for name in ("a.csv", "b.CSV", "folder/a.csv")}) == 1
