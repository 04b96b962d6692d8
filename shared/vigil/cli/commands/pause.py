"""`pause`, `resume`, `stop`: what a person does when an agent should not go on."""

from __future__ import annotations

from .. import options, tables


def pause(json: options.Json = False) -> None:
    """Pause everything proactive, for everybody. Answers to people go on. Needs an admin token."""
    _, client = options.here()
    client.pause()
    tables.done(
        "Paused: no follow-up is said until `vigil resume`.", {"paused": True}, is_json=json
    )


def resume(json: options.Json = False) -> None:
    """End the pause. Needs an admin token."""
    _, client = options.here()
    client.resume()
    tables.done("Resumed.", {"paused": False}, is_json=json)


def stop(key: options.Key, json: options.Json = False) -> None:
    """Stop the turn that is running in a session."""
    _, client = options.here()
    key = options.checked(key)
    client.stop(key)
    tables.done(f"Asked {key} to stop.", {"session_key": key, "stopped": True}, is_json=json)
