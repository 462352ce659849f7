"""Whether time tells a bit: pairs are measured until that is decided, on a machine however busy.

Each pair is a time with the bit unset and one with it set, in an order that a coin decides. A time
is the smallest of five calls in a row: other programs make calls longer, never shorter. `told`
counts the pairs in which the set bit took more than 5/4 of the other time, and those in which the
unset bit did. For either count it runs Wald's sequential test of q, the chance that a pair is
counted given all before it: q ≤ 1/2 against q ≥ 3/4.

False alarms. If time does not depend on the bit, the two times of a pair would be the same two were
the bit the other way round, and the coin alone says which of them is longer; so q ≤ 1/2, whatever
else the machine does, and however its load changes or remembers. The likelihood ratio L, a product
of 3/2 for each counted pair and 1/2 for each other, has E[factor | past] = 1/2 + q ≤ 1: a
supermartingale from 1. By Ville's inequality it ever reaches 10⁹ with a chance of 10⁻⁹ at most, and
there are two counts: a call of `told` is wrong with a chance below 2·10⁻⁹. The suite has some
twenty.

What is missed. With q ≥ 3/4, E[1/factor | past] = 2 − 4q/3 ≤ 1: L falls to 10⁻⁹ with a chance of
10⁻⁹ at most. So whatever makes three of four pairs longer by a quarter is told. Between 1/2 and 3/4
either answer may come.

It ends: log L falls by 0.14 a pair or more at q ≤ 1/2, and rises by 0.13 at q ≥ 3/4; by Azuma's
inequality (its steps differ by log 3) a count is open after 1,500 pairs with a chance below 10⁻¹²,
and that raises. On a quiet machine 30 pairs without the dependence, and 52 with it, are enough.
"""

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator

MARGIN = 1.25
ERROR = 1e-9
MOST = 1_500
"""Pairs after which an undecided test raises."""
_coins = random.SystemRandom()

Call = Callable[[], object]
Coin = Callable[[], bool]
Pair = tuple[int, int]


class Undecided(AssertionError):
    """The pairs lie between the two hypotheses: time depends on the bit, and in few pairs by a
    quarter.
    """


def verdict(counted: int, pairs: int) -> bool | None:
    """Whether so many counted pairs are too many for chance (True), too few for a dependence, or
    neither yet.
    """
    evidence = counted * math.log(3 / 2) + (pairs - counted) * math.log(1 / 2)
    if abs(evidence) < -math.log(ERROR):
        return None
    return evidence > 0


def told(pairs: Iterable[Pair]) -> bool:
    """Whether the times of pairs (bit unset, bit set) tell the bit; reads as many pairs as that
    takes.
    """
    slower = faster = 0
    for number, (unset, bit_set) in enumerate(pairs, 1):
        slower += bit_set > MARGIN * unset
        faster += unset > MARGIN * bit_set
        verdicts = verdict(slower, number), verdict(faster, number)
        if True in verdicts:
            return True
        if verdicts == (False, False):
            return False
        if number == MOST:
            break
    raise Undecided(
        f"after {number} pairs, {slower} longer and {faster} shorter by a quarter with the bit set"
    )


def tossed() -> bool:
    return _coins.random() < 0.5


def elapsed(call: Call) -> int:
    """Nanoseconds of a call, by the clock on the wall, as whoever waits for an answer sees them."""
    began = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - began


def measured(unset: Call, bit_set: Call, coin: Coin = tossed, calls: int = 5) -> Iterator[Pair]:
    """Pairs of times without end, each pair in an order of its own; the first calls fill caches,
    and do not count.
    """

    def smallest(call: Call) -> int:
        return min(elapsed(call) for _ in range(calls))

    for call in (unset, bit_set, unset, bit_set):
        call()
    while True:
        if coin():
            first = smallest(unset)
            yield first, smallest(bit_set)
        else:
            first = smallest(bit_set)
            yield smallest(unset), first


def twice(call: Call) -> Call:
    """The control: twice the work takes twice the time on a busy machine too, where a short sleep
    would not show.
    """

    def both() -> None:
        call()
        call()

    return both
