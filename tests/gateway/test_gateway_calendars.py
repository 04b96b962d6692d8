"""/api/calendars: whose calendars there are, and how each is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from tests.support.gateway import Gate, assert_problem
from tests.support.stack import running_stack
from vigil.calendars.state import FACT, CalendarState

PATH: Final = "/api/calendars"
SECTIONS: Final[dict[str, dict[str, Any]]] = {
    "work": {"kind": "caldav", "url": "https://dav.example/s3cret/", "user": "ann"},
    "notes": {"kind": "file", "file": "notes.ics", "user": "bob"},
}


async def test_each_sees_their_own_and_how_they_are(tmp_path: Path) -> None:
    """D-3: name, kind, state, last look and problem in words; no address, which may be a secret."""
    async with running_stack(tmp_path, services=("gateway",), calendars=SECTIONS) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        ann, root = await gate.person("ann"), await gate.person("root", is_admin=True)
        told = CalendarState(state="refused", problem="401: the password is refused", events=3)
        # As the executor that keeps it tells with its health.
        stack.contexts["gateway"].facts[FACT] = {"work": msgspec.to_builtins(told)}
        answer = await ann.get(PATH)
        (after,) = answer.json()["calendars"]
        assert (after["state"], after["problem"], after["events"]) == (
            "refused", "401: the password is refused", 3,
        )  # fmt: skip
        assert "s3cret" not in answer.text
        assert "work" not in (await (await gate.person("bob")).get("/api/status")).text
        (of_bob,) = (await root.get(PATH, params={"user": "bob"})).json()["calendars"]
        assert (of_bob["name"], of_bob["state"], of_bob["synced_at"]) == (
            "notes", "not_running", None,
        )  # fmt: skip
        assert_problem(await ann.get(PATH, params={"user": "bob"}), 403)
        await gate.close()
