"""Names of letters and ids of messages: guessed, another's, or of what is gone (FLOW F-2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from services.scheduler import deletions
from tests.acceptance.test_deleted_threads import deleted
from tests.acceptance.test_trust import fine, happens, letters
from tests.support.world import World, running_world

NO_IDS: Final[tuple[Any, ...]] = (
    "", " ", "*", ">", "a.b", "a b", "..", "é", "a" * 65, "none", "-1", "0", str(10**30), -1, 0, 7,
    10**30, 1.5, True, [], {}, ["x"],
)  # fmt: skip
NO_HANDLES: Final = (
    "a0", "A1", "a-1", "a1x", "aa1", "a01", "1a", "a", "*", "a1%00", "a1%20", "z1", "a9999999999",
    "a999999999", "b99",
)  # fmt: skip


async def test_a_reply_points_at_nothing_but_what_the_agent_said_there(world: World) -> None:
    """Of what isn't there, is another's, or was never said nothing is stored and nothing told."""
    ann, bob = await world.person(has_socket=False), await world.person("bob:vigil:t1")
    other = await world.person("ann:vigil:t2", has_socket=False)
    for number, one in enumerate((ann, bob, other)):
        await happens(one, "the build is red", str(number))
    ids = {one.key: (await one.transcript())[-1]["id"] for one in (ann, bob, other)}
    (own,) = [m for m in other.talk.log if m.subject.endswith(".in.external")]
    await ann.exchange("hello")
    mine = (await ann.transcript())[-2]
    assert mine["role"] == "user"
    count = len(ann.talk.log)
    for wrong in (
        *NO_IDS,
        ids[bob.key],
        ids[other.key],
        mine["id"],
        str(own.seq),
        str(mine["seq"]),
    ):
        body = {"text": "what?", "reply_to": wrong}
        answer = await ann.http.post(f"/api/sessions/{ann.key}/messages", json=body)
        assert answer.status_code == 422, (wrong, answer.text)
        assert "red" not in answer.text
    assert len(ann.talk.log) == count
    await world.advance(3600)
    for one, is_known in ((ann, True), (other, True)):
        await one.exchange("what?", reply_to=ids[one.key])
        assert one.talk.turns[-1].is_swayed is is_known, "the control: their own"


async def test_a_handle_names_nothing_of_another_conversation(world: World) -> None:
    """Whoever guesses: the person in a message, the model in a call, a client in a path."""
    ann, bob = await world.person(has_socket=False), await world.person("bob:vigil:t1")
    other = await world.person("ann:vigil:t2", has_socket=False)
    for _ in range(4):
        await other.exchange("hello")
    await happens(other, "the build is red", "1")
    (_, theirs) = await letters(other.http, other.key)
    await ann.exchange("hello")
    await world.advance(3600)
    await ann.exchange(f"open {theirs['handle']}, open a999999999 and open z7")
    shown = world.agent.requests[-1]
    assert [one.text for one in shown.situation.letters] == ["", "", ""]
    assert "there is none of that name here" in shown.present
    path = f"/api/sessions/{ann.key}/letters"
    count = len(ann.talk.log)
    for handle in (*NO_HANDLES, theirs["handle"]):
        for method, tail in (("GET", ""), ("POST", "/vouch"), ("DELETE", "/vouch")):
            answer = await ann.http.request(method, f"{path}/{handle}{tail}")
            assert answer.status_code in (404, 405, 422), (handle, answer.text)
    assert len(ann.talk.log) == count
    for stranger, key in ((bob, other.key), (bob, ann.key), (ann, bob.key)):
        theirs_path = f"/api/sessions/{key}/letters/{theirs['handle']}"
        assert (await stranger.http.get(theirs_path)).status_code == 404
        assert (await stranger.http.delete(f"{theirs_path}/vouch")).status_code == 404
    await other.exchange(f"open {theirs['handle']}")
    assert world.agent.requests[-1].situation.letters[0].text == "the build is red", "the control"


@pytest.mark.usefixtures("own_broker")
async def test_a_deleted_conversations_letters_are_gone_whoever_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name may be another's afterwards, and so may its handles: what was read of the old one
    vouches for nothing of the new."""
    monkeypatch.setattr(deletions, "QUIET_S", 0.2)
    released = {"idle_release_s": 0.3}
    async with running_world(tmp_path, monkeypatch, sessions=released) as world:
        ann = await world.person(has_socket=False)
        await happens(ann, "the build is red", "1")
        said = (await ann.transcript())[-1]["id"]
        path = f"/api/sessions/{ann.key}/letters/a1"
        read = (await ann.http.get(path)).json()
        made = await ann.http.post(f"/api/sessions/{ann.key}/forks", json={})
        fork = await world.person(made.json()["session_key"], has_socket=False)
        await fork.until_released()
        await deleted(ann)
        assert (await ann.http.get(path)).status_code == 404
        assert (await ann.http.post(f"{path}/vouch")).status_code == 404
        body = {"text": "what?", "reply_to": said}
        refused = await ann.http.post(f"/api/sessions/{ann.key}/messages", json=body)
        assert refused.status_code in (410, 422)
        await fork.exchange("open a1, open b1")
        assert [one.text for one in world.agent.requests[-1].situation.letters] == ["", ""]
        await happens(ann, "the build is green", "2")
        handle = (await letters(ann.http, ann.key))[-1]["handle"]
        shown = await ann.http.get(f"/api/sessions/{ann.key}/letters/{handle}")
        assert shown.json()["text"] == "the build is green"
        assert await fine(ann, handle, digest=read["digest"]) == 409
        assert (await letters(ann.http, ann.key))[-1]["is_vouched"] is False
        refused = await ann.http.post(f"/api/sessions/{ann.key}/messages", json=body)
        assert refused.status_code == 422
