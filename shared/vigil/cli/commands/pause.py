"""`pause`, `resume`, `stop`: what a person does when an agent should not go on."""

from __future__ import annotations

from .. import options, tables
from ..tables import Result


def pause() -> Result:
    """Pause everything proactive, for everybody. Answers to people go on. Needs an admin token."""
    options.client().pause()
    return tables.done("Paused: no follow-up is said until `vigil resume`.", {"paused": True})


def resume() -> Result:
    """End the pause. Needs an admin token."""
    options.client().resume()
    return tables.done("Resumed.", {"paused": False})


def stop(key: options.Key) -> Result:
    """Stop the turn that is running in a session."""
    key = options.checked(key)
    options.client().stop(key)
    return tables.done(f"Asked {key} to stop.", {"session_key": key, "stopped": True})
