"""`vigil models`, and what `vigil doctor` says of them: each is asked for a token.

That happens in a process of its own: only a cortex has the SDKs, and needs the keys.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec
import typer

from vigil import distribution
from vigil.checks import Check, fail, ok, warn
from vigil.errors import ConfigError, Unavailable
from vigil.fields import environ
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.models import REHEARSAL, context_tokens_of
from vigil.settings.models.prices import band_of
from vigil.settings.models.trial import IN_PROSE, TOOLS, TriedModel

from .. import exits, output, tables
from ..tables import Column, Result

TRY_S: Final = 120.0
_WITH_TOOLS: Final = "choose a model that calls tools, or start its server with a parser for them"
COLUMNS: Final = (
    Column("NAME", "name"),
    Column("USED BY", lambda one: ", ".join(one["used_by"])),
    Column("PROVIDER", "provider"),
    Column("MODEL", "model"),
    Column("AT", "server"),
    Column("MS", "latency_ms"),
    Column("USD PER MILLION", lambda one: _price(one["price"])),
    Column("CAN'T", lambda one: ", ".join(one["lacks"])),
)


def models() -> Result:
    """Ask each configured model for a token. Exit code 1 if one gives no answer."""
    settings = config.load()
    found = [_shown(settings, one) for one in tried(settings)]
    end = typer.Exit(exits.FAILURE) if any(one["error"] for one in found) else None
    return Result({"models": found}, partial(_show, found), end)


def _shown(settings: Settings, one: TriedModel) -> dict[str, Any]:
    prices = settings.config.prices_of(one.name)
    band = band_of(prices, datetime.now(UTC).date())
    is_free = one.provider == REHEARSAL
    lacks = one.lacks if band or is_free else (*one.lacks, "a cap in USD: it has no price")
    facts: dict[str, Any] = msgspec.to_builtins(one)
    return facts | {
        "context_tokens": context_tokens_of(settings.config, one.name),
        "lacks": lacks,
        "price": {"input": 0, "output": 0} if is_free else msgspec.to_builtins(band),
    }


def _show(found: Sequence[dict[str, Any]]) -> None:
    tables.table(COLUMNS, found)
    for one in found:
        if one["error"]:
            output.message(f"{one['name']}: {output.printable(one['error'])}")
        if TOOLS in one["lacks"]:
            output.message(f"{one['name']}: {IN_PROSE}")


def _price(price: dict[str, float] | None) -> str:
    return "" if price is None else f"{price['input']:g} in, {price['output']:g} out"


def tried(settings: Settings) -> list[TriedModel]:
    """Return what each model answers.

    Raises:
        ConfigError: the services aren't installed here.
        Unavailable: they can't be asked.
    """
    if not distribution.is_importable("services.cortex.models"):
        raise ConfigError(f"models are asked where the services are: {distribution.CHECKOUT}")
    try:
        told = subprocess.run(
            [sys.executable, "-m", "services.cortex.trial"],
            capture_output=True,
            timeout=TRY_S,
            check=True,
            env=environ.of_service(os.environ, "cortex") | {"VIGIL_HOME": str(settings.home)},
        ).stdout
        return msgspec.json.decode(told, type=list[TriedModel])
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        raise Unavailable(f"the models can't be asked: {error}") from error


def model(settings: Settings) -> Check | None:
    """Whether every configured model answers."""
    try:
        found = tried(settings)
    except ConfigError:
        return None
    except Unavailable as error:
        return fail(str(error), "see `python -m services.cortex.trial`")
    return check_of(found)


def check_of(found: Sequence[TriedModel]) -> Check:
    """Return what was found as a check. Pure."""
    wrong = [f"{one.name}: {one.error}" for one in found if one.error]
    if wrong:
        return fail("; ".join(wrong), "correct the setting or the key; `vigil models` asks again")
    if all(one.provider == REHEARSAL for one in found):
        return warn("rehearsal, a stand-in", "set ANTHROPIC_API_KEY for a real model")
    if in_prose := [one.name for one in found if TOOLS in one.lacks and one.used_by]:
        lines = "; ".join(map(_line, found))
        return warn(f"{lines}; {', '.join(in_prose)} {IN_PROSE}", _WITH_TOOLS)
    return ok("; ".join(map(_line, found)))


def _line(one: TriedModel) -> str:
    where = f" at {one.server}" if one.server else ""
    lacks = f", without {' and '.join(one.lacks)}" if one.lacks else ""
    return f"{one.name} ({one.model}{where}, {one.latency_ms:.0f} ms{lacks})"
