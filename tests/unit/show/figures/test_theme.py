"""One theme, on two cards: what it promises about contrast holds for every pair of colours."""

import sys

import pytest

from discreet import InvalidParameter
from discreet.show.figures import theme


def luminance(color: str) -> float:
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
def test_text_and_series_are_seen_on_their_card(side):
    card = theme.CARD[side]
    for text in (theme.TEXT, theme.QUIET):
        assert contrast(text[side], card) >= 4.5
    for series in (*theme.SERIES, theme.LINE):
        assert contrast(series[side], card) >= 3


def test_no_two_colors_of_the_light_card_are_one_so_that_each_has_its_own_on_the_dark_one():
    lights, darks = zip(*theme.PAIRS, strict=True)
    assert len(set(lights)) == len(lights)
    assert len(set(darks)) == len(darks)
    for light, dark in theme.PAIRS:
        assert f'[fill="{light}"]{{fill:{dark}}}' in theme.repaint()
        assert f'[stroke="{light}"]{{stroke:{dark}}}' in theme.repaint()


@pytest.mark.parametrize(
    ("missing", "load"), [("altair", theme.altair), ("vl_convert", theme.converter)]
)
def test_without_the_extra_a_sentence_says_how_to_get_it(monkeypatch, missing, load):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(
        InvalidParameter, match=r"figures need more packages; run: pip install 'discreet\[plot\]'"
    ):
        load()
