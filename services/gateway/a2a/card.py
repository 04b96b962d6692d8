"""The card of an agent: how a program that speaks A2A 1.0 reaches it. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

VERSION: Final = "1.0"
"""Of the protocol."""


class _Camel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What A2A names its fields like."""


class CardInterface(_Camel, frozen=True, kw_only=True):
    """A way to reach an agent."""

    url: str
    protocol_binding: str = "JSONRPC"
    protocol_version: str = VERSION


class CardCapabilities(_Camel, frozen=True, kw_only=True):
    """What an agent does of what A2A leaves open."""

    streaming: bool = True
    push_notifications: bool = False


class CardSkill(_Camel, frozen=True, kw_only=True):
    """What an agent is good for."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]


class AgentCardView(_Camel, frozen=True, kw_only=True):
    """The card of an agent, by A2A 1.0."""

    name: str
    description: str
    version: str
    supported_interfaces: tuple[CardInterface, ...]
    capabilities: CardCapabilities = CardCapabilities()
    default_input_modes: tuple[str, ...] = ("text/plain", "application/json")
    default_output_modes: tuple[str, ...] = ("text/plain",)
    skills: tuple[CardSkill, ...]
    security_schemes: dict[str, dict[str, dict[str, str]]]
    security_requirements: tuple[dict[str, dict[str, dict[str, list[str]]]], ...]


def card_of(agent: str, url: str, version: str) -> AgentCardView:
    """Return the card of an agent; nothing in it is of a person.

    Args:
        url: where the gateway is reached.
    """
    talk = CardSkill(
        id="talk",
        name="Talk",
        description="Say something in a conversation; the answer may take tools, and a while.",
        tags=("conversation",),
    )
    return AgentCardView(
        name=agent,
        description="An agent of its owner's, who gives a token to whom it may talk with.",
        version=version,
        supported_interfaces=(CardInterface(url=f"{url}/a2a/{agent}"),),
        skills=(talk,),
        security_schemes={"token": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        security_requirements=({"schemes": {"token": {"list": []}}},),
    )
