"""What the memory service says of itself while it can't do everything (issue 19)."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path

import pytest

from services.memory import __main__ as service
from services.memory.config import Limits
from services.memory.replica.projector import Projector
from tests.support.circuits import circuits_of
from tests.support.memories import asking
from tests.support.stack import Stack, running_stack
from vigil.errors import Unavailable


async def test_health_says_what_it_cannot_do_yet(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ready, and each question is refused; probes and refusals say the same."""

    async def never(projector: Projector) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Projector, "run", never)
    monkeypatch.setattr(service, "Limits", partial(Limits, ready_wait_s=0.01))
    await bare.start("memory")
    health = bare.contexts["memory"].health()
    assert health.ready
    (warning,) = health.warnings
    assert warning.startswith("memory is being made of the log")
    ann = await asking(bare)
    with pytest.raises(Unavailable, match=re.escape(warning)):
        await ann.recall("anything")


async def test_health_says_that_the_embedder_is_away(tmp_path: Path) -> None:
    """Recall goes on without it."""
    section = {
        "embedder": "openai",
        "embedder_model": "m",
        "embedder_url": "http://127.0.0.1:9/v1",
    }
    async with running_stack(tmp_path, services=("memory",), memory=section) as stack:
        ann = await asking(stack)
        await ann.save("the kiln is green")
        assert await ann.found("kiln") == ["the kiln is green"]
        (warning,) = stack.contexts["memory"].health().warnings
        assert warning.startswith("recall goes by full text alone: ")
        # C-5: after three failures it isn't asked.
        for _ in range(3):
            await ann.found("kiln")
        (found,) = await circuits_of(stack)
        assert (found.component, found.state) == ("embedder:openai", "open")
        assert found.reason.startswith("embeddings from 127.0.0.1:9: ")
