"""Many releases of the same exact integers at once: so many groups with the noise of one."""

from dataclasses import replace
from typing import Any

import numpy as np

from discreet.calibrate.sensitivity.terms import Terms
from discreet.engines.base import Exact
from discreet.engines.integers import CellCounts, Integers


def repeated(exact: Exact[list[Any]], times: int) -> Exact[list[Any]]:
    """The groups of every measure, so many times one after the other."""
    return exact.map(lambda measures: [_repeated(measure, times) for measure in measures])


def _repeated(measure: Any, times: int) -> Any:
    if isinstance(measure, Integers):
        return Integers(np.tile(measure.array, times))
    if not isinstance(measure, CellCounts) and not isinstance(measure[0], np.ndarray):
        return list(measure) * times
    groups = CellCounts.of(measure)
    lengths = np.tile(np.diff(groups.starts), times)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return CellCounts(groups.width, starts, np.tile(groups.cells, times), np.tile(groups.counts, times))


def with_copies(terms: Terms, times: int) -> Terms:
    """The terms of an answer with so many times its groups, one unit of which is still in a single copy of them."""
    copies = replace(terms, cells=terms.cells * times)
    vars(copies).update({name: getattr(terms, name) for name in ("steps", "touched", "meets")})
    return copies
