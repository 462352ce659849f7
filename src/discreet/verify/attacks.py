"""The attacks that noise must withstand, each tried on a naive mechanism and then on discreet.

    record, mean_record    knows all but one person, gets a count or a mean of all, and subtracts
    value_record           the same with a sum under add-remove: a value moves it by more than Δ
    difference             asks for everybody, then for everybody but one person, and subtracts
    repeats                asks the same question many times, and averages, against a real ledger
    reconstruction         solves many counts of random groups for all records
    least_bits, precision  reads the true value off the bits of a float

The naive mechanism is what a careful programmer writes before reading the papers. An attack that
does not break it would prove nothing by failing against discreet. Both take their bits from
`draw.entropy`.

    allowed = e^ε/(1+e^ε)     the largest probability of guessing a fair bit right from a release
    allowed = e^2ε/(1+e^2ε)   under add-remove, if the bit is about a value, not about presence

No outcome is more than e^ε times as likely on one neighbour as on the other, so after any outcome
the odds of a fair bit are at most e^ε to 1. Under change-one, two values of one person make
neighbours. Under add-remove they are two steps apart, since one row is removed and another added:
the odds are at most e^2ε to 1. The same holds for many bits, one for each unit: the number of right
guesses is stochastically at most Binomial(trials, allowed) [SNJ23]. Where an attacker claims
*certainty*, not a single right guess is allowed.

Attacks prove nothing; `verify.certify` gives the proof, and attacks show that it is about the code
that runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.grid import float_grid
from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.parameters import exact_epsilon, quote
from discreet.release.laplace_mechanism import laplace_mechanism
from discreet.verify.binomial import chance_limit
from discreet.verify.mechanisms import float_noise, many_floats, secrets

__all__ = [
    "Attack",
    "difference",
    "every",
    "least_bits",
    "mean_record",
    "precision",
    "reconstruction",
    "record",
    "repeats",
    "run",
    "success_by_epsilon",
    "value_record",
]

Mechanism: TypeAlias = Callable[..., Any]  # called with answer, sensitivity=…, epsilon=…
# of right guesses, at an ε, in a number of trials
Rate: TypeAlias = Callable[[Mechanism, Fraction, int], float]
Possible: TypeAlias = Callable[[float, float], bool]  # whether an output can come from a true value
# noisy counts at a total cost of ε
Answerer: TypeAlias = Callable[[NDArray[np.int64], Fraction], NDArray[Any]]

_OTHERS = 30  # people whom the attacker knows to be counted
_KNOWN_AGES = range(20, 60)
_PEOPLE, _QUESTIONS = 100, 800
# beyond these, naive code is broken only in far more trials
_EPSILONS = Fraction(1, 100), Fraction(3)
# −ln of the chance that guesses at the allowed rate are all right: below 10⁻¹³,
# far below an alarm's
_SURE = 30
_MOST_ASKS = 50  # the most questions to a study; the budget ends the attack long before
# how far around the likeliest U to search: rounding in exp, log and the sum moves it
# by fewer places
_NEARBY = 6
_COLUMNS = "{:<18} {:>5} {:>7} {:>9} {:>9} {:>9} {:>12}  {}"
_WHY = (
    (
        "naive, discreet: how often the attacker is right. theory: how often anyone can be right at"
        " this ε,"
    ),
    (
        "or 0 % where the attacker claims to be certain. alarm above: a rate that chance exceeds"
        " once in 10⁹."
    ),
    "discreet holds if its rate is not above that.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """The result of an attack on a naive mechanism and on discreet."""

    name: str
    what: str
    """What the attacker does, in one sentence."""
    epsilon: float
    """The ε of everything that the attacker sees."""
    trials: int
    naive: float
    """Share of trials in which the attacker is right against the naive mechanism."""
    discreet: float
    """The same against discreet."""
    allowed: float
    """The largest rate that theory allows."""
    faults: tuple[str, ...] = ()
    """What went wrong besides the rate, such as an overspent budget."""

    @property
    def limit(self) -> float:
        """The rate above which chance is no explanation."""
        return chance_limit(self.allowed, self.trials)

    @property
    def works(self) -> bool:
        """Whether the attack breaks the naive mechanism; if not, it shows nothing."""
        return self.naive > self.limit

    @property
    def held(self) -> bool:
        """Whether discreet stays within what theory allows."""
        return not self.faults and self.discreet <= self.limit

    @property
    def verdict(self) -> str:
        """`held`, `broken`, or `void` if even the naive mechanism withstood the attack."""
        if not self.held:
            return "broken"
        return "held" if self.works else "void"


def every(epsilon: Any = 1) -> Iterator[Attack]:
    """All attacks at this ε, in turn, each with enough trials to tell naive code from chance."""
    exact = _attackable(epsilon)
    enough = math.ceil(_SURE / -math.log(best_guess(exact)))
    for attack in (record, mean_record, value_record, difference):
        yield attack(epsilon=exact)
    yield repeats(epsilon=exact, trials=max(60, enough))
    yield reconstruction(epsilon=exact, rounds=max(10, -(-enough // _PEOPLE)))
    yield least_bits(epsilon=exact)
    yield precision(epsilon=exact)


def bounds(epsilon: Any) -> dict[str, float]:
    """How often any attacker can be right at this ε, by what is guessed and the neighbour relation.

    >>> {fact: round(rate, 3) for fact, rate in bounds(1).items()}
    {'change-one': 0.731, 'add-remove, presence': 0.731, 'add-remove, value': 0.881}
    """
    exact = exact_epsilon(epsilon)
    once, twice = best_guess(exact), best_guess(2 * exact)
    return {"change-one": once, "add-remove, presence": once, "add-remove, value": twice}


def run(show: Callable[[str], None], *, epsilon: Any = 1, as_json: bool = False) -> bool:
    """Show all attacks (table or JSON); True if each breaks the naive mechanism, not discreet."""
    tell: Callable[[str], None] = (lambda _: None) if as_json else show
    exact, heading = _attackable(epsilon), ("trials", "naive", "discreet", "theory", "alarm above")
    tell(_COLUMNS.format("attack", "ε", *heading, "verdict"))
    attacks = []
    for attack in every(exact):
        attacks.append(attack)
        rates = (attack.naive, attack.discreet, attack.allowed, attack.limit)
        spent = f"{attack.epsilon:.4g}"
        shares = map(_percent, rates)
        tell(_COLUMNS.format(attack.name, spent, f"{attack.trials:,}", *shares, attack.verdict))
        for line in (attack.what, *attack.faults):
            tell(f"    {line}")
    for line in (*_WHY, *_limits(exact)):
        tell(line)
    if as_json:
        listed = [
            {**asdict(attack), "limit": attack.limit, "verdict": attack.verdict}
            for attack in attacks
        ]
        show(json.dumps(listed, ensure_ascii=False, indent=1))
    return all(attack.verdict == "held" for attack in attacks)


def _limits(epsilon: Fraction) -> tuple[str, ...]:
    """What theory allows at this ε, for each neighbour relation, in sentences."""
    once, _, twice = map(_percent, bounds(epsilon).values())
    return (
        f"theory at ε = {float(epsilon):.4g}, after everything that this ε pays for:",
        f"    under change-one, for any fact about one person: e^ε/(1+e^ε) = {once}",
        f"    under add-remove, for whether a person is in the data: e^ε/(1+e^ε) = {once}",
        f"    under add-remove, for a fact about a person's value: e^2ε/(1+e^2ε) = {twice}",
    )


def _percent(rate: float) -> str:
    return f"{rate:.1%}".replace("%", " %")


def _attackable(epsilon: Any) -> Fraction:
    exact, (least, most) = exact_epsilon(epsilon), _EPSILONS
    if not least <= exact <= most:
        raise InvalidParameter(
            f"epsilon must lie between {float(least):g} and {most} for attacks, got"
            f" {quote(epsilon)}: beyond that, too many trials are needed to break naive code"
        )
    return exact


def record(
    *, epsilon: Any = 1, trials: int = 20_000, mechanism: Mechanism = laplace_mechanism
) -> Attack:
    """Whether a person is among those counted, guessed from one count.

    The best guess, "1 if the answer exceeds the count of the others", is right with probability P(Z
    ≥ 0) = e^ε/(1+e^ε): exactly what theory allows, so the noise is neither too large nor too small.
    """
    method = "knows everyone but one person, and subtracts them from a count"
    return _try_attack("record in a count", method, _COUNT_RATE, epsilon, trials, mechanism)


def mean_record(
    *, epsilon: Any = 1, trials: int = 20_000, mechanism: Mechanism = laplace_mechanism
) -> Attack:
    """Whether a person is 0 or 120 years old, guessed from one mean."""
    method = "knows everyone's age but one, and solves the mean for it"
    others, size, oldest = sum(_KNOWN_AGES), len(_KNOWN_AGES) + 1, 120
    rate = _guess_rate(
        lambda tell, secret: tell((others + oldest * secret) / size) * size - others > oldest / 2,
        move=Fraction(oldest, size),
    )
    return _try_attack("record in a mean", method, rate, epsilon, trials, mechanism)


def value_record(
    *, epsilon: Any = 1, trials: int = 20_000, mechanism: Mechanism = laplace_mechanism
) -> Attack:
    """A person's value, −1 or 1, guessed from a sum under add-remove: Δ = 1, the two are 2 apart.

    The rate lies between e^ε/(1+e^ε), the limit for presence, and e^2ε/(1+e^2ε), the limit for a
    value: with Laplace noise it is 1 − e^−ε/2.
    """
    method = (
        "knows every value but one, -1 or 1, and subtracts them from a sum; add-remove, so Δ is 1"
    )
    rate = _guess_rate(lambda tell, secret: tell(2.0 * secret - 1) > 0)
    allowed = best_guess(2 * exact_epsilon(epsilon))
    return _try_attack("value in a sum", method, rate, epsilon, trials, mechanism, allowed=allowed)


def difference(
    *, epsilon: Any = 1, trials: int = 20_000, mechanism: Mechanism = laplace_mechanism
) -> Attack:
    """A person's bit, guessed from two counts, with and without the person; each costs ε/2."""
    method = "asks for everyone, then for everyone but one person, and subtracts"
    rate = _guess_rate(lambda tell, secret: tell(_OTHERS + secret) > tell(_OTHERS), questions=2)
    return _try_attack("differencing", method, rate, epsilon, trials, mechanism)


