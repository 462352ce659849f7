"""The exact privacy loss between two records, in fractions.

    noise     ln P(o)/P'(o) for integers k with discrete Laplace noise of scale b is at most Σ|k −
              k'|/b, and reaches it
    choice    permute-and-flip is "the largest of score + Exp(1)", the score of cell v being
              −unit·exponent(v).
              Let score' = score + m. Shift all scores' by −max m: no other rises, and that of v
              drops by max m − m(v). P(v) does not rise with the scores of others, and Exp(1) has no
              memory: a drop by d costs at most a factor e^d. So ln P(v)/P'(v) ≤ max m − m(v), and
              the other way round m(v) − min m: over all v, max m − min m.

Independent draws add up. The bound of a choice need not be reached; `choice_loss` encloses the
exact one.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import acb, arb, ctx, fmpq

from neighbours.draws import Choice, Event, Noise, Record


def loss(first: Record, second: Record) -> Fraction:
    """An upper bound of the loss between two records with the same public events, exact where there
    are no choices.
    """
    pairs = zip(first.events, second.events, strict=True)
    return sum((event_loss(one, two) for one, two in pairs), Fraction(0))


def event_loss(one: Event, two: Event) -> Fraction:
    """The loss of one event."""
    match one, two:
        case Noise(scales=scales), Noise():
            moved = [abs(a - b) for a, b in zip(one.integers, two.integers, strict=True)]
            return sum(
                (Fraction(move) / scale for move, scale in zip(moved, scales, strict=True) if move),
                Fraction(0),
            )
        case Choice(unit=unit), Choice():
            moves = [
                _moves(mine, theirs)
                for mine, theirs in zip(one.exponents, two.exponents, strict=True)
            ]
            return unit * sum(high - low for low, high in moves)
    return Fraction(0)


def enclosed_loss(first: Record, second: Record) -> tuple[arb, arb]:
    """Balls around the exact loss in either direction: of the first against the second, and the
    other way round.
    """
    forth = back = arb(0)
    for one, two in zip(first.events, second.events, strict=True):
        if isinstance(one, Choice) and isinstance(two, Choice):
            rows = zip(one.exponents, two.exponents, strict=True)
            ends = [choice_loss(one.unit, mine, theirs) for mine, theirs in rows]
        else:
            exact = event_loss(one, two)
            ends = [(ball(exact), ball(exact))]
        for there, away in ends:
            forth, back = forth + there, back + away
    return forth, back


def _moves(one: np.ndarray, two: np.ndarray) -> tuple[int, int]:
    """The smallest and the largest move of an exponent."""
    if max(abs(int(end)) for array in (one, two) for end in (array.min(), array.max())) >= 2**62:
        moved = [a - b for a, b in zip(one.tolist(), two.tolist(), strict=True)]
        return min(moved), max(moved)
    difference = one - two
    return int(difference.min()), int(difference.max())


def choice_loss(
    unit: Fraction, one: np.ndarray, two: np.ndarray, bits: int = 256
) -> tuple[arb, arb]:
    """max over cells v of ln P(v) − ln P'(v), and of ln P'(v) − ln P(v), by the integral of
    permute-and-flip.

    With sᵤ = e^(−xᵤ), a survivor is chosen with probability 1/(number of survivors), and 1/(m + 1)
    = ∫₀¹ tᵐ dt, so P(v) = sᵥ·∫₀¹ Π over u ≠ v of (1 − sᵤ + sᵤ·t) dt.
    """
    with ctx.workprec(bits):
        chances = {}
        for name, exponents in (("one", one), ("two", two)):
            gaps, counts = np.unique(
                exponents.astype(object) - int(exponents.min()), return_counts=True
            )
            cells = [
                ((-ball(unit * int(gap))).exp(), int(count))
                for gap, count in zip(gaps, counts, strict=True)
            ]
            by_gap = {
                int(gap): _chance(cells, index).log() for index, gap in enumerate(gaps.tolist())
            }
            smallest = int(exponents.min())
            chances[name] = [by_gap[int(exponent) - smallest] for exponent in exponents.tolist()]
        pairs = set(zip(one.tolist(), two.tolist(), strict=True))
        index = {
            pair: at
            for at, pair in enumerate(zip(one.tolist(), two.tolist(), strict=True))
            if pair in pairs
        }
        differences = [chances["one"][at] - chances["two"][at] for at in index.values()]
        return _largest(differences), _largest([-difference for difference in differences])


def _chance(cells: list[tuple[arb, int]], chosen: int) -> arb:
    """P(v) of a cell of the given kind, where there are so many cells of each kind."""

    def others(t: acb, _analytic: bool) -> acb:
        product = acb(1)
        for index, (survival, count) in enumerate(cells):
            product *= (1 - survival + survival * t) ** (count - (index == chosen))
        return product

    return cells[chosen][0] * acb.integral(others, 0, 1).real


def _largest(balls: list[arb]) -> arb:
    found = balls[0]
    for ball in balls[1:]:
        found = found.max(ball)
    return found


def ball(number: Fraction) -> arb:
    """A fraction in balls."""
    return arb(fmpq(number.numerator, number.denominator))
