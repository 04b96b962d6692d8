"""The command line: `vigil`.

Data goes to stdout, messages to stderr; `--json` makes the data JSON. Heavy libraries are
imported inside the commands that need them, so that `vigil --help` answers at once.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from ..imports import lean

if TYPE_CHECKING:
    from .registry import CommandLine

__all__ = ["lean", "main"]


def main() -> None:
    """Run the command that is named. Of `up` none of the others is imported: what it starts is
    forked from it, and goes on with all that it has."""
    if sys.argv[1:2] == ["up"]:
        from .frame import run

        run(_up())
    else:
        from . import app

        app.main()


@functools.cache
def _up() -> CommandLine:
    from .frame import START, command_line
    from .setup.up import up

    app = command_line()
    app.command(rich_help_panel=START)(up)
    return app
