"""One trace across the bus: from HTTP accept to message said, over everything that is real."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from services.cortex.model import ModelError
from services.gateway import patience
from tests.support.agent import ask, follow_up
from tests.support.messages_api import fails, messages_api, says
from tests.support.spans import Recorded, id_of, parent_of, record, trace_of
from tests.support.stack import running_stack
from tests.support.talk import Talk
from tests.support.world import World, running_world
from vigil.contracts import CallTool, decode_said
from vigil.observe import spans, trace

CALL = "chat scripted"
SECRET = "the mauve hippopotamus sings at noon"
CALLER = f"00-{'a' * 32}-{'b' * 16}-01"
USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 7, "output_tokens": 5}
CONVENTIONS = {
    "0.1.0": {
        "chat": {
            "gen_ai.conversation.id",
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.max_tokens",
            "gen_ai.request.model",
            "gen_ai.request.stream",
            "gen_ai.response.finish_reasons",
            "gen_ai.response.model",
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_write.input_tokens",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
        },
        # The conversation may be told of any span.
        "execute_tool": {
            "gen_ai.conversation.id",
            "gen_ai.operation.name",
            "gen_ai.tool.call.id",
            "gen_ai.tool.name",
        },
    }
}
"""By version of OpenTelemetry's conventions for generative AI: of the attributes that each kind of
span has there, those that are known here."""

Running = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    return record(monkeypatch)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: Recorded) -> Running:
    @asynccontextmanager
    async def run(**sections: dict[str, Any]) -> AsyncIterator[World]:
        async with running_world(tmp_path, monkeypatch, **sections) as world:
            yield world

    return run


async def test_one_trace_from_http_accept_to_message_said(
    running: Running, recorded: Recorded
) -> None:
    """X-7: accept, turn, model call, say; each under the one that caused it, and nothing else."""
    async with running() as world:
        ann = await world.person()
        await ann.exchange(SECRET)
        (said,) = [m for m in ann.talk.log if ".out.said." in m.subject]
    accept = recorded.one("gateway.accept")
    turn = recorded.one("cortex.turn")
    call = recorded.one(CALL)
    say = recorded.one("delivery.say")
    assert len(recorded.spans) == 4
    assert {trace_of(span) for span in recorded.spans} == {trace_of(accept)}
    assert parent_of(accept) is None
    assert parent_of(turn) == id_of(accept)
    assert parent_of(call) == id_of(turn)
    assert parent_of(say) == id_of(turn)
    # The message itself names the last of them.
    header = said.headers[trace.HEADER]
    assert (int(header[3:35], 16), int(header[36:52], 16)) == (trace_of(say), id_of(say))
    for span in recorded.spans:
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time


async def test_spans_say_who_and_what_but_never_a_word(
    running: Running, recorded: Recorded
) -> None:
    """X-7, S15: attributes are those of the table; the session is named, its text is not."""
    async with running() as world:
        ann = await world.person()
        await ann.exchange(SECRET)
        (said,) = [decode_said(m.data) for m in ann.talk.log if ".out.said." in m.subject]
    about = {span.name: dict(span.attributes or {}) for span in recorded.spans}
    assert about["gateway.accept"][spans.SESSION] == ann.key
    assert about["cortex.turn"][spans.OUTCOME] == "answered"
    assert about["cortex.turn"][spans.EVENT_ID] == said.caused_by
    assert about["delivery.say"] == {
        spans.SESSION: ann.key, spans.EFFECT: said.id, spans.OUTCOME: "said"
    }  # fmt: skip
    assert about[CALL][spans.GEN_AI_CONVERSATION] == ann.key
    kinds = {kind.name: kind for kind in spans.SPANS}
    for span in recorded.spans:
        kind = kinds[span.name.partition(" ")[0]]
        assert set(span.attributes or {}) <= {*kind.attributes, spans.ERROR_TYPE}
        assert span.kind.name.lower() == kind.direction
        assert span.resource.attributes["vigil.service"] == kind.service
        assert span.resource.attributes["service.name"] == f"vigil-{kind.service}"
        told = span.to_json()
        assert "hippopotamus" not in told
        assert ann.token not in told


async def test_a_caller_is_joined_by_its_ids_alone(running: Running, recorded: Recorded) -> None:
    """X-7, S5: `traceparent` becomes the parent; baggage and tracestate are dropped."""
    async with running() as world:
        ann = await world.person()
        headers = {"traceparent": CALLER, "tracestate": "x=stateful", "baggage": "k=luggage"}
        answer = await ann.http.post(
            f"/api/sessions/{ann.key}/messages", json={"text": "hi"}, headers=headers
        )
        assert answer.status_code == 202
        await ann.talk.ended(answer.json()["seq"])
        await world.at_rest()
        stored = [json.dumps(m.headers) for m in await world.gate.stored(ann.key)]
    accept = recorded.one("gateway.accept")
    assert parent_of(accept) == int("b" * 16, 16)
    assert {trace_of(span) for span in recorded.spans} == {int("a" * 32, 16)}
    assert not [text for text in stored if "stateful" in text or "luggage" in text]
    for span in recorded.spans:
        assert span.context is not None
        assert not span.context.trace_state


async def test_a_caller_who_does_not_sample_is_not_recorded(
    running: Running, recorded: Recorded
) -> None:
    """X-7: the sampling of the caller holds for everything below it."""
    async with running() as world:
        ann = await world.person()
        headers = {"traceparent": CALLER[:-2] + "00"}
        path = f"/api/sessions/{ann.key}/messages"
        answer = await ann.http.post(path, json={"text": "hi"}, headers=headers)
        await ann.talk.ended(answer.json()["seq"])
        await world.at_rest()
        contexts = {m.headers[trace.HEADER] for m in await world.gate.stored(ann.key)}
    assert recorded.spans == []
    assert {context[:35] for context in contexts} == {CALLER[:35]}
    assert {context[-2:] for context in contexts} == {"00"}


async def test_a_follow_up_is_a_trace_of_its_own_that_links_to_its_plan(
    running: Running, recorded: Recorded
) -> None:
    """X-7, S-8: days may lie between; the fire links to the turn that planned it."""
    async with running() as world:
        ann = await world.person()
        await ann.exchange(ask(follow_up("a", 3600, "Any news?")))
        await world.advance(3600)
        assert ann.followed_up == ["Any news?"]
    planned = recorded.one("cortex.turn", vigil__outcome="continued")
    promote = recorded.one("scheduler.promote", vigil__session=ann.key)
    said = recorded.of("delivery.say")[-1]
    turn = recorded.one("cortex.turn", vigil__event__type="timer", vigil__session=ann.key)
    (link,) = promote.links
    assert (link.context.trace_id, link.context.span_id) == (trace_of(planned), id_of(planned))
    assert parent_of(promote) is None
    assert trace_of(promote) != trace_of(planned)
    assert parent_of(turn) == id_of(promote)
    assert parent_of(said) == id_of(turn)
    assert trace_of(said) == trace_of(promote)
    assert (promote.attributes or {})[spans.TIMER_KIND] == "follow_up"


async def test_a_link_survives_a_restart_of_the_scheduler(
    running: Running, recorded: Recorded
) -> None:
    """X-7, X-5: the plan's context lies with the timer, not in a process."""
    async with running() as world:
        ann = await world.person()
        await ann.exchange(ask(follow_up("a", 60, "hello again")))
        await world.stack.stop("scheduler")
        await world.stack.start("scheduler")
        await world.advance(60)
        assert ann.followed_up == ["hello again"]
    planned = recorded.one("cortex.turn", vigil__outcome="continued")
    (link,) = recorded.one("scheduler.promote", vigil__session=ann.key).links
    assert (link.context.trace_id, link.context.span_id) == (trace_of(planned), id_of(planned))


