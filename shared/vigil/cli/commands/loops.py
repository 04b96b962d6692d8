"""The loops that the system keeps up (autonomy, bulletin, mind …), as `vigil status` has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vigil.errors import Unavailable
from vigil.sdk.client import ApiError, Client

from .. import wall

NAMES: Final = ("kind", "agent_id", "owner", "failures", "runs")


def of(client: Client, status: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return each loop that one may see and its state; None: they can't be asked now."""
    try:
        rows = client.cron_rows(all_=True)
    except (ApiError, Unavailable):
        return None
    paused = {(one["agent"], one.get("user")) for one in status.get("paused_agents", ())}
    found = [
        {
            **{name: one[name] for name in NAMES},
            "state": _state(one, is_paused=bool(status.get("paused")) or _is_in(paused, one)),
            "next_at": next(iter(one["next_at"]), None),
        }
        for one in rows
        if one["made_by"] == "system"
    ]
    return sorted(found, key=lambda one: (one["kind"], one["agent_id"], one["owner"]))


def _is_in(paused: set[tuple[str, str | None]], row: Mapping[str, Any]) -> bool:
    return not paused.isdisjoint({(row["agent_id"], None), (row["agent_id"], row["owner"])})


def _state(row: Mapping[str, Any], *, is_paused: bool) -> str:
    """Say what a loop is at.

    >>> _state({"is_enabled": True, "running": 0, "failures": 2}, is_paused=False)
    'failing'
    """
    if not row["is_enabled"]:
        return "off"
    if row["running"]:
        return "running"
    if is_paused:
        return "paused"
    return "failing" if row["failures"] else "waiting"


def described(loops: Sequence[Mapping[str, Any]] | None) -> Iterator[str]:
    """Yield a line for each kind of loop.

    >>> one = {"kind": "mind", "state": "waiting", "next_at": "2026-11-28T09:00:00Z"}
    >>> list(described([one, {**one, "state": "off", "next_at": None}]))
    ['loop mind: 1 waiting, 1 off; next 2026-11-28 09:00:00 UTC']
    """
    for kind in dict.fromkeys(one["kind"] for one in loops or ()):
        ours = [one for one in loops or () if one["kind"] == kind]
        states = [one["state"] for one in ours]
        counts = ", ".join(f"{states.count(one)} {one}" for one in dict.fromkeys(states))
        next_at = min((one["next_at"] for one in ours if one["next_at"]), default=None)
        ahead = f"; next {wall.zoned(next_at)}" if next_at else ""
        yield f"loop {kind}: {counts}{ahead}"
