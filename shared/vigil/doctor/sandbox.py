"""What `vigil doctor` says of the sandbox: which one really works here, and why not a better one.

It is tried, by the executor's own probe in a process of its own: what a kernel, a container or
AppArmor allow can't be told from versions.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Literal

import msgspec

from .. import distribution
from ..checks import Check, fail, ok, warn
from ..fields import environ
from ..settings.config import Settings
from ..texts.trouble import reason_of

TRY_S = 30.0
INSTALL = "install bubblewrap (the program bwrap), and see docs/operations.md for containers"
NOT_OFFERED = "none, so the tool shell is not offered"


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe prints."""

    kind: Literal["bubblewrap", "landlock", "off"]
    reasons: tuple[str, ...] = ()
    is_offered: bool = True


def sandbox(settings: Settings) -> Check | None:
    """Start a command in each kind of sandbox and see whether it is shut in."""
    if not distribution.is_importable("services.executor.sandbox"):
        return None
    try:
        printed = subprocess.run(
            [sys.executable, "-Pm", "services.executor.sandbox"],
            capture_output=True,
            timeout=TRY_S,
            check=True,
            env=environ.of_service(os.environ, "executor") | {"VIGIL_HOME": str(settings.home)},
        ).stdout
        found = msgspec.json.decode(printed, type=_Found)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        return fail(f"can't be tried: {reason_of(error)}", INSTALL)
    return check_of(found, settings.config.executor.sandbox)


def check_of(found: _Found, asked: str) -> Check:
    """Return what the probe found as a check. Pure."""
    why = "; ".join(found.reasons)
    if asked == "off":
        if found.is_offered:
            advice = 'commands can do whatever you can; set executor.sandbox = "auto"'
            return warn("none, by executor.allow_unsafe", advice)
        return ok(f"{NOT_OFFERED}, by executor.sandbox")
    if found.kind == "off":
        state = warn if asked == "auto" else fail
        return state(f"{NOT_OFFERED}: {why}", INSTALL)
    if why:
        return warn(f"{found.kind}; {why}", INSTALL)
    return ok(found.kind)
