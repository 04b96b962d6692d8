"""What `vigil doctor` says of models: each is asked for a token.

That happens in a process of its own: only a cortex has the SDKs, and needs the keys.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from .. import distribution
from ..checks import Check, fail, ok, warn
from ..errors import ConfigError, Unavailable
from ..fields import environ
from ..settings.config import Settings
from ..settings.models import REHEARSAL
from ..settings.models.trial import IN_PROSE, TOOLS, TriedModel
from ..texts.trouble import reason_of

TRY_S: Final = 120.0
_LATER: Final = "see whether its server runs, if it's yours, or wait; `vigil models` asks again"
_WITH_TOOLS: Final = "choose a model that calls tools, or start its server with a parser for them"


def tried(settings: Settings, name: str = "") -> list[TriedModel]:
    """Return what each model answers, or the one that is named.

    Raises:
        ConfigError: the services aren't installed here.
        Unavailable: they can't be asked.
    """
    if not distribution.is_importable("services.cortex.models"):
        raise ConfigError(f"models are asked where the services are: {distribution.PROGRAMS}")
    try:
        printed = subprocess.run(
            [sys.executable, "-Pm", "services.cortex.trial"],
            input=name.encode(),
            capture_output=True,
            timeout=TRY_S,
            check=True,
            env=environ.of_service(os.environ, "cortex") | {"VIGIL_HOME": str(settings.home)},
        ).stdout
        return msgspec.json.decode(printed, type=list[TriedModel])
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        raise Unavailable(f"the models can't be asked: {reason_of(error)}") from error


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
    wrong = [one for one in found if one.error]
    if wrong:
        is_theirs = all(one.may_pass for one in wrong)
        advice = (
            _LATER if is_theirs else "correct the setting or the key; `vigil models` asks again"
        )
        return fail("; ".join(f"{one.name}: {one.error}" for one in wrong), advice)
    if all(one.provider == REHEARSAL for one in found):
        return warn(
            "rehearsal, a stand-in",
            "`vigil models key anthropic`, or `vigil models find` for a real model",
        )
    if in_prose := [one.name for one in found if TOOLS in one.lacks and one.used_by]:
        lines = "; ".join(map(_line, found))
        return warn(f"{lines}; {', '.join(in_prose)} {IN_PROSE}", _WITH_TOOLS)
    return ok("; ".join(map(_line, found)))


def _line(one: TriedModel) -> str:
    where = f" at {one.server}" if one.server else ""
    lacks = f", without {' and '.join(one.lacks)}" if one.lacks else ""
    return f"{one.name} ({one.model}{where}, {one.latency_ms:.0f} ms{lacks})"
