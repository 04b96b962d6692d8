"""Requests to a model behind a wire, and what comes of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from services.cortex.model import LanguageModel, ModelAnswer, ModelError, ModelRequest, Situation
from services.cortex.thought.tools import specs
from vigil.contracts import Block, Row, TextBlock

NOW: Final = datetime(2026, 11, 20, 11, 0, tzinfo=UTC)
KEY: Final = "sk-ant-api03-verysecret"
SITUATION: Final = Situation(
    now=NOW, timezone="UTC", user="ann", agent="vigil", follow_ups={}, autonomy_enabled=True
)


def row(role: Any, *blocks: Block, source: Any = "person") -> Row:
    return Row(role=role, blocks=blocks, at=NOW, source=source)


def user(text: str) -> Row:
    return row("user", TextBlock(text=text))


def request(*rows: Row, **changes: Any) -> ModelRequest:
    base = ModelRequest(
        session_key="ann:vigil:t1",
        system=("You are kind.", "You are Vigil."),
        rows=rows or (user("hello"),),
        tools=specs(),
        max_tokens=1000,
        timeout_s=20.0,
        situation=SITUATION,
    )
    return msgspec.structs.replace(base, **changes)


async def ask(model: LanguageModel, *rows: Row, **changes: Any) -> ModelAnswer:
    return await model.answer(request(*rows, **changes), lambda _: None)


async def fail(model: LanguageModel, **changes: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(model, **changes)
    assert KEY not in str(caught.value)
    return caught.value


def text_of(answer: ModelAnswer) -> str:
    return "".join(block.text for block in answer.blocks if isinstance(block, TextBlock))
