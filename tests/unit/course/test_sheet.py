"""Sheets: other numbers for each group, no solution on the sheet, and a key that the checks accept.

What is right follows here from the laws and by hand, and not from the functions that make the key.
"""

import math
import re
from fractions import Fraction
from itertools import pairwise, product

import pytest

from discreet import DiscreteLaplace
from discreet.course import check
from discreet.course.exercises import parts_of
from discreet.course.parts import Number
from discreet.course.sheet import PERIOD, TASKS, key, save, sheet, tasks
from discreet.errors import InvalidParameter


def sections(text):
    """The exercises of a sheet or a key."""
    return re.split(r"^## ", text, flags=re.MULTILINE)[1:]


def blocks(text):
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def rounded(answers):
    """Answers as a student gives them, with three digits."""
    return tuple(
        answer if isinstance(answer, bool) else f"{answer:.3g}" for answer in answers.values()
    )


def test_a_number_gives_the_same_sheet_always_and_everywhere():
    assert (sheet(7), key(7)) == (sheet(7), key(7))
    assert TASKS["1.2"].given(7) == {"n": 170, "R": 120}  # as on every machine and in every version
    assert TASKS["H"].given(7) == {"epsilon": "0.8", "bins": 10}


@pytest.mark.parametrize("name", TASKS)
def test_sheets_less_than_a_period_apart_differ_in_every_exercise_and_its_answers(name):
    task = TASKS[name]
    assert len(task.choices) >= PERIOD
    numbers = range(1, 2 * PERIOD + 1)
    answers = {number: rounded(task.answers(**task.given(number))) for number in numbers}
    for one, other in product(numbers, repeat=2):
        if 0 < other - one < PERIOD:
            assert task.given(one) != task.given(other)
            assert answers[one] != answers[other], (one, other, answers[one])


def test_two_sheets_have_the_same_questions_and_other_numbers():
    for one, other in zip(*(sections(sheet(number)) for number in (3, 4)), strict=True):
        assert one != other
        assert one.partition("\n")[0] == other.partition("\n")[0]


def test_a_sheet_holds_no_solution_and_no_answer():
    for number in (1, 2, 9):
        text = sheet(number)
        assert not re.search("solution|answers:", text.lower())
        for task, section in zip(tasks(), sections(text), strict=True):
            given = task.given(number)
            assert f"*Hint.* {task.hint}" in section
            for name in task.parts:
                assert re.search(rf"^    {name}=\.\.\.,  # ", section, re.MULTILINE)
            public = set(
                re.findall(r"[\d.]*\d", task.question.format(**given) + task.hint + str(given))
            )
            for name, answer in task.answers(**given).items():
                shown = (
                    {f"{answer:.6g}", f"{answer:.3g}"}
                    if not isinstance(answer, bool)
                    else {f"{name}={answer}"}
                )
                found = set(re.findall(r"[\d.]*\d|\w+=\w+", section)) & shown
                # a number that the question itself names, such as an ε that stays what it is
                assert found <= public, (task.exercise, name, found)
            for sentence in re.split(
                r"(?<=\.) ", task.solution.format(**given, **_marked(task, given))
            ):
                assert sentence not in section


def _marked(task, given):
    return {f"{name}_": str(answer) for name, answer in task.answers(**given).items()}


def test_control_a_key_does_hold_what_a_sheet_must_not():
    text = key(1)
    assert re.search("answers:", text.lower())
    assert "=..." not in text


def test_each_answer_of_each_key_passes_the_check_of_the_exercise():
    """The blocks of the key are run as they stand; those of the sheet are still open."""
    for number in range(1, 2 * PERIOD + 1, 3):
        found = blocks(key(number))
        assert len(found) == len(TASKS)
        for block in found:
            verdict = eval(block, {"check": check})  # noqa: S307
            assert verdict.right, (number, verdict)
    for block in blocks(sheet(1)):
        verdict = eval(block, {"check": check})  # noqa: S307
        assert {finding.words for finding in verdict.findings} == {"still to fill in"}


@pytest.mark.parametrize("name", TASKS)
def test_an_answer_of_another_sheet_or_a_slip_fails_the_check(name):
    task = TASKS[name]
    for number in range(PERIOD):
        given, other = task.given(number), task.given(number + 1)
        assert not check(name, given=given, **task.answers(**other)).right
        for part in parts_of(name, given):
            if isinstance(part, Number):
                slips = [
                    slip
                    for slip, _ in part.slips
                    if not math.isclose(slip, part.wanted, rel_tol=0.006)
                ]
                assert slips
                assert [slip for slip in slips if not part.judge(slip)] == []


