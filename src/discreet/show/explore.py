"""An interactive page with sliders for ε, Δ and n: two curves, their ratio, the attacker, the errors. No network.

Every number on the page is computed here and embedded. For each ε, Δ and n of the sliders:

    P(k) = (1−q)/(1+q)·q^|k|, q = e^(−ε/Δ)         probabilities of the discrete law, correctly rounded
    e^(ε·m/Δ), m = |y−Δ| − |y|                      their ratio at an output y
    ½ + ½·(F(m) − F(m−Δ)), m = ⌈Δ/2⌉ − 1            success of the best guess: 1/2 plus half of the total variation
    e^ε/(1+e^ε)                                     limit of any guess

and the errors of a mean and of a fraction (`figures.accuracy`, `calibrate.lemma`). The script of the page only draws.
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
from discreet.draw.laplace import DiscreteLaplace
from discreet.files.writer import write
from discreet.show.figures import theme
from discreet.show.figures.accuracy import mean_reach

_TENTHS = (Fraction(1, 2), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30)
EPSILONS = tuple(Fraction(tenths) / 10 for tenths in _TENTHS)
DELTAS = (1, 2, 3, 4, 5)
PEOPLE = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
WINDOW = (-20, 25)  # first and last output that is drawn
BOUNDS = (0, 120)
_LEVEL = Fraction(95, 100)
_START = (5, 1, 4)  # ε = 0.5, Δ = 2, n = 1,000

_COLOURS = ("card", "text", "quiet", "grid", "line", "blue", "vermilion", "green")  # names of pairs in `theme`


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
        "{{DATA}}": json.dumps(values(), allow_nan=False, ensure_ascii=False, separators=(",", ":")),
        "{{SCRIPT}}": script,
    }
    text = (folder / "explore.html").read_text("utf-8")
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


def values() -> dict[str, Any]:
    mean = [[mean_reach(n, epsilon, BOUNDS, _LEVEL) for n in PEOPLE] for epsilon in EPSILONS]
    response = [[lemma.randomized_response(n=n, epsilon=epsilon) for n in PEOPLE] for epsilon in EPSILONS]
    noise = [lemma.root_mean_square(1 / epsilon, law="discrete") for epsilon in EPSILONS]
    laplace = [[error / n for n in PEOPLE] for error in noise]
    return {
        "window": WINDOW,
        "start": _START,
        "width": BOUNDS[1] - BOUNDS[0],
        "epsilons": [
            {"text": f"{float(epsilon):g}", "value": float(epsilon), "limit": _limit(epsilon)} for epsilon in EPSILONS
        ],
        "deltas": DELTAS,
        "people": PEOPLE,
        "laws": [[_law(epsilon, delta) for delta in DELTAS] for epsilon in EPSILONS],
        "mean": mean,
        "laplace": laplace,
        "response": response,
        "least": {"mean": min(map(min, mean)), "response": min(map(min, laplace))},
        "most": {"mean": max(map(max, mean)), "response": max(map(max, laplace + response))},
    }


def _law(epsilon: Fraction, delta: int) -> dict[str, Any]:
    scale = delta / epsilon
    law, middle = DiscreteLaplace(scale), math.ceil(Fraction(delta, 2)) - 1
    reach = max(-WINDOW[0], WINDOW[1]) + max(DELTAS)
    return {
        "scale": f"{float(scale):.4g}",
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
