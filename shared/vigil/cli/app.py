"""The commands of `vigil`, and where its errors become exit codes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vigil import __version__
from vigil.errors import VigilError

from . import (
    approvals,
    dead,
    doctor,
    erasing,
    exits,
    jobs,
    keeping,
    looking,
    mcp,
    memory,
    output,
    running,
    steering,
    talking,
    token,
    watching,
    why,
)

app = typer.Typer(
    name="vigil",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=exits.HELP,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        output.data(f"vigil {__version__}")
        raise typer.Exit


@app.callback()
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


_START = "Start and stop"
_TALK = "Talk"
_LOOK = "Look"
_REMEMBER = "Remember"
_WORK = "Work"
_STEER = "Steer"
_KEEP = "Keep and erase"

app.command(rich_help_panel=_START)(running.up)
app.command(rich_help_panel=_START)(running.down)
app.command(rich_help_panel=_START)(looking.status)
app.command(rich_help_panel=_START)(doctor.doctor)
app.command(rich_help_panel=_TALK)(talking.chat)
app.command(rich_help_panel=_TALK)(talking.send)
app.command(rich_help_panel=_LOOK)(looking.sessions)
app.command(rich_help_panel=_LOOK)(looking.timers)
app.command(rich_help_panel=_LOOK)(why.why)
looking.tail.command("signals")(watching.tail_signals)
app.add_typer(looking.tail, name="tail", rich_help_panel=_LOOK)
app.command(rich_help_panel=_LOOK)(looking.version)
app.add_typer(memory.app, name="memory", rich_help_panel=_REMEMBER)
app.add_typer(mcp.app, name="mcp", rich_help_panel=_REMEMBER)
app.add_typer(jobs.app, name="jobs", rich_help_panel=_WORK)
app.command(rich_help_panel=_STEER)(steering.pause)
app.command(rich_help_panel=_STEER)(steering.resume)
app.command(rich_help_panel=_STEER)(steering.stop)
app.add_typer(approvals.app, name="approvals", rich_help_panel=_STEER)
app.add_typer(dead.app, name="dead", rich_help_panel=_STEER)
app.add_typer(token.app, name="token", rich_help_panel=_STEER)
app.command(rich_help_panel=_KEEP)(keeping.backup)
app.command(rich_help_panel=_KEEP)(keeping.restore)
app.command(rich_help_panel=_KEEP)(erasing.erase)
app.command(rich_help_panel=_KEEP)(memory.rebuild)
app.command(rich_help_panel="For deployments")(running.serve)
app.command(rich_help_panel="For deployments")(running.provision)


def main() -> None:
    """Run the command line; errors that Vigil raises on purpose become one message and a code."""
    try:
        app(prog_name="vigil")
    except VigilError as error:
        output.message(f"vigil: {output.printable(error)}")
        sys.exit(exits.code_of(error))
