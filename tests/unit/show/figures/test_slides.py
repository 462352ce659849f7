"""The figures of a lecture: each light and dark, as SVG, PNG and PDF, in one style."""

import re

import pytest

from discreet import InvalidParameter
from discreet.show.figures import slides, theme


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(slides, "LECTURE", {"slide-discrete": slides.LECTURE["slide-discrete"]})


def colours(svg):
    return set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', svg))


@pytest.mark.usefixtures("few")
def test_every_figure_is_light_and_dark_as_svg_png_and_pdf(tmp_path):
    saved = slides.save_all(tmp_path / "slides", width=400)
    names = [
        f"slide-discrete-{card}.{kind}"
        for card in ("light", "dark")
        for kind in ("svg", "png", "pdf")
    ]
    assert [file.name for file in saved] == names
    light, dark = ((tmp_path / "slides" / name).read_text("utf-8") for name in names[::3])
    lights, darks = ({pair[card] for pair in theme.PAIRS} for card in (0, 1))
    assert theme.CARD[0] in colours(light) <= lights
    assert theme.CARD[1] in colours(dark) <= darks
    assert "prefers-color-scheme" not in light + dark
    assert all(
        (tmp_path / "slides" / name).read_bytes().startswith(b"\x89PNG") for name in names[1::3]
    )
    assert all(
        (tmp_path / "slides" / name).read_bytes().startswith(b"%PDF-") for name in names[2::3]
    )
    with pytest.raises(InvalidParameter, match=r"slide-discrete-light\.svg does"):
        slides.save_all(tmp_path / "slides")
    assert slides.save_all(tmp_path / "slides", width=400, force=True) == saved


@pytest.mark.usefixtures("few")
def test_a_file_is_no_folder_and_nothing_is_written(tmp_path):
    (tmp_path / "slides").write_text("mine")
    with pytest.raises(
        InvalidParameter, match="-o must be a folder with --all, got the file 'slides'"
    ):
        slides.save_all(tmp_path / "slides", force=True)
    assert (tmp_path / "slides").read_text() == "mine"