async def test_a_message_folded_meanwhile_does_not_take_the_answer_along(
    running: Running, recorded: Recorded
) -> None:
    """X-7, S-13: while the model thinks about one, another is queued: each in its own trace."""
    async with running() as world:
        ann = await world.person()
        world.agent.held.add("one")
        one = await ann.say("one")
        await world.agent.thinking.wait()
        two = await ann.say("two")
        await ann.talk.until(lambda: any(t.state.position == two for t in ann.talk.turns))
        world.agent.gate.set()
        await ann.talk.ended(one)
        await ann.talk.ended(two)
        await world.at_rest()
    first, second = recorded.of("gateway.accept")
    calls = recorded.of(CALL)
    says = recorded.of("delivery.say")
    assert [trace_of(span) for span in calls] == [trace_of(first), trace_of(second)]
    assert [trace_of(span) for span in says] == [trace_of(first), trace_of(second)]
    outcomes = {
        trace_of(accept): [
            (span.attributes or {})[spans.OUTCOME]
            for span in recorded.of("cortex.turn")
            if trace_of(span) == trace_of(accept)
        ]
        for accept in (first, second)
    }
    assert outcomes[trace_of(first)] == ["begun", "answered"]
    assert outcomes[trace_of(second)] == ["queued", "answered"]


