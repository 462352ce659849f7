"""Figures by name: each makes a picture, and only the formats that are promised."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import InvalidParameter, Ledger
from discreet.show import figures
from discreet.show.figures import theme
from released import answer_of, group, numbers

ROOT = Path(__file__).parents[3]
PICTURES = runpy.run_path(str(ROOT / "tools" / "pictures.py"))["PICTURES"]


def options_of(name: str, folder: Path) -> dict:
    if name == "release":
        return {
            "answer": answer_of(
                [group(1, "county", ["a", "b"])], {"people": ("count(*)", numbers([5, 9], 2))}
            )
        }
    if name == "budget":
        ledger = Ledger.open(folder / "study.ledger", new=True)
        ledger.create("people", 1)
        ledger.spend("r1", "q", "0.25", study="people")
        return {"ledger": ledger}
    return {}


def one_page(pdf: bytes) -> bool:
    """Whether this is a PDF with one page and with letters as letters, not as a picture."""
    return (
        pdf.startswith(b"%PDF-")
        and len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
        and b"/Font" in pdf
        and b"/Subtype/Image" not in pdf.replace(b" ", b"")
    )


@pytest.mark.parametrize("name", figures.NAMES)
def test_every_figure_makes_a_picture(name, tmp_path):
    chart = figures.make(name, **options_of(name, tmp_path))
    png = figures.save(chart, tmp_path / "it.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5_000
    svg = figures.save(chart, tmp_path / "it.SVG").read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert svg.count("<text") > 5
    assert theme.TEXT[0] in svg
    assert theme.repaint() in svg
    assert one_page(figures.save(chart, tmp_path / "it.pdf").read_bytes())


@pytest.mark.parametrize("name", figures.NAMES)
def test_a_spec_has_all_that_it_needs(name, tmp_path):
    """No address but the schema's, a card, and JSON without NaN."""
    spec = figures.make(name, **options_of(name, tmp_path)).to_dict()
    text = json.dumps(spec, allow_nan=False)
    assert re.findall(r"https?://[^\"]*", text) == [spec["$schema"]]
    assert '"url"' not in text
    assert spec["background"] == theme.CARD[0]
    assert spec["config"]["font"] == theme.FONT


def test_a_chart_of_a_notebook_saves_itself_as_a_pdf(tmp_path):
    """As `answer.figure().save("it.pdf")`: altair writes it by the converter of the extra."""
    chart = figures.make("release", **options_of("release", tmp_path))
    chart.save(str(tmp_path / "it.pdf"))
    assert one_page((tmp_path / "it.pdf").read_bytes())
    assert not one_page(figures.save(chart, tmp_path / "it.png").read_bytes())


def test_a_spec_in_a_file_is_the_chart(tmp_path):
    chart = figures.make("attacker")
    assert (
        json.loads(figures.save(chart, tmp_path / "it.json").read_text(encoding="utf-8"))
        == chart.to_dict()
    )


def test_a_page_needs_no_network_and_a_key_stays_data(tmp_path):
    odd = "</script><script>alert(1)</script>"
    chart = figures.make(
        "release",
        answer=answer_of([group(1, odd, [odd])], {odd + "n": ("count(*)", numbers([1], 1))}),
    )
    text = figures.save(chart, tmp_path / "it.html").read_text(encoding="utf-8")
    assert odd not in text
    assert "\\u003c/script>\\u003cscript>alert(1)" in text
    assert text.count("<script>") == 2  # the program and the figure
    assert not re.search(r"<(script|link)[^>]+(src|href)=", text)


def test_what_cannot_be_made_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(
        InvalidParameter, match=r"figure must be one of densities, slide, .*, got 'pie'"
    ):
        figures.make("pie")
    with pytest.raises(
        InvalidParameter,
        match="figure slide takes only epsilon, sensitivity, law, width, got 'eps'",
    ):
        figures.make("slide", eps=1)
    with pytest.raises(InvalidParameter, match="figure release needs answer"):
        figures.make("release")
    for name in ("it.doc", "it", "it.jpeg"):
        with pytest.raises(
            InvalidParameter, match=r"must end in \.png, \.svg, \.pdf, \.html or \.json, got"
        ):
            figures.save(figures.make("attacker"), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_altair_is_not_loaded_before_a_figure_is_made():
    code = (
        "import sys, discreet.show.figures; print([m for m in ('altair', 'vl_convert') if m in"
        " sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_documentation_are_what_the_figures_draw(name):
    """Their words are compared: places of letters may differ between versions of the converter."""
    figure, options = PICTURES[name]
    words = re.findall(r"<text[^>]*>([^<]*)", figures.svg(figures.make(figure, **options)))
    drawn = (ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
    assert re.findall(r"<text[^>]*>([^<]*)", drawn) == words, (
        "make them again: python tools/pictures.py"
    )
