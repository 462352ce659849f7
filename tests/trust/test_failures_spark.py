"""A Spark source that fails says why, what to do and whether ε is spent, and shows no row (TRUST
11, 44).
"""

import itertools
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet import Policy, Study
from discreet.engines.choose import engine_of
from discreet.engines.textfiles import Layout
from discreet.files.add_noise import add_noise
from failures import CANARY, REFUSED, told
from waiting import wait

pytestmark = pytest.mark.spark
_numbers = itertools.count()
ROWS = {"x": list(range(1000)), "name": [CANARY] * 1000}


@pytest.fixture
def folder(in_memory):
    parquet.write_table(pa.table(ROWS), in_memory / "t.parquet")
    return in_memory


def cut(folder):
    os.truncate(folder / "t.parquet", 5000)
    return "t.parquet"


def text(folder):
    (folder / "t.parquet").write_text(CANARY * 9)
    return "t.parquet"


def texts(folder):
    (folder / "texts.parquet").mkdir()
    (folder / "texts.parquet" / "part").write_text(CANARY * 9)
    return "texts.parquet"


def empty(folder):
    (folder / "empty.parquet").mkdir()
    return "empty.parquet"


def orc(folder):
    (folder / "t.orc").write_text(CANARY * 9)
    return "t.orc"


NAMED = (
    "must name a table or view of the Spark session, or a path that exists and ends in .parquet or"
    " .orc, got '"
)
UNREADABLE = (
    "a file under the source is gone, damaged, or not of the kind that its name says: write it"
    " again"
)
PATHS = {
    "no such file": (lambda _: "gone.parquet", NAMED, REFUSED, "PATH_NOT_FOUND"),
    "another folder": (lambda _: "plain", NAMED, REFUSED, "PARSE"),
    "an empty folder": (
        empty,
        "must have files of rows in it, got .*: write them",
        REFUSED,
        "UNABLE_TO_INFER",
    ),
    "a cut file": (cut, "t.parquet is shorter than it says", False, "."),
    "no Parquet": (text, "t.parquet is no Parquet file: write it as Parquet", False, "."),
    "a folder without Parquet": (texts, UNREADABLE, False, "FAILED_READ_FILE"),
    "no ORC": (orc, UNREADABLE, False, "FAILED_READ_FILE"),
}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("situation", PATHS)
def test_a_path_that_cannot_be_read_says_why(folder, situation):
    make, says, spent, code = PATHS[situation]
    told(lambda: engine_of(f"spark:{folder / make(folder)}"), says, spent=spent, code=code)


NAMES = {
    "nothing": (NAMED, REFUSED, "TABLE_OR_VIEW_NOT_FOUND SQLSTATE 42P01"),
    "no.thing": (NAMED, REFUSED, "TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND"),
    "a.b.c": (NAMED, REFUSED, "REQUIRES_SINGLE_PART_NAMESPACE|CATALOG_NOT_FOUND"),
    "a b c": (NAMED, REFUSED, "PARSE_SYNTAX_ERROR"),
    "people.csv": ("a text file must be converted to Parquet for Spark", REFUSED, None),
    "s3://bucket/t.parquet": (
        "Spark cannot use the file system of the source: add its package",
        False,
        "FileSystem",
    ),
    "hdfs://nowhere.invalid/t.parquet": (
        "Spark cannot use the file system of the source",
        False,
        "UnknownHost",
    ),
}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_no_source_says_why(name):
    says, spent, code = NAMES[name]
    told(lambda: engine_of(f"spark:{name}"), says, spent=spent, code=code)


def asked(source, folder):
    policy = Policy(source=source, epsilon=9, columns={"x": {"bounds": (0, 9)}}, version="1")
    return Study(policy, ledger=folder / f"{next(_numbers)}.ledger")


def functions():
    from pyspark.sql import functions

    return functions


