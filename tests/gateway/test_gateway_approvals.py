"""/api/approvals: who sees a request, what may be said to it, and that it is said once (X-2)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec

from tests.support.approvals import ANN, DIGEST, ID, ask, list_on_board, request
from tests.support.gateway import Gate, assert_problem
from vigil.contracts import (
    Control,
    ControlPayload,
    Decision,
    State,
    decode_event,
    encode,
    short_name,
)
from vigil.subjects import SessionKey


async def orders(gate: Gate, key: SessionKey = ANN) -> list[Control]:
    found = await gate.admin.read(key.stream, [key.in_event("control")])
    events = [decode_event(message.data) for message in found]
    return [event for event in events if isinstance(event, Control)]


# ---------------------------------------------------------------- who sees what


async def test_a_person_sees_their_own_and_an_admin_everybodys(gate: Gate) -> None:
    """X-2, X-4: the exact arguments, as they are; what isn't theirs isn't there."""
    await ask(gate, request())
    await ask(gate, request(SessionKey.parse("bob:vigil:t1"), "b" * 32))
    await list_on_board(gate, request(ANN, "c" * 32, state="rejected", text="no"))
    ann, admin = await gate.person("ann"), await gate.person("root", is_admin=True)
    assert await listed(ann) == [ID]
    assert await listed(ann, state="rejected") == ["c" * 32]
    assert set(await listed(ann, state="all")) == {ID, "c" * 32}
    assert set(await listed(admin)) == {ID, "b" * 32}
    assert await listed(admin, user="bob") == ["b" * 32]
    assert len(await listed(admin, limit="1")) == 1
    shown = (await ann.get(f"/api/approvals/{ID}")).json()
    assert shown["input"] == {"command": "rm \x1b[2Jx"}
    assert {name: shown[name] for name in ("tool", "risk", "digest", "state", "session_key")} == {
        "tool": "shell", "risk": "destructive", "digest": DIGEST, "state": "open",
        "session_key": str(ANN),
    }  # fmt: skip
    there, not_there = f"/api/approvals/{'b' * 32}", f"/api/approvals/{'f' * 32}"
    for path in (there, not_there):
        assert_problem(await ann.get(path), 404)
        problem = assert_problem(await ann.patch(path, json={"verdict": "accept"}), 404)
        assert problem["detail"] == "there is no such approval"
    assert_problem(await ann.get("/api/approvals?user=bob"), 403, "user")
    assert_problem(await (await gate.http()).get("/api/approvals"), 401)


async def test_a_word_that_was_taken_in_and_did_not_count_is_told_so_again(gate: Gate) -> None:
    """Another was faster, as one by a sign in a room: the same once more isn't 'accepted', either;
    but that of who was faster is."""
    ann = await gate.person("ann")
    path = f"/api/approvals/{ID}"
    await ask(gate, request())
    assert (await ann.patch(path, json={"verdict": "reject"})).status_code == 202
    decided = {"decided_by": "ann", "decided_at": datetime.now(UTC), "decided_channel": "matrix"}
    await list_on_board(gate, request(state="accepted", **decided))
    again = assert_problem(await ann.patch(path, json={"verdict": "reject"}), 409)
    assert again["detail"].startswith("it was accepted by ann over matrix at ")
    await list_on_board(gate, request(state="rejected", **decided))
    assert (await ann.patch(path, json={"verdict": "reject"})).status_code == 202


async def test_a_short_name_stands_for_the_id(gate: Gate) -> None:
    """L-9: in every call, for whom it is and while it is open."""
    await ask(gate, request())
    ann, bob = await gate.person("ann"), await gate.person("bob")
    path = f"/api/approvals/{short_name(ID)}"
    shown = (await ann.get(path)).json()
    assert (shown["id"], shown["name"]) == (ID, short_name(ID))
    assert_problem(await bob.get(path), 404)
    assert_problem(await ann.get("/api/approvals/azzz"), 404)
    assert_problem(await ann.get("/api/approvals/a7i2"), 422, "id")  # no such letter
    assert (await ann.patch(path, json={"verdict": "accept"})).status_code == 202
    (order,) = await orders(gate)
    assert order.payload.decision is not None
    assert order.payload.decision.approval_id == ID


async def listed(person: Any, **query: str) -> list[str]:
    answer = await person.get("/api/approvals", params=query)
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()["approvals"]]


async def test_an_admin_may_read_and_not_decide(gate: Gate) -> None:
    """X-2, X-4: a verdict is the person's own; nobody else's counts."""
    await ask(gate, request())
    admin = await gate.person("root", is_admin=True)
    assert (await admin.get(f"/api/approvals/{ID}")).status_code == 200
    assert_problem(await admin.patch(f"/api/approvals/{ID}", json={"verdict": "accept"}), 403)
    assert await orders(gate) == []


# ---------------------------------------------------------------- deciding


TAKEN: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"verdict": "accept", "digest": DIGEST}, {}),
    ({"verdict": "accept"}, {}),
    ({"verdict": "edit", "input": {"command": "ls"}}, {"input": {"command": "ls"}}),
    ({"verdict": "answer", "text": "there is no x"}, {"text": "there is no x"}),
    ({"verdict": "reject"}, {}),
    ({"verdict": "reject", "text": "too late"}, {"text": "too late"}),
)


async def test_a_verdict_is_an_order_of_the_session_that_asks(gate: Gate) -> None:
    """X-2: by whom is stamped here, and the digest is the one that is listed."""
    ann = await gate.person("ann")
    threads = [SessionKey("ann", "vigil", f"t{number}") for number in range(len(TAKEN))]
    workers = [key.of_kind("worker", f"{number:032x}") for number, key in enumerate(threads)]
    for number, (key, (body, wanted)) in enumerate(zip(threads + workers, TAKEN * 2, strict=True)):
        id_ = f"{number:032x}"
        await ask(gate, request(key, id_))
        answer = await ann.patch(f"/api/approvals/{id_}", json=body)
        assert answer.status_code == 202, answer.text
        (event,) = await orders(gate, key)
        assert event.id == answer.json()["event_id"]
        assert event.payload.op == "approval"
        assert event.payload.decision == msgspec.convert(
            {"approval_id": id_, "verdict": body["verdict"], "digest": DIGEST, "by": "ann"}
            | wanted,
            Decision,
        )


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "verdict"),
    ({"verdict": "perhaps"}, "verdict"),
    ({"verdict": "edit"}, "input"),
    ({"verdict": "edit", "input": "ls"}, "input"),
    ({"verdict": "edit", "input": {"a": "x" * 70_000}}, "input"),
    ({"verdict": "accept", "input": {}}, "input"),
    ({"verdict": "answer"}, "text"),
    ({"verdict": "answer", "text": " "}, "text"),
    ({"verdict": "answer", "text": "a\0b"}, "text"),
    ({"verdict": "accept", "text": "go"}, "text"),
    ({"verdict": "accept", "by": "bob"}, "by"),
    ({"verdict": "accept", "digest": 7}, "digest"),
)


async def test_what_does_not_fit_is_refused_by_name(gate: Gate) -> None:
    """X-6: and nothing of it reaches the session."""
    await ask(gate, request())
    ann = await gate.person("ann")
    for body, field in REFUSED:
        assert_problem(await ann.patch(f"/api/approvals/{ID}", json=body), 422, field)
    assert await orders(gate) == []


async def test_a_question_is_answered_or_rejected(gate: Gate) -> None:
    """X-2, P-6: there is nothing to run."""
    await ask(gate, request(tool="ask_user", input={"question": "which one?"}))
    ann = await gate.person("ann")
    for body in ({"verdict": "accept"}, {"verdict": "edit", "input": {}}):
        assert_problem(await ann.patch(f"/api/approvals/{ID}", json=body), 422, "verdict")
    answer = await ann.patch(f"/api/approvals/{ID}", json={"verdict": "answer", "text": "both"})
    assert answer.status_code == 202


async def test_ids_that_cannot_be_are_refused(gate: Gate) -> None:
    """S-2, X-6: nothing of them becomes a wildcard."""
    ann = await gate.person("ann")
    for id_ in ("*", "x", "A" * 32, "a" * 31, "a" * 33):
        assert_problem(await ann.get(f"/api/approvals/{id_}"), 422, "id")
    for query, field in (("limit=0", "limit"), ("limit=x", "limit"), ("state=x", "state")):
        assert_problem(await ann.get(f"/api/approvals?{query}"), 422, field)


async def test_the_digest_of_other_arguments_is_a_conflict(gate: Gate) -> None:
    """X-2: what was read isn't what would run."""
    await ask(gate, request())
    ann = await gate.person("ann")
    for digest in ("", "e" * 64, DIGEST.upper()):
        body = {"verdict": "accept", "digest": digest}
        assert_problem(await ann.patch(f"/api/approvals/{ID}", json=body), 409, "digest")
    assert await orders(gate) == []


