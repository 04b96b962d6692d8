"""`replay`: a session's log folded again, by the cortex in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final

import msgspec
import typer

from vigil import distribution
from vigil.errors import ConfigError, InvalidInput, VigilError
from vigil.fields import environ
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.sections import Agent, Autonomy
from vigil.subjects import SessionKey
from vigil.words.amounts import count_of

from .. import exits, output, times
from ..tables import Result

CHANGED: Final = re.compile(r"([a-z]+)\.([a-z_]+)=(.*)", re.DOTALL)
AGENTS_GATES: Final = frozenset(Autonomy.__struct_fields__) - frozenset(Agent.__struct_fields__)
"""Settings of `[autonomy]`: they hold for each agent, so agent.NAME names them, too."""


def replay(
    session: Annotated[
        str, typer.Argument(metavar="[SESSION]", help="userId:agentId:threadId", show_default=False)
    ] = "",
    last: Annotated[
        str, typer.Option(metavar="TIME", help="All sessions, turns since then: 7d, 2026-11-20.")
    ] = "",
    changed: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="SETTING=VALUE",
            help="Show what would have been otherwise, as with autonomy.max_consecutive=1.",
        ),
    ] = None,
) -> Result:
    """Decide the turns of the log again, and tell the first that differs. Nothing is changed."""
    if bool(session) == bool(last):
        raise InvalidInput("SESSION", "name a session, or --last TIME for all of them")
    if session:
        SessionKey.parse(session)
    since = times.moment("--last", last, datetime.now(UTC), lambda: "UTC") if last else None
    given = [_named(one) for one in changed or ()]
    names = [one.partition("=")[0] for one in given]
    variables = dict(_variable(one) for one in given)
    settings = _settings(dict(zip(names, variables.items(), strict=True)))
    asked = {"session": session, "since": since, "changed": names}
    found = list(_found(settings, asked, variables))
    if session and not any(_count(one) for one in found):
        raise exits.NotReady(f"{session} has no turns")
    is_same = not any(one.get("difference") for one in found)
    show = partial(_show_supposed if changed else _show, found)
    return Result(found, show, None if is_same else typer.Exit(exits.FAILURE))


def _count(one: Mapping[str, Any]) -> int:
    """Return how many turns were looked at."""
    skipped = sum(one.get("skipped", {}).values())
    return int(one.get("turns", 0)) + int(skipped) + bool(one.get("difference"))


def _named(text: str) -> str:
    """Return a change by the section that has its setting.

    >>> _named("agent.max_consecutive=1"), _named("agent.authority=off")
    ('autonomy.max_consecutive=1', 'agent.authority=off')
    """
    section, _, rest = text.partition(".")
    is_gate = section == "agent" and rest.partition("=")[0] in AGENTS_GATES
    return f"autonomy.{rest}" if is_gate else text


def _variable(text: str) -> tuple[str, str]:
    """Return the variable that sets a setting, and its value. Raises: InvalidInput."""
    match = CHANGED.fullmatch(text)
    if match is None:
        raise InvalidInput("--with", f"{text!r} is no SECTION.SETTING=VALUE")
    return f"VIGIL_{match[1]}__{match[2]}".upper(), match[3]


def _settings(changed: Mapping[str, tuple[str, str]]) -> Settings:
    """Return the configuration, to which what is changed fits. Raises: ConfigError, InvalidInput.

    Args:
        changed: setting -> the variable that sets it, and its value.
    """
    settings = config.load()
    for name, (variable, value) in changed.items():
        try:
            config.load({**os.environ, variable: value}, home=settings.home)
        except ConfigError as error:
            text = str(error).replace(f"{variable}: ", "")
            raise InvalidInput(f"--with {name}", text) from error
    return settings


def _found(
    settings: Settings, asked: dict[str, Any], variables: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    if not distribution.is_importable("services.cortex.replay"):
        raise ConfigError(f"a log is folded where the services are: {distribution.PROGRAMS}")
    done = subprocess.run(
        [sys.executable, "-Pm", "services.cortex.replay"],
        input=msgspec.json.encode(asked),
        capture_output=True,
        check=False,
        env=environ.of_service(os.environ, "cortex")
        | {"VIGIL_HOME": str(settings.home)}
        | dict(variables),
    )
    if done.returncode:
        raise VigilError(done.stderr.decode("utf-8", "replace").strip())
    for line in done.stdout.splitlines():
        yield msgspec.json.decode(line)


def _show(found: list[dict[str, Any]]) -> None:
    for one in found:
        difference = one.get("difference")
        if difference:
            output.data(
                f"{one['session']}: turn {one['seq']} differs in {difference['field']}\n"
                f"  on the log: {difference['expected']}\n"
                f"  decided now: {difference['got']}"
            )
        else:
            output.data(f"{one['session']}: {count_of(one.get('turns', 0), 'turn')}, identical")
        _show_skipped(one)


def _show_skipped(one: Mapping[str, Any]) -> None:
    for reason, count in one.get("skipped", {}).items():
        output.message(f"  {count} not folded again: {reason}")


def _show_supposed(found: list[dict[str, Any]]) -> None:
    for one in found:
        output.data(one["session"])
        for change in one.get("changes", ()):
            output.data(f"  {change['seq']}  {change['was']}\n    would be  {change['would_be']}")
        for name, unit in (("said", "messages"), ("blocked", "messages"), ("tokens", "")):
            was, would_be = one["was"].get(name, 0), one["would_be"].get(name, 0)
            output.data(f"  {name}: {was} -> {would_be} {unit}".rstrip())
        _show_skipped(one)
