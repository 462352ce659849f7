"""`discreet figure`: a picture by its name, with the options that it takes."""

import pytest

from discreet.show.figures import slides
from shell import QUESTION, discreet, one_after_another, study_in

pytest.importorskip("altair", reason="figures need the extra plot")
pytest.importorskip("vl_convert", reason="figures need the extra plot")


def test_a_figure_is_drawn_into_a_file_and_its_place_is_told(tmp_path):
    assert discreet("figure", "slide", "--epsilon", "0.5", cwd=tmp_path).out == "slide.svg\n"
    assert (tmp_path / "slide.svg").read_text("utf-8").startswith("<svg")
    told = discreet(
        "figure", "densities", "--scale", "1", "--scale", "4", "-o", "two.png", cwd=tmp_path
    )
    assert told.code == 0, told.err
    assert (tmp_path / "two.png").read_bytes().startswith(b"\x89PNG")
    assert "slide" in discreet("figure", cwd=tmp_path).out
    flags = ["--law", "discrete", "--sensitivity", "2", "--scale", "1/2", "-o", "loss.pdf"]
    assert discreet("figure", "loss", *flags, cwd=tmp_path).out == "loss.pdf\n"
    assert (tmp_path / "loss.pdf").read_bytes().startswith(b"%PDF-")
    discreet("figure", "loss", *flags, cwd=tmp_path).refused(2, "loss.pdf does")


def test_the_figures_of_a_lecture_are_drawn_into_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(slides, "LECTURE", {"attacker": slides.LECTURE["attacker"]})
    told = discreet("figure", "--all", "--width", "300", "-o", "talk", cwd=tmp_path)
    names = [
        f"talk/attacker-{card}.{kind}"
        for card in ("light", "dark")
        for kind in ("svg", "png", "pdf")
    ]
    assert told.out.splitlines() == names
    assert all((tmp_path / name).stat().st_size > 1_000 for name in names)


WRONG = [
    (["sunset"], ["sunset", "slide"]),
    (["slide", "--n", "4"], ["slide takes", "'n'"]),
    (["slide", "--epsilon", "-1"], ["epsilon must be positive"]),
    (["slide", "-o", "slide.doc"], [".svg"]),
    (["release"], ["discreet release"]),
    (
        ["sunset"],
        [
            "densities, slide, loss, error, largest, sensitivity, budget, response, attacker,"
            " together, got"
        ],
    ),
    (["budget"], ["--ledger", "study.toml"]),
    (["loss", "--scale", "1", "--scale", "2"], ["loss takes one --scale"]),
    (["loss", "--n", "4"], ["loss takes only", "'n'"]),
    (["slide", "--all"], ["a name or --all"]),
    (["slide", "--width", "3"], ["width must be a whole number from 200 to 5,000, got 3"]),
    (["slide", "--width", "100000"], ["from 200 to 5,000"]),
    (["--all", "-o", "slides.pdf"], ["-o must be a folder with --all", "'slides.pdf'"]),
    (["--all", "--ledger", "study.toml"], ["--all", "-o, --width and --force"]),
    (["--law", "discrete"], ["figure needs a name before its options"]),
    (["-o", "slide.svg"], ["figure needs a name before its options"]),
    (["error", "--bounds", "5"], ["--bounds must be LOWER:UPPER, such as 0:120, got '5'"]),
    (["error", "--bounds", ""], ["--bounds must be LOWER:UPPER, such as 0:120, got ''"]),
    (["--all", "--epsilon", "1"], ["--all", "-o, --width and --force"]),
]


def test_what_a_figure_does_not_take_is_refused(tmp_path):
    told = one_after_another([["figure", *arguments] for arguments, _ in WRONG], tmp_path)
    for ended, (_, words) in zip(told, WRONG, strict=True):
        ended.refused(2, *words)
    assert list(tmp_path.iterdir()) == []


def test_the_figure_of_a_release_and_of_a_budget(tmp_path):
    folder = study_in(tmp_path)
    flags = ["-o", "visits.svg", "-o", "visits.html", "-o", "counties.pdf"]
    told = discreet("release", "study.toml", QUESTION, "--epsilon", "0.2", *flags, cwd=folder)
    assert told.code == 0, told.err
    assert told.out.splitlines()[-1].endswith(
        "Saved visits.svg, visits.release.json, visits.html, counties.pdf, counties.release.json"
    )
    assert "<svg" in (folder / "visits.svg").read_text("utf-8")
    report = (folder / "visits.html").read_text("utf-8")
    assert "The record in the ledger" in report
    assert len(report) < 100_000
    told = discreet("figure", "budget", "--ledger", "study.toml", cwd=folder)
    assert (told.out, told.err) == ("budget.svg\n", "")
