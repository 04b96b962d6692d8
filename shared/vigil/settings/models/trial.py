"""What `services.cortex.trial` says of a model that it tried. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

TOOLS: Final = "tools"
"""What a model lacks that refuses tools, or calls none when it's asked to."""
IN_PROSE: Final = (
    "calls no tools: asked for a reminder, or to remember or look up something, it answers in "
    "prose and nothing is done"
)


FILE: Final = "models.json"
"""In which it's kept what models answered, beside the file of what is running."""


class TriedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A configured model, asked for a token."""

    name: str
    used_by: tuple[str, ...] = ()
    """The settings that name it."""
    provider: str = ""
    model: str = ""
    """As its provider names it."""
    server: str = ""
    """Host and port; empty: it runs in the process that asks."""
    latency_ms: float | None = None
    """Until the whole answer of one token was there; None: there was none."""
    lacks: tuple[str, ...] = ()
    """What it refuses."""
    error: str = ""
    """Why there was no answer."""
    may_pass: bool = False
    """Whether the same call may have an answer later: nothing here is wrong."""
