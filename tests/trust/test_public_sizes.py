"""TRUST 58: the number of rows is public for a table as it is, a Parquet file and a frame, or where
the policy says so; never for a view, a SELECT or a relation, whose filter decides it.
"""

import itertools
import shutil
import sqlite3

import duckdb
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from discreet import InvalidParameter, Ledger, Policy, Study
from discreet.engines.base import by_filter
from discreet.engines.choose import engine_of, engine_under
from discreet.engines.postgres import _KINDS_OF_RELATIONS, _RELATION, Relation
from discreet.engines.spark import _begins_in_part
from discreet.errors import SourceChanged
from discreet.release.public_size import public_size
from discreet.verify import certify
from shell import discreet
from studies import Paper

AGES = [17.0, 18.0, 19.0, 40.0]
FRAME = pa.table({"age": AGES})
BOUNDS = {"age": {"bounds": [0, 120], "missing": 0}}
_numbers = itertools.count()


def policy(source, **terms):
    return Policy(
        source=source,
        table="data",
        epsilon=10**6,
        columns=terms.pop("columns", BOUNDS),
        version="1",
        **terms,
    )


def is_public(source, **terms):
    own = policy(source, **terms)
    return public_size(own, engine_under(own)).value


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(FRAME, "people.parquet")
    (tmp_path / "parts" / "year=2024").mkdir(parents=True)
    (tmp_path / "parts" / "year=2025").mkdir()
    for year in (2024, 2025):
        pq.write_table(FRAME, f"parts/year={year}/a.parquet")
    (tmp_path / "people.csv").write_text("age\n17\n18\n")
    (tmp_path / "people.jsonl").write_text('{"age": 17}\n')
    with sqlite3.connect("people.db") as lite:
        lite.execute("CREATE TABLE people (age REAL)")
        lite.execute("CREATE VIEW adults AS SELECT age FROM people WHERE age >= 18")
        lite.execute("CREATE VIRTUAL TABLE words USING rtree(id, age, upper)")
    with duckdb.connect("people.duckdb") as file:
        file.execute("CREATE TABLE people AS SELECT unnest([17.0, 18, 19, 40])::double AS age")
        file.execute("CREATE VIEW adults AS FROM people WHERE age >= 18")
    return tmp_path


PUBLIC = ["people.parquet", "*.parquet", "parts", "people.db#people", "people.duckdb#people"]
PRIVATE = {
    "people.csv": "a line that cannot be read",
    "people.jsonl": "a line that cannot be read",
    "SELECT * FROM 'people.parquet' WHERE age >= 18": "is a SELECT, and its filter",
    "SELECT * FROM 'people.parquet'": "is a SELECT, and its filter",
    "FROM 'people.parquet' AS a JOIN 'people.parquet' AS b USING (age)": (
        "is a SELECT, and its filter"
    ),
    "parts/year=2024": "a part of a folder",
    "parts/year=2024/a.parquet": "a part of a folder",
    "parts/*=2024/*.parquet": "a part of a folder",
    "people.db#adults": "is a view, and its filter",
    "people.db#words": "is a virtual table, and its filter",
    "people.duckdb#adults": "is a view, and its filter",
}


@pytest.mark.parametrize("source", PUBLIC)
def test_a_table_a_parquet_file_and_a_folder_have_a_public_size(folder, source):
    assert is_public(source)
    with Study(policy(source), ledger=folder / "l") as study:
        plan = study.sql("SELECT count(*) FROM data", epsilon="0.1")
        assert (plan.cost, "private" in repr(plan)) == (0, False)


@pytest.mark.parametrize(("source", "words"), PRIVATE.items())
def test_the_size_of_a_view_a_select_and_a_text_file_is_private(folder, source, words):
    columns = (
        {"age": {"bounds": [0, 120], "type": "number"}}
        if source.endswith(("csv", "jsonl"))
        else BOUNDS
    )
    own = policy(source, columns=columns)
    size = public_size(own, engine_under(own))
    assert not size.value
    assert words in size.reason
    told = size.sentence
    assert (
        told
        == f'The number of rows is private: {size.reason}; if it is public, write size = "public".'
    )
    with Study(own, ledger=folder / "l") as study:
        plan = study.sql("SELECT count(*) AS n FROM data", epsilon="0.1")
        assert plan.cost == plan.epsilon
        assert told in repr(plan)
        assert (
            "the number of units" not in study.card().content["dp_flavor"]["unprotected_quantities"]
        )
        report = study.report({"all": "SELECT count(*) AS n FROM data"}, epsilon=1)
        assert not report.known
        assert told in repr(report)
    assert is_public(source, columns=columns, size="public")


