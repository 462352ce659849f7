"""The messy hospital of the documentation: its generator, its promises, and the truth behind its
cells.
"""

import csv
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "messy-data.md"


def blocks() -> dict[str, list[str]]:
    """The files that the page writes, each as often as it does."""
    found: dict[str, list[str]] = {}
    for name, text in re.findall(
        r"^```\w+ ([\w.]+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    ):
        found.setdefault(name, []).append(text)
    return found


def hospital(folder: Path, rows: int) -> list[tuple[Any, ...]]:
    """Writes visits.csv into a folder; gives (patient, ward, admitted, days, age, cost) of each
    visit as it was.
    """
    generator: dict[str, Any] = {"__name__": "hospital"}
    exec(blocks()["hospital.py"][0], generator)  # noqa: S102 - the script of the page
    visits = list(generator["visits"](rows))
    with (folder / "visits.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["patient", "ward", "admitted", "discharged", "age", "cost"])
        table.writerows(cells for _, cells in visits)
    return [truth for truth, _ in visits]


def by_rows(policy: str) -> str:
    """A promise of the page in which each row is a unit, so that no row is left out for its unit."""
    text = re.sub(r"^unit .*\nmax_rows .*\n", "", policy, flags=re.MULTILINE)
    return text.replace('epsilon   = "3"', 'epsilon   = "300"')
