"""Taking back a message: said anew, or answered anew, in the place of the earlier one."""

from __future__ import annotations

from typing import Any

from services.cortex.history import History
from services.cortex.session import log as session_log
from tests.support.agent import ask, follow_up
from tests.support.replaying import assert_replayed
from tests.support.world import Person, World
from vigil.clock import SystemClock
from vigil.contracts import TextBlock, Turn
from vigil.observe.metrics import Metrics
from vigil.subjects import SessionKey


async def anew(person: Person, **wanted: object) -> dict[str, Any]:
    """Take a message back, and wait until the session has done with what takes its place."""
    answer = await person.http.post(f"/api/sessions/{person.key}/versions", json=wanted)
    assert answer.status_code == 202, answer.text
    accepted: dict[str, Any] = answer.json()
    await person.talk.ended(accepted["seq"])
    await person.world.at_rest()
    return accepted


def shown(world: World) -> str:
    """All words of the newest request but the situation."""
    return world.agent.text_of(world.agent.requests[-1])


async def test_an_edited_message_takes_the_place_of_the_first_and_of_what_came_of_it(
    world: World,
) -> None:
    """No model sees the older version again; its reminders are void; people can still read it."""
    ann = await world.person(has_socket=False)
    await ann.exchange(ask(follow_up("cake", 900, "Take out the cake", keep=True)))
    await ann.exchange("I call my horse Oats")
    await ann.exchange(ask(follow_up("tea", 600, "Drink it", keep=True)))
    await ann.exchange("I sold Oats today")
    message = (await ann.transcript())[2]
    assert message["text"] == "I call my horse Oats"
    first = await anew(ann, message=message["seq"], text="I call my horse Barley")
    assert "I call my horse Barley" in shown(world)
    assert "Oats" not in shown(world)
    assert list(await ann.timers()) == ["cake"]
    await ann.exchange("And now?")
    assert shown(world).count("re: I call my horse Barley") == 1
    assert "Oats" not in shown(world)
    lines = await ann.transcript()
    assert [line["text"] for line in lines if "taken_back_by" not in line][2:] == [
        "I call my horse Barley", "re: I call my horse Barley", "And now?", "re: And now?",
    ]  # fmt: skip
    older = [line for line in lines if line.get("taken_back_by") == first["seq"]]
    assert [line["text"] for line in older if line["role"] == "user"][::2] == [
        "I call my horse Oats", "I sold Oats today",
    ]  # fmt: skip
    assert [one["replaces"] for one in lines if "replaces" in one] == [message["id"]]
    state, key = ann.talk.turns[-1].state, SessionKey.parse(ann.key)
    offer = await session_log.unsaved(world.admin, key, 1, 100_000, state.taken_back)
    offered = str(offer.chunks)
    assert "Barley" in offered
    assert "Oats" not in offered, "memory isn't offered it"
    # An older version can be gone on from, in a thread of its own.
    turn = older[-1]["turn_seq"]
    made = await ann.http.post(f"/api/sessions/{ann.key}/forks", json={"turn": turn})
    other = await world.person(made.json()["session_key"], has_socket=False)
    await other.exchange("Who was it?")
    assert "I sold Oats today" in shown(world)
    assert "Barley" not in shown(world)
    late = await ann.http.post(f"/api/sessions/{ann.key}/forks", json={})
    other = await world.person(late.json()["session_key"], has_socket=False)
    await other.exchange("Who is it?")
    assert "re: I call my horse Barley" in shown(world)
    assert "Oats" not in shown(world)
    newest = (await ann.http.get(f"/api/sessions/{ann.key}/calls")).json()["calls"][0]
    path = f"/api/sessions/{ann.key}/calls/{newest['turn_seq']}"
    rows = (await ann.http.get(path)).json()["rows"]
    assert [row["text"] for row in rows if row["source"] == "person"][1:] == [
        "I call my horse Barley", "And now?",
    ]  # fmt: skip
    await world.advance(901)
    assert ann.followed_up == ["Take out the cake"]
    await assert_replayed(world.admin, world.stack.contexts["cortex"].settings.config)


