"""Cells one by one: the runs of a choice spread out, and cells that are a run each."""

import numpy as np

from discreet.draw.choice import Runs


def spread_out(runs: Runs) -> np.ndarray:
    """The exponent of every cell, row by row; each row must have each cell of 0, 1, … once."""
    rows = np.repeat(np.arange(len(runs.rows)), np.diff(runs.rows, append=runs.sizes.size))
    index = np.repeat(np.arange(runs.sizes.size), runs.sizes)
    numbers = np.arange(index.size) - np.repeat(np.cumsum(runs.sizes) - runs.sizes, runs.sizes)
    width, rest = divmod(index.size, len(runs.rows))
    cells = runs.cell(index, numbers)
    assert rest == 0
    assert cells.min() >= 0
    assert cells.max() < width
    places, exponents = rows[index] * width + cells, np.empty(index.size, np.int64)
    assert (np.bincount(places, minlength=index.size) == 1).all()
    exponents[places] = runs.exponents[index]
    return exponents.reshape(-1, width)


def one_by_one(exponents: np.ndarray) -> Runs:
    """Every cell as a run."""
    rows, width = exponents.shape
    return Runs(
        exponents=exponents.ravel(),
        sizes=np.ones(exponents.size, np.int64),
        rows=np.arange(rows) * width,
        cell=lambda runs, _: runs % width,
    )