def test_a_part_is_a_part_also_from_within_its_folder_and_by_a_link(folder, monkeypatch):
    (folder / "now").symlink_to(folder / "parts" / "year=2024")
    assert not is_public("now/a.parquet")
    monkeypatch.chdir(folder / "parts" / "year=2024")
    assert not is_public("a.parquet")
    assert not is_public(".")
    monkeypatch.chdir(folder / "parts")
    assert is_public(".")
    (folder / "links").mkdir()
    (folder / "links" / "a.parquet").symlink_to(folder / "parts" / "year=2024" / "a.parquet")
    assert not is_public(str(folder / "links"))
    assert not is_public(f"{folder}/links/*.parquet")


@pytest.mark.usefixtures("folder")
def test_frames_have_their_rows_and_queries_choose_them():
    frame = pd.DataFrame({"age": AGES})
    held = [frame, pl.from_pandas(frame), FRAME, FRAME.to_batches()[0]]
    assert all(map(is_public, held))
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT 1.5 AS age; CREATE MACRO adults() AS TABLE FROM people"
        )
        queries = [
            pl.from_pandas(frame).lazy().filter(pl.col("age") >= 18),
            pl.scan_parquet("people.parquet"),
            ds.dataset("people.parquet").filter(ds.field("age") >= 18),
            ds.dataset("people.parquet").scanner(filter=ds.field("age") >= 18),
            pa.RecordBatchReader.from_batches(FRAME.schema, FRAME.to_batches()),
            connection.sql("FROM people WHERE age >= 18"),
            connection.table("people"),
            connection.sql("FROM adults()"),
        ]
        for query in queries:
            assert public_size(policy(query), engine_of(query)).value is False, query.__class__
        assert is_public(connection.sql("FROM people"), size="public")


@pytest.mark.usefixtures("folder")
def test_the_age_of_17_or_18_moves_a_count_by_its_noise_alone():
    """What was exact and free: whether somebody in the table behind a view is of age."""
    for age in (17.0, 18.0):
        pq.write_table(pa.table({"age": [age, 40.0]}), "people.parquet")
        study = Study(policy("SELECT * FROM 'people.parquet' WHERE age >= 18"), ledger=Paper())
        for text in ("count(*)", "sum(age)", "avg(age)", "stddev(age)"):
            plan = study.sql(f"SELECT {text} FROM data", epsilon="0.1")  # noqa: S608
            assert plan.cost == plan.epsilon
            assert not any(share.terms.public for share in plan.shares)
            assert certify(plan).holds
        with pytest.raises(InvalidParameter, match="within needs size="):
            study.sql("SELECT avg(age) FROM data", within=2)
        assert study.profile(["age"], epsilon=5).columns["age"].units is None


@pytest.mark.usefixtures("folder")
def test_under_add_remove_the_number_is_private_and_cannot_be_promised():
    assert not is_public("people.parquet", neighbors="add-remove")
    with pytest.raises(
        InvalidParameter, match="size: under add-remove the number of units is private"
    ):
        policy("people.parquet", neighbors="add-remove", size="public")
    with pytest.raises(InvalidParameter, match=r"size.*public.*got 'private'"):
        policy("people.parquet", size="private")


def test_the_promise_of_a_size_is_kept_in_the_ledger_and_an_older_ledger_keeps_its_own(folder):
    view = "SELECT * FROM 'people.parquet' WHERE age >= 18"
    with Study(policy(view), ledger=folder / "l") as study:
        study.sql("SELECT avg(age) FROM data", epsilon=1).release()
    with pytest.raises(
        InvalidParameter, match="promise what the ledger was created with: no size; set it back"
    ):
        Study(policy(view, size="public"), ledger=folder / "l")
    # as it was before there was a size to promise
    with Ledger.open(folder / "old", new=True) as ledger:
        promise = {name: value for name, value in policy(view).promise.items() if name != "size"}
        ledger.create("study", 10**6, promise=promise)
        ledger.spend("one", "q", 1, study="study")
    for size in (None, "public"):
        with Study(policy(view, size=size), ledger=folder / "old") as study:
            assert study.sql("SELECT count(*) FROM data", epsilon=1).cost == (0 if size else 1)


