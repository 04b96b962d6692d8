"""Models that may be asked: a section ``[models.NAME]`` each, and which of them is. Pure.

`[model]`, an agent and a kind of session name one. A name without a section is a model of
Anthropic's, or the stand-in's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from ...errors import InvalidInput
from ...fields.section import Section
from . import prices
from .prices import Prices

if TYPE_CHECKING:
    from ..config import Config

Provider = Literal["anthropic", "openai", "rehearsal"]
Medium = Literal["image", "pdf"]
REHEARSAL: Final = "rehearsal"
DEFAULT_MODEL: Final = "claude-sonnet-5-5"
"""What answers where a key is given and no name."""


class ModelRow(Section, frozen=True, kw_only=True):
    """A model that `model.main` and others may name."""

    provider: Provider = "anthropic"
    """The wire: Messages, Chat Completions, or the stand-in."""
    model: str = ""
    """Its id there; empty: NAME."""
    base_url: str = ""
    """A server of your own; `openai`: with its `/v1`. Empty: the provider's."""
    api_key_file: str = ""
    """File with the key, relative to the home. Empty: `ANTHROPIC_API_KEY` or
    `OPENAI_API_KEY`; with `base_url` none, since those aren't for others."""
    context_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Context window, at least 2000; 0: `model.context_tokens`."""
    takes: tuple[Medium, ...] | None = None
    """What it can be shown but text: `["image", "pdf"]`, one of them, or none. Left out: both for
    Claude and for OpenAI's own server, else none."""
    prices: Prices = ()
    """A list of what a million tokens cost in USD from a day on: `{since = 2026-01-01, input = 3,
    output = 15, cache_read = 0.3, cache_write = 3.75}`; cached ones cost as `input` if left out."""


def check(name: str, row: ModelRow) -> None:
    """Check what can be told from a section alone.

    Raises:
        InvalidInput: naming the key and the reason. No URL is quoted: a password may stand in it.
    """
    prices.check(f"models.{name}.prices", row.prices)
    if 0 < row.context_tokens < 2000:
        raise InvalidInput(f"models.{name}.context_tokens", "must be 0, or at least 2000")
    if row.base_url:
        check_url(f"models.{name}.base_url", row.base_url)


def check_url(setting: str, url: str) -> None:
    """Refuse what can't be the base of a request's URL.

    >>> check_url("models.m.base_url", "localhost:8080/v1")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: models.m.base_url: must be http:// or https:// and a host
    """
    if server_of(url) is None or not url.startswith(("http://", "https://")):
        raise InvalidInput(setting, "must be http:// or https:// and a host")
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(setting, "must hold no user, password, query or fragment")


def server_of(url: str) -> tuple[str, int] | None:
    """Return host and port of a base URL, without what else may stand in it.

    >>> server_of("https://me:secret@models.example/v1")
    ('models.example', 443)
    """
    try:
        parts = urlsplit(url)
        port = parts.port or (80 if parts.scheme == "http" else 443)
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname else None


def name_of(config: Config, *, agent: str, profile: str, tier: str) -> str:
    """Return which model answers: that of the kind of session, else with the cheap tier
    `model.cheap`, else that of the agent, else `model.main`. Empty: the default one."""
    if name := config.model.profiles.get(profile):
        return name
    if tier == "cheap" and config.model.cheap:
        return config.model.cheap
    return config.agent_of(agent).model or config.model.main


def names(config: Config) -> dict[str, str]:
    """Return each setting that names a model, with the name; `model.main` always."""
    found = {
        "model.cheap": config.model.cheap,
        "model.fallback": config.model.fallback,
        "agent.model": config.agent.model,
    }
    found |= {f"agents.{name}.model": agent.model for name, agent in config.agents.items()}
    found |= {f"model.profiles.{kind}": name for kind, name in config.model.profiles.items()}
    return {"model.main": config.model.main} | {key: name for key, name in found.items() if name}


def takes_of(config: Config, name: str) -> frozenset[Medium]:
    """Return what a model can be shown beside text.

    All of Anthropic's take both (their documentation on vision and PDF files), and so do OpenAI's
    that are current, from their own server. Of others only who runs them knows.
    """
    name = name or DEFAULT_MODEL
    row = config.models.get(name) or ModelRow(
        provider="rehearsal" if name == REHEARSAL else "anthropic"
    )
    if row.takes is not None:
        return frozenset(row.takes)
    is_claude = row.provider == "anthropic" and (row.model or name).startswith("claude")
    is_openais = row.provider == "openai" and not row.base_url
    return frozenset(get_args(Medium)) if is_claude or is_openais else frozenset()


def context_tokens_of(config: Config, name: str) -> int:
    """Return the context window of a model, in tokens."""
    row = config.models.get(name or DEFAULT_MODEL)
    return (row and row.context_tokens) or config.model.context_tokens