# ---------------------------------------------------------------- once


async def test_the_same_verdict_again_is_the_same_event(gate: Gate) -> None:
    """X-2: at once, later, and after it was taken in."""
    await ask(gate, request())
    ann = await gate.person("ann")
    path, body = f"/api/approvals/{ID}", {"verdict": "accept", "digest": DIGEST}
    answers = await asyncio.gather(*(ann.patch(path, json=body) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.text for answer in answers}) == 1
    (event,) = await orders(gate)
    seq = answers[0].json()["seq"]
    await gate.turn(str(ANN), State(turns=2, position=seq))
    await list_on_board(gate, request(state="accepted"), seq + 1)
    again = await ann.patch(path, json={"verdict": "accept"})
    assert (again.status_code, again.json()) == (202, {"event_id": event.id, "seq": seq})
    assert len(await orders(gate)) == 1


async def test_of_different_verdicts_at_once_one_is_taken(gate: Gate) -> None:
    """X-2: single use, also while other orders of the session come between."""
    await ask(gate, request())
    ann = await gate.person("ann")
    path = f"/api/approvals/{ID}"
    verdicts = [{"verdict": "reject", "text": str(n)} for n in range(6)]
    decide = [ann.patch(path, json=body) for body in [*verdicts, {"verdict": "accept"}]]
    stop = [ann.post(f"/api/sessions/{ANN}/stop") for _ in range(5)]
    answers = await asyncio.gather(*decide, *stop)
    assert sorted(answer.status_code for answer in answers[:7]) == [202] + [409] * 6
    taken = [event for event in await orders(gate) if event.payload.op == "approval"]
    assert len(taken) == 1


