"""Who thinks, at a start: what is asked once, kept for the next start, and said of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
import typer

from vigil.doctor.models import tried
from vigil.edits import model_choice
from vigil.edits.model_choice import ModelChosen
from vigil.errors import ConfigError, VigilError
from vigil.fields.secrets import PROVIDERS, file_of_provider
from vigil.local import model_servers
from vigil.settings import credentials
from vigil.settings.config import Settings
from vigil.settings.models import REHEARSAL
from vigil.settings.models.trial import FILE, IN_PROSE, TOOLS, TriedModel

from .. import output

_BEFORE: Final = "model"
"""The file, beside that of what runs, with the name of who thought last."""


def ask_for_model(settings: Settings) -> None:
    """Ask who is to think, at the first start: nothing that is set already, and never twice.

    A key that is only in this shell is kept in the home, if the person wants it: the next start,
    from elsewhere, is the same agent then.
    """
    if settings.config.model.main:
        return
    for provider in PROVIDERS:
        key = getattr(settings, f"{provider}_api_key")
        there = file_of_provider(settings.home, provider)
        if key and not there.exists():
            text = f"Keep the key of {provider} in {there}, so that it's known from any shell?"
            if typer.confirm(text, default=True, err=True):
                credentials.keep_key(settings.home, provider, key)
    if settings.anthropic_api_key or settings.anthropic_base_url:
        return
    if not _took_local(settings):
        _ask_for_key(settings)


def _took_local(settings: Settings) -> bool:
    for server in model_servers.found():
        text = f"{server.name} runs here, with {server.models[0]}. Have it think?"
        if typer.confirm(text, default=True, err=True):
            chosen = ModelChosen(provider="local", model=server.models[0])
            plan = model_choice.plan_of(chosen, settings.config, server, ())
            try:
                model_choice.write(settings, plan, "")
            except (ConfigError, VigilError) as error:
                output.message(f"Not written: {error}")
                return False
            return True
    return False


def _ask_for_key(settings: Settings) -> None:
    text = "Key of Anthropic (empty: a stand-in without AI; `vigil models` for others, later)"
    key = typer.prompt(text, default="", hide_input=True, show_default=False, err=True).strip()
    if key:
        credentials.keep_key(settings.home, "anthropic", key)


def hint(command: str) -> str:
    """Say how a person gets a real model."""
    if any(os.environ.get(f"OPENAI_API_KEY{end}") for end in ("", "_FILE")):
        named = f"{command} models add NAME --provider openai --model ID --main"
        return f"OPENAI_API_KEY is set, a model isn't: {named}"
    return f"{command} models key anthropic, or {command} models find"


def remark_of(settings: Settings, name: str) -> str:
    """Return what to say if another model thinks than before, and keep the name; empty: nothing.

    Args:
        name: of who thinks now.
    """
    file = settings.run_file.with_name(_BEFORE)
    before = _read(file)
    if before != name:
        file.write_text(name, "utf-8")
    if before in ("", REHEARSAL) or name != REHEARSAL:
        return ""
    return (
        f"Until now {before} thought. Its key isn't in this environment: `vigil models key` keeps "
        "one in the home."
    )


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def answer_of(settings: Settings, name: str) -> str:
    """Try the model that thinks, once for each; return what came of it. Empty: it's known.

    Args:
        name: of who thinks, as its provider says it.
    """
    named = settings.config.model.main or name
    if name == REHEARSAL or any(one.name == named for one in _kept(settings)):
        return ""
    try:
        found = next((one for one in tried(settings, named) if one.name == named), None)
    except VigilError as error:
        return f"{named}: {error}"
    return "" if found is None else in_words(found)


def in_words(one: TriedModel) -> str:
    """Say what came of asking a model.

    >>> in_words(TriedModel(name="big", latency_ms=312.4))
    'answers in 312 ms'
    >>> in_words(TriedModel(name="big", error="401: no such key"))
    'gives no answer: 401: no such key. `vigil models` asks again'
    """
    if one.error:
        return f"gives no answer: {output.printable(one.error)}. `vigil models` asks again"
    lacks = f"; it {IN_PROSE}" if TOOLS in one.lacks else ""
    return f"answers in {one.latency_ms or 0:.0f} ms{lacks}"


def _kept(settings: Settings) -> list[TriedModel]:
    file = settings.run_file.with_name(FILE)
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[TriedModel])
    except (OSError, msgspec.DecodeError):
        return []