def test_check_and_init_say_whether_the_number_is_public_and_why(folder):
    flags = ["--bounds", "age=0:120", "--epsilon", "1"]
    discreet("init", "people.duckdb#adults", *flags, "-o", "view.toml", cwd=folder)
    discreet(
        "init", "people.duckdb#people", *flags, "-o", "table.toml", "--another-budget", cwd=folder
    )
    view, table = ((folder / name).read_text() for name in ("view.toml", "table.toml"))
    assert (
        "rows are replaced; their number is private: the source is a view, and its filter"
        " decides it" in view
    )
    assert '# size     = "public"' in view
    assert "the number of rows is public" in table
    assert "# size" not in table
    (folder / "view.toml").write_text(view.replace("# size ", "size "))
    told = discreet("check", "view.toml", cwd=folder).out
    assert "The number of rows is public: the policy promises it." in told
    told = discreet("check", "table.toml", cwd=folder).out
    assert "The number of rows is public: no value decides whether a row is there." in told


@pytest.fixture
def tables(postgres):
    """A function that runs statements in a schema of its own, and its address."""
    schema = f"sizes_{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}")
        connection.execute("CREATE TABLE people AS SELECT 17.5::float8 AS age")

        def run(statements: str) -> None:
            connection.execute(statements)

        run.source = lambda name: f"{postgres}#{schema}.{name}"
        yield run
        connection.execute(
            f"DROP SCHEMA {schema} CASCADE; DROP FOREIGN DATA WRAPPER IF EXISTS {schema} CASCADE"
        )


def test_on_postgresql_only_a_table_has_a_public_size(tables):
    tables("""
        CREATE VIEW adults AS SELECT * FROM people WHERE age >= 18;
        CREATE MATERIALIZED VIEW stored AS SELECT * FROM people;
        CREATE TABLE visits (age float8) PARTITION BY RANGE (age);
        CREATE TABLE young PARTITION OF visits FOR VALUES FROM (0) TO (18);
        CREATE TABLE grown PARTITION OF visits FOR VALUES FROM (18) TO (200) PARTITION BY RANGE (age);
        CREATE TABLE family (age float8);
        CREATE TABLE minors (CHECK (age < 18)) INHERITS (family)""")
    chosen = {
        name: engine_of(tables.source(name)).chosen
        for name in ("people", "visits", "family", "young", "minors")
    }
    # a partition, and one of the old kind, as extensions have them
    for part in ("young", "minors"):
        assert (
            chosen.pop(part)
            == "the source is a part of another table, and a rule of that table may decide it"
        )
    assert set(chosen.values()) == {""}
    for name in ("adults", "stored"):
        assert "view, and its filter decides it" in engine_of(tables.source(name)).chosen
    assert is_public(tables.source("people"))
    assert not is_public(tables.source("adults"))
    assert is_public(tables.source("adults"), size="public")


