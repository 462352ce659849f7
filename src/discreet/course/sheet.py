"""Exercise sheets for a lecture: questions with the numbers of a public sheet number, and a key.

    save(7, "week3")        week3/sheet-7.md and week3/sheet-7-key.md

The numbers of an exercise come from a list of choices in the order of their SHA-256; sheet 7 has
the eighth of them. So sheets whose numbers differ by less than `PERIOD` differ in every exercise,
and the same number gives the same sheet everywhere. Anyone who has discreet can make the key to a
sheet: it is for practice, not for an examination.

The library computes the answers of a key from its laws and sensitivities, and not from the formulas
of the checks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from discreet.calibrate import lemma, sensitivity
from discreet.draw.laplace import DiscreteLaplace, Laplace
from discreet.errors import InvalidParameter
from discreet.files.writer import free, write
from discreet.parameters import exact_count, quote
from discreet.verify.attacks import best_guess

Given: TypeAlias = Mapping[str, Any]
Answers: TypeAlias = dict[str, float | bool]

PERIOD = 20
"""Sheets whose numbers differ by less differ in every exercise."""


_EPSILONS = tuple(str(Decimal(5 * step) / 100) for step in range(1, PERIOD + 1))  # 0.05, 0.1, …, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An exercise with other numbers; braces stand for them, and in a solution also for answers."""

    exercise: str
    title: str
    question: str
    hint: str
    solution: str
    parts: Mapping[str, str]
    """What each part of the answer is, by its name in the check."""
    choices: tuple[Given, ...]
    answers: Callable[..., Answers]

    def given(self, number: int) -> Given:
        """The numbers of this exercise on a sheet."""
        order = sorted(
            self.choices, key=lambda given: _digest(f"{self.exercise} {sorted(given.items())}")
        )
        return order[number % len(order)]


def tasks(exercises: Sequence[str] = ()) -> tuple[Task, ...]:
    """The exercises with these names, in the order of the course; all of them if none is named."""
    exercises = [name.upper() for name in exercises]
    for name in exercises:
        if name not in TASKS:
            raise InvalidParameter(f"exercise must be one of {', '.join(TASKS)}, got {quote(name)}")
    return tuple(task for name, task in TASKS.items() if not exercises or name in exercises)


def sheet(number: int, exercises: Sequence[str] = ()) -> str:
    """The sheet in Markdown, with questions, hints and a line that checks the reader's answers."""
    exact = exact_count("number", number)
    parts = [_HEAD.format(number=exact)]
    for place, task in enumerate(tasks(exercises), 1):
        given = task.given(exact)
        parts += [
            f"## {place}. {task.title}",
            task.question.format(**given),
            f"*Hint.* {task.hint}",
            _code(task, dict.fromkeys(task.parts, "..."), given),
        ]
    return "\n\n".join(parts) + "\n"


def key(number: int, exercises: Sequence[str] = ()) -> str:
    """The key of a sheet in Markdown, with solutions and answers."""
    exact = exact_count("number", number)
    parts = [_KEY_HEAD.format(number=exact)]
    for place, task in enumerate(tasks(exercises), 1):
        given = task.given(exact)
        shown = {name: _shown(answer) for name, answer in task.answers(**given).items()}
        parts += [
            f"## {place}. {task.title}",
            "Given: " + ", ".join(f"{name} = {value}" for name, value in given.items()) + ".",
            task.solution.format(**given, **{f"{name}_": answer for name, answer in shown.items()}),
            "Answers: " + ", ".join(f"{name} = {answer}" for name, answer in shown.items()) + ".",
            _code(task, shown, given),
        ]
    return "\n\n".join(parts) + "\n"


def save(
    number: int,
    folder: str | PathLike[str] = ".",
    *,
    exercises: Sequence[str] = (),
    force: bool = False,
) -> list[Path]:
    """Write a sheet and its key into a folder, which is created if needed; the paths of both."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InvalidParameter(f"-o must be a folder, got the file {quote(target.name)}")
    texts = {"": sheet(number, exercises), "-key": key(number, exercises)}
    files = {target / f"sheet-{number}{ending}.md": text for ending, text in texts.items()}
    target.mkdir(parents=True, exist_ok=True)
    for file in files:  # neither is written if one of them is refused
        free(file, force=force)
    return [write(file, text, force=force) for file, text in files.items()]


_HEAD = """# The Laplace mechanism: exercise sheet {number}

