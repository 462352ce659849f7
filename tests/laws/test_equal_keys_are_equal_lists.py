"""Two columns of keys are equal, have one digest and one text, if and only if their lists are
equal.
"""

from datetime import datetime
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from discreet.ask.keys.column import Keys

texts = st.lists(st.text(st.sampled_from("ab/1é\u0301 \0"), max_size=3), max_size=25)
whole = st.lists(
    st.integers(-3, 3) | st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, 2**63]),
    min_size=1,
    max_size=25,
)
fractions = st.lists(st.fractions(-2, 2, max_denominator=3), min_size=1, max_size=25)
dates = st.lists(st.datetimes(datetime(2020, 1, 1), datetime(2020, 1, 2)), min_size=1, max_size=3)  # noqa: DTZ001
truths = st.lists(st.booleans(), min_size=1, max_size=3)
lists = texts | whole.map(lambda keys: list(map(Fraction, keys))) | fractions | dates | truths


@given(lists, lists)
def test_equal_keys_are_equal_lists(left: list[object], right: list[object]) -> None:
    here, there = Keys.of(left), Keys.of(right)
    assert list(here) == left
    same = left == right and list(map(type, left)) == list(map(type, right))
    assert (here == there) is (here.digest == there.digest) is (here.text == there.text) is same


@given(lists)
def test_a_list_has_one_column(values: list[object]) -> None:
    assert Keys.of(values) == Keys.of(list(Keys.of(values)))
    assert hash(Keys.of(values)) == hash(Keys.of(values))
    assert (Keys.of(values).repeated is None) is (len(set(values)) == len(values))
