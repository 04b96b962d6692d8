"""What every command line of `vigil` has, and where its errors become exit codes."""

from __future__ import annotations

import functools
import sys
from typing import Annotated

import typer
from typer.main import get_command

from vigil import __version__
from vigil.errors import VigilError

from . import exits, output
from .registry import CommandLine

START = "Start and stop"
"""Of the help: what `up` is among."""


def command_line() -> CommandLine:
    """Return one without commands."""
    app = CommandLine(
        name="vigil",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=exits.HELP,
    )
    app.callback()(_root)
    return app


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        output.data(f"vigil {__version__}")
        raise typer.Exit


def _root(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and end."
        ),
    ] = False,
) -> None:
    """Agents that act on their own and can be trusted to.

    State lives in $VIGIL_HOME. VIGIL_URL and VIGIL_TOKEN lead to a Vigil elsewhere.
    """


commands = functools.cache(get_command)
"""The commands with their options, read from the functions' signatures once: it takes 60 ms."""


def run(app: CommandLine) -> None:
    """Run a command line; errors that Vigil raises on purpose become one message and a code."""
    try:
        commands(app)(prog_name="vigil")
    except VigilError as error:
        output.message(f"vigil: {output.printable(error)}")
        sys.exit(exits.code_of(error))
    except OSError as error:
        if error.errno not in exits.OF_DISK or error.filename is None:
            raise
        reason = f"{error.filename} can't be used: {error.strerror}"
        output.message(f"vigil: {output.printable(reason)}")
        sys.exit(exits.FAILURE)
    except SystemExit as ended:
        # A question that is broken off by Ctrl-C ends as one by Ctrl-D does, as a failure.
        if ended.code == exits.FAILURE and _is_by_interrupt(ended):
            sys.exit(exits.INTERRUPTED)
        raise


def _is_by_interrupt(error: BaseException | None) -> bool:
    """Whether it came of a Ctrl-C, however often it was turned into something else."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
