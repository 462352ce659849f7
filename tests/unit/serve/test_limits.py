import pytest

from discreet.errors import InvalidParameter
from discreet.serve.limits import Limits, Rate
from serving import clock_of


def test_a_bucket_fills_at_its_rate():
    with clock_of("limits") as clock:
        rate = Rate(100, 2)
        assert [rate.take("ann") for _ in range(3)] == [True, True, False]
        assert rate.take("bob")
        clock.move(0.009)
        assert not rate.take("ann")
        clock.move(0.002)
        assert rate.take("ann")


@pytest.mark.parametrize(
    "wrong", [{"quantum": -1}, {"quantum": 61}, {"rate": 0}, {"burst": 0}, {"threads": 0}]
)
def test_limits_make_sense(wrong):
    with pytest.raises(InvalidParameter):
        Limits(**wrong)
