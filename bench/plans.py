"""The processor time of every shape of `bench.shapes`, beside the steps that it was computed to
take.

Processor time of this process, and hardly changed by other work on the machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bench.measure import table
from bench.shapes import FAMILIES, Shape, planned, steps_of, studies
from discreet import InvalidParameter, QueryRefused, Study
from discreet.release.work import MOST


def forget() -> None:
    """Forget everything that is kept between plans."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("discreet")]
    for module in modules:
        for value in list(vars(module).values()):
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def measured(study: Study, shape: Shape) -> tuple[float, str]:
    """The seconds of a shape, the best of two, and its steps or that it was refused."""
    seconds, found = [], ""
    for _ in range(2):
        forget()
        begun = time.process_time()
        try:
            found = f"{steps_of(planned(study, shape), shape).total():,}"
        except (InvalidParameter, QueryRefused) as error:
            found = "too much" if "steps of work" in str(error) else "refused"
        seconds.append(time.process_time() - begun)
    return min(seconds), found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        opened = studies(Path(folder))
        for study in opened.values():
            _ = study.schema
        found = {
            family: [(*measured(opened[shape.study], shape), shape) for shape in shapes]
            for family, shapes in FAMILIES.items()
        }
    rows = sorted((row for family in found.values() for row in family), key=lambda row: -row[0])
    title = (
        f"Free plans: {len(rows)} shapes, the largest {rows[0][0]:.2f} s; at most {MOST:,} steps"
    )
    headings = [
        "shapes",
        "number",
        "largest time of a plan",
        "its steps",
        "too much",
        "largest time of a refusal",
    ]
    print(table(title, headings, [_line(family, of) for family, of in found.items()]))
    lines = [
        [shape.name, shape.kind, shape.study, f"{seconds:.2f} s", steps]
        for seconds, steps, shape in rows
    ]
    print(table("Each shape", ["shape", "kind", "study", "processor time", "steps"], lines))


def _line(family: str, rows: list[tuple[float, str, Shape]]) -> list[str]:
    """A family of shapes: its slowest plan, and its slowest refusal."""
    plans = [row for row in rows if row[1][0].isdigit()]
    refusals = [row[0] for row in rows if not row[1][0].isdigit()]
    seconds, steps, shape = max(plans, key=lambda row: row[0])
    planned = [f"{seconds:.2f} s ({shape.name})", steps if steps != "0" else "–"]
    much = sum(row[1] == "too much" for row in rows)
    return [
        family,
        str(len(rows)),
        *planned,
        str(much),
        f"{max(refusals):.2f} s" if refusals else "–",
    ]


if __name__ == "__main__":
    main()
