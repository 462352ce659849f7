"""Averaging: noise that is drawn anew for every question can be asked away.

The mean of m noisy answers has an error of 1/√m of each, so an attacker who may ask without end learns the truth. The
naive twin lets them. discreet is asked through a real study with a real ledger in a temporary folder: the same
question brings the recorded answer back, in every spelling; a question that only looks different is charged, until
the budget refuses. Whatever the attacker then averages was paid for out of one ε, so it is right in a share
e^ε/(1+e^ε) of all trials at most.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from discreet.errors import BudgetExceeded
from discreet.parameters import exact_epsilon
from discreet.verify.attacks.result import Attack, best_guess
from discreet.verify.attacks.twins import many_floats, secrets

_OTHERS = 30
"""People whom the attacker knows to be well."""

_NAIVE_ASKS = 40_000
"""Enough that the mean of the naive answers is within half a person."""

_MOST_ASKS = 50
"""What the attacker tries at most against a study: it ends at the budget, long before."""


class Asked:
    """What one attacker got out of one study."""

    def __init__(self) -> None:
        self.answers: list[float] = []
        """One for every question that looked new."""
        self.faults: set[str] = set()


def repeats(
    *,
    epsilon: Any = "0.1",
    questions: int = 2,
    trials: int = 60,
    ask: Callable[[bool, Fraction, Fraction], Asked] | None = None,
) -> Attack:
    """A person's bit, guessed from the mean of everything that a study answers until its ε is gone."""
    total = exact_epsilon(epsilon)
    each = total / questions
    right, naive, faults = 0, 0, set[str]()
    for secret in secrets(trials).tolist():
        found = (ask or asked_of_study)(secret, total, each)
        guess = sum(found.answers) / max(1, len(found.answers)) > _OTHERS + 0.5
        right += guess == secret
        faults |= found.faults
        told = _OTHERS + secret + float(many_floats(float(1 / each), _NAIVE_ASKS).mean())
        naive += (told > _OTHERS + 0.5) == secret
    return Attack(
        name="averaging",
        what=f"asks again and again, and averages ({_NAIVE_ASKS:,} times the naive twin; a ledger stops it)",
        trials=trials,
        naive=naive / trials,
        discreet=right / trials,
        allowed=best_guess(total),
        faults=tuple(sorted(faults)),
    )


def asked_of_study(secret: bool, total: Fraction, each: Fraction) -> Asked:
    """Everything that a real study answers about one person, asked in all ways that look new, in each of them twice."""
    import pyarrow

    from discreet.ask.policy import Policy
    from discreet.ask.statistics import Count
    from discreet.release.study import Study

    people = pyarrow.table({"id": list(range(_OTHERS + 1)), "well": [True] * _OTHERS + [secret]})
    columns = {"id": {"bounds": [0, _OTHERS]}, "well": {}}
    found = Asked()
    with TemporaryDirectory(prefix="discreet-") as folder:
        policy = Policy(source=people, epsilon=total, columns=columns, version="1")
        with Study(policy, ledger=Path(folder, "study.ledger")) as study:
            for turn in range(_MOST_ASKS):
                everybody = f"id > {-1 - turn}"  # true of all, so only the text is new
                try:
                    answer = study.where("well").where(everybody).ask(well=Count()).plan(epsilon=each).release()
                except BudgetExceeded:
                    break
                found.answers.append(answer["well"][0])
                again = study.where(f"{everybody} AND well").ask(well=Count()).plan(epsilon=each).release()
                if again["well"] != answer["well"]:
                    found.faults.add("the same question was answered twice, differently")
            if study.spent > total or len(found.answers) * each > total:
                found.faults.add("more was answered than the budget pays for")
    return found
