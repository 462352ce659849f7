"""Which cells of a group column a condition admits."""

from fractions import Fraction

from discreet.ask.expression import Column, Comparison, Constant, Missing
from discreet.ask.query import Group
from discreet.release.reports.conditions import admitted


def test_the_last_cell_of_the_numbers_0_and_1_has_other_numbers_too() -> None:
    number, truth = Column("n", "number"), Column("n", "truth")
    numbers, truths = Group("n", number, (0, 1), "other"), Group("n", truth, (False, True), "other")
    more = Comparison(">", number, Constant(Fraction(5), "number"))
    assert admitted(more, number, numbers) is None
    assert admitted(Missing(number), number, numbers) is None
    cells = admitted(Missing(truth), truth, truths)
    assert cells is not None
    assert cells.tolist() == [0, 0, 1]
    one = admitted(Comparison("=", number, Constant(Fraction(1), "number")), number, numbers)
    assert one is not None
    assert one.tolist() == [0, 1, 0]
