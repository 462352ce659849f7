"""discreet publishes statistics about people without revealing any one of them.

The Laplace mechanism of differential privacy, f(x) + Lap(Δ/ε), done exactly: integers from the row to
the release, an exact rational ε, exact discrete Laplace noise.

    >>> import discreet
    >>> noisy = discreet.laplace_mechanism(1234, sensitivity=1, epsilon="0.1")
    >>> isinstance(noisy, int)
    True

Names are imported when they are first used, so that `import discreet` costs nothing.
"""

from __future__ import annotations

from discreet.lazy import found as _found

TYPE_CHECKING = False
"""As type checkers know it; to import it from typing would cost more than all else that happens here."""

if TYPE_CHECKING:
    from discreet import verify
    from discreet.arrays import (
        cdf,
        count,
        histogram,
        max,
        mean,
        mean_and_std,
        median,
        min,
        proportion,
        quantile,
        quantiles,
        std,
        sum,
        summary,
        variance,
    )
    from discreet.ask.policy import Policy
    from discreet.ask.statistics import (
        Count,
        Histogram,
        Max,
        Mean,
        Median,
        Min,
        Proportion,
        Quantile,
        Std,
        Sum,
        Variance,
    )
    from discreet.calibrate import accuracy, sensitivity
    from discreet.draw.laplace import DiscreteLaplace, Laplace
    from discreet.errors import (
        BudgetExceeded,
        DiscreetError,
        EngineFailed,
        InvalidParameter,
        LedgerDamaged,
        QueryRefused,
    )
    from discreet.ledger.ledger import Ledger
    from discreet.release.laplace_mechanism import laplace_mechanism
    from discreet.release.release import Release, Releases
    from discreet.release.statistics.response import randomized_response
    from discreet.release.study import Study, open
    from discreet.serve.client import connect

__all__ = [
    "BudgetExceeded",
    "Count",
    "DiscreetError",
    "DiscreteLaplace",
    "EngineFailed",
    "Histogram",
    "InvalidParameter",
    "Laplace",
    "Ledger",
    "LedgerDamaged",
    "Max",
    "Mean",
    "Median",
    "Min",
    "Policy",
    "Proportion",
    "Quantile",
    "QueryRefused",
    "Release",
    "Releases",
    "Std",
    "Study",
    "Sum",
    "Variance",
    "accuracy",
    "cdf",
    "connect",
    "count",
    "histogram",
    "laplace_mechanism",
    "max",
    "mean",
    "mean_and_std",
    "median",
    "min",
    "open",
    "proportion",
    "quantile",
    "quantiles",
    "randomized_response",
    "sensitivity",
    "std",
    "sum",
    "summary",
    "variance",
    "verify",
]

_HOMES = {
    "arrays": "cdf count histogram max mean mean_and_std median min proportion quantile quantiles std sum summary "
    "variance",
    "ask.policy": "Policy",
    "ask.statistics": "Count Histogram Max Mean Median Min Proportion Quantile Std Sum Variance",
    "draw.laplace": "DiscreteLaplace Laplace",
    "errors": "BudgetExceeded DiscreetError EngineFailed InvalidParameter LedgerDamaged QueryRefused",
    "ledger.ledger": "Ledger",
    "release.laplace_mechanism": "laplace_mechanism",
    "release.statistics.response": "randomized_response",
    "release.release": "Release Releases",
    "release.study": "Study open",
    "serve.client": "connect",
}
_MODULES = {
    "accuracy": "calibrate.accuracy",
    "arrays": "arrays",
    "sensitivity": "calibrate.sensitivity",
    "verify": "verify",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home on first use (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("discreet")
    value = globals()[name] = _found(__name__, name, _HOMES, _MODULES)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
