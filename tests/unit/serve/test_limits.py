import time

import pytest

from discreet.errors import InvalidParameter
from discreet.serve.limits import Limits, Rate


def test_a_bucket_fills_at_its_rate():
    rate = Rate(100, 2)
    assert [rate.take("ann") for _ in range(3)] == [True, True, False]
    assert rate.take("bob")
    time.sleep(0.03)
    assert rate.take("ann")


@pytest.mark.parametrize("wrong", [{"quantum": -1}, {"quantum": 61}, {"rate": 0}, {"burst": 0}, {"threads": 0}])
def test_limits_make_sense(wrong):
    with pytest.raises(InvalidParameter):
        Limits(**wrong)
