"""Bases of what goes over HTTP. Pure."""

from __future__ import annotations

import msgspec


class RequestBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what comes in: a typing mistake is an error, and not a silence."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what goes out."""