FAILING = (
    "a computation of the DataFrame or view that is the source fails: correct it, and use try_cast"
)
TASKS = {
    "an error in a function": (
        lambda f: f.udf(lambda _: int(CANARY), "int")("id"),
        FAILING,
        "PYTHON_EXCEPTION",
    ),
    "an error that is raised": (
        lambda f: f.raise_error(f.lit(CANARY)).cast("int"),
        FAILING,
        "USER_RAISED_EXCEPTION",
    ),
    "a cast": (
        lambda f: f.lit(CANARY).substr(f.lit(1), f.col("id") + 10).cast("int"),
        FAILING,
        "CAST_INVALID_INPUT",
    ),
    "a division": (lambda f: f.col("id") / (f.col("id") - f.col("id")), FAILING, "DIVIDE_BY_ZERO"),
    "a worker that ends": (
        lambda f: f.udf(lambda _: os._exit(9), "int")("id"),
        "a task of Spark failed: its log says why",
        ".",
    ),
}


@pytest.mark.parametrize("situation", TASKS)
def test_a_task_that_fails_after_the_spend_says_so_and_shows_no_row(
    spark, folder, situation, caplog, capfd
):
    column, says, code = TASKS[situation]
    with asked(spark.range(10).select(column(functions()).alias("x")), folder) as study:
        plan = study.sql("SELECT sum(x) FROM data", epsilon=1)
        capfd.readouterr()
        told(plan.release, says, spent=True, code=code)
        # PySpark's own log would quote the value
        assert CANARY not in capfd.readouterr().err + caplog.text
        assert study.spent == 1


def test_control_pyspark_s_own_log_quotes_a_value(spark, caplog):
    f = functions()
    with pytest.raises(Exception, match=CANARY):
        spark.range(10).select(
            f.lit(CANARY).substr(f.lit(1), f.col("id") + 10).cast("int")
        ).collect()
    assert CANARY in caplog.text


def test_a_statement_that_is_stopped_says_so(spark, folder):
    f = functions()
    slow = f.udf(lambda _: time.sleep(1) or 1, "int")
    with asked(spark.range(1_000).select(slow("id").alias("x")), folder) as study:
        plan = study.sql("SELECT sum(x) FROM data", epsilon=1)

        def stop():
            wait(spark.sparkContext.statusTracker().getActiveJobsIds)
            spark.sparkContext.cancelAllJobs()

        with ThreadPoolExecutor(1) as pool:
            stopped = pool.submit(stop)
            told(
                plan.release, "the statement was stopped by a person", spent=True, code="CANCELLED"
            )
            stopped.result()


LATER = {
    "vanished": (
        os.unlink,
        "is gone since the study was opened: put it back|t.parquet is gone",
        ".",
    ),
    "cut": (lambda file: os.truncate(file, 5000), "t.parquet is shorter than it says", "."),
}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize("situation", LATER)
def test_a_file_that_fails_later_says_so_before_and_after_the_spend(
    folder, situation, paid, monkeypatch
):
    harm, says, code = LATER[situation]
    with asked(f"spark:{folder / 't.parquet'}", folder) as study:
        plan = study.sql("SELECT sum(x) FROM t", epsilon=1)
        spend = study.ledger.spend

        def spent(*arguments, **options):
            grant = spend(*arguments, **options)
            harm(folder / "t.parquet")
            return grant

        if paid:
            monkeypatch.setattr(study.ledger, "spend", spent)
        else:
            harm(folder / "t.parquet")
        refused = REFUSED if situation == "vanished" else False
        told(plan.release, says, spent=True if paid else refused, code=code)
        assert study.spent == paid


def test_a_view_that_is_dropped_says_so(spark, folder):
    spark.range(10).selectExpr("id AS x").createOrReplaceTempView("fleeting")
    with asked("spark:fleeting", folder) as study:
        plan = study.sql("SELECT sum(x) FROM fleeting", epsilon=1)
        spark.catalog.dropTempView("fleeting")
        told(
            plan.release,
            "'fleeting' is gone since the study was opened",
            spent=REFUSED,
            code="42P01",
        )
        assert study.spent == 0


