"""`discreet explore` writes one page, and nothing over a file."""

from shell import discreet


def test_the_page_is_written_once(tmp_path):
    assert discreet("explore", cwd=tmp_path).out == "explore.html\n"
    assert "</html>" in (tmp_path / "explore.html").read_text("utf-8")
    discreet("explore", cwd=tmp_path).refused(2, "explore.html")
    assert discreet("explore", "-o", "explore.html", "--force", cwd=tmp_path).code == 0
    discreet("explore", "-o", "page.pdf", cwd=tmp_path).refused(2, "-o must end in .html")