Give numbers to three significant digits. The block after each exercise checks your answers in \
Python: begin with
`from discreet.course import check`, and put an answer in place of each `...`. An answer is \
a number or a text such as
"2/0.1"; yes is `True`, no is `False`. Other sheets have other numbers."""

_KEY_HEAD = """# The Laplace mechanism: key to exercise sheet {number}

discreet computed all answers from its laws and sensitivities. Each block of Python \
shows that the check of the exercise
accepts them; begin with `from discreet.course import check`."""


def _code(task: Task, answers: Mapping[str, str], given: Given) -> str:
    """The call of the check, with a comment for each part."""
    lines = [f"    {name}={answers[name]},  # {what}" for name, what in task.parts.items()]
    call = "\n".join(
        ["check(", f'    "{task.exercise}",', *lines, f"    given={dict(given)!r},", ")"]
    )
    return f"```python\n{call}\n```"


def _shown(answer: float | bool) -> str:
    return str(answer) if isinstance(answer, bool) else f"{answer:.6g}"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _choices(**options: Sequence[Any]) -> tuple[Given, ...]:
    """All combinations of the options."""
    return tuple(dict(zip(options, values, strict=True)) for values in product(*options.values()))


def _paired(name: str, values: Sequence[Any]) -> tuple[Given, ...]:
    """Each ε once, with one of the values, which do not change the answers."""
    return tuple(
        {"epsilon": epsilon, name: values[at % len(values)]} for at, epsilon in enumerate(_EPSILONS)
    )


def _average(n: int, R: int) -> Answers:
    return {"average": float(sensitivity.mean(n=n, bounds=(0, R)))}


def _counties(epsilon: str, counties: int) -> Answers:
    scale = sensitivity.histogram() / Fraction(epsilon)
    return {"suffolk": lemma.expected_error(scale), "largest": lemma.expected_max(scale, counties)}


def _people(alpha: str, epsilon: str) -> Answers:
    """The error of n people is that of one, divided by n, or by √n for randomized response."""
    one, error = sensitivity.proportion(n=1) / Fraction(epsilon), float(Fraction(alpha))
    response = lemma.randomized_response(n=1, epsilon=epsilon)
    return {
        "laplace": lemma.root_mean_square_error(one) / error,
        "response": (response / error) ** 2,
    }


def _two_answers(epsilon: str) -> Answers:
    return {"difference": float(sensitivity.count()), "share": best_guess(Fraction(epsilon))}


def _less_noise(divisor: str) -> Answers:
    """The largest loss at Δ = ε = 1, and whether a difference of counts with one draw varies."""
    noise = Laplace(1 / Fraction(divisor))
    draws = DiscreteLaplace(10).sample(100).tolist()
    differences = {(7 + draw) - (3 + draw) for draw in draws}
    return {"multiple": math.log(noise.pdf(0) / noise.pdf(1)), "private": len(differences) > 1}


def _year(epsilon: str, months: int, several: int) -> Answers:
    """The losses of one person add up: those of their months, and that of the last histogram."""
    budget, last = float(Fraction(epsilon)), 1
    return {"once": budget / (1 + last), "thrice": budget / (min(several, months) + last)}


def _newspapers(epsilon: str, papers: int) -> Answers:  # noqa: ARG001 - their number changes nothing
    """The loss of the published count; whether redrawn noise gives neighbours the same outputs."""
    noise, near = DiscreteLaplace(1 / Fraction(epsilon)), range(-10, 11)
    outputs = [{count + draw for draw in near} for count in (30, 31)]
    return {"papers": math.log(noise.pmf(0) / noise.pmf(1)), "redrawn": outputs[0] == outputs[1]}


def _wards(epsilon: str, wards: int) -> Answers:
    loss = Fraction(epsilon)
    once, moved = sensitivity.histogram(neighbors="add-remove"), sensitivity.histogram()
    return {
        "once": float(once * loss),
        "moved": float(moved * loss),
        "separately": float(sum([loss] * wards)),
    }


def _household(epsilon: str, people: int) -> Answers:
    loss = Fraction(epsilon)
    noise = DiscreteLaplace(1 / loss)
    return {
        "factor": noise.pmf(0) / noise.pmf(people),
        "share": best_guess(people * loss),
        "scale": float(people * sensitivity.count() / loss),
    }


def _wrong_sensitivity(epsilon: str, bins: int) -> Answers:
    loss = Fraction(epsilon)
    used = 1 / loss
    return {
        "real": float(sensitivity.histogram(bins=bins) / used),
        "exceeds": DiscreteLaplace(used).cdf(0) ** 2,
        "scale": float(sensitivity.histogram(bins=bins) / loss),
    }


def _floats(epsilon: str, bits: int) -> Answers:
    """The noise of the smallest U, and whether a true 0 can give the largest output of a true 1."""
    largest = -math.log(2.0**-bits) / float(Fraction(epsilon))
    return {"largest": largest, "private": 1 + largest <= largest}


_TASKS = (
    Task(
        exercise="1.2",
        title="The sensitivity of an average",
        question=(
            "A survey asks {n} people for a number in [0, {R}]. One person's number is replaced. "
            "How far can the average move? Give Δ as a number."
        ),
        hint="How far can the sum move?",
        solution=(
            "One number moves by at most {R}, and so does the sum. The average is the sum divided"
            " by the public n: Δ = R/n = {R}/{n} = {average_}."
        ),
        parts={"average": "Δ of the average"},
        choices=_choices(n=(70, 90, 110, 130, 170, 190), R=(40, 60, 80, 100, 120)),
        answers=_average,
    ),
    Task(
        exercise="1.5",
        title="The counties",
        question=(
            "The Laplace mechanism estimates how many people of a data set live in each of"
            " {counties} counties, at ε = {epsilon}; neighbours differ in the record of one person."
            " What does Lemma 1.4 say about the expected error of the count of one county, and"
            " about the expected largest error over all counties?"
        ),
        hint="The counts are a histogram. Find Δ and λ first, then the right part of the lemma.",
        solution=(
            "A person who moves changes two counts, so Δ = 2 and λ = 2/ε = {suffolk_}. By part 1a"
            " that is the expected error of one county (`suffolk` in the check). By part 2c the"
            " expected largest error is at most λ(ln d + 1) = {suffolk_}·(ln {counties} + 1) ="
            " {largest_}."
        ),
        parts={
            "suffolk": "the expected error of one county",
            "largest": "the bound on the expected largest error",
        },
        choices=_choices(
            epsilon=("0.05", "0.08", "0.1", "0.2", "0.25", "0.4"),
            counties=(58, 120, 254, 650, 1500, 3143),
        ),
        answers=_counties,
    ),
    Task(
        exercise="1.6",
        title="How many people are needed",
        question=(
            "The fraction of people with a property is to be estimated at ε = {epsilon} with a root"
            " mean square error of {alpha}. How many people are needed by the Laplace mechanism,"
            " and how many by randomized response?"
        ),
        hint=(
            "Δ is 1/n; part 1b of Lemma 1.4 gives the error. The error of randomized response is "
            "1/(2√n·sinh(ε/2)), about 1/(√n·ε)."
        ),
        solution=(
            "λ = 1/(nε), so the error is √2/(nε) by part 1b; it is α at n = √2/(αε) = {laplace_}."
            " The error of randomized response is α at n = 1/(2α·sinh(ε/2))² = {response_}, about"
            " 1/(αε)²."
        ),
        parts={
            "laplace": "people for the Laplace mechanism",
            "response": "people for randomized response",
        },
        choices=_choices(
            alpha=("0.01", "0.012", "0.015", "0.017", "0.019"), epsilon=("0.1", "0.2", "0.5", "0.7")
        ),
        answers=_people,
    ),
    Task(
        exercise="A",
        title="The attacker with two answers",
        question=(
            "A hospital publishes the exact number of patients with a disease, and again a week"
            " later. In between one patient whom you know has left, and nothing else has changed."
            " The patient had the disease. By how much do the two numbers differ? Now both numbers"
            " have Laplace noise, and both together are ε-private with ε = {epsilon}. How often can"
            " the best guess about the patient be right? Neighbours differ in whether one patient"
            " is in the data."
        ),
        hint="The bound covers everything that the attacker sees, and depends only on ε.",
        solution=(
            "The numbers differ by {difference_}. The attacker starts with even odds. After any"
            " output the odds are at most e^ε to 1, so a guess is right with probability at most"
            " e^ε/(1+e^ε) = {share_}."
        ),
        parts={
            "difference": "by how much the numbers differ",
            "share": "the largest share of right guesses",
        },
        choices=_choices(epsilon=_EPSILONS),
        answers=_two_answers,
    ),
    Task(
        exercise="B",
        title="Too little noise",
        question=(
            "Somebody adds noise of scale Δ/({divisor}·ε) where Algorithm 1 requires Δ/ε. What is"
            " the largest privacy loss, as a multiple of ε? Somebody else draws noise of scale Δ/ε"
            " once and adds the same draw to all d counts of a histogram. Is the result ε-private?"
        ),
        hint="Put the scale into the proof of Theorem 1.3. Then subtract one count from another.",
        solution=(
            "The loss is Δ/λ = {multiple_}·ε. The second algorithm is not private at any ε: the"
            " noise cancels in the difference of two counts, so the difference is exact. The proof"
            " needs independent draws."
        ),
        parts={
            "multiple": "the largest loss, as a multiple of ε",
            "private": "is the second algorithm ε-private?",
        },
        choices=_choices(divisor=tuple(str(Decimal(step) / 2) for step in range(3, 3 + PERIOD))),
        answers=_less_noise,
    ),
    Task(
        exercise="C",
        title="A plan for a year",
        question=(
            "A registry may spend ε = {epsilon} in a year. In each of {months} months it publishes"
            " a histogram of new cases by county. At the end it publishes one histogram of all"
            " cases by age. All histograms use the same ε, under add-remove. How large may that ε"
            " be if nobody is a new case twice? How large may it be if a person can be a new case"
            " in up to {several} months?"
        ),
        hint="Which releases can one person's record change?",
        solution=(
            "A new case is in one month and in the last histogram: 2ε are spent, so each has"
            " {once_}. With {several} months it is in {several} + 1 histograms, so each has"
            " {thrice_}."
        ),
        parts={
            "once": "ε of a histogram, if nobody is a case twice",
            "thrice": "the same, if several months are possible",
        },
        choices=_choices(
            epsilon=("0.5", "0.8", "1", "1.2", "1.5"), months=(12,), several=(3, 4, 5, 6)
        ),
        answers=_year,
    ),
    Task(
        exercise="E",
        title="Post-processing",
        question=(
            "A registry publishes a count with noise, at ε = {epsilon}. It is printed by {papers}"
            " newspapers: one rounds it to tens, one replaces a negative number by 0, the others"
            " print shares and rankings. Which ε do the count and everything that the papers print"
            " have together? The next year the registry draws the noise again and again, until the"
            " noisy count is within 10 of the exact count, and publishes the last one. Is that"
            " ε-private?"
        ),
        hint=(
            "Who looks at the data? For the second part, which numbers can be published for a count"
            " of 30, and which for 31?"
        ),
        solution=(
            "The papers compute from the published count alone. By post-processing everything"
            " together has ε = {papers_}, however many papers there are. The second algorithm is"
            " not private at any ε: 20 can be published for a count of 30, but never for 31."
            " Whoever reads 20 knows."
        ),
        parts={
            "papers": "ε of everything together",
            "redrawn": "is the second algorithm ε-private?",
        },
        choices=_paired("papers", (4, 5, 6)),
        answers=_newspapers,
    ),
    Task(
        exercise="F",
        title="Parallel composition",
        question=(
            "A city counts the ill people in each of its {wards} wards, and adds noise to each"
            " count so that the count alone is ε-private with ε = {epsilon} under add-remove. A"
            " person lives in one ward. Which ε do all counts have together under add-remove? Which"
            " under change-one, where a person may be replaced by one from another ward? Somebody"
            " asks a ledger for the counts one after another, each with WHERE ward = …, at the same"
            " ε. How much does the ledger charge?"
        ),
        hint="How many of the counts can one person's record change?",
        solution=(
            "One record is in one ward, so under add-remove the counts have {once_} together. A"
            " replaced record changes up to two counts: {moved_}. The ledger adds up what each"
            " question costs, {wards} times: {separately_}. One question with GROUP BY costs ε"
            " once."
        ),
        parts={
            "once": "under add-remove",
            "moved": "under change-one",
            "separately": "what the ledger charges",
        },
        choices=_choices(epsilon=_EPSILONS, wards=(8, 12, 15)),
        answers=_wards,
    ),
    Task(
        exercise="G",
        title="Group privacy",
        question=(
            "A count is published at ε = {epsilon} for one person. An attacker wants to know"
            " whether a household of {people} people, who are all in the data or all not, was"
            " counted. By which factor can the probability of an output differ between the two? How"
            " often can the best guess be right? Which noise scale gives the whole household ε ="
            " {epsilon}?"
        ),
        hint="Remove the people one after another: each step costs a factor of at most e^ε.",
        solution=(
            "The factor is (e^ε)^k = e^(kε) = {factor_}, so a guess is right with probability at"
            " most e^(kε)/(1+e^(kε)) = {share_}. With Δ = k the scale is k/ε = {scale_}."
        ),
        parts={
            "factor": "the largest factor",
            "share": "the largest share of right guesses",
            "scale": "the scale",
        },
        choices=_choices(
            epsilon=("0.1", "0.15", "0.2", "0.3", "0.35", "0.45", "0.5"), people=(2, 3, 5)
        ),
        answers=_household,
    ),
    Task(
        exercise="H",
        title="A histogram with the wrong Δ",
        question=(
            "A histogram of {bins} bins is published under change-one at ε = {epsilon}. The"
            " programmer thinks that one person changes one count, and adds discrete Laplace noise"
            " of scale 1/ε to each. Which ε does the release really have? One person changes from"
            " bin A to bin B. With which probability does the privacy loss of the output exceed ε?"
            " Which scale is right?"
        ),
        hint=(
            "The loss of the two counts adds up. For discrete noise of scale 1/ε and a shift of 1,"
            " the loss of one count is ε or −ε, and it is ε with probability P(Z ≥ 0) = 1/(1 +"
            " e^(−ε))."
        ),
        solution=(
            "Two counts change by 1, so Δ = 2 and the release has Δ/λ = 2ε = {real_}. The total"
            " loss is 2ε, 0 or −2ε. It is 2ε if both losses are ε: with probability (1/(1 +"
            " e^(−ε)))² = {exceeds_}. The right scale is 2/ε = {scale_}."
        ),
        parts={
            "real": "the real ε",
            "exceeds": "the probability of a loss beyond ε",
            "scale": "the right scale",
        },
        choices=_paired("bins", (10, 20, 50)),
        answers=_wrong_sensitivity,
    ),
    Task(
        exercise="I",
        title="The noise of floating-point numbers",
        question=(
            "A programmer draws U, a multiple of 2^(−{bits}) in (0, 1], with equal probabilities,"
            " and a fair sign s, and publishes f(x) + s·b·ln U with b = 1/ε and ε = {epsilon}. How"
            " large can the noise be at most? Neighbours have f(x) = 0 and f(x′) = 1. Is the"
            " algorithm ε-private?"
        ),
        hint="Which U is the smallest?",
        solution=(
            "The smallest U is 2^(−{bits}), so the noise is at most b·{bits}·ln 2 = {largest_}. The"
            " output 1 + {largest_} is possible for f(x′) = 1 and impossible for f(x) = 0: no ε"
            " bounds that ratio. Many outputs near 0 and 1 have the same fault, because the"
            " possible floats around 0 and around 1 are not the same. Draw noise as whole numbers"
            " of public steps."
        ),
        parts={"largest": "the largest noise", "private": "is it ε-private?"},
        choices=_choices(epsilon=_EPSILONS, bits=(24, 53)),
        answers=_floats,
    ),
)

TASKS: dict[str, Task] = {task.exercise: task for task in _TASKS}
"""The exercises of a sheet by their number or letter in the course."""
