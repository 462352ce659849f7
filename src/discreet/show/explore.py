"""An interactive page with sliders for ε, Δ, n, t and d: curves, their ratio, the attacker, the
errors. No network.

Every number on the page is computed here and embedded. For each ε, Δ and n of the sliders:

    P(k) = (1−q)/(1+q)·q^|k|, q = e^(−ε/Δ)         probabilities of the discrete law, correctly
                                                   rounded
    e^(ε·m/Δ), m = |y−Δ| − |y|                      their ratio at an output y
    ½ + ½·(F(m) − F(m−Δ)), m = ⌈Δ/2⌉ − 1            success of the best guess: 1/2 plus half of the
                                                    total variation
    e^ε/(1+e^ε), e^2ε/(1+e^2ε)                      limits of any guess; the second for a value
                                                    under add-remove

and for continuous noise Figure 1 of the texts and Lemma 1.4, in units of λ:

    e^−u/2                                          the density of Lap(1) at u
    e^−t, 1 − (1 − e^−t/d)^d                        bound and value of P(M > λ(ln d + t)), M the
                                                    largest of d
    ln d + 1, 1 + 1/2 + … + 1/d                     bound and value of E(M)/λ

and the errors of a mean and of a fraction (`figures.accuracy`, `calibrate.lemma`). The script of
the page only draws and scales.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from fractions import Fraction
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.calibrate import lemma
from discreet.calibrate.ball import ball, nearest
from discreet.draw.laplace import DiscreteLaplace, Laplace
from discreet.files.writer import write
from discreet.show.figures import theme
from discreet.show.figures.accuracy import mean_reach

_TENTHS = (Fraction(1, 2), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30)
EPSILONS = tuple(Fraction(tenths) / 10 for tenths in _TENTHS)
DELTAS = (1, 2, 3, 4, 5)
PEOPLE = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
WINDOW = (-20, 25)  # first and last output that is drawn
SCALES = (1, 2, 4, 7)  # those of Figure 1 of the texts
REACH = 15  # of that figure
# the curve of the smallest λ, too, leaves the figure
_MOST_UNITS = math.ceil(REACH * max(EPSILONS) / min(DELTAS))
UNITS = tuple(Fraction(step, 10) for step in range(10 * _MOST_UNITS + 1))  # the u of its curves
TIMES = tuple(Fraction(step, 4) for step in range(33))  # the t of Lemma 1.4
DRAWS = (1, 2, 5, 10, 50, 100, 1_000, 3_143, 1_000_000)  # the d of Lemma 1.4; counties in between
_LEVEL = Fraction(95, 100)
_START = {"epsilon": 5, "delta": 1, "people": 4, "times": 8, "draws": 4}  # 0.5, 2, 1,000, 2 and 50

_COLOURS = (
    "card",
    "text",
    "quiet",
    "grid",
    "line",
    "blue",
    "vermilion",
    "green",
    "purple",
    "black",
)  # names of pairs in `theme`


def save(path: str | PathLike[str], *, force: bool = False) -> Path:
    """Write the page to a new file; its path."""
    return write(Path(path), page(), force=force)


def page() -> str:
    folder = Path(__file__).parent
    script = (folder / "explore.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "{{LIGHT}}": _variables(0),
        "{{DARK}}": _variables(1),
        "{{HASH}}": f"sha256-{digest}",
        "{{VERSION}}": version("discreet"),
        "{{DATA}}": json.dumps(
            values(), allow_nan=False, ensure_ascii=False, separators=(",", ":")
        ),
        "{{SCRIPT}}": script,
    }
    text = (folder / "explore.html").read_text("utf-8")
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


def values() -> dict[str, Any]:
    mean = [
        [[mean_reach(n, epsilon, (0, delta), _LEVEL) for n in PEOPLE] for delta in DELTAS]
        for epsilon in EPSILONS
    ]
    means = [error for row in mean for errors in row for error in errors]
    response = [
        [lemma.randomized_response(n=n, epsilon=epsilon) for n in PEOPLE] for epsilon in EPSILONS
    ]
    noise = [lemma.root_mean_square_error(1 / epsilon, law="discrete") for epsilon in EPSILONS]
    laplace = [[error / n for n in PEOPLE] for error in noise]
    return {
        "window": WINDOW,
        "start": _START,
        "epsilons": [
            {
                "text": f"{float(epsilon):g}",
                "value": float(epsilon),
                "limit": _limit(epsilon),
                "valueLimit": _limit(2 * epsilon),
            }
            for epsilon in EPSILONS
        ],
        "deltas": DELTAS,
        "people": PEOPLE,
        "laws": [[_law(epsilon, delta) for delta in DELTAS] for epsilon in EPSILONS],
        "mean": mean,
        "laplace": laplace,
        "response": response,
        "least": {"mean": min(means), "response": min(map(min, laplace))},
        "most": {"mean": max(means), "response": max(map(max, laplace + response))},
        "density": {
            "scales": SCALES,
            "reach": REACH,
            "units": [float(unit) for unit in UNITS],
            "heights": [float(Laplace(1).pdf(unit)) for unit in UNITS],
        },
        "lemma": _lemma(),
    }


def _lemma() -> dict[str, Any]:
    """Both parts of Lemma 1.4 in units of λ, for each d and t."""
    logs = [Fraction(math.log(d)) for d in DRAWS]
    return {
        "times": [float(t) for t in TIMES],
        "draws": DRAWS,
        "logs": [float(log) for log in logs],
        "bound": [lemma.tail(1, t) for t in TIMES],
        "exact": [
            [lemma.max_tail(1, d, log + t, law="continuous") for t in TIMES]
            for d, log in zip(DRAWS, logs, strict=True)
        ],
        "largestBound": [lemma.expected_max(1, d) for d in DRAWS],
        "largest": [lemma.expected_max(1, d, law="continuous") for d in DRAWS],
    }


def _law(epsilon: Fraction, delta: int) -> dict[str, Any]:
    scale = delta / epsilon
    law, middle = DiscreteLaplace(scale), math.ceil(Fraction(delta, 2)) - 1
    reach = max(-WINDOW[0], WINDOW[1]) + max(DELTAS)
    return {
        "scale": float(scale),
        "chances": [law.pmf(k) for k in range(reach + 1)],
        "ratios": [_power(epsilon * m / delta) for m in range(-delta, delta + 1)],
        "attacker": (1 + law.cdf(middle) - law.cdf(middle - delta)) / 2,
    }


def _limit(epsilon: Fraction) -> float:
    return nearest(lambda: 1 / (1 + (-ball(epsilon)).exp()))


def _power(exponent: Fraction) -> float:
    return nearest(lambda: ball(exponent).exp())


def _variables(card: int) -> str:
    return " ".join(f"--{name}: {getattr(theme, name.upper())[card]};" for name in _COLOURS)
