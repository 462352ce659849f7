"""The demonstration: the 3,143 counties of the textbook's exercise, counted under ε = 0.1.

A histogram has sensitivity 2 when one person may change: they leave one county and enter another. The noise
of each county is then DLap(20), whatever the number of counties.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet.draw.laplace import DiscreteLaplace
from discreet.release.algorithm import laplace_mechanism

_COUNTIES = 3143
_SENSITIVITY = 2
_EPSILON = "0.1"
_SHOWN = (0, 1, 2, 100, 1000, 3000, 3142)


def run(console: Console | None = None) -> None:
    """Print the demonstration."""
    console = console or Console(highlight=False)
    counts = invented_counties()
    law = DiscreteLaplace(_SENSITIVITY * 10)
    began = time.perf_counter()
    noisy = laplace_mechanism(counts, sensitivity=_SENSITIVITY, epsilon=_EPSILON)
    taken = time.perf_counter() - began
    half_width = law.quantile(0.975)

    console.print(f"[bold]People in {_COUNTIES:,} invented counties[/bold], ε = {_EPSILON}, Δ = 2, noise DLap(20)")
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("county", "true count", "published", "error"):
        table.add_column(heading, justify="right")
    for county in _SHOWN:
        error = int(noisy[county] - counts[county])
        table.add_row(f"{county + 1:,}", f"{counts[county]:,}", f"{noisy[county]:,} ± {half_width}", f"{error:+d}")
    console.print(table)
    errors = np.abs(noisy - counts)
    bound = 20 * (np.log(_COUNTIES) + 1)
    console.print(f"mean error    {errors.mean():6.1f}   the theory says {law.mean_absolute:.1f}")
    console.print(f"largest error {errors.max():6d}   the theory says at most {bound:.0f} on average")
    console.print(f"± {half_width} holds for {np.mean(errors <= half_width):.1%} of the counties, promised 95 %")
    console.print(f"[dim]{_COUNTIES:,} exact draws in {taken * 1e3:.1f} ms; the true counts stay at home.[/dim]")


def invented_counties() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """County sizes from ten million people down to a few dozen, the same in every run."""
    rank = np.arange(1, _COUNTIES + 1)
    return (10_000_000 / rank**1.4).astype(np.int64) + 40
