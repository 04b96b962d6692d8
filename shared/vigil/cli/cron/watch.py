"""What a row watches, at a terminal: as it is given, and as it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from vigil.contracts.board import Watched
from vigil.errors import InvalidInput
from vigil.looks.watched import wanted_watch, words_of


def watched(one: Mapping[str, Any]) -> str:
    """Say what a row watches, as `--watch` takes it.

    >>> watched({"watch": {"kind": "files", "glob": "*.md"}})
    'files:*.md'
    """
    if one["watch"] is None:
        return "nothing"
    return words_of(msgspec.convert(one["watch"], Watched))


def watch_fields(what: str | None, pointer: str | None, arguments: str | None) -> dict[str, Any]:
    """Return what is to be watched, as the API calls it. Raises: InvalidInput."""
    if what is None and (pointer or arguments) is not None:
        raise InvalidInput("--watch", "must say what, if --pointer or --arguments do")
    if what is None:
        return {}
    try:
        given = arguments and msgspec.json.decode(arguments, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidInput("--arguments", f"must be a JSON object: {error}") from error
    wanted = wanted_watch(what, pointer, given or None)
    return {"watch": None if wanted is msgspec.UNSET else msgspec.to_builtins(wanted)}
