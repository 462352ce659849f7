"""Law: whatever is asked, in whatever order, the ledger says what exact fractions say."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from discreet import BudgetExceeded, InvalidParameter
from ledgers import UNIT, postgresql_place, sqlite_place

epsilons = st.sampled_from(
    [
        Fraction(1, 3),
        Fraction(1, 7),
        Fraction(1, 10),
        UNIT,
        2 * UNIT,
        Fraction(3, 2) * UNIT,
        Fraction(2, 3),
        Fraction(1),
    ]
) | st.fractions(UNIT, 1, max_denominator=10**9)
names = st.sampled_from(["a", "b", "c"])
analysts = st.sampled_from([None, "ann", "bob"])


def cost(epsilon: Fraction) -> Fraction:
    """ε rounded up to the ledger's unit."""
    return math.ceil(epsilon / UNIT) * UNIT


class AgainstFractions(RuleBasedStateMachine):
    """The oracle keeps every budget as a Fraction, and every request in a dict."""

    def __init__(self, place):
        super().__init__()
        self.place = place
        self.ledger = place.open(new=True)
        self.spent, self.requests, self.answers, self.paid = Fraction(0), {}, {}, set()
        self.shares, self.used = {}, {"ann": Fraction(0), "bob": Fraction(0)}
        self.count = 0

    @initialize(total=epsilons)
    def create(self, total):
        self.total = cost(total)
        self.ledger.create("s", total)

    def teardown(self):
        self.ledger.close()

    @rule(
        query=names, epsilon=epsilons, analyst=analysts, version=st.sampled_from([None, "1", "2"])
    )
    def spend_anew(self, query, epsilon, analyst, version):
        self.count += 1
        self.ask(f"r{self.count}", (query, epsilon, analyst, version))

    @rule(query=names, analyst=analysts)
    def spend_all_that_is_left(self, query, analyst):
        """To the last unit; then one beyond."""
        left = self.total - self.spent
        if analyst in self.shares:
            left = min(left, self.shares[analyst] - self.used[analyst])
        for epsilon in (left, UNIT):
            if epsilon:
                self.spend_anew(query, epsilon, analyst, None)

    @rule(number=st.integers(1, 50))
    def spend_again(self, number):
        request = f"r{1 + number % max(1, self.count)}"
        if request in self.requests:
            self.ask(request, self.requests[request])

    @rule(number=st.integers(1, 50), query=names, epsilon=epsilons, analyst=analysts)
    def spend_with_a_changed_body(self, number, query, epsilon, analyst):
        request = f"r{1 + number % max(1, self.count)}"
        if request in self.requests and (analyst is None or analyst in self.shares):
            self.ask(request, (query, epsilon, analyst, "1"))

    @rule(analyst=st.sampled_from(["ann", "bob"]), epsilon=epsilons)
    def allot(self, analyst, epsilon):
        if self.used[analyst] <= cost(epsilon) <= self.total:
            self.ledger.allot(analyst, epsilon, study="s")
            self.shares[analyst] = cost(epsilon)
        else:
            with pytest.raises(InvalidParameter):
                self.ledger.allot(analyst, epsilon, study="s")

    @rule()
    def restart(self):
        self.ledger.close()
        self.ledger = self.place.open(study="s")

    def ask(self, request, body):
        query, epsilon, analyst, version = body
        question = (query, version, epsilon) if version else (query, request, epsilon)
        asked = {"study": "s", "analyst": analyst, "data_version": version}
        if analyst is not None and analyst not in self.shares:
            expected = BudgetExceeded
        elif request in self.requests:
            expected = None if self.requests[request] == body else InvalidParameter
        elif question in self.paid:
            expected = None
        else:
            fits = self.spent + cost(epsilon) <= self.total
            fits = fits and (
                analyst is None or self.used[analyst] + cost(epsilon) <= self.shares[analyst]
            )
            expected = None if fits else BudgetExceeded
        if expected is not None:
            with pytest.raises(expected):
                self.ledger.spend(request, query, epsilon, **asked)
            return
        grant = self.ledger.spend(request, query, epsilon, **asked)
        assert (grant.repeated, grant.answer) == (question in self.paid, self.answers.get(question))
        if question not in self.paid:
            self.spent += cost(epsilon)
            if analyst is not None:
                self.used[analyst] += cost(epsilon)
        self.requests[request] = body
        self.paid.add(question)
        shown = self.ledger.record(grant, f"answer {request} {self.count}".encode())
        assert shown == self.answers.setdefault(question, f"answer {request} {self.count}".encode())

    @invariant()
    def the_balance_is_exact(self):
        if hasattr(self, "total"):
            assert self.spent <= self.total
            assert (self.ledger.total("s"), self.ledger.spent("s")) == (self.total, self.spent)
            for analyst, share in self.shares.items():
                left = min(share - self.used[analyst], self.total - self.spent)
                assert self.ledger.remaining("s", analyst=analyst) == left


@pytest.mark.parametrize(("database", "examples"), [("sqlite", 40), ("postgresql", 20)])
def test_the_ledger_agrees_with_fractions(database, examples, tmp_path, request):
    """TRUST 21: stateful, both databases, to the last unit and one beyond, over restarts."""
    folders = itertools.count()

    def machine():
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        if database == "sqlite":
            return AgainstFractions(sqlite_place(folder))
        return AgainstFractions(postgresql_place(request.getfixturevalue("postgres"), folder))

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
