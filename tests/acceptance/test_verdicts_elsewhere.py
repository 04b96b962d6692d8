"""A request that is decided in two conversations at once: nobody is left with an "Accepted" that
isn't so (X-2, L-9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agent import ask
from tests.support.outside import say_from_outside
from tests.support.world import ANN, running_world

OTHER = "ann:vigil:other"


async def test_who_was_told_that_it_counts_and_was_too_late_is_told_so_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict from elsewhere is on its way while another is given where it was asked."""
    async with running_world(tmp_path, monkeypatch, has_hands=True) as world:
        ann, other = [await world.person(key, has_socket=False) for key in (ANN, OTHER)]
        await say_from_outside(ann, ask(("shell", {"command": "echo hello"})))
        (asked,) = (await ann.http.get("/api/approvals")).json()["approvals"]
        await other.exchange(f"accept {asked['name']}")  # is shown what exactly, first
        await world.gate.stack.stop("executor")  # which brings it to the conversation that asked
        for person, word in ((other, "accept"), (ann, "reject")):
            seq = await person.say(f"{word} {asked['name']}")
            await person.talk.ended(seq)
        await world.gate.stack.start("executor")
        await world.at_rest()

        assert (await ann.http.get("/api/approvals")).json()["approvals"] == []
        texts = [line["text"] for line in await other.transcript()]
        assert any(text.startswith("Accepted: ") for text in texts)
        assert texts[-1].startswith(f"Too late: {asked['name']} was rejected by ann at ")
        assert not any("Too late" in line["text"] for line in await ann.transcript())
