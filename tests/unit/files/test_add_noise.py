"""Noise on numbers in texts: what they are taken for is the caller's word, never a value's."""

import pytest

from discreet import InvalidParameter
from discreet.files.add_noise import add_noise


def test_a_text_is_of_integers_unless_the_caller_says_floats(tmp_path):
    source = tmp_path / "numbers.txt"
    source.write_text("1\n2\n3\n")
    add_noise(str(source), str(tmp_path / "whole.txt"), sensitivity=1, epsilon=1)
    assert all("." not in line for line in (tmp_path / "whole.txt").read_text().split())
    add_noise(str(source), str(tmp_path / "floats.txt"), sensitivity=1, epsilon=1, changes=1)
    assert any("." in line for line in (tmp_path / "floats.txt").read_text().split())


def test_one_float_does_not_turn_the_others_into_floats(tmp_path):
    for name, text in (("numbers.txt", "1\n2\n2.5\n"), ("numbers.csv", "x\n1\n2\n2.5\n")):
        source = tmp_path / name
        source.write_text(text)
        with pytest.raises(InvalidParameter, match="integer"):
            add_noise(str(source), str(tmp_path / f"out-{name}"), sensitivity=1, epsilon=1)
        assert not (tmp_path / f"out-{name}").exists()
