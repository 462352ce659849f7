"""A statistic that exists in its row alone: twice the standard deviation. Prints what becomes of
it, as JSON.

The row stands among the others before anything else is imported, as it would if it were written in
the source.
"""

from dataclasses import dataclass

import numpy as np

from discreet.ask import statistics


@dataclass(frozen=True, slots=True)
class TwoSigma(statistics.Question):
    """Twice the standard deviation of a number, over n, or over n − 1 for a sample."""

    of: str
    sample: bool = False


statistics.STATISTICS["two_sigma"] = statistics.Statistic(
    name="two_sigma",
    question=TwoSigma,
    sql=("TWO_SIGMA_POP",),
    sample=("TWO_SIGMA",),
    menu=statistics.Menu("twice the standard deviation"),
    base="variance",
    shape=lambda variance: 2 * np.sqrt(variance),
    slope=lambda variance: 1 / np.sqrt(variance),
)


MUCH = 4 * 10**5


def main() -> None:
    """Ask for it in every way."""
    import json
    import runpy
    import tempfile
    from pathlib import Path
    from unittest import mock

    from discreet import arrays
    from discreet.errors import InvalidParameter, QueryRefused
    from discreet.release.statistics.moments import MomentDesign
    from discreet.serve import bodies
    from discreet.serve.schema import document
    from discreet.verify import certify, report
    from serving import COLUMNS, Policy, Study, people, served

    def holds(subject: object, **given: object) -> bool:
        try:
            return certify(subject, **given).holds
        except InvalidParameter:
            return False

    sql = "SELECT {0}({1}) AS x FROM data"
    real = MomentDesign.scales
    halved = lambda *given: [scale / 2 for scale in real(*given)]  # noqa: E731
    array = {"bounds": (0, 120), "epsilon": MUCH}
    with tempfile.TemporaryDirectory() as name, served(Path(name)) as site:
        folder = Path(name)
        policy = Policy(source=people(), columns=COLUMNS, epsilon=10**6, version="1")
        with Study(policy, ledger=folder / "toy.ledger") as study:
            plan, std = (
                study.sql(sql.format(name, "age"), epsilon=MUCH)
                for name in ("two_sigma_pop", "stddev_pop")
            )
            by_python = study.ask(x=TwoSigma("age")).plan(epsilon=MUCH)
            parsed = bodies.question_of({"kind": "TwoSigma", "of": "age", "sample": True})
            try:
                study.sql("SELECT * FROM data", epsilon=1)
            except QueryRefused as error:
                refusal = str(error)
            found = {
                "in SQL": plan.release()["x"][0],
                "its interval": plan.release().interval("x")[0],
                "its std": std.release()["x"][0],
                "in Python the same": by_python.canonical == plan.canonical,
                "text": plan.canonical,
                "a sample": study.ask(x=parsed).plan(epsilon=1).canonical,
                "planned": [plan.lines[0].within, std.lines[0].within],
                "as an array": arrays.moment("two_sigma", np.arange(120) % 7, **array).value,
                "refusal": refusal,
                "openapi": document()["components"]["schemas"]["Ask"]["properties"]["kind"]["enum"],
                "menu": site.client(None).get("/page/statistics.js").text,
                "reported": [name for name, _, _ in report._certificates() if "two_sigma" in name],
                "reference": runpy.run_path(
                    str(Path(__file__).parents[1] / "tools" / "reference.py")
                )["page"](),
                "proved": [holds(plan), holds("two_sigma", **array)],
            }
            with mock.patch.object(MomentDesign, "scales", halved):
                found["proved with half of its noise"] = [holds(plan), holds("two_sigma", **array)]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