def least_bits(
    *, epsilon: Any = 1, trials: int = 3_000, mechanism: Mechanism = laplace_mechanism
) -> Attack:
    """How often a true value is certain, since the other cannot give exactly this float [Mir12].

    x + s·b·ln U has holes. For an output y and a guess h, try the few U = k·2⁻⁵³ near e^(−|y−h|/b):
    if none gives y exactly, h is impossible. This reveals the true value in about 60 % of naive
    releases, at any ε.
    """
    scale = float(1 / exact_epsilon(epsilon))
    rate = _certain_rate(1.0, 0.0, lambda output, value: feasible(output, value, scale))
    method = "tries which true value can give this very float (Mironov)"
    return _try_attack(
        "least bits", method, rate, epsilon, trials, mechanism, naive=_in_floats, allowed=0.0
    )


def precision(
    *, epsilon: Any = 1, trials: int = 20_000, mechanism: Mechanism = laplace_mechanism
) -> Attack:
    """How often a true 0 is certain, since the output is finer than any of a true 1 [HDHSH22].

    The sum of two floats has the precision of the larger. If x = 1, every output is a multiple of
    2⁻⁵³; if x = 0, some are not. At ε = 1, a quarter of the naive releases of a true 0 are
    impossible for a true 1.
    """
    rate = _certain_rate(
        0.0, 1.0, lambda output, value: value == 0 or math.ldexp(output, 53).is_integer()
    )
    method = "looks for an output that is finer than the other true value allows"
    return _try_attack(
        "precision", method, rate, epsilon, trials, mechanism, naive=_in_floats, allowed=0.0
    )


