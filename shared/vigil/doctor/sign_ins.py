"""What `vigil doctor` says of sign-ins to MCP servers (OAuth): by what is kept of them."""

from __future__ import annotations

from functools import partial

from ..checks import Check, fail, ok, others_can_read, warn
from ..oauth import kept
from ..settings.config import Settings
from .channels import Examine


def checks(settings: Settings) -> dict[str, Examine]:
    """Return a check for each server that somebody signed in to, by name."""
    return {
        f"sign-in {name}": partial(_kept, name)
        for name, server in sorted(settings.config.mcp.items())
        if server.url and kept.path_of(settings.home, name).exists()
    }


def _kept(name: str, settings: Settings) -> Check:
    """Whether it's still good, as far as it was used, and whether nobody else can read it."""
    path = kept.path_of(settings.home, name)
    if others_can_read(path):
        return fail(f"others can read {path}", f"chmod 600 {path}")
    state = kept.state_of(settings.home, name, settings.config.mcp[name].url)
    again = kept.SIGN_IN_AGAIN.format(name=name)
    if not state:
        return warn("it can't be read, or is for another URL than the server has now", again)
    return ok(state) if state == "signed in" else warn(state, again)
