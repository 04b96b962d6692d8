"""/api/jobs and /api/skills as the gateway alone serves them (SPEC J-1, P-5, X-4, X-6)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.examples import up_to
from tests.support.gateway import Gate, assert_problem, running_gateway
from vigil import crash
from vigil.board.mirror import Board
from vigil.contracts import BoardEntry, Control, Job, JobStatus, Plan, Step, decode_event, encode
from vigil.processes import process as processes
from vigil.subjects import Scope, SessionKey

NOBODY = "0" * 32
AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


async def start(http: httpx2.AsyncClient, **body: Any) -> str:
    answer = await http.post("/api/jobs", json=body)
    assert answer.status_code == 202, answer.text
    id_: str = answer.json()["id"]
    return id_


async def put(gate: Gate, status: JobStatus, number: int = 1, user: str = "ann", **of: Any) -> Job:
    """Put a job onto the board, as its session's turns do."""
    id_ = f"{number:032x}"
    key = SessionKey(user, of.pop("agent", "vigil"), f"_planner-{id_}")
    created_at = AT + timedelta(minutes=number)
    job = Job(id=id_, session_key=str(key), status=status, created_at=created_at, **of)
    entry = BoardEntry(entity=job, turn_seq=number, at=AT)
    await gate.admin.publish(key.board("job", id_), encode(entry))
    return job


async def controls(gate: Gate, session: str) -> list[Control]:
    events = [decode_event(message.data) for message in await gate.stored(session)]
    return [event for event in events if isinstance(event, Control)]


# ---------------------------------------------------------------- handing in


async def test_a_job_is_stored_and_listed_when_its_id_comes_back(gate: Gate) -> None:
    """J-1: `POST /api/jobs` enqueues and returns the id at once."""
    ann = await gate.person("ann")
    hi = await ann.post("/api/sessions/ann:garden:main/messages", json={"text": "hi"})
    assert hi.status_code == 202
    id_ = await start(ann, goal="Water the plants\nall of them", input="3 pots", agentId="garden")
    session = f"ann:garden:_planner-{id_}"
    (event,) = await controls(gate, session)
    begun = event.payload.start
    assert begun is not None
    assert begun.job is not None
    assert (event.payload.op, begun.is_ordered, begun.parent) == ("start", True, "")
    assert (begun.job.goal, begun.job.input) == ("Water the plants\nall of them", "3 pots")

    (listed,) = (await ann.get("/api/jobs")).json()["jobs"]
    assert (listed["id"], listed["status"], listed["agentId"]) == (id_, "queued", "garden")
    assert (listed["goal"], listed["trigger"]) == ("Water the plants", "manual")
    shown = (await ann.get(f"/api/jobs/{id_}")).json()
    assert (shown["session_key"], shown["input"]) == (session, "3 pots")
    assert shown["trigger"] == begun.job.trigger == "manual"