def within_budget(counts: NDArray[np.int64], epsilon: Fraction) -> NDArray[Any]:
    """All counts for ε: a person may be in each, so together they move by at most their number."""
    noisy: NDArray[Any] = laplace_mechanism(counts, sensitivity=counts.size, epsilon=epsilon)
    return noisy


def without_account(counts: NDArray[np.int64], epsilon: Fraction) -> NDArray[Any]:
    """The naive mechanism: noise of scale 1, or 1/ε if less, on each count, however many."""
    return counts + many_floats(1 / max(1.0, float(epsilon)), counts.size)


def reconstruction(
    *, epsilon: Any = 1, rounds: int = 10, answers: Answerer = within_budget
) -> Attack:
    """The bits of all people, from many counts of random halves by least squares [DN03].

    With noise of a few people on each count, and no account of what so many answers cost together,
    nearly all bits are recovered. discreet gives m answers at a total cost of ε, each with scale
    m/ε: the guesses are close to coin tosses.
    """
    method = f"solves {_QUESTIONS} counts of random groups for the records of {_PEOPLE} people"
    trials = rounds * _PEOPLE
    return _try_attack(
        "reconstruction", method, _solved_rate, epsilon, trials, answers, naive=without_account
    )


@dataclass(slots=True)
class Answers:
    """A study's answers to an attacker, one per question that looked new, and its faults."""

    answers: list[float] = field(default_factory=list)
    faults: set[str] = field(default_factory=set)