async def test_what_is_decided_is_decided(gate: Gate) -> None:
    """X-2: by the session's state, however far behind the board is."""
    ann = await gate.person("ann")
    path, body = f"/api/approvals/{ID}", {"verdict": "accept"}
    await ask(gate, request(), in_state=False)
    assert_problem(await ann.patch(path, json=body), 409)
    decided_at = datetime(2026, 11, 20, 9, tzinfo=UTC)
    await list_on_board(gate, request(state="superseded", decided_at=decided_at))
    problem = assert_problem(await ann.patch(path, json=body), 409)
    assert problem["detail"] == "it was withdrawn at 2026-11-20 09:00:00 UTC"
    await ask(gate, request(expires_at=decided_at))
    assert "it expired" in assert_problem(await ann.patch(path, json=body), 409)["detail"]
    assert await orders(gate) == []


async def test_a_verdict_that_the_session_did_not_take_may_be_followed_by_another(
    gate: Gate,
) -> None:
    """X-2: an edit whose arguments fit no schema leaves the request open."""
    await ask(gate, request())
    ann = await gate.person("ann")
    path = f"/api/approvals/{ID}"
    bad = await ann.patch(path, json={"verdict": "edit", "input": {"command": 7}})
    assert_problem(await ann.patch(path, json={"verdict": "reject"}), 409)
    state = State(turns=2, position=bad.json()["seq"], approvals={ID: request()})
    await gate.turn(str(ANN), state)
    assert (await ann.patch(path, json={"verdict": "reject"})).status_code == 202


async def test_an_order_that_cannot_be_read_is_in_nobodys_way(gate: Gate) -> None:
    """X-6"""
    await ask(gate, request())
    await gate.admin.publish(ANN.in_event("control"), b"{")
    payload = ControlPayload(op="approval")
    strange = Control(id="x", session_key=str(ANN), created_at=datetime.now(UTC), payload=payload)
    await gate.admin.publish(ANN.in_event("control"), encode(strange))
    ann = await gate.person("ann")
    answer = await ann.patch(f"/api/approvals/{ID}", json={"verdict": "accept"})
    assert answer.status_code == 202
