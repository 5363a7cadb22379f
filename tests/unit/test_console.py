from __future__ import annotations

import doctest
import io
import logging
import sys

import pytest
from rich.table import Table

from spanshot.cli import console as module
from spanshot.cli.console import SafeConsole, note, progress_bars, visible
from spanshot.cli.highlights import Tagged, colours, inline_markup, show_highlights
from spanshot.cli.main import main, run
from spanshot.cli.output import Printed
from spanshot.types import Entity

ATTACKS = {
    "clipboard (OSC 52)": "\x1b]52;c;aGVsbG8=\x07",
    "link (OSC 8)": "\x1b]8;;http://example.org\x1b\\click\x1b]8;;\x1b\\",
    "clear (CSI 2J)": "\x1b[2J",
    "C1 clear": "\x9b2J",
    "C1 clipboard": "\x9d52;c;aGk=\x9c",
    "title": "\x1b]0;title\x07",
    "back": "safe\x08\x08\x08\x08evil",
    "carriage return": "safe\revil",
    "reversed text": "\u202etxt.exe",
}
CONTROLS = {*map(chr, range(32)), *map(chr, range(127, 160)), "\u202e"} - {"\n", "\t"}


class Terminal(io.StringIO):
    """A terminal without colours, so that every escape sequence comes from the content."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def terminals(monkeypatch) -> tuple[Terminal, Terminal]:
    """Put terminals in the place of standard output and error. To be called within a test, after pytest's capture."""
    monkeypatch.setenv("TERM", "dumb")
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    return out, err


def test_the_examples_in_the_docstrings_hold():
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_control_characters_become_visible_and_other_text_stays(attack):
    shown = visible(f"Zürich 東京 🎉\n\t{attack}")
    assert shown.startswith("Zürich 東京 🎉\n\t")
    assert not set(shown) & CONTROLS


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_no_control_character_of_the_content_reaches_a_terminal(attack, monkeypatch):
    out, err = terminals(monkeypatch)
    printer = SafeConsole(highlight=False, markup=False, color_system=None)
    table = Table(attack, title=attack)
    table.add_row(attack)
    printer.print(attack, table)
    text, label = f"to {attack} Oslo", f"city{attack}"
    show_highlights(printer, [Tagged(text, [Entity(text, label, 0, len(text))])], [label])
    Printed().write(inline_markup(Tagged(text, [Entity(text, label, 0, len(text))])))
    note(attack)
    with progress_bars() as count:
        count(attack, 1, 2)
    assert out.getvalue()
    assert err.getvalue()
    for stream in (out, err):
        content = stream.getvalue().replace("\r", "")
        assert not set(content) & CONTROLS, content


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_no_control_character_of_the_arguments_reaches_a_terminal(attack, monkeypatch):
    out, err = terminals(monkeypatch)
    for arguments in ([attack], ["tag", f"--{attack}"], ["check", attack], ["tag", "-e", attack, "-t", attack, attack]):
        assert run(arguments) == 2
    assert run(["-v", "check", attack]) == 2
    logging.getLogger("spanshot").warning(attack)
    assert out.getvalue() == ""
    assert err.getvalue().count("\n") >= 4
    assert not set(err.getvalue()) & CONTROLS


def test_highlighted_text_holds_no_control_character_but_those_of_colours(monkeypatch):
    out, _ = terminals(monkeypatch)
    printer = SafeConsole(file=out, highlight=False, markup=False, color_system="truecolor", force_terminal=True)
    text = "to \x1b]52;c;aGk=\x07 Oslo"
    show_highlights(printer, [Tagged(text, [Entity(text[3:], "city", 3, len(text))])], ["city"])
    assert "\x1b]" not in out.getvalue()
    assert "\\x1b]52" in out.getvalue()
    assert colours(["city"])["city"].startswith("#")


def test_files_and_pipes_get_utf_8_whatever_the_locale(tmp_path, monkeypatch):
    path = tmp_path / "examples.txt"
    path.write_text("[東京](都市) is large\n", encoding="utf-8")
    out = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")  # as on Windows
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit) as ended:
        main(["check", str(path), "--no-model"])
    assert ended.value.code == 0
    assert "都市" in out.buffer.getvalue().decode("utf-8")


def test_characters_that_a_terminal_cannot_show_are_escaped(tmp_path, monkeypatch):
    class OldTerminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    path = tmp_path / "examples.txt"
    path.write_text("[東京](都市) is large\n", encoding="utf-8")
    out = OldTerminal(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit) as ended:
        main(["check", str(path), "--no-model"])
    assert ended.value.code == 0
    assert b"\\u90fd\\u5e02" in out.buffer.getvalue()


def test_markup_in_content_is_text():
    out = io.StringIO()
    printer = SafeConsole(file=out, highlight=False, markup=False, emoji=False)
    printer.print("[bold]not bold[/bold] :smile: [link=http://example.org]x[/link]")
    assert out.getvalue() == "[bold]not bold[/bold] :smile: [link=http://example.org]x[/link]\n"
