"""`vigil setup`: asks what makes an agent of use, prefilled with what holds; may be run again.

What holds for a person is theirs where Vigil runs, as by `vigil me`, and stands in vigil.toml where
it doesn't. All else is written as `vigil models` and `vigil channels add` write it.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any, Final

import typer

from vigil.channels.contract import Channel
from vigil.doctor.sandbox import sandbox
from vigil.edits import channel_sections, model_choice, toml_sections
from vigil.edits.model_choice import ChosenProvider, ModelChosen
from vigil.errors import ConfigError, InvalidInput
from vigil.local import model_servers, runfile, system
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.hours import quiet_hours_of
from vigil.settings.models.access import all_names
from vigil.settings.sections import Person
from vigil.texts.trouble import reason_of

from .. import exits, options, output
from ..accounts.channels import answers
from . import first_model
from .first_answers import asked, check_language, check_zone

MAIN: Final = "model.main"
PERSON: Final = ("timezone", "language", "quiet_hours")
QUIET: Final = "Hours in which nothing comes unasked, as 22:00-07:00"
_NO_TERMINAL: Final = (
    "it asks, and nobody is at a terminal: `vigil me`, `vigil models` and `vigil channels add` do "
    "the same"
)


def setup() -> None:
    """Ask for your clock, who thinks, and how it reaches you. Enter leaves all as it is."""
    if not sys.stdin.isatty():
        raise exits.NotReady(_NO_TERMINAL)
    from vigil.local.home import ensure_home

    settings = config.load()
    ensure_home(settings, partial(system.person_of, os.environ))
    settings = config.load()
    is_running = runfile.running(settings.run_file) is not None
    _ask_for_person(settings, is_running=is_running)
    _ask_for_model(config.load())
    _ask_for_channel(config.load(), is_running=is_running)
    if (found := sandbox(config.load())) is not None:
        advice = f": {found.advice}" if found.advice else ""
        output.message(f"Sandbox of its programs: {output.printable(found.found + advice)}")
    output.message("All is set." if is_running else "All is set. Start it: vigil up")


# ---------------------------------------------------------------- the person


def _ask_for_person(settings: Settings, *, is_running: bool) -> None:
    client = options.client() if is_running else None
    known: dict[str, Any] = (
        {name: getattr(settings.config.person, name) for name in PERSON}
        if client is None
        else client.person()
    )
    said = {
        "timezone": asked("Your time zone", known["timezone"], check_zone),
        "language": asked("Language to write in", known["language"], check_language),
        "quiet_hours": asked(QUIET, known["quiet_hours"], _check_quiet),
    }
    changed = {name: text for name, text in said.items() if text != known[name]}
    if client is None:
        changes = [(("person", name), text) for name, text in changed.items()]
        toml_sections.set_values(settings.file, changes)
    elif changed:
        client.set_person(changed)


def _check_quiet(text: str) -> None:
    quiet_hours_of(Person(quiet_hours=text))


# ---------------------------------------------------------------- who thinks


def _ask_for_model(settings: Settings) -> None:
    """Ask who is to think; what is chosen is asked for a token, and written if it answers."""
    servers = {one.name.lower().replace(" ", "-"): one for one in model_servers.found()}
    ways: dict[str, ChosenProvider] = {"anthropic": "anthropic", "openai": "openai"}
    ways |= dict.fromkeys(servers, "local")
    thinks = next(name for name, used in all_names(settings).items() if MAIN in used)
    while True:
        words = ", ".join(ways)
        chosen = asked(f"Who thinks ({words}; Enter: {thinks})", thinks, lambda _: None)
        if chosen in ("", thinks):
            return
        if chosen not in ways:
            output.message(f"There is no {output.printable(chosen)}: one of {words}")
            continue
        server = servers.get(chosen)
        wanted = _wanted(settings, ways[chosen], server)
        try:
            plan = model_choice.plan_of(
                wanted, settings.config, server, model_choice.kept_keys(settings.home)
            )
            found = model_choice.tried_in_copy(settings, plan, wanted.key)
        except (InvalidInput, ConfigError) as error:
            output.message(f"Not written: {output.printable(reason_of(error))}")
            continue
        output.message(f"{plan.name} {first_model.in_words(found)}")
        if not found.error:
            model_choice.write(settings, plan, wanted.key)
            return


def _wanted(
    settings: Settings, provider: ChosenProvider, server: model_servers.ModelServer | None
) -> ModelChosen:
    if server is not None:
        model = asked("Which model", server.models[0], lambda _: None)
        return ModelChosen(provider=provider, model=model)
    kept = provider in model_choice.kept_keys(settings.home)
    text = f"Key of {provider}" + (" (Enter: the one that is kept)" if kept else "")
    key: str = typer.prompt(text, default="", hide_input=True, show_default=False, err=True)
    model = asked("Which model, by its id", "", lambda _: None) if provider == "openai" else ""
    return ModelChosen(provider=provider, model=model, key=key.strip())


# ---------------------------------------------------------------- how one is reached


def _ask_for_channel(settings: Settings, *, is_running: bool) -> None:
    kinds = channel_sections.offered()
    there = ", ".join(name for name in settings.config.channels) or "none yet"
    while True:
        text = f"Another way to reach you ({', '.join(kinds)}; there is: {there})"
        kind = asked(text, "", lambda _: None)
        if not kind:
            return
        if kind not in kinds:
            output.message(f"There is no {output.printable(kind)}")
            continue
        try:
            _add(settings, kind, kinds[kind], is_running=is_running)
        except (InvalidInput, ConfigError, OSError) as error:
            output.message(f"Not added: {output.printable(reason_of(error))}")
            continue
        return


def _add(settings: Settings, kind: str, of: type[Channel], *, is_running: bool) -> None:
    if "user" in of.__struct_fields__ and not is_running:
        raise InvalidInput("kind", "is somebody's: start Vigil first, then it knows who you are")
    whose = options.client().me()["user"] if is_running else ""
    planned = channel_sections.plan(settings.config, kind, "", answers(of, {}), whose)
    advice = channel_sections.add(settings, planned)
    output.message(f"Added {planned.name}. {output.printable(advice)}".rstrip())
    if config.load().config.channels[planned.name].paired_at:
        output.message(f"To be heard there: vigil channels pair {planned.name}")
