"""Who draws on a terminal, and where the line stands that is typed there."""

from __future__ import annotations

import ctypes
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from fcntl import ioctl
from importlib.abc import MetaPathFinder

import pytest

import vigil.cli
from vigil.cli.chat.screen import PROMPT, TerminalScreen
from vigil.cli.chat.terminal.line import placed
from vigil.cli.chat.terminal.turns import HOOK, ScreenTurns


@pytest.fixture
def hook() -> Iterator[ctypes.c_void_p]:
    """Where Python finds what it calls while readline waits for a key."""
    found = ctypes.c_void_p.in_dll(ctypes.pythonapi, HOOK)
    before = found.value
    yield found
    found.value = before


def rest(hook: ctypes.c_void_p) -> None:
    """What readline does while no key is pressed."""
    assert hook.value is not None
    ctypes.PYFUNCTYPE(ctypes.c_int)(hook.value)()


def test_while_a_line_is_typed_it_is_drawn_where_that_rests(hook: ctypes.c_void_p) -> None:
    """And what was entered is moved before anything else is drawn."""
    turns = ScreenTurns()
    turns.offer_hook()
    drawn: list[str] = []
    turns.draw(lambda: drawn.append("before"))
    turns.begin_line()
    turns.draw(lambda: drawn.append("one"))
    assert drawn == ["before"]
    rest(hook)
    assert drawn == ["before", "one"]
    turns.draw(lambda: drawn.append("two"))
    turns.end_line(lambda: drawn.append("entered"))
    assert drawn == ["before", "one", "entered", "two"]
    turns.draw(lambda: drawn.append("at once"))
    turns.begin_line()
    turns.draw(lambda: drawn.append("the last"))
    turns.end()
    assert drawn[-2:] == ["at once", "the last"]
    assert hook.value is None


def test_nothing_is_drawn_above_a_line_that_is_out_of_reach(hook: ctypes.c_void_p) -> None:
    """One that is taller than the window waits, and is shown once it was entered."""
    turns = ScreenTurns()
    turns.offer_hook()
    turns.may_draw = lambda: False
    drawn: list[str] = []
    turns.begin_line()
    turns.draw(lambda: drawn.append("one"))
    rest(hook)
    assert drawn == []
    turns.end_line(lambda: None)
    assert drawn == ["one"]
    turns.end()


@pytest.mark.parametrize(
    ("line", "point", "rows", "row", "column"),
    [
        ("", 0, 1, 0, 5),
        ("abcde", 5, 2, 1, 0),
        ("abcde", 0, 2, 0, 5),
        ("abcdef\nx", 8, 3, 2, 1),
        ("abcde\nx", 7, 3, 2, 1),
        ("a\tb", 3, 1, 0, 9),
        ("日本語", 2, 2, 1, 0),
        ("日本語", 3, 2, 1, 2),
        ("e\u0301x", 3, 1, 0, 7),
    ],
)
def test_where_the_cursor_is_in_a_line(
    line: str, point: int, rows: int, row: int, column: int
) -> None:
    """In ten columns, five of them the prompt."""
    found = placed(PROMPT + line, len(PROMPT) + point, 10)
    assert (found.rows, found.row, found.column) == (rows, row, column)


def test_the_size_is_the_windows_whatever_a_shell_exported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 20, 0, 0))
    with os.fdopen(slave, "w") as terminal, os.fdopen(master, "rb", buffering=0) as seen:
        screen = TerminalScreen("vigil", lambda: None, stream=terminal)
        screen.notice("a notice that is longer than the window is wide")
        assert b"a notice that is lo\r\n" in seen.read(100)


def test_an_interrupted_start_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """P-2: exit code 130 also while the commands are imported."""

    class Interrupting(MetaPathFinder):
        def find_spec(self, fullname: str, *_: object) -> None:
            if fullname == "vigil.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "vigil.cli.app", raising=False)
    monkeypatch.delattr(vigil.cli, "app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        vigil.cli.main()
    assert ended.value.code == 130
    assert capfd.readouterr() == ("", "")
