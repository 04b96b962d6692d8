"""Agents through the A2A SDK's own client, unchanged."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.helpers.proto_helpers import get_artifact_text, new_text_message
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils import errors

from tests.acceptance.test_openai_programs import history
from tests.support.agent import ask, follow_up
from tests.support.world import running_world

TEAM: Final = {"agents": {"desk": {"kind": "team", "members": ["bob", "cid"]}}}


def said(text: str, context: str | None = None) -> SendMessageRequest:
    return SendMessageRequest(
        message=new_text_message(text, context_id=context, role=Role.ROLE_USER)
    )


def words(updates: list[StreamResponse]) -> str:
    """Return what a stream's artifact says in the end."""
    return "".join(
        part.text for one in updates if one.HasField("artifact_update")
        for part in one.artifact_update.artifact.parts
    )  # fmt: skip


def text_of(task: Task) -> str:
    return "".join(map(get_artifact_text, task.artifacts))


async def test_a_program_talks_by_its_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by its card, talked with whole and streamed, looked up, cancelled; by the rights of
    the token, each message once."""
    async with running_world(tmp_path, monkeypatch, gateway={"a2a": True}, **TEAM) as world:
        ann = await world.person(has_socket=False)
        base = str(ann.http.base_url).rstrip("/")
        async with httpx.AsyncClient() as stranger:
            # Anybody finds that there is something; nobody talks with it without a token.
            card = (await stranger.get(f"{base}/.well-known/agent-card.json")).json()
            assert card["supportedInterfaces"][0]["protocolVersion"] == "1.0"
            assert (await stranger.post(f"{base}/a2a/vigil", json={})).status_code == 401
        headers = {"authorization": f"Bearer {ann.token}"}
        http = httpx.AsyncClient(headers=headers, timeout=30)
        whole = await create_client(base, ClientConfig(httpx_client=http, streaming=False))
        streamed = await create_client(base, ClientConfig(httpx_client=http))

        hello = said("Hello")
        (done,) = [one async for one in whole.send_message(hello)]
        task = done.task
        assert (task.status.state, text_of(task)) == (TaskState.TASK_STATE_COMPLETED, "re: Hello")
        (again,) = [one async for one in whole.send_message(hello)]
        assert again.task == task, "the same message is the same task"
        assert await whole.get_task(GetTaskRequest(id=task.id)) == task
        updates = [one async for one in streamed.send_message(said("And now", task.context_id))]
        assert words(updates) == "re: And now"
        assert updates[0].task.status.state == TaskState.TASK_STATE_WORKING
        assert updates[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
        assert history(world.agent.requests[-1]) == ["Hello", "re: Hello", "And now"]
        # A context of the program's own name is a conversation, too.
        for text in ("One", "Two"):
            assert [one async for one in whole.send_message(said(text, "mine"))]
        assert history(world.agent.requests[-1]) == ["One", "re: One", "Two"]
        # It's the same agent as anywhere: what it promised comes into the conversation.
        (promised,) = [
            one async for one in whole.send_message(said(ask(follow_up("tea", 60, "The tea!"))))
        ]
        talk = world.talk(f"ann:vigil:{promised.task.context_id}")
        await world.advance(61)
        await talk.until(lambda: talk.said[-1].text == "The tea!")

        # Not waited for, joined later, cancelled.
        world.agent.held.add("Slow")
        slow = said("Slow")
        slow.configuration.CopyFrom(SendMessageConfiguration(return_immediately=True))
        (begun,) = [one async for one in whole.send_message(slow)]
        assert begun.task.status.state == TaskState.TASK_STATE_WORKING
        await world.agent.thinking.wait()
        joined = streamed.subscribe(SubscribeToTaskRequest(id=begun.task.id))
        assert (await anext(joined)).task.id == begun.task.id
        rest = asyncio.ensure_future(anext(joined))
        cancelled = await whole.cancel_task(CancelTaskRequest(id=begun.task.id))
        assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
        last = await rest
        assert last.status_update.status.state == TaskState.TASK_STATE_CANCELED
        world.agent.gate.set()
        with pytest.raises(errors.TaskNotCancelableError):
            await whole.cancel_task(CancelTaskRequest(id=task.id))

        # What there isn't, and what is somebody else's.
        bob_http = httpx.AsyncClient(
            headers={"authorization": f"Bearer {await world.gate.token('bob')}"}
        )
        bob = await create_client(base, ClientConfig(httpx_client=bob_http, streaming=False))
        for client, id_ in ((bob, task.id), (whole, "a2a-0"), (whole, f"{task.context_id}-2")):
            with pytest.raises(errors.TaskNotFoundError):
                await client.get_task(GetTaskRequest(id=id_))
        with pytest.raises(errors.UnsupportedOperationError):
            await whole.list_tasks(ListTasksRequest())
        more = said("More", task.context_id)
        more.message.task_id = task.id
        with pytest.raises(errors.UnsupportedOperationError, match="one message"):
            [one async for one in whole.send_message(more)]
        file = SendMessageRequest(
            message=Message(message_id="1", role=Role.ROLE_USER, parts=[Part(raw=b"x")])
        )
        with pytest.raises(errors.ContentTypeNotSupportedError, match="raw"):
            [one async for one in whole.send_message(file)]
        with pytest.raises(errors.InvalidParamsError, match="empty"):
            [one async for one in whole.send_message(said(" "))]
        nameless = said("Hello")
        nameless.message.message_id = ""
        with pytest.raises(errors.InvalidParamsError, match="messageId"):
            [one async for one in whole.send_message(nameless)]
        pushed = said("Push")
        pushed.configuration.task_push_notification_config.CopyFrom(
            TaskPushNotificationConfig(url="https://a.example/hook")
        )
        with pytest.raises(errors.PushNotificationNotSupportedError):
            [one async for one in whole.send_message(pushed)]
        for agent, status in (("nobody", 404), ("desk", 403)):
            for asked in (ann.http.post, ann.http.get):
                path = "" if asked == ann.http.post else "/.well-known/agent-card.json"
                assert (await asked(f"/a2a/{agent}{path}")).status_code == status
        assert (await bob_http.get(f"{base}/a2a/desk/.well-known/agent-card.json")).json()["name"]
        await http.aclose()
        await bob_http.aclose()