async def test_the_same_key_is_one_job(gate: Gate) -> None:
    """X-5: a repeat is harmless; the key of another body is refused."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    body = {"goal": "Once", "idempotency_key": "k"}
    answers = await asyncio.gather(*(ann.post("/api/jobs", json=body) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {202}
    (id_,) = {answer.json()["id"] for answer in answers}
    assert len(await controls(gate, f"ann:vigil:_planner-{id_}")) == 1
    assert len((await ann.get("/api/jobs")).json()["jobs"]) == 1
    other = await ann.post("/api/jobs", json=body | {"goal": "Twice"})
    assert_problem(other, 422, "idempotency_key")
    assert await start(bob, **body) != id_


async def test_a_skill_is_read_from_its_file_when_it_is_asked_for(gate: Gate) -> None:
    ann = await gate.person("ann")
    folder = gate.stack.settings.skills
    (folder / "water.md").write_text("---\ngoal: Water\ntools: shell\n---\nGently.\n", "utf-8")
    job = (await ann.get(f"/api/jobs/{await start(ann, skill='water')}")).json()
    assert (job["skill"], job["goal"], job["tools"]) == ("water", "Water\n\nGently.", ["shell"])

    (folder / "broken.md").write_text("---\ngoal: x\ntols: y\n---\n", "utf-8")
    refused = assert_problem(await ann.post("/api/jobs", json={"skill": "broken"}), 422, "skill")
    assert "broken.md, line 3: 'tols' is not a known key" in refused["detail"]
    listed = (await ann.get("/api/skills")).json()
    assert "water" in [skill["name"] for skill in listed["skills"]]
    assert listed["broken"] == [
        {"name": "broken.md", "problem": refused["detail"].removeprefix("skill ")}
    ]


BAD_BODIES: list[tuple[Any, int, str]] = [
    ({}, 422, "skill"),
    ({"skill": "keep-notes", "goal": "x"}, 422, "skill"),
    ({"skill": "none-such"}, 422, "skill"),
    ({"skill": "../../etc/passwd"}, 422, "skill"),
    ({"skill": "a.b"}, 422, "skill"),
    ({"skill": ""}, 422, "skill"),
    ({"skill": 7}, 422, "skill"),
    ({"goal": ""}, 422, "goal"),
    ({"goal": " \n"}, 422, "goal"),
    ({"goal": "a\0b"}, 422, "goal"),
    ({"goal": ["x"]}, 422, "goal"),
    ({"goal": "x" * 9000}, 413, "goal"),
    ({"goal": "\x01" * 8000}, 422, "goal"),
    ({"goal": "x", "input": "y" * 17_000}, 413, "input"),
    ({"goal": "x", "input": "\0"}, 422, "input"),
    ({"goal": "x", "input": None}, 422, "input"),
    ({"goal": "x", "input": {"a": 1}}, 422, "input"),
    ({"goal": "x", "userId": "bob"}, 403, "userId"),
    ({"goal": "x", "userId": ">"}, 422, "userId"),
    ({"goal": "x", "agentId": "a.b"}, 422, "agentId"),
    ({"goal": "x", "agentId": ""}, 422, "agentId"),
    ({"goal": "x", "idempotency_key": ""}, 422, "idempotency_key"),
    ({"goal": "x", "idempotency_key": "k" * 257}, 422, "idempotency_key"),
    ({"goal": "x", "status": "succeeded"}, 422, "status"),
    ({"goal": "x", "tools": ["shell"]}, 422, "tools"),
    ({"goal": "x", "id": NOBODY}, 422, "id"),
    ([], 422, "body"),
    (None, 422, "body"),
]


async def test_bad_bodies_are_refused_with_field_and_reason(gate: Gate) -> None:
    """X-6: and nothing of them is stored."""
    ann = await gate.person("ann")
    for body, status, field in BAD_BODIES:
        assert_problem(await ann.post("/api/jobs", json=body), status, field)
    assert_problem(await ann.post("/api/jobs", content=b'{"goal": "\xff"}'), 422, "body")
    assert not await gate.admin.read("SYSTEM", ["system.>"])
    assert not await gate.admin.read("BOARD", ["board.>"])


@up_to(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nothing_that_is_sent_is_a_fault(gate_loop: Any, data: st.DataObject) -> None:
    """X-6: whatever a body or a query holds, the answer is one of those that are listed."""
    value = st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.just("x" * 16_000)
    names = st.sampled_from(["skill", "goal", "input", "userId", "agentId", "status", "limit", "x"])
    body = data.draw(st.dictionaries(names, value | st.lists(value, max_size=3), max_size=4))
    method, path = data.draw(
        st.sampled_from([
            ("POST", "/api/jobs"), ("GET", "/api/jobs"), ("PATCH", f"/api/jobs/{NOBODY}"),
            ("GET", f"/api/jobs/{NOBODY}"), ("GET", "/api/jobs/%00"), ("PATCH", "/api/jobs/*"),
        ])
    )  # fmt: skip
    run, http = gate_loop
    if method == "GET":
        query = {k: v for k, v in body.items() if isinstance(v, str | int)}
        answer = run(http.request(method, path, params=query))
    else:
        answer = run(http.request(method, path, json=body))
    assert answer.status_code in (200, 202, 400, 403, 404, 413, 422, 429), answer.text
    if answer.status_code >= 400:
        assert_problem(answer, answer.status_code)


@pytest.fixture
def gate_loop(tmp_path: Path) -> Any:
    """A gateway on a loop of its own, for tests that hypothesis calls many times."""
    loop = asyncio.new_event_loop()
    running = running_gateway(tmp_path, rate_per_s=1e6, rate_burst=10**6)
    gate = loop.run_until_complete(running.__aenter__())
    http = loop.run_until_complete(gate.person("ann"))
    yield loop.run_until_complete, http
    loop.run_until_complete(running.__aexit__(None, None, None))
    loop.close()


# ---------------------------------------------------------------- looking


async def test_jobs_are_listed_newest_first_and_only_ones_own(gate: Gate) -> None:
    """X-4: an admin may see everybody's; nobody else another's."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    root = await gate.person("root", is_admin=True)
    for number in range(1, 8):
        await put(gate, "failed" if number % 2 else "running", number, error="no" * (number % 2))
        await put(gate, "succeeded", number)
    await put(gate, "running", 8, agent="garden")
    hers = await put(gate, "running", 9, user="bob")

    async def ids(http: httpx2.AsyncClient, **query: Any) -> list[int]:
        answer = await http.get("/api/jobs", params=query)
        assert answer.status_code == 200, answer.text
        return [int(job["id"], 16) for job in answer.json()["jobs"]]

    assert await ids(ann) == [8, 7, 6, 5, 4, 3, 2, 1]
    assert await ids(ann, limit=3) == [8, 7, 6]
    assert await ids(ann, limit=2, status="succeeded") == [7, 6]
    assert await ids(ann, status="failed") == []
    assert await ids(ann, agentId="garden") == [8]
    assert await ids(bob) == [9]
    assert await ids(root) == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert await ids(root, userId="bob") == [9]
    assert_problem(await ann.get("/api/jobs", params={"userId": "bob"}), 403, "userId")
    assert_problem(await ann.get(f"/api/jobs/{hers.id}"), 404, "id")
    change = {"status": "cancelled"}
    assert_problem(await ann.patch(f"/api/jobs/{hers.id}", json=change), 404, "id")
    assert (await root.get(f"/api/jobs/{hers.id}")).json()["userId"] == "bob"