def test_what_a_key_says_is_what_laws_and_data_sets_have():
    for number in range(1, 6):
        given = {name: task.given(number) for name, task in TASKS.items()}
        answers = {name: task.answers(**given[name]) for name, task in TASKS.items()}
        epsilon = {
            name: float(Fraction(each["epsilon"]))
            for name, each in given.items()
            if "epsilon" in each
        }
        assert answers["1.2"]["average"] == pytest.approx(given["1.2"]["R"] / given["1.2"]["n"])
        assert answers["1.5"]["largest"] == pytest.approx(
            2 / epsilon["1.5"] * (math.log(given["1.5"]["counties"]) + 1)
        )
        error = float(given["1.6"]["alpha"])
        assert answers["1.6"]["laplace"] == pytest.approx(math.sqrt(2) / (error * epsilon["1.6"]))
        assert answers["1.6"]["response"] == pytest.approx(
            (2 * error * math.sinh(epsilon["1.6"] / 2)) ** -2
        )
        odds = math.exp(epsilon["A"])
        assert answers["A"] == pytest.approx({"difference": 1, "share": odds / (1 + odds)})
        assert answers["B"] == {
            "multiple": pytest.approx(float(given["B"]["divisor"])),
            "private": False,
        }
        assert (given["C"]["several"] + 1) * answers["C"]["thrice"] == pytest.approx(epsilon["C"])
        assert 2 * answers["C"]["once"] == pytest.approx(epsilon["C"])
        assert answers["E"] == {"papers": pytest.approx(epsilon["E"]), "redrawn": False}
        assert (
            answers["F"]["moved"]
            == pytest.approx(2 * answers["F"]["once"])
            == pytest.approx(2 * epsilon["F"])
        )
        assert answers["F"]["separately"] == pytest.approx(given["F"]["wards"] * epsilon["F"])
        factor = math.exp(given["G"]["people"] * epsilon["G"])
        assert answers["G"]["factor"] == pytest.approx(factor)
        assert answers["G"]["share"] == pytest.approx(factor / (1 + factor))
        assert answers["G"]["scale"] * epsilon["G"] == pytest.approx(given["G"]["people"])
        assert answers["H"]["exceeds"] == pytest.approx(beyond(epsilon["H"]), rel=1e-6)
        assert answers["I"]["largest"] == pytest.approx(
            given["I"]["bits"] * math.log(2) / epsilon["I"]
        )
        assert answers["I"]["private"] is False


def beyond(epsilon):
    """How often the loss of two counts exceeds ε, if one grows and one falls by 1: all pairs of
    draws, summed.
    """
    noise, far = DiscreteLaplace(1 / Fraction(str(epsilon))), math.ceil(20 / epsilon)
    chances = {z: noise.pmf(z) for z in range(-far, far + 1)}
    grows = {
        loss: sum(chance for z, chance in chances.items() if abs(z + 1) - abs(z) == loss)
        for loss in (-1, 1)
    }
    falls = {
        loss: sum(chance for z, chance in chances.items() if abs(z - 1) - abs(z) == loss)
        for loss in (-1, 1)
    }
    return sum(grows[one] * falls[two] for one, two in product((-1, 1), repeat=2) if one + two > 1)


def test_exercises_are_chosen_by_name_and_come_in_the_order_of_the_course():
    names = [
        re.search(r'^    "(.*?)",$', block, re.MULTILINE)[1]
        for block in blocks(sheet(1, ["H", "1.5"]))
    ]
    assert names == ["1.5", "H"]
    titles = [section.partition("\n")[0] for section in sections(key(1, ["H", "1.5"]))]
    assert titles == ["1. The counties", "2. A histogram with the wrong Δ"]
    with pytest.raises(InvalidParameter, match=r"exercise must be one of 1\.2, .*, got '1\.3'"):
        sheet(1, ["1.3"])
    for number in (0, -1, True, 1.5):
        with pytest.raises(InvalidParameter, match="number must be a whole number"):
            sheet(number)


def test_neither_file_is_written_if_one_of_them_exists(tmp_path):
    week = tmp_path / "week"
    assert [file.name for file in save(5, week)] == ["sheet-5.md", "sheet-5-key.md"]
    assert (week / "sheet-5.md").read_text("utf-8") == sheet(5)
    assert (week / "sheet-5-key.md").read_text("utf-8") == key(5)
    (week / "sheet-5-key.md").write_text("mine")
    (week / "sheet-5.md").unlink()
    with pytest.raises(InvalidParameter, match=r"sheet-5-key\.md does"):
        save(5, week)
    assert [file.name for file in week.iterdir()] == ["sheet-5-key.md"]
    save(5, week, exercises=["H"], force=True)
    assert (week / "sheet-5-key.md").read_text("utf-8") == key(5, ["H"])
    with pytest.raises(InvalidParameter, match=r"-o must be a folder, got the file 'sheet-5\.md'"):
        save(5, week / "sheet-5.md")


def test_the_order_of_the_choices_is_no_order_that_a_reader_would_guess():
    """Neighbouring sheets do not have neighbouring numbers, by which a group could guess those of
    the next.
    """
    task = TASKS["A"]
    steps = [
        float(task.given(other)["epsilon"]) - float(task.given(one)["epsilon"])
        for one, other in pairwise(range(20))
    ]
    assert len({round(step, 2) for step in steps}) > 5
