"""A model whose answers a test decides, one call at a time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable

import pytest

from services.cortex import choice
from services.cortex.core.draft.sight import Sight
from services.cortex.model import LanguageModel, ModelAnswer, ModelRequest
from services.cortex.thought.catalogue import Catalogue, ModelChoice
from vigil.contracts import TextBlock, Usage
from vigil.settings.config import Settings

Behave = Callable[[ModelRequest], ModelAnswer | Awaitable[ModelAnswer]]


def text_of(request: ModelRequest) -> str:
    """Return the last text that the model is asked about."""
    blocks = request.rows[-1].blocks
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


def say(text: str) -> ModelAnswer:
    usage = Usage(model="scripted", input_tokens=1, output_tokens=1)
    return ModelAnswer(blocks=(TextBlock(text=text),), stop_reason="end_turn", usage=usage)


def only(model: LanguageModel) -> Callable[[Settings], Catalogue]:
    """Return a choice of models that has one for all."""
    one = ModelChoice(model.name, model, "vigil", sight=Sight(tokens_max=50_000))
    return lambda settings: Catalogue(settings.config, defaultdict(lambda: one))


class ScriptedModel:
    """Answers by `behave`; counts what was asked and what was cancelled."""

    name = "scripted"
    is_free = True
    server = None

    def __init__(self, behave: Behave | None = None) -> None:
        self.behave: Behave = behave or (lambda request: say(f"re: {text_of(request)}"))
        self.requests: list[ModelRequest] = []
        self.cancelled = 0
        self.gate = asyncio.Event()
        """For behaviours that wait until the test lets them go on."""

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        self.requests.append(request)
        try:
            answer = self.behave(request)
            return await answer if isinstance(answer, Awaitable) else answer
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def close(self) -> None:
        return None

    def install(self, monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
        """Make every cortex started from now on think with this."""
        monkeypatch.setattr(choice, "choose", only(self))
        return self
