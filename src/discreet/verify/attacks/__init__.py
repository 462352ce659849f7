"""The attackers that noise must withstand, each tried on a naive twin and then on discreet.

    record, mean_record    one record, read out of a deterministic answer by who knows the others: `record`
    difference             two questions that differ by one person: `record`
    repeats                the same question many times, averaged, against a real ledger: `repeats`
    reconstruction         many counts of random groups, solved for all records: `reconstruction`
    least_bits, precision  the true value, read off the bits of a float: `bits`

`run` shows them as a table, a line each as it is done, and says whether every one was held off. What it does not do:
prove anything; a proof is `verify.certify`, and attacks show that it is about the code that runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict

from discreet.verify.attacks.bits import least_bits, precision
from discreet.verify.attacks.reconstruction import reconstruction
from discreet.verify.attacks.record import difference, mean_record, record, success_by_epsilon
from discreet.verify.attacks.repeats import repeats
from discreet.verify.attacks.result import Attack

__all__ = [
    "Attack",
    "difference",
    "every",
    "least_bits",
    "mean_record",
    "precision",
    "reconstruction",
    "record",
    "repeats",
    "run",
    "success_by_epsilon",
]

_COLUMNS = "{:<18} {:>7} {:>9} {:>9} {:>9}  {}"
_WHY = (
    "naive, discreet: how often the attacker is right. allowed: what theory grants anyone at this ε, e^ε/(1+e^ε),",
    "or 0 % where the attacker claims to be certain. A rate above it by chance is told apart at 1 in 10⁹.",
)


def every() -> Iterator[Attack]:
    """All attacks, one after another."""
    yield record()
    yield mean_record()
    yield difference()
    yield repeats()
    yield reconstruction()
    yield least_bits()
    yield precision()


def run(show: Callable[[str], None], *, as_json: bool = False) -> bool:
    """Whether discreet held off every attack, each of which breaks its naive twin; shown as a table or as JSON."""
    found: list[Attack] = []
    if not as_json:
        show(_COLUMNS.format("attack", "trials", "naive", "discreet", "allowed", "verdict"))
    for attack in every():
        found.append(attack)
        if not as_json:
            _show_one(attack, show)
    if as_json:
        listed = [{**asdict(one), "limit": one.limit, "verdict": one.verdict} for one in found]
        show(json.dumps(listed, ensure_ascii=False, indent=1))
    else:
        for line in _WHY:
            show(line)
    return all(one.verdict == "held" for one in found)


def _show_one(attack: Attack, show: Callable[[str], None]) -> None:
    shares = [f"{share:.1%}".replace("%", " %") for share in (attack.naive, attack.discreet, attack.allowed)]
    show(_COLUMNS.format(attack.name, f"{attack.trials:,}", *shares, attack.verdict))
    show(f"    {attack.what}")
    for fault in attack.faults:
        show(f"    {fault}")
