"""Reading back: sessions, transcript, timeline, timers; and the orders stop and cancel."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.gateway.backlog.counts import count, start_of_newest
from tests.support.gateway import Gate, assert_problem, until
from vigil.contracts import Control, FollowUp, State, decode_event
from vigil.erasure.deletion import erase_message
from vigil.subjects import SessionKey

ANN = "ann:vigil:t1"
PATH = f"/api/sessions/{ANN}"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


async def test_the_transcript_is_what_was_said_in_order(gate: Gate) -> None:
    """SPEC P-5, S-9: both sides, tags, causes; nothing else of the log."""
    ann = await gate.person("ann")
    said = (await ann.post(f"{PATH}/messages", json={"text": "hi"})).json()
    await gate.turn(ANN, State(position=1, turns=1))
    await gate.say(ANN, "hello", effect_id="e1", caused_by=said["event_id"])
    await gate.receipt(ANN, "e1", "said")
    await gate.say(ANN, "still there?", effect_id="e2", caused_by="t", tag="Agent follow-up")
    answer = await ann.get(PATH)
    assert answer.headers["cache-control"] == "no-store"
    transcript = answer.json()
    assert transcript["session_key"] == ANN
    assert transcript["next_after"] is None
    lines = transcript["messages"]
    assert [(m["role"], m["text"], m.get("tag")) for m in lines] == [
        ("user", "hi", None),
        ("assistant", "hello", None),
        ("assistant", "still there?", "Agent follow-up"),
    ]
    assert [m["caused_by"] for m in lines] == [None, said["event_id"], "t"]
    assert [m["id"] for m in lines] == [said["event_id"], "e1", "e2"]
    assert all(datetime.fromisoformat(m["at"]).tzinfo for m in lines)


async def test_a_long_transcript_is_read_by_pages_newest_first_page(gate: Gate) -> None:
    """SPEC P-5: without `after` the newest; with it, on from there to the end."""
    ann = await gate.person("ann")
    for n in range(57):
        await gate.say(ANN, str(n), effect_id=f"e{n}")
        await gate.say("ann:vigil:other", str(n), effect_id=f"e{n}")
    newest = (await ann.get(f"{PATH}?limit=10")).json()["messages"]
    assert [m["text"] for m in newest] == [str(n) for n in range(47, 57)]
    texts: list[str] = []
    after: int | None = 0
    while after is not None:
        page = (await ann.get(f"{PATH}?limit=20&after={after}")).json()
        texts += [m["text"] for m in page["messages"]]
        after = page["next_after"]
    assert texts == [str(n) for n in range(57)]
    for query in ("limit=0", "limit=1001", "after=-1", "after=x", "after=99999999999999999999"):
        assert_problem(await ann.get(f"{PATH}?{query}"), 422, query.partition("=")[0])


async def test_counting_needs_no_reading(gate: Gate) -> None:
    """The newest N are found by asking how many there are from a sequence on."""
    key = SessionKey.parse(ANN)
    assert await count(gate.admin, "SESSIONS", key.transcript, 1) == 0
    assert await start_of_newest(gate.admin, "SESSIONS", key.transcript, 5) == 1
    seqs = []
    for n in range(9):
        seqs.append((await gate.say(ANN, str(n), effect_id=f"e{n}")).seq)
        await gate.say("bob:vigil:t1", "x", effect_id=f"e{n}")
    for limit in range(1, 9):
        start = await start_of_newest(gate.admin, "SESSIONS", key.transcript, limit)
        assert sum(seq >= start for seq in seqs) == limit


async def test_the_timeline_shows_every_record(gate: Gate) -> None:
    """SPEC P-5: with sequence, kind, trace and the record as it's stored; by pages."""
    ann = await gate.person("ann")
    await ann.post(f"{PATH}/messages", json={"text": "hi"})
    await gate.turn(ANN, State(position=1, turns=1))
    await gate.say(ANN, "hello", effect_id="e1")
    await gate.receipt(ANN, "e1", "said")
    await ann.post(f"{PATH}/stop")
    records = (await ann.get(f"{PATH}/timeline")).json()["records"]
    kinds = [record["kind"] for record in records]
    assert kinds == ["in.said.user", "turn", "out.said", "receipt", "in.control"]
    assert records[0]["data"]["payload"]["text"] == "hi"
    assert records[0]["trace"].startswith("00-")
    page = (await ann.get(f"{PATH}/timeline?limit=2")).json()
    assert [record["seq"] for record in page["records"]] == [1, 2]
    rest = (await ann.get(f"{PATH}/timeline?after={page['next_after']}")).json()
    assert [record["seq"] for record in rest["records"]] == [3, 4, 5]
    assert rest["next_after"] is None


