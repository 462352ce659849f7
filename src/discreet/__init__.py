"""discreet publishes statistics about people without revealing any individual.

It computes the Laplace mechanism of differential privacy, f(x) + Lap(Δ/ε), exactly: integers from
the rows to the release, a rational ε, and exact discrete Laplace noise.

    >>> import discreet
    >>> noisy = discreet.laplace_mechanism(1234, sensitivity=1, epsilon="0.1")
    >>> isinstance(noisy, int)
    True

Names are imported on first use, so that `import discreet` takes no time.
"""

from __future__ import annotations

from importlib import import_module as _import_module

TYPE_CHECKING = False
"""Known to type checkers; importing it from typing would take longer than the rest of this module.
"""

if TYPE_CHECKING:
    from discreet import course as course
    from discreet import verify as verify
    from discreet.arrays import bounds as bounds
    from discreet.arrays import cdf as cdf
    from discreet.arrays import count as count
    from discreet.arrays import histogram as histogram
    from discreet.arrays import max as max
    from discreet.arrays import mean as mean
    from discreet.arrays import mean_and_std as mean_and_std
    from discreet.arrays import median as median
    from discreet.arrays import min as min
    from discreet.arrays import proportion as proportion
    from discreet.arrays import quantile as quantile
    from discreet.arrays import quantiles as quantiles
    from discreet.arrays import std as std
    from discreet.arrays import sum as sum
    from discreet.arrays import summary as summary
    from discreet.arrays import value_counts as value_counts
    from discreet.arrays import variance as variance
    from discreet.ask.policy import Policy as Policy
    from discreet.ask.statistics import Count as Count
    from discreet.ask.statistics import Histogram as Histogram
    from discreet.ask.statistics import Max as Max
    from discreet.ask.statistics import Mean as Mean
    from discreet.ask.statistics import Median as Median
    from discreet.ask.statistics import Min as Min
    from discreet.ask.statistics import Proportion as Proportion
    from discreet.ask.statistics import Quantile as Quantile
    from discreet.ask.statistics import Std as Std
    from discreet.ask.statistics import Sum as Sum
    from discreet.ask.statistics import Variance as Variance
    from discreet.calibrate import accuracy as accuracy
    from discreet.calibrate import sensitivity as sensitivity
    from discreet.draw.laplace import DiscreteLaplace as DiscreteLaplace
    from discreet.draw.laplace import Laplace as Laplace
    from discreet.errors import BudgetExceeded as BudgetExceeded
    from discreet.errors import DiscreetError as DiscreetError
    from discreet.errors import EngineFailed as EngineFailed
    from discreet.errors import InvalidParameter as InvalidParameter
    from discreet.errors import LedgerDamaged as LedgerDamaged
    from discreet.errors import QueryRefused as QueryRefused
    from discreet.ledger.ledger import Ledger as Ledger
    from discreet.release.answer import Answer as Answer
    from discreet.release.laplace_mechanism import laplace_mechanism as laplace_mechanism
    from discreet.release.plan import Plan as Plan
    from discreet.release.release import Release as Release
    from discreet.release.release import Releases as Releases
    from discreet.release.statistics.response import randomized_response as randomized_response
    from discreet.release.study import Study as Study
    from discreet.release.study import open as open
    from discreet.release.study import report as report
    from discreet.serve.client import connect as connect

_HOMES = {
    "arrays": (
        "bounds cdf count histogram max mean mean_and_std median min proportion quantile quantiles"
        " std sum summary value_counts variance"
    ),
    "ask.policy": "Policy",
    "ask.statistics": "Count Histogram Max Mean Median Min Proportion Quantile Std Sum Variance",
    "draw.laplace": "DiscreteLaplace Laplace",
    "errors": (
        "BudgetExceeded DiscreetError EngineFailed InvalidParameter LedgerDamaged QueryRefused"
    ),
    "ledger.ledger": "Ledger",
    "release.answer": "Answer",
    "release.laplace_mechanism": "laplace_mechanism",
    "release.plan": "Plan",
    "release.statistics.response": "randomized_response",
    "release.release": "Release Releases",
    "release.study": "Study open report",
    "serve.client": "connect",
}
_MODULES = {
    "accuracy": "calibrate.accuracy",
    "arrays": "arrays",
    "course": "course",
    "sensitivity": "calibrate.sensitivity",
    "verify": "verify",
}

_PUBLIC = sorted({*_MODULES, *" ".join(_HOMES.values()).split()} - {"arrays"})
"""Only the functions of `arrays` are public."""

# `from discreet import *` must not replace Python's own names
__all__ = [name for name in _PUBLIC if name not in {"max", "min", "open", "sum"}]


def __getattr__(name: str) -> object:
    """A public name, imported on first use (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("discreet")
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if name not in _MODULES and home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _import_module(f"{__name__}.{_MODULES.get(name, home)}")
    value = globals()[name] = module if name in _MODULES else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, "__version__"])
