"""Whom a person knows, through all services: looked up by the agent, asked about over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agent import ask
from tests.support.carddav_server import PASSWORD, CardDavServer, card
from tests.support.world import World, running_world
from vigil.contacts import kept
from vigil.contracts import ToolResultEvent, decode_event

RUTH = "ruth@example.org"


def states(world: World) -> list[str]:
    found = world.gate.stack.contexts["gateway"].facts.get("contacts", {})
    return sorted(one["state"] for one in found.values())


async def test_an_agent_looks_up_whom_its_person_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-6, X-3: her own list is hers; what others wrote under a friend's name comes after, marked
    as from outside; nobody else is shown either."""
    file = tmp_path / "own.vcf"
    file.write_text(card("Ruth Ray", f"EMAIL:{RUTH}") + "BEGIN:VCARD\nEND:VCARD\n")
    with CardDavServer(tmp_path / "radicale").running() as server:
        server.put("bob", card("Bob Mal", "EMAIL:bob@example.org"))
        server.put("ruth", card("Ruth", "EMAIL:mal@c.example"))
        sections = {
            "contacts": {
                "own": {"user": "ann", "file": str(file), "is_mine_alone": True},
                "all": {
                    "user": "ann", "url": server.url, "login": "ann", "password": PASSWORD,
                },
                "gone": {"user": "bob", "file": "gone.vcf"},
            },
            "people": {"ann": {"contacts": ["Al <al@example.org>"]}},
        }  # fmt: skip
        async with running_world(
            tmp_path / "home", monkeypatch, has_hands=True, **sections
        ) as world:
            await world.until(lambda: states(world) == ["failing", "read", "read"])
            ann = await world.person()
            for name in ("ruth", "bob", "al", "nobody"):
                await ann.exchange(ask(("contact_find", {"name": name})))
            events = [decode_event(m.data) for m in ann.talk.log if ".in.tool" in m.subject]
            told = [e.payload for e in events if isinstance(e, ToolResultEvent)]
            assert [(one.content, one.is_tainted) for one in told] == [
                (f"Ruth Ray <{RUTH}>", False),
                ("In lists that others write:\nBob Mal <bob@example.org>", True),
                ("Al <al@example.org>", False),
                ("Nobody of that name is in the person's contacts.", False),
            ]

            found = (await ann.http.get("/api/contacts")).json()
            assert {one["name"]: one["counts"] for one in found["sources"]} == {
                "all": False, "own": True,
            }  # fmt: skip
            assert [(one["name"], one["counts"]) for one in found["contacts"]] == [
                ("Bob Mal", False), ("Ruth", False), ("Ruth Ray", True),
            ]  # fmt: skip
            own = next(one for one in found["sources"] if one["name"] == "own")
            assert (own["state"], own["people"], own["left_out"]) == ("read", 1, 0)
            asked = await ann.http.get("/api/contacts", params={"q": "bob"})
            assert [one["name"] for one in asked.json()["contacts"]] == ["Bob Mal"]
            assert (await ann.http.get("/api/contacts?user=bob")).status_code == 403

            bob = await world.person("bob:vigil:t1", has_socket=False)
            others = (await bob.http.get("/api/contacts")).json()
            assert [(one["name"], one["state"]) for one in others["sources"]] == [
                ("gone", "failing")
            ]
            assert "can't be read: No such file" in others["sources"][0]["problem"]
            assert others["contacts"] == []
            shown = (await bob.http.get("/api/status")).text
            assert "lists of contacts fail: 1 of 3" in shown
            assert not [word for word in ("Ray", "gone", "own.vcf", server.url) if word in shown]

            await kept.forget(world.admin, "ann")
            assert (await ann.http.get("/api/contacts")).json()["contacts"] == []
