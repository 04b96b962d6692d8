"""`vigil agents`: which there are, made and changed without an editor and without a restart."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from vigil.edits import agent_sections
from vigil.edits.agent_sections import AgentFound
from vigil.errors import InvalidInput
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.texts.trouble import reason_of
from vigil.words.nearest import meant

from .. import completion, configured, exits, output, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

Authority = Literal["off", "observe", "suggest", "act"]
app = CommandLine(help="Agents: list, add, set. Default: list.", cls=ListedGroup)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the agent.")]
Known = Annotated[
    str, typer.Argument(metavar="NAME", help="Of the agent.", autocompletion=completion.agents)
]
May = Annotated[Authority | None, typer.Option("--authority", help="What it may do unasked.")]
Thinks = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Its own model; empty: model.main.")
]
Looks = Annotated[
    list[str] | None,
    typer.Option("--look", metavar="WHAT", help="What it keeps up with; all of them, each anew."),
]
Channels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="NAME", help="A channel: who writes there talks with it."),
]
Texts = Annotated[
    list[str] | None,
    typer.Option(
        "--file", metavar="NAME.md=TEXT", help="SOUL, IDENTITY, ROLE or USER; @FILE reads it."
    ),
]
COLUMNS: Final = (
    Column("AGENT", "name"),
    Column("OF", "kind"),
    Column("MAY", "authority"),
    Column("MODEL", "model"),
    Column("KEEPS UP WITH", lambda one: ", ".join(one["looks"])),
    Column("TALKS ON", lambda one: ", ".join(one["channels"])),
)


@app.command("list")
def list_agents() -> Result:
    """List the agents of this home."""
    agents = [shown(one) for one in agent_sections.found(configured.settings())]
    return tables.listing("agents", agents, COLUMNS, empty="None.")


@app.command()
def add(
    name: Name,
    authority: May = None,
    model: Thinks = None,
    look: Looks = None,
    channel: Channels = None,
    file: Texts = None,
) -> Result:
    """Make an agent. Talk with it at once: `vigil chat --agent NAME`."""
    settings = config.load()
    _check_channels(settings, channel or [])
    changes = _changes(authority, model, look)
    agent_sections.make(settings, name, changes, _texts(file or []))
    return _done(f"Made {name}.", name, channel or [])


@app.command("set")
def set_(
    name: Known,
    authority: May = None,
    model: Thinks = None,
    look: Looks = None,
    channel: Channels = None,
    file: Texts = None,
) -> Result:
    """Change an agent; comments and order of vigil.toml stay. Exit code 3 if there is none."""
    settings = config.load()
    changes, texts = _changes(authority, model, look), _texts(file or [])
    if not (changes or texts or channel):
        raise InvalidInput("NAME", "say what to change: see --help")
    _check_channels(settings, channel or [])
    agent_sections.change(settings, name, changes, texts)
    return _done(f"Changed {name}.", name, channel or [])


def shown(one: AgentFound) -> dict[str, Any]:
    """Return an agent for a program."""
    return {
        "name": one.name,
        "kind": one.settings.kind,
        "authority": one.settings.authority,
        "model": one.settings.model,
        "looks": list(agent_sections.lines_of(one.settings)),
        "channels": one.channels,
        "has_section": one.has_section,
    }


def _changes(
    authority: Authority | None, model: str | None, looks: list[str] | None
) -> dict[str, Any]:
    given = {"authority": authority, "model": model, "looks": looks or None}
    return {key: value for key, value in given.items() if value is not None}


def _texts(given: list[str]) -> dict[str, str]:
    """Return what files are to say. Raises: InvalidInput."""
    found: dict[str, str] = {}
    for one in given:
        name, mark, text = one.partition("=")
        if not mark:
            raise InvalidInput("--file", f"{one!r} is no NAME.md=TEXT, as in ROLE.md='You cook.'")
        if text.startswith("@"):
            try:
                text = Path(text[1:]).read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidInput(
                    "--file", f"{text[1:]} can't be read: {reason_of(error)}"
                ) from error
        found[name] = text
    return found


def _check_channels(settings: Settings, channels: list[str]) -> None:
    """Raise NotReady or InvalidInput where one talks with no agent on a channel."""
    there = settings.config.channels
    for channel in channels:
        section = there.get(channel)
        if section is None:
            raise exits.NotReady(f"there is no channel {channel!r}{meant(channel, there)}")
        if not hasattr(section, "agent"):
            raise InvalidInput("--channel", f"nobody talks with an agent on {channel}")


def _done(said: str, name: str, channels: list[str]) -> Result:
    """Have channels lead to the agent, and tell what came of all of it."""
    from vigil.edits import toml_sections

    settings = config.load()
    for channel in channels:
        toml_sections.set_value(settings.file, ("channels", channel, "agent"), name)
    facts = next(shown(one) for one in agent_sections.found(config.load()) if one.name == name)
    return Result(facts, partial(output.data, said))
