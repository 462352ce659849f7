"""Bounds for people who do not know them, of a column in memory."""

from __future__ import annotations

from typing import Unpack

from discreet.arrays.call import Values, run
from discreet.parameters import Epsilon, Neighbors
from discreet.release.account import Account
from discreet.release.profiles.octaves import OctaveDesign
from discreet.release.profiles.plan import refuse_few
from discreet.release.profiles.profile import ColumnProfile
from discreet.release.question import question


def bounds(
    x: Values, *, epsilon: Epsilon, neighbors: Neighbors = "change-one", **account: Unpack[Account]
) -> ColumnProfile:
    """Find bounds for the values, powers of two or 0, from one noisy histogram of their octaves.

    Parameters
    ----------
    x : array_like
        One value for each person.
    epsilon : number or text
        The privacy parameter. A profile needs n·ε of about 100; a fifth of what the mean may cost is a good part.
        Calls add up.
    neighbors, **account
        The same for all statistics: see `help(discreet.arrays)`.

    Returns
    -------
    ColumnProfile
        Its `bounds` are (lower, upper), or None where too little is known; `missing`, `zero` and `negative` are shares.

    Examples
    --------
    >>> import discreet
    >>> costs = [20, 25, 90, 100, 110] * 1000
    >>> lower, upper = discreet.bounds(costs, epsilon=1).bounds
    >>> lower == 0, upper >= 128
    (True, True)

    See docs/statistics.md, "Bounds".

    """
    ask = question("bounds", x, (0, 1), epsilon, neighbors)
    units = len(ask.data) if ask.neighbors == "change-one" else None
    if units is not None:
        refuse_few(units, ask.epsilon)
    design = OctaveDesign(name="bounds", whole=ask.data.whole)

    def work() -> ColumnProfile:
        counts = tuple(ask.estimates(design)["bounds"].values.tolist())
        scale = design.scale(ask.terms, ask.epsilon)
        given = {"name": "values", "counts": counts, "scale": scale, "epsilon": ask.epsilon}
        return ColumnProfile(**given, whole=design.whole, units=units)  # type: ignore[arg-type]

    return run(ask, account, work)