async def test_timers_are_void_as_soon_as_a_message_is_stored(gate: Gate) -> None:
    """SPEC S-6, S-8: due order; a stored message voids all but reminders, before any turn."""
    ann = await gate.person("ann")
    assert (await ann.get(f"{PATH}/timers")).json() == {"session_key": ANN, "timers": []}
    follow_ups = {
        "later": FollowUp(generation=1, fire_at=NOW + timedelta(hours=2), reason="ask"),
        "soon": FollowUp(generation=1, fire_at=NOW + timedelta(hours=1), reason="look"),
        "kept": FollowUp(
            generation=2, fire_at=NOW + timedelta(hours=3), message="stretch", keep=True
        ),
    }
    first = (await ann.post(f"{PATH}/messages", json={"text": "hi"})).json()
    await gate.turn(ANN, State(position=first["seq"], turns=1, follow_ups=follow_ups))
    listed = (await ann.get(f"{PATH}/timers")).json()["timers"]
    assert [timer["timer_id"] for timer in listed] == ["soon", "later", "kept"]
    assert listed[2] == {
        "timer_id": "kept", "fire_at": "2026-11-20T15:00:00Z", "reason": "", "keep": True,
        "generation": 2, "message": "stretch",
    }  # fmt: skip
    await ann.post(f"{PATH}/messages", json={"text": "back"})
    listed = (await ann.get(f"{PATH}/timers")).json()["timers"]
    assert [timer["timer_id"] for timer in listed] == ["kept"]


@pytest.mark.parametrize("timer_id", ["tea", "a/b c", "*.>", "ü"])
async def test_cancelling_a_timer_is_an_event(gate: Gate, timer_id: str) -> None:
    """SPEC S-6: any id, in the payload only; never in a subject."""
    ann = await gate.person("ann")
    timer = f"{PATH}/timers/{timer_id.replace('/', '%2F')}"
    assert_problem(await ann.delete(timer), 404)
    assert await gate.stored(ANN) == []  # the order would have begun a conversation
    await ann.post(f"{PATH}/messages", json={"text": "hi"})
    answer = await ann.delete(timer)
    assert answer.status_code == 202
    *_, stored = await gate.stored(ANN)
    assert stored.subject == "session.vigil.ann.t1.in.control"
    event = decode_event(stored.data)
    assert isinstance(event, Control)
    assert (event.payload.op, event.payload.timer_id) == ("cancel_timer", timer_id)
    assert answer.json() == {"event_id": event.id, "seq": stored.seq}
    assert_problem(await ann.delete(f"{PATH}/timers/{'x' * 129}"), 422, "timer_id")


async def test_stop_is_an_event(gate: Gate) -> None:
    """SPEC S-11: one switch stops a running turn."""
    ann = await gate.person("ann")
    assert_problem(await ann.post(f"{PATH}/stop"), 404)
    assert await gate.stored(ANN) == [], "a mistyped name is no conversation from then on"
    await ann.post(f"{PATH}/messages", json={"text": "hi"})
    assert (await ann.post(f"{PATH}/stop")).status_code == 202
    _, stored = await gate.stored(ANN)
    event = decode_event(stored.data)
    assert isinstance(event, Control)
    assert event.payload.op == "stop"


async def test_sessions_are_listed_by_pages(gate: Gate) -> None:
    """SPEC P-5: the caller's own, with a count and when; an admin may name a user."""
    ann, root = await gate.person("ann"), await gate.person("root", is_admin=True)
    bob = await gate.person("bob")
    for n in range(7):
        await ann.post(f"/api/sessions/ann:vigil:t{n}/messages", json={"text": "hi"})
    await ann.post("/api/sessions/ann:other:t0/messages", json={"text": "hi"})
    await ann.post("/api/sessions/ann:other:t0/messages", json={"text": "again"})
    await bob.post("/api/sessions/bob:vigil:t0/messages", json={"text": "hi"})
    keys: list[str] = []
    after: str | None = ""
    pages = 0
    while after is not None:
        page = (await ann.get(f"/api/sessions?limit=3&after={after}")).json()
        keys += [session["session_key"] for session in page["sessions"]]
        after, pages = page["next_after"], pages + 1
    assert keys == ["ann:other:t0"] + [f"ann:vigil:t{n}" for n in range(7)]
    assert pages == 3
    first = (await ann.get("/api/sessions?limit=1")).json()["sessions"][0]
    assert first["messages"] == 2
    assert datetime.fromisoformat(first["last_at"]) <= datetime.now(UTC)
    assert len((await root.get("/api/sessions")).json()["sessions"]) == 9
    assert len((await root.get("/api/sessions?user=bob")).json()["sessions"]) == 1
    assert_problem(await root.get("/api/sessions?user=*"), 422, "user")