def test_on_postgresql_a_foreign_table_makes_the_size_private_also_as_a_part(tables, postgres):
    """A foreign table needs another server to be read, so that what is asked of the catalogue is
    asked here.
    """
    schema = tables.source("").rpartition("#")[2].rstrip(".")
    tables(f"""
        CREATE TABLE visits (age float8) PARTITION BY RANGE (age);
        CREATE TABLE grown PARTITION OF visits FOR VALUES FROM (18) TO (200) PARTITION BY RANGE (age);
        CREATE TABLE family (age float8);
        CREATE FOREIGN DATA WRAPPER {schema}; CREATE SERVER {schema} FOREIGN DATA WRAPPER {schema};
        CREATE FOREIGN TABLE far PARTITION OF grown FOR VALUES FROM (18) TO (50) SERVER {schema};
        CREATE FOREIGN TABLE heir () INHERITS (family) SERVER {schema}; CREATE TABLE near (age float8);
        CREATE FOREIGN TABLE lone (age float8) SERVER {schema}""")
    with psycopg.connect(postgres, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute("SET search_path = pg_catalog, pg_temp")

        def chosen(name: str) -> str:
            kind, *facts, _ = connection.execute(_RELATION, [f"{schema}.{name}"]).fetchone()
            return Relation(_KINDS_OF_RELATIONS[kind], *facts).chosen

        assert chosen("near") == ""
        assert chosen("visits") == by_filter("a partitioned table with a foreign table as a part")
        assert chosen("family") == by_filter("a table with a foreign table as a part")
        assert "is a part of another table" in chosen("heir")
        assert chosen("lone") == by_filter("a foreign table")


def test_a_table_whose_rows_another_rule_decides_than_before_is_refused_before_anything_is_spent(
    tables, tmp_path
):
    tables("CREATE TABLE visits (age float8) PARTITION BY RANGE (age)")
    with Study(policy(tables.source("people")), ledger=tmp_path / "l") as study:
        plan = study.sql("SELECT sum(age) FROM data", epsilon=1)
        tables("ALTER TABLE visits ATTACH PARTITION people FOR VALUES FROM (0) TO (18)")
        with pytest.raises(SourceChanged, match="another rule decides which rows the source has"):
            plan.release()
        assert study.spent == 0


@pytest.mark.spark
def test_on_spark_only_a_table_and_a_folder_of_files_have_a_public_size(spark, folder):
    spark.createDataFrame([(17.5,), (40.0,)], "age double").write.mode("overwrite").saveAsTable(
        "people_58"
    )
    spark.table("people_58").write.parquet(str(folder / "written.parquet"))
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW adults_58 AS SELECT * FROM people_58 WHERE age >= 18"
    )
    spark.sql("CREATE OR REPLACE VIEW kept_58 AS SELECT * FROM people_58 WHERE age >= 18")
    (folder / "t.csv").write_text("17.5\n")
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS lines_58 (age double) USING csv LOCATION '{folder}/t.csv'"
    )
    try:
        assert is_public("spark:people_58")
        assert is_public(f"spark:{folder}/written.parquet")
        for name in ("adults_58", "kept_58", "lines_58"):
            assert not is_public(f"spark:{name}"), name
        assert not is_public(f"spark:{folder}/parts/year=2024/a.parquet")
        (folder / "link.parquet").symlink_to(folder / "parts" / "year=2024" / "a.parquet")
        (folder / "links.parquet").mkdir()
        (folder / "links.parquet" / "b.parquet").symlink_to(
            folder / "parts" / "year=2024" / "a.parquet"
        )
        for name in ("link.parquet", "links.parquet"):
            assert not is_public(f"spark:{folder}/{name}"), name
        (folder / "twice.parquet").mkdir()
        for name in ("a.parquet", "b.parquet"):
            (folder / "twice.parquet" / name).hardlink_to(folder / "people.parquet")
        with pytest.raises(
            InvalidParameter,
            match=r"a file must be in the source once, and a\.parquet and b\.parquet",
        ):
            engine_of(f"spark:{folder}/twice.parquet")
        assert not is_public(spark.table("people_58"))
        assert is_public("spark:kept_58", size="public")
    finally:
        for kind, name in (
            ("VIEW", "adults_58"),
            ("VIEW", "kept_58"),
            ("TABLE", "people_58"),
            ("TABLE", "lines_58"),
        ):
            spark.sql(f"DROP {kind} IF EXISTS {name}")


@pytest.mark.spark
def test_a_relative_path_of_spark_is_a_part_within_the_folder_of_a_part(spark, folder):
    """The folder in which Spark was started is in the whole paths of the files alone."""
    shutil.copytree(folder / "parts", folder / "whole.parquet")
    part, whole = (
        spark.read.parquet(f"{folder}/{name}")
        for name in ("parts/year=2024/a.parquet", "whole.parquet")
    )
    for name in ("a.parquet", "./a.parquet", "*.parquet", "../year=2024/a.parquet"):
        assert _begins_in_part(name, part), name
    for name in (
        "whole.parquet",
        "./whole.parquet/",
        "wh*.parquet",
        f"{folder.name}/whole.parquet",
    ):
        assert not _begins_in_part(name, whole), name
    assert not _begins_in_part("people.parquet", spark.read.parquet(f"{folder}/people.parquet"))