async def test_an_answer_is_given_anew(world: World) -> None:
    """Also to the first message, again and again; what is read back is what had grown."""
    ann = await world.person(has_socket=False)
    await ann.exchange("hello")
    for _ in range(3):
        await anew(ann)
        assert shown(world).count("hello") == 1
    await ann.exchange("And now?")
    await anew(ann, text="And then?")
    assert "And now?" not in shown(world)
    assert shown(world).count("re: hello") == 1
    history = History(80, 100_000)
    key, counts = SessionKey.parse(ann.key), Metrics("cortex")
    read = await session_log.load(world.admin, key, SystemClock(), counts, history)
    assert len(read.history.newest) == 4
    assert len(read.state.taken_back) == 2, "one place each"
    lines = [one["text"] for one in await ann.transcript() if "taken_back_by" not in one]
    assert lines == ["hello", "re: hello", "And then?", "re: And then?"]
    await assert_replayed(world.admin, world.stack.contexts["cortex"].settings.config)


async def test_what_is_taken_back_is_taken_back_once(world: World) -> None:
    """A repeat changes nothing; what is older already, or another's, isn't found."""
    ann = await world.person(has_socket=False)
    await ann.exchange("hello")
    (line, answer) = await ann.transcript()
    wanted = {"message": line["seq"], "text": "good day", "idempotency_key": "k"}
    first = await anew(ann, **wanted)
    assert await anew(ann, **wanted) == first
    path = f"/api/sessions/{ann.key}/versions"
    wrong: list[tuple[dict[str, object], int]] = [
        ({"message": line["seq"]}, 409), ({"message": answer["seq"]}, 404),
        ({"message": 10**9}, 404), ({"text": ""}, 422),
    ]  # fmt: skip
    for body, status in wrong:
        refused = await ann.http.post(path, json=body)
        assert refused.status_code == status, (body, refused.text)
    bob = await world.person("bob:vigil:t1", has_socket=False)
    assert (await bob.http.post(path, json={})).status_code == 404
    assert [one["text"] for one in await ann.transcript()] == [
        "hello", "re: hello", "good day", "re: good day",
    ]  # fmt: skip


async def test_a_message_is_replaced_while_it_is_being_answered(world: World) -> None:
    """What is thought about it is thrown away, and so is what waited behind it."""
    ann = await world.person(has_socket=False)
    await ann.exchange("hello")
    world.agent.gate.clear()
    world.agent.held = {"the old one"}
    first = await ann.say("the old one")
    await world.agent.thinking.wait()
    waiting = await ann.say("and this")
    await ann.talk.until(lambda: any(waiting in _queued(turn) for turn in ann.talk.turns))
    path = f"/api/sessions/{ann.key}/versions"
    too_early = await ann.http.post(path, json={"message": waiting})
    assert too_early.status_code == 409, "it waits to be taken up"
    accepted = await anew(ann, message=first, text="the new one")
    world.agent.gate.set()
    await ann.exchange("And now?")
    assert [row.blocks[0] for row in world.agent.requests[-1].rows if row.source == "person"] == [
        TextBlock(text=text) for text in ("hello", "the new one", "And now?")
    ]
    lines = await ann.transcript()
    assert [one["text"] for one in lines if "taken_back_by" not in one] == [
        "hello", "re: hello", "the new one", "re: the new one", "And now?", "re: And now?",
    ]  # fmt: skip
    older = {one["text"]: one["taken_back_by"] for one in lines if "taken_back_by" in one}
    assert older == {"the old one": accepted["seq"], "and this": accepted["seq"]}
    await assert_replayed(world.admin, world.stack.contexts["cortex"].settings.config)


def _queued(turn: Turn) -> set[int]:
    return {one.seq for one in turn.state.queue}
