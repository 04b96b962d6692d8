"""A real terminal of a size that a test chooses: tmux, with a shell in it that knows `vigil`."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support import warm
from tests.support.cli import Cli
from tests.support.pauses import pauses

WAIT_S: Final = 30.0
PROMPT: Final = "ready>"
SCREENS: Final = Path(__file__).parents[1] / "cli" / "screens"
"""Recorded screens; with VIGIL_RECORD set they are written anew."""
_CHANGING: Final = (
    (re.compile(r"\b[0-9a-f]{8,32}\b"), lambda found: "f" * len(found[0])),
    (re.compile(r"(?<=f  )g[0-9a-z]{3}\b"), lambda _: "gxxx"),  # behind an id
    (re.compile(r"chat-\S+"), lambda found: "chat-" + "x" * (len(found[0]) - 5)),
    (re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b"), lambda _: "Day"),
    (re.compile(r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b"), lambda _: "Mon"),
    (re.compile(r"\d"), lambda _: "0"),
)


def is_there() -> bool:
    return shutil.which("tmux") is not None


class Pane:
    """A window of tmux: what is typed into it, and what a person sees there."""

    def __init__(self, socket: Path, columns: int) -> None:
        self._socket = socket
        self.columns = columns
        self._count = 0

    def _tmux(self, *args: str) -> str:
        command = ["tmux", "-S", str(self._socket), *args]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def types(self, text: str) -> None:
        self._tmux("send-keys", "-t", "0", "-l", "--", text)

    def presses(self, *keys: str) -> None:
        """Press keys by tmux's names, such as `Enter` and `C-c`."""
        self._tmux("send-keys", "-t", "0", *keys)

    def pastes(self, text: str) -> None:
        """Paste as a terminal does, between marks if the program asked for that."""
        self._tmux("set-buffer", "--", text)
        self._tmux("paste-buffer", "-p", "-t", "0")

    def resizes(self, columns: int) -> None:
        """Make the window wider or narrower."""
        self._tmux("resize-window", "-t", "0", "-x", str(columns))

    def screen(self, *, has_colours: bool = False) -> str:
        """Return what is to be seen, without blank lines at the end."""
        colours = ("-e",) if has_colours else ()
        return self._tmux("capture-pane", "-p", "-t", "0", *colours).rstrip("\n")

    def sees(self, *wanted: str, but_not: str = "") -> str:
        """Wait until the screen shows all of it, and not the other; return the screen."""
        deadline, pause_s = time.monotonic() + WAIT_S, pauses()
        while True:
            shown = self.screen()
            if all(one in shown for one in wanted) and not (but_not and but_not in shown):
                return shown
            assert time.monotonic() < deadline, f"{wanted} not in\n{shown}"
            time.sleep(next(pause_s))

    def does(self, line: str) -> str:
        """Have the shell run a line on an empty screen; return what it shows at its end."""
        self._count += 1
        self.types(f"clear; {line}; echo en''ded {self._count}")
        self.presses("Enter")
        end = f"\nended {self._count}"
        return self.sees(end).rpartition(end)[0]


@contextlib.contextmanager
def pane(cli: Cli, folder: Path, columns: int, rows: int = 50) -> Iterator[Pane]:
    """A terminal in which `vigil` is of the home of `cli`, with colours.

    It's forked (:mod:`tests.support.warm`), and so not of the shell's group: `cold-vigil` is, and
    has an interpreter of its own.
    """
    told = ("NO_COLOR", "COLUMNS", "LINES", "TMUX", "ENV")
    env = {name: value for name, value in cli.environ.items() if name not in told}
    programs = folder / f"programs-{columns}"
    programs.mkdir()
    cold = [str(Path(sys.executable).with_name("vigil"))]
    for name, command in (("vigil", warm.relayed("vigil.cli")), ("cold-vigil", cold)):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (programs / name).chmod(0o700)
    env["PATH"] = f"{programs}:{env.get('PATH', os.defpath)}"
    env["LC_ALL"] = "C.UTF-8"
    socket = folder / f"tmux-{columns}"
    size = ("-x", str(columns), "-y", str(rows))
    start = ["tmux", "-S", str(socket), "-f", os.devnull, "new-session", "-d", *size, "exec sh"]
    subprocess.run(start, env=env, check=True)
    found = Pane(socket, columns)
    try:
        found.types(f"PS1='{PROMPT[:-1]}''{PROMPT[-1]} '")
        found.presses("Enter")
        found.sees(PROMPT)
        yield found
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False)


def compare(name: str, columns: int, shown: str) -> None:
    """Compare a screen with the one that was recorded; what changes in each run counts as digits.

    Raises:
        AssertionError: they differ.
    """
    for pattern, same in _CHANGING:
        shown = pattern.sub(same, shown)
    shown = "\n".join(line.rstrip() for line in shown.split("\n")) + "\n"
    file = SCREENS / f"{name}-{columns}.txt"
    if os.environ.get("VIGIL_RECORD"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown)
    assert shown == file.read_text(), f"{file.name}: VIGIL_RECORD=1 records it anew"
    assert max(map(len, shown.split("\n"))) <= columns
