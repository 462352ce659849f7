"""A program that releases under faults, one forked child for each fault; run with faults.c
preloaded.

    python ledger_faults.py KIND WHERE ANCHOR FOLDER MODE

FOLDER is where calls are counted, or "socket"; MODE is one of faults.c, or "steps" to die between
the verbs.

It prints one JSON line for each fault: what the child showed, and what the ledger says afterwards.
"""

import ctypes
import json
import os
import shutil
import signal
import sys
from functools import partial
from pathlib import Path

from discreet import DiscreetError, Ledger
from ledgers import Place, postgresql_place

REQUESTS = ("first", "second")
STEPS = ("before spend", "after spend", "after work", "after record", "after show")


def release(place: Place, shown: Path, die_at: str = "") -> None:
    """Spend, work, record and show, twice; what is shown goes to a file, and is synced."""

    def step(name: str) -> None:
        if name == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with place.open() as ledger:
        for request in REQUESTS:
            step("before spend")
            grant = ledger.spend(request, "q", "0.3", study="s", data_version=request)
            step("after spend")
            answer = (
                f"{request} {os.urandom(4).hex()}".encode()
                if grant.answer is None
                else grant.answer
            )
            step("after work")
            answer = ledger.record(grant, answer)
            step("after record")
            with shown.open("a") as file:
                file.write(answer.decode() + "\n")
            step("after show")


def child(work) -> int:
    """How a forked child ended: 0, 3 for one of our errors, 4 for another's, or minus a signal."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except DiscreetError:
            os._exit(3)
        except BaseException as error:
            print(f"unexpected: {error!r}", file=sys.stderr, flush=True)
            os._exit(4)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def afterwards(place: Place, shown: Path) -> dict:
    """What the ledger says, before and after the same requests are asked again."""
    before = shown.read_text().splitlines()
    with place.open() as ledger:
        found = {
            "shown": before,
            "answers": [
                entry.answer.decode() for entry in ledger.entries() if entry.kind == "answer"
            ],
            "spends": [entry.request_id for entry in ledger.entries() if entry.kind == "spend"],
            "spent": str(ledger.spent("s")),
        }
    release(place, shown)
    with place.open() as ledger:
        return {
            **found,
            "again": shown.read_text().splitlines()[len(before) :],
            "in all": str(ledger.spent("s")),
        }


def main(kind: str, where: str, anchor: str, folder: str, mode: str) -> None:
    place, show = Place(kind, where, anchor), Path.cwd() / "shown"
    faults = ctypes.CDLL(None)

    def fresh() -> None:
        show.write_text("")
        if kind == "sqlite":
            shutil.rmtree(folder)
            shutil.copytree("fresh", folder)

    def armed(place: Place, number: int) -> None:
        faults.fault_arm(folder.encode(), number, int(mode))
        release(place, show)
        if number == 0:
            Path("count").write_text(str(faults.fault_count()))
            faults.fault_arm(b"", -1, 0)

    if mode == "steps":
        faults_to_try = list(STEPS)
    else:
        fresh()
        assert child(partial(armed, place, 0)) == 0
        # every call of the first release, and every third of the second, which makes the same ones
        many = int(Path("count").read_text())
        faults_to_try = [*range(1, many // 2 + 1), *range(many // 2 + 1, many + 1, 3)]
    for fault in faults_to_try:
        fresh()
        if kind != "sqlite":
            place = renewed(place)
        work = (
            partial(release, place, show, fault)
            if mode == "steps"
            else partial(armed, place, fault)
        )
        ended = child(work)
        print(json.dumps({"fault": fault, "ended": ended, **afterwards(place, show)}), flush=True)


def renewed(place: Place) -> Place:
    """A fresh ledger on the same server."""
    server = place.where.partition("&options")[0]
    fresh = postgresql_place(server, Path(place.anchor).parent)
    with Ledger.open(fresh.where, anchor=fresh.anchor, new=True) as ledger:
        ledger.create("s", 1)
    return fresh


if __name__ == "__main__":
    main(*sys.argv[1:])