async def test_bad_queries_and_ids_are_refused(gate: Gate) -> None:
    ann = await gate.person("ann")
    for query, field in (
        ("limit=0", "limit"), ("limit=201", "limit"), ("limit=x", "limit"),
        ("status=done", "status"), ("state=running", "state"), ("userId=a.b", "userId"),
        ("agentId=*", "agentId"), ("limit=1&limit=2", "limit"),
    ):  # fmt: skip
        assert_problem(await ann.get(f"/api/jobs?{query}"), 422, field)
    for id_ in ("*", "x" * 32, "A" * 32, NOBODY[1:], "%3E"):
        assert_problem(await ann.get(f"/api/jobs/{id_}"), 422, "id")
        assert_problem(await ann.patch(f"/api/jobs/{id_}", json={"status": "queued"}), 422, "id")
    assert_problem(await ann.get(f"/api/jobs/{NOBODY}"), 404, "id")


async def test_an_entry_that_cant_be_read_hides_no_other(gate: Gate) -> None:
    ann = await gate.person("ann")
    job = await put(gate, "running")
    await gate.admin.publish(f"board.vigil.ann.job.{NOBODY}", b"{}")
    listed = (await ann.get("/api/jobs")).json()["jobs"]
    assert [one["id"] for one in listed] == [job.id]
    assert_problem(await ann.get(f"/api/jobs/{NOBODY}"), 404, "id")


async def test_a_long_list_keeps_no_more_than_it_shows(gate: Gate) -> None:
    """The newest entry of every job counts, however many there are and however often they came."""
    for number in range(1, 301):
        await put(gate, "running", number)
    for number in range(1, 301, 3):
        await put(gate, "succeeded", number, plan=Plan(steps=(Step(tool="x"),)))
    board: Board[Job] = Board(gate.admin, Job)
    newest = await board.newest([Scope("*", "ann")], limit=5)
    assert [int(job.id, 16) for job in newest] == [300, 299, 298, 297, 296]
    done = await board.newest(
        [Scope("*", "ann")], limit=4, is_wanted=lambda job: job.status == "succeeded"
    )
    assert [int(job.id, 16) for job in done] == [298, 295, 292, 289]
    assert await board.newest([Scope("*", "bob")], limit=5) == []


