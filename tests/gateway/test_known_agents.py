"""What is done to an agent that there isn't is refused, with the one that was likely meant."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from tests.gateway.test_gateway_hooks import secret_of
from tests.support.gateway import Gate, assert_problem, until
from tests.support.memory_records import saved
from tests.support.stack import running_stack
from vigil.contracts import encode
from vigil.marks import agent_pause
from vigil.subjects import Scope

DF: Final = {"kind": "argv", "argv": ["df", "-h"]}
MADE: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("/api/tasks", {"title": "x"}),
    ("/api/goals", {"description": "x"}),
    ("/api/jobs", {"goal": "x"}),
    ("/api/cron", {"name": "x", "prompt": "Look", "interval_s": 3600}),
    ("/api/grants", {"tool": "shell", "constraints": [DF]}),
    ("/api/trust", {"source": "hook:ci"}),
    ("/api/preferences", {"category": "code", "key": "indent", "value": "tabs"}),
)


def _meant(problem: dict[str, Any]) -> str:
    return str(problem["detail"]).rpartition("; ")[2]


@pytest.mark.parametrize(("path", "body"), MADE, ids=[path for path, _ in MADE])
async def test_what_is_made_is_an_agents_that_there_is(
    gate: Gate, path: str, body: dict[str, Any]
) -> None:
    ann = await gate.person("ann")
    problem = assert_problem(await ann.post(path, json=body | {"agentId": "vigl"}), 422, "agentId")
    assert _meant(problem) == "did you mean vigil?"
    assert (await ann.post(path, json=body)).is_success


async def test_a_pause_or_a_raise_of_nobody_is_refused(gate: Gate) -> None:
    """A pause that somebody set before names were looked at can be ended yet."""
    root = await gate.person("root", is_admin=True)

    async def refusal(method: str, path: str, agent: str, **how: Any) -> str:
        answer = await root.request(method, path, **how)
        problem = assert_problem(answer, 422, "agent")
        assert f"none is called {agent}" in problem["detail"]
        return _meant(problem)

    for method in ("PUT", "DELETE"):
        for agent, meant in (("vigl", "did you mean vigil?"), ("nobody", "there is: vigil")):
            of_it = {"params": {"agent": agent}}
            assert await refusal(method, "/api/pause", agent, **of_it) == meant
    raised = {"json": {"times": 1, "agent": "vigl"}}
    assert await refusal("PUT", "/api/budget/raise", "vigl", **raised) == "did you mean vigil?"
    at = datetime.now(UTC)
    await agent_pause.put(gate.admin, "nobody", None, is_on=True, at=at, by="root")

    async def is_ended() -> bool:
        return (await root.delete("/api/pause", params={"agent": "nobody"})).is_success

    await until(is_ended, "the pause is known, and ended")


async def test_who_was_talked_with_or_remembers_is_an_agent(gate: Gate) -> None:
    """For whoever has something with it: others are told of no name that isn't theirs."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    said = await ann.post("/api/sessions/ann:coach:t1/messages", json={"text": "Hello"})
    assert said.status_code == 202
    record = saved(1, "likes basil", scope=Scope("chef", "ann")).record
    await gate.admin.publish(Scope("chef", "ann").record("save"), encode(record))
    for agent in ("coach", "chef"):
        task = {"title": "x", "agentId": agent}
        assert (await ann.post("/api/tasks", json=task)).status_code == 201
        assert_problem(await bob.post("/api/tasks", json=task), 422, "agentId")
    near = {"title": "x", "agentId": "coahc"}
    mistyped = assert_problem(await ann.post("/api/tasks", json=near), 422)
    assert _meant(mistyped) == "did you mean coach?"
    assert "coach" not in _meant(assert_problem(await bob.post("/api/tasks", json=near), 422))
    root = await gate.person("root", is_admin=True)
    assert (await root.put("/api/pause", params={"agent": "coach"})).is_success


async def test_what_the_configuration_says_of_others_is_told_to_nobody_else(
    tmp_path: Path,
) -> None:
    """A team's agent to its members, and whom another's hook names to them."""
    teams = {"desk": {"kind": "team", "members": ["ann"]}}
    hook = {"user": "ann", "agent": "lawyer", "thread": "t", "secrets": [secret_of("suit")]}
    hooks = {"suit": hook}
    parts = {"agents": teams, "hooks": hooks}
    async with running_stack(tmp_path, services=("gateway",), **parts) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        ann, bob = await gate.person("ann"), await gate.person("bob")
        body = {"title": "x", "agentId": "nobody"}
        for who, there in ((ann, "there is: desk, lawyer, vigil"), (bob, "there is: vigil")):
            problem = assert_problem(await who.post("/api/tasks", json=body), 422)
            assert _meant(problem) == there
        of_hers = {"title": "x", "agentId": "lawyer"}
        assert (await ann.post("/api/tasks", json=of_hers)).status_code == 201
        assert_problem(await bob.post("/api/tasks", json=of_hers), 422, "agentId")
        await gate.close()
