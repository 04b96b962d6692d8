"""What was seen of models and tools: which call them, and which were asked to and didn't.

Nobody can tell from an answer in prose whether a tool was needed for it. So it's decided by what
was seen: the server refuses tools, or the model called none when `vigil models` or `vigil doctor`
asked for a call. A call that is seen later counts more than either.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from vigil.contracts import ToolUseBlock
from vigil.settings.models.trial import TOOLS, TriedModel

from ..model import LanguageModel, ModelAnswer, ModelRequest

POLL_S: Final = 1.0
"""Seconds from one look whether models were tried to the next. (A look takes 10 us of the 860 of
a message, and each took two.)"""
_decode: Final = msgspec.json.Decoder(list[TriedModel]).decode


def server_of(model: LanguageModel) -> str:
    """Return host and port of a model's server; empty: it runs in this process."""
    return "{}:{}".format(*model.server) if model.server else ""


class ToolSight:
    """Of all models of a replica."""

    def __init__(
        self, kept: Path | None = None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """
        Args:
            kept: the file in which it is kept what models answered when they were tried.
            monotonic: the time in seconds, by a clock that only goes on.
        """
        self._kept = kept
        self._monotonic = monotonic
        self._again_at = 0.0
        self._read_ns = 0
        self._tried: tuple[TriedModel, ...] = ()
        self._callers: set[str] = set()
        self._refused: set[str] = set()

    def learn(self, name: str, request: ModelRequest, answer: ModelAnswer) -> None:
        """Take in what a model answered to a request that offered tools."""
        called = (block for block in answer.blocks if isinstance(block, ToolUseBlock))
        if any(not call.malformed for call in called):
            self._callers.add(name)
            self._refused.discard(name)
        elif request.tools and TOOLS in answer.lacks:
            self._refused.add(name)

    def lacks(self, name: str, model: LanguageModel) -> bool:
        """Whether a model was seen to call no tools."""
        return name in self._refused or self.is_in_prose(name, model)

    def is_in_prose(self, name: str, model: LanguageModel) -> bool:
        """Whether it takes tools, and called none when it was asked to."""
        if name in self._callers:
            return False
        return any(
            one.name == name and one.model == model.name and one.server == server_of(model)
            for one in self.tried()
            if TOOLS in one.lacks
        )

    def tried(self) -> tuple[TriedModel, ...]:
        """Return what is kept, read anew if it was written since, a second later at most; what
        can't be read says nothing."""
        if self._kept is None or self._monotonic() < self._again_at:
            return self._tried
        self._again_at = self._monotonic() + POLL_S
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            written_ns = self._kept.stat().st_mtime_ns
            if written_ns != self._read_ns:
                self._read_ns = written_ns
                self._tried = tuple(_decode(self._kept.read_bytes()))
        return self._tried


def keep(path: Path, tried: list[TriedModel], *, is_part: bool = False) -> None:
    """Keep what models answered, for the cortex; of those that gave none what was kept before.

    Args:
        is_part: whether others weren't asked: of them, too, what was kept stays.

    What can't be written isn't kept: it's told anyway. Nor is it where Vigil never ran: who looks
    at a machine makes nothing.
    """
    if not path.parent.parent.is_dir():
        return
    silent = {one.name for one in tried if one.error}
    asked = {one.name for one in tried}
    there = [one for one in tried if not one.error]
    there += [
        one
        for one in ToolSight(path).tried()
        if one.name in silent or (is_part and one.name not in asked)
    ]
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        draft = path.with_name(f".{path.name}.new")
        draft.write_bytes(msgspec.json.encode(there))
        draft.replace(path)
