"""A disk that fails or is full (TRUST 29): refused, and nothing is shown; a clock that is set back
(TRUST 27).
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import LedgerDamaged
from ledgers import judge, prepared, run_faults

IO_ERROR, FULL = "3", "4"


@pytest.fixture
def tmp_path(in_memory):
    return in_memory


@pytest.mark.parametrize("mode", [IO_ERROR, FULL])
def test_every_write_and_sync_fails_once(inner, faults, tmp_path, mode):
    """TRUST 29: each call that changes the disk fails once; the release is refused or whole."""
    prepared(inner, tmp_path)
    reports = run_faults(inner, faults, tmp_path / "inner", tmp_path, mode)
    assert len(reports) > 30
    assert [(report["fault"], judge(report)) for report in reports if judge(report)] == []
    assert {report["ended"] for report in reports} <= {0, 3}
    whole = [report for report in reports if report["ended"] == 0]
    assert all(len(report["shown"]) == 2 for report in whole)
    refused = [report for report in reports if report["ended"] == 3]
    assert all(len(report["shown"]) < 2 for report in refused)
    assert len(refused) > len(reports) // 2


_SPEND_UNTIL_FULL = """
import json, resource, signal, sys
from discreet import DiscreetError, Ledger
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
shown = []
with Ledger.open(sys.argv[1]) as ledger:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
    try:
        for number in range(1000):
            grant = ledger.spend(f"r{number}", "q" * 500, "0.0001", study="s")
            shown.append(ledger.record(grant, str(number).encode() * 50).decode())
    except DiscreetError as error:
        print(json.dumps([type(error).__name__, str(error), shown]))
"""


@pytest.mark.parametrize("room", [70_000, 98_304, 120_000])
def test_a_full_disk_refuses_and_shows_nothing(file_place, room):
    """TRUST 29: files may not grow beyond a limit of the system; what was shown is stored, and it
    goes on with room.
    """
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
    program = [sys.executable, "-c", _SPEND_UNTIL_FULL, file_place.where, str(room)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    kind, message, shown = json.loads(done.stdout)
    assert kind == "EngineFailed"
    assert "nothing is released" in message
    assert len(shown) > 3
    with file_place.open() as ledger:
        answers = [entry.answer.decode() for entry in ledger.entries() if entry.kind == "answer"]
        spends = sum(entry.kind == "spend" for entry in ledger.entries())
        assert answers[: len(shown)] == shown
        assert len(shown) <= len(answers) <= spends <= len(shown) + 1
        ledger.spend("with room", "q", "0.1", study="s")
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_after_a_failed_sync_the_open_ledger_is_not_used_again(inner, faults, tmp_path):
    """TRUST 29: Linux drops the pages of a failed fsync and the next one succeeds, so only a fresh
    open may go on.
    """
    with inner.open(new=True) as ledger:
        ledger.create("s", 1)
    code = f"""
import ctypes
from discreet import EngineFailed, Ledger
faults = ctypes.CDLL(None)
ledger = Ledger.open({inner.where!r})
for at in (2, 0):
    faults.fault_arm({str(tmp_path / "inner")!r}.encode(), at, 3)
    try:
        ledger.spend("r", "q", "0.1", study="s")
        print("granted")
    except EngineFailed as error:
        print(error)
"""
    environment = {**os.environ, "LD_PRELOAD": str(faults)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert "disk failed: nothing is released" in first
    assert "disk has failed" in second


def test_a_clock_set_back_does_not_matter(place, faults):
    """TRUST 27: order is by number; ten years back, the budget, the chain and the stored answers
    are the same.
    """
    with place.open(new=True) as ledger:
        ledger.create("s", "0.3")
        ledger.record(ledger.spend("a", "q", "0.1", study="s", data_version="1"), b"answer")
    code = """
import sys
from discreet import BudgetExceeded, Ledger
with Ledger.open(sys.argv[1], anchor=sys.argv[2]) as ledger:
    print(ledger.spend("b", "q", "0.1", study="s", data_version="1").answer)
    ledger.spend("c", "q", "0.2", study="s", data_version="1")
    try:
        ledger.spend("d", "q", "1e-9", study="s")
    except BudgetExceeded:
        print("refused", ledger.verify())
"""
    environment = {**os.environ, "LD_PRELOAD": str(faults), "FAULT_CLOCK": str(-10 * 365 * 86400)}
    program = [sys.executable, "-c", code, place.where, place.anchor]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["b'answer'", "refused 5"]
    with place.open() as ledger:
        times = [entry.time for entry in ledger.entries()]
        assert times[-1] < times[0]  # the clock did go back
        assert ledger.remaining("s") == 0


def test_an_anchor_that_cannot_be_written_stops_the_release(file_place):
    """TRUST 29: the spend stands, the answer is not shown, and the same request goes on later."""
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        grant = ledger.spend("r", "q", "0.1", study="s")
        anchor = Path(file_place.anchor)
        moved = anchor.rename(anchor.with_name("moved"))
        anchor.mkdir()
        with pytest.raises(LedgerDamaged, match="anchor is damaged"):
            ledger.record(grant, b"answer")
        anchor.rmdir()
        moved.rename(anchor)
        assert ledger.record(grant, b"answer") == b"answer"
