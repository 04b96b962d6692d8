"""Each configured model asked for one token: whether it answers, how fast, and what it refuses.

The command line runs this in a process of its own, since only a cortex has the SDKs and the keys.
It makes up to three calls of a token, and one for a call of a tool, which no budget counts.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from vigil.contracts import Attachment, AttachmentBlock, Row, TextBlock, ToolUseBlock
from vigil.errors import ConfigError
from vigil.observe import logs
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.models import takes_of
from vigil.settings.models.access import access_of, all_names
from vigil.settings.models.trial import FILE, TOOLS, TriedModel

from .choice import opened
from .model import LanguageModel, ModelError, ModelRequest, Situation, ToolSpec
from .models import chat, messages
from .models.loader import LoadingModel
from .models.tool_sight import keep, server_of

TIMEOUT_S: Final = 30.0
_SCHEMA: Final = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
_GREY: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAAAAABWESUoAAAAFklEQVR42mNoIAAYRhWMKhhVMFIVAABCAAAfN5c2"
    "AAAAAElFTkSuQmCC"
)
"""A PNG image of 32x32 pixels, in Base64."""
_IMAGE: Final = Attachment(
    hash="0" * 64, name="grey.png", type="image/png", size=79, width=32, height=32
)
_SAY: Final = ToolSpec(name="say", description="Say a word.", input_schema=_SCHEMA)
_CALL: Final = "Please call the tool `say` with the word ok. Don't write anything else."
CALL_TOKENS_MAX: Final = 1024
"""For a call: many models think first."""
_ASKED: Final[dict[str, dict[str, Any]]] = {
    "answers by a schema": {"schema": _SCHEMA},
}
"""What a model may refuse, and what asks for it."""
UNCOUNTED: Final = "counts of tokens"


def main() -> None:
    """Print what was found as JSON, by name, and nothing else: what is lacking stands in it.

    Of the models that stdin names, or of all, if it names none.
    """
    logs.configure(level=logging.ERROR)
    settings = config.load()
    only = sys.stdin.read().split()
    found = asyncio.run(tried(settings, only))
    keep(settings.run_file.with_name(FILE), found, is_part=bool(only))
    sys.stdout.buffer.write(msgspec.json.encode(found))


async def tried(settings: Settings, only: Sequence[str] = ()) -> list[TriedModel]:
    """Ask every model that has a section or is named by a setting, or only some; all at once."""
    names = all_names(settings) | dict.fromkeys(only, ())
    names = {name: used for name, used in names.items() if not only or name in only}
    return await asyncio.gather(*[_try(settings, *one) for one in names.items()])


async def _try(settings: Settings, name: str, used_by: tuple[str, ...]) -> TriedModel:
    found = TriedModel(name=name, used_by=used_by)
    try:
        access = access_of(settings, name, used_by[0] if used_by else f"models.{name}")
        model = opened(settings, access)
        if isinstance(model, LoadingModel):
            model = await model.model()
    except (ConfigError, ImportError) as error:
        return msgspec.structs.replace(found, error=str(error))
    found = msgspec.structs.replace(
        found, provider=access.provider, model=access.model, server=server_of(model)
    )
    try:
        timeout_s = min(TIMEOUT_S, settings.config.model.timeout_s)
        takes_images = "image" in takes_of(settings.config, name)
        return await _asked(model, found, timeout_s, takes_images=takes_images)
    except ModelError as error:
        return msgspec.structs.replace(found, error=error.reason, may_pass=error.is_retryable)
    finally:
        await model.close()


async def _asked(
    model: LanguageModel, found: TriedModel, timeout_s: float, *, takes_images: bool
) -> TriedModel:
    """Ask plainly, then for what it may refuse. Raises: ModelError, of the plain question.

    Args:
        takes_images: whether it's configured to.
    """
    begun = time.perf_counter()
    answer = await model.answer(_request(timeout_s), _ignore)
    latency_ms = (time.perf_counter() - begun) * 1000
    asked = _ASKED | ({"images": _with_image(timeout_s)} if takes_images else {})
    calls = model.is_free or await _calls(model, timeout_s) or await _calls(model, timeout_s)
    lacks = [] if calls else [TOOLS]
    lacks += [what for what, fields in asked.items() if await _lacks(model, timeout_s, fields)]
    if not (model.is_free or answer.usage.tokens):
        lacks.append(UNCOUNTED)
    return msgspec.structs.replace(found, latency_ms=round(latency_ms, 1), lacks=tuple(lacks))


async def _calls(model: LanguageModel, timeout_s: float) -> bool:
    """Whether it calls a tool when it's asked to: many take tools, and answer in prose.

    Who fails for another reason, or had no end, showed nothing. A small model may miss once, and is
    offered no tools if it does: so it is asked twice.
    """
    rows = (_said(_CALL),)
    asked = _request(timeout_s, rows=rows, tools=(_SAY,), max_tokens=CALL_TOKENS_MAX)
    try:
        answer = await model.answer(asked, _ignore)
    except ModelError as error:
        return error.is_retryable
    called = [block for block in answer.blocks if isinstance(block, ToolUseBlock)]
    is_right = any(call.name == _SAY.name and not call.malformed for call in called)
    return is_right or answer.stop_reason == "max_tokens"


async def _lacks(model: LanguageModel, timeout_s: float, fields: dict[str, Any]) -> bool:
    """Whether a request with these fields is refused, or is made without its schema."""
    try:
        answer = await model.answer(_request(timeout_s, **fields), _ignore)
    except ModelError as error:
        return not error.is_retryable
    return "schema" in fields and not answer.lacks.isdisjoint((chat.SCHEMA, messages.SCHEMA))


def _request(timeout_s: float, **fields: Any) -> ModelRequest:
    situation = Situation(
        now=datetime.now(UTC),
        timezone="UTC",
        user="",
        agent="",
        follow_ups={},
        autonomy_enabled=False,
    )
    plain: dict[str, Any] = {"rows": (_said("Say ok."),), "tools": (), "max_tokens": 1}
    return ModelRequest(
        session_key="",
        system=("You are asked whether you are there.",),
        timeout_s=timeout_s,
        total_s=timeout_s,
        situation=situation,
        **(plain | fields),
    )


def _said(text: str) -> Row:
    blocks = (TextBlock(text=text),)
    return Row(role="user", source="person", blocks=blocks, at=datetime.now(UTC))


def _with_image(timeout_s: float) -> dict[str, Any]:
    (said,) = _request(timeout_s).rows
    shown = (*said.blocks, AttachmentBlock(file=_IMAGE))
    return {
        "rows": (msgspec.structs.replace(said, blocks=shown),),
        "files": {_IMAGE.hash: _GREY},
    }


def _ignore(_: str) -> None:
    """Nobody reads the words."""


if __name__ == "__main__":
    main()
