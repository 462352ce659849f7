"""A release that is a file: what goes wrong while it is written."""

import pytest

from discreet import EngineFailed
from discreet.release.once import released


def test_an_error_that_quotes_a_row_is_kept_nowhere(tmp_path):
    def write(_draft):
        raise ValueError("canary")

    with pytest.raises(EngineFailed, match=r"^cells\.parquet could not be made \(ValueError\)$") as caught:
        released(tmp_path / "cells.parquet", write, None)
    assert caught.value.__context__ is None
    assert list(tmp_path.iterdir()) == []
