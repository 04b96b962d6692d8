"""What is on the bus of an installation that works, by the document alone (SPEC P-7): each record
that is stored comes on an address of it, and is valid by the schema of a message there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import nats
import pytest

from services.gateway.documents import bus as asyncapi
from tests.docs.test_asyncapi import pattern_of
from tests.support.gateway import Gate, until
from tests.support.programs import admit, connect
from tests.support.stack import running_stack
from vigil import __version__

SERVICES = ("gateway", "cortex", "scheduler", "delivery", "memory", "executor")
UNDESCRIBED = re.compile(r"(timer|due|upload|file|live|event)\.|\$KV\.")
"""What no program outside reads: schedules, parts of files, and buckets."""
EVENT = {"specversion": "1.0", "id": "1", "source": "urn:x", "type": "t", "data": "red"}

pytestmark = pytest.mark.usefixtures("own_broker")


def problems_of(document: dict[str, Any], subject: str, data: bytes) -> list[str]:
    """Return why a record isn't as the document has it; empty: it is."""
    found = [
        reference
        for channel in document["channels"].values()
        if re.fullmatch(pattern_of(channel["address"]), subject)
        for reference in channel["messages"]
    ]
    reasons = [] if found else [f"{subject}: comes on no address"]
    for name in found:
        payload = document["components"]["messages"][name]["payload"]
        checker = jsonschema.Draft202012Validator(payload | {"components": document["components"]})
        errors = [error.message for error in checker.iter_errors(json.loads(data))]
        if not errors:
            return []
        reasons.append(f"{subject}: no {name}: {errors[0][:200]}")
    return reasons


async def stored(gate: Gate) -> list[tuple[str, bytes]]:
    """Return all that is stored, by a client that knows nothing of Vigil."""
    stack = gate.stack
    seed = stack.settings.credentials / "admin.seed"
    connection = await nats.connect(
        stack.broker.url, nkeys_seed=str(seed), inbox_prefix=b"_INBOX_admin"
    )
    try:
        stream = connection.jetstream()
        found = []
        for one in await stream.streams_info():
            for seq in range(max(one.state.first_seq, 1), one.state.last_seq + 1):
                try:
                    message = await stream.get_msg(one.config.name or "", seq)
                except nats.js.errors.NotFoundError:
                    continue  # consumed, or replaced
                found.append((message.subject or "", message.data or b""))
        return found
    finally:
        await connection.close()


async def test_all_that_is_stored_is_described(tmp_path: Path) -> None:
    document: dict[str, Any] = json.loads(asyncapi.encoded(__version__))
    sections: dict[str, Any] = {"nats": {"partitions": 2}, "mind": {"enabled": True}}
    async with running_stack(tmp_path / "home", services=SERVICES, **sections) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        try:
            ann = await gate.person("ann")
            for text in ("remind me in 1 second to stretch", "remember that it rains"):
                said = {"message": text, "userId": "ann", "threadId": "t1"}
                assert (await ann.post("/api/chat", json=said)).status_code in (200, 202)
            assert (await ann.post("/api/tasks", json={"title": "x"})).status_code == 201
            program = await connect(stack, await admit(stack, "ann"))
            for more in ({"subject": "ann:vigil:t2"}, {"id": "2"}, {"id": "3", "subject": "x"}):
                event = json.dumps(EVENT | more).encode()
                await program.js.publish(program.credential.events, event)
            await program.close()
            wanted = {
                *("session-0.*.in.said.user", "system.*._mind.in.external", "dead.gateway.*"),
                *("signal.*.event.refused.*", "memory.*.save", "board.*.task.*"),
                *("session-0.*.in.timer", "session-0.*.out.said.*"),
            }

            async def is_there() -> bool:
                subjects = [subject for subject, _ in await stored(gate)]
                return all(
                    any(re.fullmatch(re.escape(one).replace(r"\*", ".+"), s) for s in subjects)
                    for one in wanted
                )

            await until(is_there, "all of it happened")
            wrong = [
                reason
                for subject, data in await stored(gate)
                if not UNDESCRIBED.match(subject)
                for reason in problems_of(document, subject, data)
            ]
            assert wrong == []
        finally:
            await gate.close()