TYPES = {
    "array": ("array(1)", r"its type is array; put c\[0\]"),
    "map": ("map('key', 1)", r"its type is map; put c\['key'\]"),
    "struct": ("named_struct('part', 1)", r"its type is struct; put c\.part"),
    "binary": ("CAST('a' AS BINARY)", r"its type is binary; put hex\(c\)"),
    "interval": ("INTERVAL '1' DAY", r"its type is interval; put CAST\(c AS STRING\)"),
}


@pytest.mark.parametrize("situation", TYPES)
def test_a_column_that_exists_and_cannot_be_used_says_its_type_and_the_frame_helps(
    spark, situation
):
    value, says = TYPES[situation]
    frame = spark.range(3).selectExpr("id AS x", f"{value} AS c")
    error = told(
        lambda: engine_of(frame, Layout(("c",))),
        f"the column 'c' exists, and must be .*: {says}",
        spent=REFUSED,
    )
    form = str(error).partition("; put ")[2].partition(", or what else")[0]
    assert "c" in engine_of(frame.selectExpr("x", f"{form} AS c"), Layout(("c",))).schema()


def test_a_noisy_frame_that_cannot_be_written_says_why(spark, folder, caplog, capfd):
    frame = spark.range(10).selectExpr(f"CAST(concat('{CANARY}', id) AS BIGINT) AS x")
    says = f"Spark could not write the noisy frame: {FAILING}"
    capfd.readouterr()
    told(
        lambda: add_noise(frame, str(folder / "noisy"), columns=["x"], sensitivity=1, epsilon=1),
        says,
        code="CAST",
    )
    assert CANARY not in capfd.readouterr().err + caplog.text


WITHOUT = """
import sys
from discreet.engines.choose import engine_of
from discreet.errors import EngineFailed
try:
    engine_of("spark:t")
except EngineFailed as error:
    print(error.code, error, sep="|")
"""


def test_without_java_there_is_no_session_and_it_says_so(tmp_path):
    """With the shell that Spark starts with, but neither Java nor JAVA_HOME."""
    for program in ("bash", "env", "dirname", "ps", "cat", "sed", "grep"):
        if found := shutil.which(program):
            (tmp_path / program).symlink_to(found)
    environment = {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": ""}
    program = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(
        program, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.startswith(
        "JAVA_GATEWAY_EXITED|Spark needs Java, which does not start: install Java 17"
    ), done
    assert done.stdout.strip().endswith("nothing was spent")


ENDED = """
import sys
import warnings
from discreet import Policy, Study
from discreet.engines.choose import engine_of
from discreet.errors import DiscreetError
from pyspark.sql import SparkSession

warnings.simplefilter("ignore")


def session():
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.host", "127.0.0.1").getOrCreate()


def asked(name, end):
    spark = session()
    rows = spark.range(9).selectExpr("id AS x")
    policy = Policy(source=rows, epsilon=9, columns={"x": {"bounds": (0, 9)}}, version="1")
    with Study(policy, ledger=f"{sys.argv[1]}/{name}.ledger") as study:
        plan = study.sql("SELECT sum(x) FROM data", epsilon=1)
        end(spark)
        try:
            plan.release()
        except DiscreetError as error:
            print(study.spent, getattr(error, "spent", ""), error, sep="|", flush=True)


asked("stopped", lambda spark: spark.stop())
asked("killed", lambda spark: (spark.sparkContext._gateway.proc.kill(), spark.sparkContext._gateway.proc.wait()))
"""


def test_a_session_that_has_ended_says_so_before_the_spend(tmp_path):
    """Stopped by its owner, and killed."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java: Spark cannot run")
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    program = [sys.executable, "-c", ENDED, str(tmp_path)]
    done = subprocess.run(
        program, env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    lines = done.stdout.strip().splitlines()
    assert len(lines) == 2, done.stderr
    for line in lines:
        assert line.startswith("0|False|there is no Spark session, or it has ended: create one"), (
            line
        )
        assert line.endswith("open the study again; nothing was spent")
