"""`facts`: what jobs and hooks told in a closed form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from vigil.board.row_commands import OF_SOURCE

from .. import options, output, tables
from ..tables import Result


def facts() -> Result:
    """Show what jobs and hooks told in a closed form, as agents are shown it, and where from."""
    found = options.client().facts()
    return Result({"sources": found}, partial(_show, found))


def _show(found: list[dict[str, Any]]) -> None:
    if not found:
        output.message("None are named: `vigil cron add --fact`, or facts of a hook.")
    for one in found:
        output.data(_heading(one))
        tables.table(OF_SOURCE, one["facts"])


def _heading(one: Mapping[str, Any]) -> str:
    """Say whose facts follow, and how much they told today.

    >>> _heading({"source": "cron ci", "agent_id": "vigil", "bits": 24.11, "bits_max": 512,
    ...     "is_full": False})
    'cron ci, for vigil: 24 of 512 bits today'
    """
    full = "; no more until 00:00 UTC" if one["is_full"] else ""
    return (
        f"{one['source']}, for {one['agent_id']}: {one['bits']:.0f} of {one['bits_max']} bits "
        f"today{full}"
    )