def repeats(
    *,
    epsilon: Any = "0.1",
    questions: int = 2,
    trials: int = 60,
    ask: Callable[[bool, Fraction, Fraction], Answers] | None = None,
) -> Attack:
    """A person's bit, guessed from the mean of all that a study answers until its ε is spent.

    The error of the mean of m noisy answers is 1/√m of a single error, so an attacker without a
    limit learns the truth. The naive mechanism sets no limit. discreet is asked through a real
    study with a real ledger: every spelling of a question gets the recorded answer; a question that
    only looks different is charged, until the budget is spent.
    """
    total = exact_epsilon(epsilon)
    cost, faults = total / questions, set[str]()
    asks = math.ceil((10 / cost) ** 2)  # the mean of the naive answers is then within half a person

    def mean_of_study(count: int, **_: Any) -> float:
        obtained = (ask or answers_of_study)(count > _OTHERS, total, cost)
        faults.update(obtained.faults)
        return sum(obtained.answers) / max(1, len(obtained.answers))

    def mean_of_naive(count: int, **_: Any) -> float:
        return count + float(many_floats(float(1 / cost), asks).mean())

    method = (
        f"asks again and again, and averages ({asks:,} times the naive mechanism; a ledger"
        " stops it)"
    )
    rate = _guess_rate(lambda tell, secret: tell(_OTHERS + secret) > _OTHERS + 0.5)
    attack = _try_attack(
        "averaging", method, rate, total, trials, mean_of_study, naive=mean_of_naive
    )
    return replace(attack, faults=tuple(sorted(faults)))


def answers_of_study(secret: bool, total: Fraction, cost: Fraction) -> Answers:
    """All that a real study answers about a person, asked in all ways that look new, twice each."""
    import pyarrow

    from discreet.ask.policy import Policy
    from discreet.ask.statistics import Count
    from discreet.release.study import Study

    people = pyarrow.table({"id": list(range(_OTHERS + 1)), "well": [True] * _OTHERS + [secret]})
    columns = {"id": {"bounds": [0, _OTHERS]}, "well": {}}
    obtained = Answers()
    policy = Policy(source=people, epsilon=total, columns=columns, version="1")
    with (
        TemporaryDirectory(prefix="discreet-") as folder,
        Study(policy, ledger=Path(folder, "study.ledger")) as study,
    ):
        for turn in range(_MOST_ASKS):
            everybody = f"id > {-1 - turn}"  # true for everybody, so only the text is new
            try:
                answer = (
                    study.where("well")
                    .where(everybody)
                    .ask(well=Count())
                    .plan(epsilon=cost)
                    .release()
                )
            except BudgetExceeded:
                break
            obtained.answers.append(answer["well"][0])
            again = (
                study.where(f"{everybody} AND well").ask(well=Count()).plan(epsilon=cost).release()
            )
            if again["well"] != answer["well"]:
                obtained.faults.add("the same question got two different answers")
        if study.spent > total or len(obtained.answers) * cost > total:
            obtained.faults.add("more was answered than the budget pays for")
    return obtained


