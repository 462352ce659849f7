"""TRUST 22: after the budget is gone a million tiny spends are refused, as the first one is.

A refusal leaves no trace: after 1,000 of them the ledger's file and its anchor are the same, byte
for byte. What the ledger decides is a function of these bytes and of the request alone, so the next
million meets what the first one met. (A million of them would take some four minutes.) The control
counts in floats, and lets a hundred thousand pass.
"""

from fractions import Fraction
from pathlib import Path

import pytest

from discreet import BudgetExceeded, Ledger

TINIEST = Fraction(1, 10**9)
REFUSALS = 1000


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.fixture
def exhausted(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as ledger:
        ledger.create("s", 1)
        ledger.allot("ann", "0.5", study="s")
        ledger.spend("all but the last", "q", 1 - TINIEST, study="s")
        ledger.spend("the last", "q of the last", TINIEST, study="s")
        assert ledger.remaining("s") == 0
        yield ledger


def refused(ledger: Ledger, number: int) -> None:
    """One more spend, of ever another amount, request, question and person."""
    epsilon = TINIEST * (1 + number % 7)
    with pytest.raises(BudgetExceeded):
        ledger.spend(
            f"again {number}",
            f"question {number % 5}",
            epsilon,
            study="s",
            analyst="ann" if number % 3 == 0 else None,
            data_version=f"{number % 2}",
        )


def test_thousands_of_tiny_spends_are_refused_and_leave_no_byte_behind(exhausted, tmp_path):
    before = bytes_of(tmp_path)
    for number in range(REFUSALS):
        refused(exhausted, number)
    assert bytes_of(tmp_path) == before
    assert exhausted.spent("s") == exhausted.total("s") == 1
    assert exhausted.remaining("s", analyst="ann") == 0


def test_after_a_restart_the_next_one_is_refused_like_the_first(exhausted, tmp_path):
    exhausted.close()
    before = bytes_of(tmp_path)
    for number in range(5):
        with Ledger.open(tmp_path / "study.ledger", study="s") as again:
            refused(again, number)
    assert bytes_of(tmp_path) == before


def test_no_spend_is_so_small_that_it_is_free(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as ledger:
        ledger.create("s", 3 * TINIEST)
        for number in range(3):
            ledger.spend(f"{number}", f"{number}", TINIEST, study="s")
        refused(ledger, 3)


def test_control_a_budget_in_floats_grants_a_hundred_thousand_more():
    total, spent, granted = 1.0, 1.0, 0
    for _ in range(100_000):
        if spent + 1e-17 <= total:
            spent += 1e-17
            granted += 1
    assert granted == 100_000
    assert sum([0.1] * 3) > 0.3  # and refuses what would fit
