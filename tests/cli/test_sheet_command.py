"""`discreet sheet` writes a sheet and its key, and nothing over a file."""

from discreet.course.sheet import key, sheet
from shell import discreet


def test_a_sheet_and_its_key_are_written_once(tmp_path):
    assert discreet("sheet", "7", cwd=tmp_path).out == "sheet-7.md\nsheet-7-key.md\n"
    assert (tmp_path / "sheet-7.md").read_text("utf-8") == sheet(7)
    assert (tmp_path / "sheet-7-key.md").read_text("utf-8") == key(7)
    discreet("sheet", "7", cwd=tmp_path).refused(2, "sheet-7.md does", "force")
    told = discreet("sheet", "7", "--exercise", "h", "--exercise", "1.5", "--force", cwd=tmp_path)
    assert told.code == 0
    assert (tmp_path / "sheet-7.md").read_text("utf-8") == sheet(7, ["1.5", "H"])
    assert (
        discreet("sheet", "8", "-o", "week3", cwd=tmp_path).out
        == "week3/sheet-8.md\nweek3/sheet-8-key.md\n"
    )


def test_what_is_no_sheet_is_refused(tmp_path):
    discreet("sheet", "0", cwd=tmp_path).refused(2, "number must be a whole number")
    discreet("sheet", "seven", cwd=tmp_path).refused(2, "NUMBER", "integer")
    discreet("sheet", "1", "--exercise", "Z", cwd=tmp_path).refused(
        2, "exercise must be one of 1.2", "'Z'"
    )
    assert list(tmp_path.iterdir()) == []