async def test_a_failed_model_call_is_an_error_and_its_retry_the_same_trace(
    running: Running, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-7: a deadline belongs to the exchange that waits for it."""
    async with running() as world:
        ann = await world.person()
        behave, failures = world.agent.behave, [ModelError("overloaded", is_retryable=True)]

        def fail_once(request: Any) -> Any:
            if failures:
                raise failures.pop()
            return behave(request)

        monkeypatch.setattr(world.agent, "behave", fail_once)
        await ann.say("hello")
        await world.until(lambda: any(turn.outcome == "waiting" for turn in ann.talk.turns))
        await world.advance(200)
        assert ann.talk.texts == ["re: hello"]
    failed, answered = recorded.of(CALL)
    assert failed.status.status_code.name == "ERROR"
    assert failed.status.description == "retryable"
    assert answered.status.status_code.name == "UNSET"
    promote = recorded.one("scheduler.promote", vigil__session=ann.key)
    assert not promote.links
    assert {trace_of(span) for span in (failed, promote, answered)} == {
        trace_of(recorded.one("gateway.accept"))
    }


async def test_a_failure_has_its_error_type(
    running: Running, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-7: one word of the conventions' `error.type` on what failed, none on what did not."""
    async with running() as world:
        ann = await world.person()

        def fail(request: Any) -> Any:
            raise ModelError("the API key is wrong", is_retryable=False, kind="401")

        monkeypatch.setattr(world.agent, "behave", fail)
        await ann.say("hello")
        await world.until(lambda: any(turn.outcome == "failed" for turn in ann.talk.turns))
        await world.at_rest()
    call = recorded.one(CALL)
    assert (call.attributes or {})[spans.ERROR_TYPE] == "401"
    turn = recorded.one("cortex.turn", vigil__outcome="failed")
    assert (turn.attributes or {})[spans.ERROR_TYPE] == "failed"
    assert turn.status.status_code.name == "ERROR"
    assert spans.ERROR_TYPE not in (recorded.one("gateway.accept").attributes or {})


@pytest.mark.usefixtures("own_broker")
async def test_a_message_that_could_not_be_stored_has_a_span(
    running: Running, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-7: what a caller was refused for want of a broker is in the caller's trace."""
    monkeypatch.setattr(patience, "PATIENCE_S", 0.2)
    async with running() as world:
        ann = await world.person(has_socket=False)
        (await ann.http.get("/api/me")).raise_for_status()  # the gateway knows the token now
        await world.stack.broker.pause()
        try:
            answer = await ann.http.post(
                f"/api/sessions/{ann.key}/messages",
                json={"text": SECRET},
                headers={"traceparent": CALLER},
            )
        finally:
            await world.stack.broker.unpause()
        assert answer.status_code == 503
    refused = recorded.of("gateway.accept")[0]
    assert (refused.attributes or {})[spans.ERROR_TYPE] == "unavailable"
    assert trace_of(refused) == int("a" * 32, 16)


async def test_tools_of_memory_and_of_the_executor_have_spans(
    running: Running, recorded: Recorded
) -> None:
    """X-7: `execute_tool {tool}`, internal, with the call's id, under the turn that asked."""
    async with running(has_hands=True) as world:
        ann = await world.person()
        await ann.exchange(
            ask(("memory_recall", {"query": "tea"}), ("read_file", {"path": "no.txt"}))
        )
        calls = {
            effect.payload.tool: effect.id
            for turn in ann.talk.turns
            for effect in turn.effects
            if isinstance(effect, CallTool)
        }

        headers = [m.headers[trace.HEADER] for m in ann.talk.log if ".in.tool_result" in m.subject]
    assert len(headers) == 2
    turn = recorded.of("cortex.turn", vigil__outcome="continued")[0]
    recall = recorded.one("execute_tool memory_recall")
    read = recorded.one("execute_tool read_file")
    for span, tool, service in (
        (recall, "memory_recall", "memory"),
        (read, "read_file", "executor"),
    ):
        assert span.kind.name == "INTERNAL"
        assert parent_of(span) == id_of(turn)
        assert span.resource.attributes["vigil.service"] == service
        about = dict(span.attributes or {})
        assert about[spans.GEN_AI_TOOL] == tool
        assert about[spans.GEN_AI_TOOL_CALL] == about[spans.EFFECT] == calls[tool]
        assert about[spans.GEN_AI_CONVERSATION] == ann.key
        assert set(about) <= {*spans.TOOL.attributes, spans.ERROR_TYPE}
    assert {int(header[36:52], 16) for header in headers} == {id_of(recall), id_of(read)}
    assert spans.ERROR_TYPE not in (recall.attributes or {})
    assert (read.attributes or {})[spans.ERROR_TYPE] == "failed"


async def test_a_call_of_a_model_names_who_answered_where_and_why_it_stopped(
    tmp_path: Path, recorded: Recorded
) -> None:
    """X-7: the conventions' attributes, over the real SDK; no key and no words in them."""
    async with messages_api() as api:
        api.replies += [
            fails(403, "permission_error"),
            says(SECRET, stop_reason="stop_sequence", model="claude-small-2026", usage=USAGE),
        ]
        sections = {"model": {"main": "claude-small"}}
        async with running_stack(
            tmp_path, ("cortex", "scheduler"), None, api.url, **sections
        ) as stack:
            talk = await Talk.open(stack, "ann:vigil:t1")
            await talk.ended(await talk.say("hello"))
            await talk.ended(await talk.say("again"))
            await talk.close()
        port = int(api.url.rpartition(":")[2])
    failed, answered = (dict(span.attributes or {}) for span in recorded.of("chat claude-small"))
    assert failed[spans.ERROR_TYPE] == "403"
    assert (failed[spans.SERVER_ADDRESS], failed[spans.SERVER_PORT]) == ("127.0.0.1", port)
    assert answered[spans.GEN_AI_MODEL] == "claude-small"
    assert answered[spans.GEN_AI_RESPONSE_MODEL] == "claude-small-2026"
    assert answered[spans.GEN_AI_FINISH_REASONS] == ("stop_sequence",)
    assert (answered[spans.SERVER_ADDRESS], answered[spans.SERVER_PORT]) == ("127.0.0.1", port)
    assert SECRET not in str(answered)
    of_convention = {name: value for name, value in answered.items() if name.startswith("gen_ai")}
    assert of_convention.keys() <= CONVENTIONS[spans.GEN_AI_VERSION]["chat"]
    # Written to a cache, and none of it read: what's nothing isn't told.
    assert of_convention["gen_ai.usage.input_tokens"] == 17
    assert of_convention["gen_ai.usage.cache_write.input_tokens"] == 7
    assert "gen_ai.usage.cache_read.input_tokens" not in of_convention
    assert of_convention["gen_ai.request.stream"] is True
    assert of_convention["gen_ai.request.max_tokens"] == api.last["max_tokens"]


def test_spans_have_the_names_of_one_version_of_the_conventions() -> None:
    """X-7: all that the conventions require, and nothing that they don't know."""
    assert spans.GEN_AI_VERSION == "0.1.0"
    known = CONVENTIONS[spans.GEN_AI_VERSION]
    required = {"chat": {"gen_ai.provider.name"}, "execute_tool": {"gen_ai.tool.name"}}
    for kind in spans.SPANS:
        names = {one for one in kind.attributes if one.startswith("gen_ai")}
        assert names <= known.get(kind.name, set())
        assert not names or names >= required[kind.name] | {"gen_ai.operation.name"}
    assert spans.MODEL.direction == "client"
    assert spans.TOOL.direction == "internal"
