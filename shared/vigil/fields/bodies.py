"""Bases of what goes over HTTP. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

IdempotencyKey = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
"""A name of the caller's for what they ask: repeating it is harmless for a day."""


class RequestBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what comes in: a typing mistake is an error, and not a silence."""


class MakingBody(
    RequestBody, frozen=True, kw_only=True, rename={"agent_id": "agentId", "user_id": "userId"}
):
    """Base of what makes something of one's own with an agent: these names are of the contract."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what goes out."""
