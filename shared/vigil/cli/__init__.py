"""The command line: `vigil`.

Data goes to stdout, messages to stderr; `--json` makes the data JSON. Heavy libraries are
imported inside the commands that need them, so that `vigil --help` answers at once.
"""

from __future__ import annotations

import functools
import gc
import sys
from typing import TYPE_CHECKING, Final

from ..imports import garbage, lean

if TYPE_CHECKING:
    from .registry import CommandLine

__all__ = ["INTERRUPTED", "lean", "main"]
INTERRUPTED: Final = 130
"""The exit code after a Ctrl-C, as in `exits`: here it's needed before that is imported."""


def main() -> None:
    """Run the command that is named. Of `up` none of the others is imported: what it starts is
    forked from it, and goes on with all that it has.

    Nothing that is imported is garbage: to look for it took an eighth of what a command takes.
    """
    gc.disable()
    try:
        if sys.argv[1:2] == ["up"]:
            from .frame import run

            run(_up())
        else:
            from . import app

            garbage.keep()
            app.main()
    except KeyboardInterrupt:  # while it's imported
        sys.exit(INTERRUPTED)


@functools.cache
def _up() -> CommandLine:
    from .frame import START, command_line
    from .setup.up import up

    app = command_line()
    app.command(rich_help_panel=START)(up)
    return app
