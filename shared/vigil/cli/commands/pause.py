"""`pause`, `resume`, `stop`: what a person does when an agent should not go on."""

from __future__ import annotations

from .. import options, output


def pause(json: options.Json = False) -> None:
    """Pause everything proactive, for everybody. Answers to people go on. Needs an admin token."""
    _, client = options.here()
    client.pause()
    _tell("Paused: no follow-up is said until `vigil resume`.", {"paused": True}, is_json=json)


def resume(json: options.Json = False) -> None:
    """End the pause. Needs an admin token."""
    _, client = options.here()
    client.resume()
    _tell("Resumed.", {"paused": False}, is_json=json)


def stop(key: options.Key, json: options.Json = False) -> None:
    """Stop the turn that is running in a session."""
    _, client = options.here()
    key = options.checked(key)
    client.stop(key)
    _tell(f"Asked {key} to stop.", {"session_key": key, "stopped": True}, is_json=json)


def _tell(text: str, facts: dict[str, object], *, is_json: bool) -> None:
    if is_json:
        output.json(facts)
    else:
        output.message(text)
