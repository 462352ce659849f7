"""Private bounds of a column in memory."""

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
    """Find bounds for the values, powers of two or 0, from a noisy histogram over powers of two.

    Parameters
    ----------
    x : array_like
        One value for each person.
    epsilon : number or text
        The privacy parameter. The bounds need n·ε of about 100; a fifth of the ε of the mean is a good choice.
        The ε of several calls add up.
    neighbors, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    ColumnProfile
        Its `bounds` are (lower, upper), or None if too little is known; `missing`, `zero` and `negative` are shares.

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
        return ColumnProfile(
            name="values",
            counts=tuple(ask.estimates(design)["bounds"].values.tolist()),
            scale=design.scale(ask.terms, ask.epsilon),
            epsilon=ask.epsilon,
            whole=design.whole,
            units=units,
        )

    return run(ask, account, work)
