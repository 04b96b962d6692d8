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
    weight_text: NotNegativeF = 0.9
    """Of full text. Only ratios of this and the next three matter."""
    weight_vector: NotNegativeF = 0.15
    """Of embedding similarity; with a sentence model use 1."""
    weight_words: NotNegativeF = 0.5
    """Of words nearest to the question's."""
    weight_gist: NotNegativeF = 1.0
    """Of similarity in rare words."""
    weight_neighbours: NotNegativeF = 0.25
    """Of the adjacent turns' scores, by the square of their share of the best."""
    weight_thread: NotNegativeF = 0.3
    """Of the best score in the same conversation."""
    weight_names: NotNegativeF = 1.0
    """Of a name in the best memories that only one other has."""
    weight_speaker: NotNegativeF = 1.0
    """If the question names the speaker."""
    weight_date: NotNegativeF = 1.0
    """If the question names the day; of a month or year half."""
    weight_question: NotNegativeF = 0.3
    """Penalty for a memory that is itself a question."""
    weight_brief: NotNegativeF = 1.0
    """Penalty for a memory of a few common words, and a share of it for one of a few rare ones."""
    weight_repeat: NotNegativeF = 1.0
    """Penalty for a memory that says the very same as a better one."""
    weight_graph: NotNegativeF = 0.03
    """Along an association of weight 1."""
    weight_recency: NotNegativeF = 0.02
    """Of a memory made now."""
    recency_half_life_days: PositiveS = 30.0
    """Half-life of that."""
    weight_importance: NotNegativeF = 0.05
    """Of importance 1, after decay."""
    weight_taint: NotNegativeF = 0.2
    """Penalty for untrusted origin."""
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
