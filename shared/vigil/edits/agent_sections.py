"""An agent made or changed: its section of `vigil.toml`, and the files that say who it is.

The file stays the truth, with its comments and order. Without a section of its own an agent is as
`[agent]` says; the first key that is set for it begins one, with what `[agent]` has, since a
section replaces it whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import AlreadyExists, InvalidInput, NotReady
from ..local.identity_files import FILE_BYTES_MAX, FILES, agents_there, write_text
from ..settings.config import Config, Settings
from ..settings.models.access import check_known
from ..settings.sections import Agent, InterestSection
from ..subjects import check_part
from ..teams import TEAM
from ..words.nearest import meant
from . import toml_sections

KEYS: Final = ("authority", "model", "looks", "double_text")
"""Settings of an agent that are changed here; others by `vigil config set`."""


class AgentFound(msgspec.Struct, frozen=True, kw_only=True):
    """An agent, as the configuration and the home have it."""

    name: str
    settings: Agent
    has_section: bool
    channels: tuple[str, ...] = ()
    """Whose section names it: who writes there talks with it."""


def found(settings: Settings) -> tuple[AgentFound, ...]:
    """Return the agents that there are: configured, or with a folder of their own."""
    config = settings.config
    return tuple(
        AgentFound(
            name=name,
            settings=config.agent_of(name),
            has_section=name in config.agents,
            channels=channels_of(config, name),
        )
        for name in agents_there(settings)
    )


def lines_of(agent: Agent) -> tuple[str, ...]:
    """Return what an agent keeps up with, without when."""
    return tuple(map(_what, agent.looks))


def channels_of(config: Config, agent: str) -> tuple[str, ...]:
    """Return the channels on which one talks with an agent."""
    return tuple(
        name for name, one in config.channels.items() if getattr(one, "agent", "") == agent
    )


def make(
    settings: Settings, name: str, changes: Mapping[str, Any], texts: Mapping[str, str]
) -> None:
    """Make an agent.

    Raises:
        InvalidInput: naming the field. AlreadyExists: there is one of that name.
        ConfigError: it would be no configuration; nothing is changed.
    """
    check_part("name", name)
    if name == TEAM or any(name == one.name for one in found(settings)):
        raise AlreadyExists(f"there is an agent called {name} already")
    _check_texts(texts)
    # Also without a change: by its section others know of it, and services that they begin anew.
    _write_section(settings, name, changes, is_new=True)
    folder = settings.agents / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write_texts(folder, texts)


def change(
    settings: Settings, name: str, changes: Mapping[str, Any], texts: Mapping[str, str]
) -> None:
    """Change an agent that is there. Raises: as `make`; NotReady: there is none of that name."""
    there = [one.name for one in found(settings)]
    if name not in there:
        raise NotReady(f"there is no agent called {name}{meant(name, there)}")
    _check_texts(texts)
    now = settings.config.agent_of(name)
    changed = {key: one for key, one in changes.items() if _differs(now, key, one)}
    _write_section(settings, name, changed)
    if texts:
        (settings.agents / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_texts(settings.agents / name, texts)


def _write_section(
    settings: Settings, name: str, changes: Mapping[str, Any], *, is_new: bool = False
) -> None:
    if unknown := set(changes) - set(KEYS):
        raise InvalidInput(min(unknown), f"is none of {', '.join(KEYS)}")
    values = dict(changes)
    check_known(settings, str(values.get("model", "")), f"agents.{name}.model")
    if "looks" in values:
        known = {_what(one): one for one in settings.config.agent_of(name).looks}
        values["looks"] = [_as_written(known.get(one, one)) for one in values["looks"]]
    if (values or is_new) and name not in settings.config.agents:
        # What `[agent]` sets for all is this one's as well, unless it's changed just now.
        toml_sections.add(settings.file, "agents", name, _set_in(settings.config.agent) | values)
        return
    changed = [(("agents", name, key), value) for key, value in values.items()]
    toml_sections.set_values(settings.file, changed)


def _differs(now: Agent, key: str, value: Any) -> bool:
    return tuple(value) != lines_of(now) if key == "looks" else value != getattr(now, key, None)


def _what(interest: str | InterestSection) -> str:
    return interest if isinstance(interest, str) else interest.what


def _as_written(interest: str | InterestSection) -> Any:
    """Return one as a value of the file; when it is due, and its facts, go with its address."""
    return interest if isinstance(interest, str) else _set_in(interest)


def _set_in(section: Agent | InterestSection) -> dict[str, Any]:
    """Return what a section sets otherwise than it is without."""
    unset = {one.name: one.default for one in msgspec.structs.fields(section)}
    found: dict[str, Any] = {}
    for name in section.__struct_fields__:
        value = getattr(section, name)
        if value != unset[name] and value != {}:
            found[name] = list(map(_as_written, value)) if name == "looks" else value
    return found


def _check_texts(texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        if name not in FILES:
            raise InvalidInput(name, f"an agent has no such file; it has {', '.join(FILES)}")
        if len(text.encode("utf-8", "replace")) > FILE_BYTES_MAX:
            raise InvalidInput(name, "an agent is shown 32 kB of a file at most")


def _write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        write_text(folder / name, text)