# ---------------------------------------------------------------- lifecycle

LEGAL: dict[JobStatus, tuple[str, ...]] = {
    "queued": ("cancelled",),
    "running": ("cancelled",),
    "succeeded": ("queued",),
    "failed": ("queued",),
    "cancelled": ("queued",),
}


async def test_only_what_the_lifecycle_allows(gate: Gate) -> None:
    """J-1: `PATCH` cancels or re-queues; 409 where it can't."""
    ann = await gate.person("ann")
    for number, (status, legal) in enumerate(LEGAL.items(), start=1):
        for wanted in ("cancelled", "queued"):
            job = await put(gate, status, number, runs=1)
            before = await controls(gate, job.session_key)
            answer = await ann.patch(f"/api/jobs/{job.id}", json={"status": wanted})
            after = await controls(gate, job.session_key)
            if wanted not in legal:
                assert_problem(answer, 409)
                assert after == before
                continue
            assert answer.status_code == 202, answer.text
            op = after[-1].payload.op
            assert op == ("cancel" if wanted == "cancelled" else "start")
            assert answer.json()["event_id"] == after[-1].id
    job = await put(gate, "running")
    for body in ({}, {"status": "running"}, {"status": "succeeded"}, {"status": None},
                 {"status": "queued", "goal": "x"}):  # fmt: skip
        assert_problem(await ann.patch(f"/api/jobs/{job.id}", json=body), 422)


async def test_a_job_that_is_queued_again_shows_so_and_begins_anew(gate: Gate) -> None:
    ann = await gate.person("ann")
    job = await put(gate, "failed", goal="Try", input="it", runs=3, error="no luck")
    assert (await ann.patch(f"/api/jobs/{job.id}", json={"status": "queued"})).status_code == 202
    shown = (await ann.get(f"/api/jobs/{job.id}")).json()
    assert (shown["status"], shown["runs"], shown["goal"]) == ("queued", 3, "Try")
    assert "error" not in shown
    (event,) = await controls(gate, job.session_key)
    assert event.payload.start is not None
    assert event.payload.start.job is not None
    assert event.payload.start.job.runs == 3
    # It is queued now: a second one who saw it fail comes too late.
    assert_problem(await ann.patch(f"/api/jobs/{job.id}", json={"status": "queued"}), 409)


async def test_killed_between_the_start_and_the_board_nothing_is_lost(tmp_path: Path) -> None:
    """X-5: the start is stored; the repeat with the same key finds it and shows it."""
    async with running_gateway(tmp_path) as gate:
        token = await gate.token("ann")
        environment = os.environ | {
            "VIGIL_HOME": str(tmp_path),
            "NATS_URL": gate.stack.broker.url,
            "VIGIL_PORT": "0",
            "VIGIL_CRASH_AT": "gateway.job.stored:1",
        }
        gateway = await processes.start(
            sys.executable, "-m", "services.gateway",
            env=environment, stderr=subprocess.PIPE,
        )  # fmt: skip
        body = {"goal": "Survive", "idempotency_key": "k"}
        try:
            port = await _port_of(gateway)
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", headers=headers
            ) as http:
                with contextlib.suppress(httpx2.TransportError):
                    await http.post("/api/jobs", json=body)
            assert await asyncio.wait_for(gateway.wait(), 30) == crash.EXIT_CODE
        finally:
            if gateway.returncode is None:
                gateway.kill()
                await gateway.wait()
        ann = await gate.http(token)
        assert (await ann.get("/api/jobs")).json()["jobs"] == []
        id_ = await start(ann, **body)
        assert len(await controls(gate, f"ann:vigil:_planner-{id_}")) == 1
        assert [job["id"] for job in (await ann.get("/api/jobs")).json()["jobs"]] == [id_]


async def _port_of(gateway: processes.Process) -> int:
    assert gateway.stderr is not None
    async with asyncio.timeout(30):
        async for line in gateway.stderr:
            if b"gateway.listening" in line:
                port: int = json.loads(line)["port"]
                return port
    raise AssertionError("it does not listen")