def success_by_epsilon(
    epsilons: Sequence[Any] = ("0.01", "0.1", "0.2", "0.5", 1, 2, 3, 5, 8), *, trials: int = 20_000
) -> list[tuple[float, float]]:
    """For each ε, how often a count tells a record to the attacker; without noise, always."""
    exacts = map(exact_epsilon, epsilons)
    return [(float(epsilon), _COUNT_RATE(laplace_mechanism, epsilon, trials)) for epsilon in exacts]


def _try_attack(
    name: str,
    method: str,
    rate: Rate,
    epsilon: Any,
    trials: int,
    mechanism: Mechanism,
    *,
    naive: Mechanism = lambda answer, **_: answer,
    allowed: float | None = None,
) -> Attack:
    """An attack on a naive mechanism, by default one without noise, and on a mechanism."""
    exact = exact_epsilon(epsilon)
    return Attack(
        name=name,
        what=method,
        epsilon=float(exact),
        trials=trials,
        naive=rate(naive, exact, trials),
        discreet=rate(mechanism, exact, trials),
        allowed=best_guess(exact) if allowed is None else allowed,
    )


def _guess_rate(
    guess: Callable[[Callable[[Any], Any], bool], bool], *, move: Any = 1, questions: int = 1
) -> Rate:
    """How often a guess from an output is the person's bit, which changes an answer by `move`."""

    def rate(mechanism: Mechanism, epsilon: Fraction, trials: int) -> float:
        tell = partial(mechanism, sensitivity=move, epsilon=epsilon / questions)
        right: int = sum(guess(tell, secret) == secret for secret in secrets(trials).tolist())
        return right / trials

    return rate


def _certain_rate(truth: float, other: float, possible: Possible) -> Rate:
    """How often `truth` is known for certain.

    discreet's outputs are a whole number of public steps away from the true value, and each is
    possible from every value. An output off that grid does not come from discreet; for it,
    `possible` decides.
    """

    def rate(mechanism: Mechanism, epsilon: Fraction, trials: int) -> float:
        step = float_grid(Fraction(1), epsilon, 1).step
        outputs = [mechanism(truth, sensitivity=1, epsilon=epsilon) for _ in range(trials)]
        off_grid = [output for output in outputs if (Fraction(output) - Fraction(truth)) % step]
        return named(off_grid, truth, other, possible) / trials

    return rate


def named(outputs: list[float], truth: float, other: float, possible: Possible) -> int:
    """In how many releases the attacker knows `truth`, because `other` is impossible."""
    return sum(not possible(output, other) and possible(output, truth) for output in outputs)


def feasible(output: float, value: float, scale: float) -> bool:
    """Whether any U = k·2⁻⁵³ gives exactly this output through value ± scale·ln U."""
    guess = round(math.exp(-abs(output - value) / scale) * 2**53)
    uniforms = ((guess + nearby) * 2.0**-53 for nearby in range(-_NEARBY, _NEARBY + 1))
    sizes = (scale * math.log(uniform) for uniform in uniforms if 0 < uniform <= 1)
    return any(output in (value + size, value - size) for size in sizes)


def _solved_rate(answerer: Answerer, epsilon: Fraction, trials: int) -> float:
    right = 0
    for _ in range(trials // _PEOPLE):
        bits = secrets(_PEOPLE)
        groups = secrets(_QUESTIONS * _PEOPLE).reshape(_QUESTIONS, _PEOPLE).astype(np.float64)
        noisy = answerer((groups @ bits).astype(np.int64), epsilon).astype(np.float64)
        # the normal equations are well conditioned
        solved = np.linalg.solve(groups.T @ groups, groups.T @ noisy)
        right += int(((solved > 0.5) == bits).sum())
    return right / trials


def best_guess(epsilon: Fraction) -> float:
    """e^ε/(1+e^ε).

    >>> round(best_guess(Fraction(1)), 3)
    0.731
    """
    return 1 / (1 + math.exp(-min(float(epsilon), 700.0)))


def _in_floats(answer: float, *, sensitivity: Any, epsilon: Fraction) -> float:
    return answer + float_noise(float(sensitivity / epsilon), 1)[0]


_COUNT_RATE = _guess_rate(lambda tell, secret: tell(_OTHERS + secret) > _OTHERS)
