"""What a choice of who is to think changes of vigil.toml, tried in a copy before it's written.

What is written, and how, is what `vigil models` and `vigil config set` do; a running cortex takes
it in by itself.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from ..doctor.models import tried
from ..errors import InvalidInput
from ..fields.secrets import file_of_provider, is_key
from ..local.model_servers import ModelServer
from ..settings import config, credentials
from ..settings.config import Config, Settings
from ..settings.models import DEFAULT_MODEL
from ..settings.models.trial import TriedModel
from . import toml_sections

ChosenProvider = Literal["anthropic", "openai", "local"]
Change = tuple[tuple[str, ...], Any]
"""(names of the sections and of the key, value)"""
NAMES_MAX: Final = 100


class ModelChosen(msgspec.Struct, frozen=True, kw_only=True):
    """Who is to think."""

    provider: ChosenProvider
    model: str = ""
    """Its id there; empty: Anthropic's usual one."""
    key: str = ""
    """Of the provider; empty: the one that is kept."""


class ModelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a choice comes to."""

    name: str
    """Of the model, as settings name it."""
    changes: tuple[Change, ...]
    key_of: str = ""
    """The provider whose key is to be kept; empty: none is."""


def plan_of(
    chosen: ModelChosen, found: Config, server: ModelServer | None, kept: Sequence[str]
) -> ModelPlan:
    """Return what a choice changes. Pure.

    Args:
        server: of this machine, that is chosen; None: none is.
        kept: the providers whose keys the home has.

    Raises:
        InvalidInput: naming the field.
    """
    if server is not None:
        return _local(chosen, found, server)
    if chosen.key and not is_key(chosen.key):
        raise InvalidInput("key", "has characters that no key has")
    if not chosen.key and chosen.provider not in kept:
        raise InvalidInput("key", "is missing")
    key_of = chosen.provider if chosen.key else ""
    if chosen.provider == "anthropic":
        name = chosen.model or DEFAULT_MODEL
        is_usual = not chosen.model and not found.model.main
        changes: tuple[Change, ...] = () if is_usual else ((("model", "main"), name),)
        return ModelPlan(name=name, changes=changes, key_of=key_of)
    if not chosen.model:
        raise InvalidInput("model", "is missing: the id of a model of OpenAI's")
    wanted = {"provider": "openai", "model": chosen.model}
    name = _free(found, "openai", wanted)
    return ModelPlan(name=name, changes=_section(name, wanted), key_of=key_of)


def _local(chosen: ModelChosen, found: Config, server: ModelServer) -> ModelPlan:
    if chosen.model not in server.models:
        raise InvalidInput("model", f"isn't one of {server.name}'s: {', '.join(server.models)}")
    wanted = {"provider": "openai", "base_url": server.url, "model": chosen.model}
    name = _free(found, "local", wanted)
    return ModelPlan(name=name, changes=_section(name, wanted))


def _free(found: Config, name: str, wanted: dict[str, str]) -> str:
    """Return the name of a section that is so already, or that there is none of."""
    names = (name, *(f"{name}-{number}" for number in range(2, NAMES_MAX)))
    for one in names:
        there = found.models.get(one)
        if there is None or all(getattr(there, key) == value for key, value in wanted.items()):
            return one
    raise InvalidInput("model", f"there are {NAMES_MAX} models called {name} already")


def _section(name: str, wanted: dict[str, str]) -> tuple[Change, ...]:
    values: tuple[Change, ...] = tuple(
        (("models", name, key), value) for key, value in wanted.items()
    )
    return (*values, (("model", "main"), name))


def kept_keys(home: Path) -> tuple[str, ...]:
    """Return the providers whose keys the home has."""
    providers: tuple[str, ...] = ("anthropic", "openai")
    return tuple(one for one in providers if file_of_provider(home, one).exists())


def tried_in_copy(settings: Settings, plan: ModelPlan, key: str) -> TriedModel:
    """Ask the model for a token, with a home that has what is planned, and ends after it.

    Raises:
        ConfigError: what is planned is no configuration, or models can't be asked here.
        Unavailable: they can't be asked.
    """
    with tempfile.TemporaryDirectory(prefix="vigil-") as folder:
        home = Path(folder)
        if settings.file.exists():
            shutil.copyfile(settings.file, home / settings.file.name)
        there = file_of_provider(settings.home, plan.key_of or "anthropic").parent
        if there.is_dir():
            shutil.copytree(there, file_of_provider(home, "anthropic").parent)
        write(config.load({}, home=home), plan, key)
        asked = tried(config.load({}, home=home), plan.name)
    silent = TriedModel(name=plan.name, error="it isn't configured")
    return next((one for one in asked if one.name == plan.name), silent)


def write(settings: Settings, plan: ModelPlan, key: str) -> None:
    """Write what is planned; comments and order of the file stay.

    Raises:
        ConfigError: it can't be done safely; the file is left as it was.
        OSError: a file can't be written.
    """
    if plan.key_of:
        credentials.keep_key(settings.home, plan.key_of, key)
    toml_sections.set_values(settings.file, plan.changes)