async def test_a_list_of_conversations_is_ones_own(gate: Gate) -> None:
    """Titles, archive and what is unread are each reader's; newest first; searched; over replicas,
    as all is on the log; gone with the conversation."""
    lou = await gate.person("lou")

    async def listed(client: Any = lou, **query: Any) -> list[dict[str, Any]]:
        answer = await client.get("/api/sessions", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["sessions"]  # type: ignore[no-any-return]

    def keys(found: list[dict[str, Any]]) -> list[str]:
        return [one["session_key"].rpartition(":")[2] for one in found]

    said = {}
    for thread, text in (
        ("z", "Which\n **tea**  helps?\n\n* `mint`"),
        ("a", "Plan my week " * 9),
        ("m", "Basil!"),
    ):
        path = f"/api/sessions/lou:vigil:{thread}"
        said[thread] = (await lou.post(f"{path}/messages", json={"text": text})).json()["seq"]
    newest = await listed(order="newest")
    assert keys(newest) == ["m", "a", "z"]
    assert keys(await listed()) == ["a", "m", "z"]
    assert [one["title"] for one in newest] == [
        "Basil!",
        "Plan my week Plan my week Plan my week Plan my week Plan my…",
        "Which tea helps? mint",
    ]
    assert not any("is_unread" in one for one in newest)
    # Each page goes on where the one before ended, in either order.
    (first,) = await listed(order="newest", limit=1)
    assert keys(await listed(order="newest", after=first["session_key"])) == ["a", "z"]
    await lou.post("/api/sessions/lou:vigil:z/messages", json={"text": "More"})
    assert keys(await listed(order="newest")) == ["z", "m", "a"]

    # Unread is what the agent said after what one wrote or read, and each reads for themselves.
    place = (await gate.say("lou:vigil:a", "Monday is full", effect_id="e1")).seq
    assert [one["session_key"] for one in await listed() if one.get("is_unread")] == ["lou:vigil:a"]
    path = "/api/sessions/lou:vigil:a"
    assert (await lou.patch(path, json={"read_to": place})).json()["read_to"] == place
    assert (await lou.patch(path, json={"read_to": 1})).json()["read_to"] == place
    assert not any(one.get("is_unread") for one in await listed())
    await gate.say("lou:vigil:a", "Tuesday, too", effect_id="e2")
    assert sum(one.get("is_unread", False) for one in await listed()) == 1

    # What `vigil chat` acknowledges its person has read; what a program does, they haven't.
    for client, unread in (("bot", 1), ("cli", 0)):
        socket = await gate.socket(await gate.token("lou"), "lou:vigil:a", client=client)
        newest_said = (await lou.get(path)).json()["messages"][-1]["seq"]
        while json.loads(await socket.recv()).get("cursor") != newest_said:
            pass
        await socket.send(json.dumps({"type": "ack", "cursor": newest_said}))
        await socket.close()

        async def is_noted(unread: int = unread) -> bool:
            return sum(one.get("is_unread", False) for one in await listed()) == unread

        await until(is_noted, client)
    place = newest_said

    # A name and the archive.
    named = (await lou.patch(path, json={"title": "  My\n week ", "archived": True})).json()
    assert (named["title"], named["is_archived"], named["read_to"]) == ("My week", True, place)
    assert keys(await listed(archived=False)) == ["m", "z"]
    assert [one["title"] for one in await listed(archived=True)] == ["My week"]
    assert keys(await listed(words="WEEK my")) == ["a"]
    assert keys(await listed(words="tea")) == ["z"]
    assert keys(await listed(words="plan")) == []  # it's called otherwise
    again = (await lou.patch(path, json={"title": None, "archived": False})).json()
    assert again["title"].startswith("Plan my week")
    assert not again["is_archived"]
    held = await gate.admin.read("KV_CONFIG", ["$KV.CONFIG.label.>"])
    assert not any(one.data for one in held)
    assert_problem(await lou.patch(path, json={"title": "x" * 121}), 422, "title")
    assert_problem(await lou.patch("/api/sessions/lou:vigil:none", json={"title": "x"}), 404)
    stan = await gate.person("stan")
    assert_problem(await stan.patch(path, json={"title": "mine"}), 404)

    # What one is called ends with it: the name of the thread may be used anew.
    await lou.patch(path, json={"title": "Secret plan"})
    assert (await lou.delete(path)).status_code in (200, 202)
    held = await gate.admin.read("KV_CONFIG", ["$KV.CONFIG.label.>"])
    assert not any(b"Secret" in one.data for one in held)
    assert keys(await listed(order="newest")) == ["z", "m"]
    # Once its records are gone, it isn't known from an earlier look either.
    for message in await gate.admin.read("SESSIONS", [SessionKey.parse("lou:vigil:m").in_user]):
        await erase_message(gate.admin, "SESSIONS", message.seq)
    assert keys(await listed(order="newest")) == ["z"]
