"""/api/channels and /api/deliveries: a channel is tried, and what goes over one is told."""

from __future__ import annotations

from pathlib import Path

from tests.support.channels import closed, died, running_channel
from tests.support.gateway import Gate
from tests.support.receiver import OK, raw, status
from vigil.subjects import SessionKey

HALF = raw(b"HTTP/1.1 2")
"""Half an answer: the receiver may have taken what came."""


async def test_a_channel_is_tried_and_what_goes_over_it_is_told(tmp_path: Path) -> None:
    """S-10: a test is handed over once, and is on no log; of others nothing is told."""
    behaviours = (OK, status(400, "No"), HALF, status(400, "No"), OK)
    services = ("delivery", "gateway")
    async with running_channel(tmp_path, *behaviours, services=services, is_idempotent=False) as (
        stack,
        receiver,
        talk,
    ):
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        ann, bob = await gate.person("ann"), await gate.person("bob")
        (channel,) = (await ann.get("/api/channels")).json()["channels"]
        assert (channel["name"], channel["kind"], channel["state"]) == ("ops", "webhook", "closed")
        assert (channel["is_hearing"], channel["is_idempotent"]) == (False, False)
        tried = [(await ann.post("/api/channels/ops/trials")).json() for _ in range(2)]
        assert [one["outcome"] for one in tried] == ["taken", "not_taken"]
        assert tried[1]["reason"] == "400 No"
        assert b"a test of the channel ops, asked for by ann" in receiver.requests[0].body
        assert (await ann.post("/api/channels/none/trials")).status_code == 404
        assert (await ann.get("/api/deliveries")).json() == {"deliveries": []}
        ids = []
        for outcome in ("ambiguous", "failed"):
            send = talk.send(channel="ops")
            await talk.user()
            await talk.turn(send)
            assert (await closed(gate.admin, talk.key, send.id)).outcome == outcome
            ids.append(send.id)
        found = (await ann.get("/api/deliveries")).json()["deliveries"]
        assert [(one["effect_id"], one["state"]) for one in found] == [
            (ids[1], "failed"), (ids[0], "ambiguous"),
        ]  # fmt: skip
        assert found[0]["text"]
        assert found[0]["reason"].startswith("400 No")
        (unclear,) = (await ann.get("/api/deliveries?state=ambiguous")).json()["deliveries"]
        assert unclear["next_at"] is None
        assert (await bob.get("/api/deliveries")).json() == {"deliveries": []}
        letters = await died(gate.admin, count=1)
        again = await ann.post(f"/api/dead/{letters[-1].id}/requeue")
        assert again.status_code == 200, again.text
        await closed(gate.admin, talk.key, ids[1], times=2)
        (newest, _) = (await ann.get("/api/deliveries")).json()["deliveries"]
        assert (newest["state"], newest["requeued_by"]) == ("delivered", "ann")
        stored = await gate.admin.read("SESSIONS", [SessionKey("ann", "vigil", "main").everything])
        assert stored == []
        await gate.close()
