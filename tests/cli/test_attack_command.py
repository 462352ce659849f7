"""`discreet attack` tries every attack at the ε that it is given, and ends with 1 if one succeeds."""

import json

from discreet.verify import attacks
from shell import discreet


def at(discreet_rate):
    """The attacks as if there were one, with this rate against discreet."""
    return lambda epsilon: iter(
        [
            attacks.Attack(
                name="one",
                what="does this",
                epsilon=float(epsilon),
                trials=1_000,
                naive=1,
                discreet=discreet_rate,
                allowed=0.6,
            )
        ]
    )


def test_the_epsilon_is_that_of_the_option_and_stands_in_every_line(tmp_path, monkeypatch):
    monkeypatch.setattr(attacks, "every", at(0.6))
    told = discreet("attack", "--epsilon", "1/2", cwd=tmp_path)
    assert (told.code, told.err) == (0, "")
    heading, line, *_ = told.out.splitlines()
    assert heading.split()[:2] == ["attack", "ε"]
    assert line.split()[:2] == ["one", "0.5"]
    assert "under change-one, for any fact about one person: e^ε/(1+e^ε) = 62.2 %" in told.out
    assert "under add-remove, for a fact about a person's value: e^2ε/(1+e^2ε) = 73.1 %" in told.out
    [listed] = json.loads(discreet("attack", "--json", cwd=tmp_path).out)
    assert (listed["epsilon"], listed["verdict"]) == (1, "held")


def test_an_attack_that_succeeds_ends_with_one_and_an_epsilon_out_of_reach_is_refused(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(attacks, "every", at(0.9))
    assert discreet("attack", cwd=tmp_path).code == 1
    discreet("attack", "--epsilon", "4", cwd=tmp_path).refused(2, "between 0.01 and 3", "'4'")
    discreet("attack", "--epsilon", "much", cwd=tmp_path).refused(2, "epsilon must be")
