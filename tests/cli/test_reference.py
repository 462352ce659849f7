"""docs/cli.md and help.txt are what the commands say of themselves."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from typer.main import get_command

ROOT = Path(__file__).resolve().parents[2]


def page():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "cli_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_up_to_date():
    """If it is not: python tools/cli_reference.py."""
    made = page()
    assert (ROOT / "docs" / "cli.md").read_text("utf-8") == made.reference()
    assert (ROOT / "src" / "discreet" / "help.txt").read_text("utf-8") == made.help_texts()


def test_help_is_given_without_loading_the_commands():
    code = "import sys; sys.argv[1:] = {}; from discreet.__main__ import main; main()"
    for words in ([], ["--help"], ["ledger", "show", "--help"]):
        loaded = (
            "import atexit, sys; atexit.register(lambda: print('typer' in sys.modules));"
            f" {code.format(words)}"
        )
        ended = subprocess.run(
            [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
        )
        assert ended.stdout.startswith("Usage: discreet")
        assert ended.stdout.endswith("False\n")
    ended = subprocess.run(
        [sys.executable, "-c", code.format(["nothing", "--help"])], capture_output=True, check=False
    )
    assert ended.returncode == 2


def test_every_command_and_every_option_is_in_it_with_a_sentence():
    made, text = page(), (ROOT / "docs" / "cli.md").read_text("utf-8")
    found = dict(made.commands(get_command(made.app), "discreet"))
    assert {
        "discreet init",
        "discreet plan",
        "discreet release",
        "discreet noise",
        "discreet ledger show",
    } <= set(found)
    for name, command in found.items():
        assert f"\n## {name}\n" in text
        assert command.help
        for part in command.params:
            assert part.help or "--help" in part.opts, (name, part.name)


def test_a_command_that_is_missing_is_noticed():
    made = page()
    made.app.command("unheard")(lambda: None)
    try:
        assert (ROOT / "docs" / "cli.md").read_text("utf-8") != made.reference()
    finally:
        made.app.registered_commands.pop()
