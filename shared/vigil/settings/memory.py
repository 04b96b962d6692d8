"""The sections on what is remembered, and on what an agent does between conversations."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ..fields.section import NotNegative, NotNegativeF, PositiveS, Section


class MemorySection(Section, frozen=True, kw_only=True):
    """What is remembered, and how it is found (SPEC M)."""

    recall_tokens: Annotated[int, msgspec.Meta(ge=0, le=20_000)] = 1000
    """Of the prompt, for memories recalled before an answer; 0: none are."""
    recall_timeout_s: PositiveS = 1.0
    """Then it answers without them; `vigil why` shows it."""
    warm_wait_s: NotNegativeF = 600.0
    """After a start so long cycles and jobs wait at most until it's whole."""
    pause_s: NotNegative = 600
    """Idle time until the model is asked what to remember; 0: never."""
    embedder: Literal["wordllama", "onnx", "openai"] = "wordllama"
    """A change recomputes all vectors."""
    embedder_model: str = ""
    """`onnx`: a folder, or a fastembed name; `openai`: the model."""
    embedder_url: str = ""
    """`openai`: base URL including `/v1`."""
    qdrant_url: str = ""
    """A Qdrant server, which needs the extra `qdrant`; empty: the local engine."""
    weight_vector: NotNegativeF | None = None
    """How much embedding similarity counts beside the words; unless set, 0.15 with `wordllama`, and
    0.4 with the others."""
    association_every_s: PositiveS = 300.0
    """How often new memories are associated."""
    maintenance_every_s: PositiveS = 6 * 3600.0
    """How often memories are pruned and merged."""


class MindSection(Section, frozen=True, kw_only=True):
    """What an agent does between conversations (SPEC G-1)."""

    enabled: bool = True
    """Whether it looks after goals and what comes in, where `autonomy.enabled` and
    `agent.authority` let it."""
    tick_seconds: Annotated[int, msgspec.Meta(ge=1, le=3600)] = 30
    """Shortest time between two looks; what comes meanwhile is one look's."""
    max_tokens_per_tick: Annotated[int, msgspec.Meta(ge=256, le=32_768)] = 4096
    """Of a look's answer; `model.max_tokens` is the most anyway."""
    min_confidence_to_act: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.3
    """Of a decision less sure than this the person is asked first, whatever it is; what changes
    something needs 0.5 at least, what acts outside 0.7, what can't be undone 0.9."""
