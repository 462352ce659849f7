"""The processor time of every shape of `bench.shapes`, beside the steps that it was computed to take.

Processor time of this process, and hardly changed by other work on the machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bench.measure import table
from bench.shapes import SHAPES, Shape, planned, steps_of, studies
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
        rows = [(*measured(opened[shape.study], shape), shape) for shape in SHAPES]
    rows.sort(key=lambda row: -row[0])
    lines = [[shape.name, shape.kind, shape.study, f"{seconds:.2f} s", steps] for seconds, steps, shape in rows]
    title = f"Free plans: {len(rows)} shapes, the largest {rows[0][0]:.2f} s; at most {MOST:,} steps"
    print(table(title, ["shape", "kind", "study", "processor time", "steps"], lines))


if __name__ == "__main__":
    main()
