"""How a tool that the core answers is declared: one function, whose first argument's type is the
schema. Pure.

    @tool(risk="read", profiles=("channel",))
    def roll_call(given: RollCall, call: OwnCall, draft: Draft) -> Answer: ...

Its name is the function's; what a model reads of it, and of its arguments, is the struct's. It
decides and touches nothing, so its result stands in the turn of the call. Some calls are for the
person alone to decide, once content from outside has a part in them: its `Leave` says which.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vigil import registry
from vigil.contracts import OpenCall, Risk, Tool, ToolUseBlock
from vigil.contracts.arguments import Arguments
from vigil.contracts.tools import Aim
from vigil.memory.operation import tools as memory_tools

from ..draft.profile import MCP, MEMORY, Profile

if TYPE_CHECKING:
    from ..draft import Draft
    from ..draft.policy import OnBoard
    from ..sway import Sway

OWN_TOOLS: Final = "services.cortex.own_tools"
EMPTY: Final[Mapping[str, Aim]] = MappingProxyType({})
Result = tuple[str, bool]
"""What the model reads, and whether it is an error that it can correct."""
Answer = Result | OpenCall
"""A result at once, or what the loop waits for."""


class OwnCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool, and on whose word it is carried out."""

    use: ToolUseBlock
    sway: Sway
    """What had a part in deciding it."""
    asked_at: datetime
    """When it was asked for: from then on a delay counts."""
    is_accepted: bool = False
    """Whether the person accepted it word for word: it is theirs, whatever asked for it."""


Run = Callable[[Any, OwnCall, "Draft"], Answer]


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls only the person may decide, where content from outside has a part."""

    is_needed: Callable[[Any, Draft], bool]
    refusal: str
    """What the model is told where no person began or ordered the loop: nobody is asked then."""
    loss: Callable[[Any, Draft], str] = lambda _given, _draft: ""
    """Says what of theirs the person would give up; empty: nothing."""


class OwnTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool, and what is said of it."""

    name: str
    arguments: type[Arguments]
    function: Run
    risk: Risk
    profiles: tuple[str, ...]
    obstacle: Callable[[Any, OwnCall, Draft], str | None]
    leave: Leave | None
    reads: tuple[OnBoard, ...]
    aims: Mapping[str, Aim]

    def read(self, given: dict[str, Any]) -> Any:
        """Return the arguments of a call; what is wrong with them, as a text, if they don't fit."""
        try:
            return msgspec.convert(given, self.arguments)
        except msgspec.ValidationError as error:
            return str(error)


def tool(
    *,
    risk: Risk,
    profiles: tuple[str, ...],
    obstacle: Callable[[Any, OwnCall, Draft], str | None] = lambda _given, _call, _draft: None,
    leave: Leave | None = None,
    reads: tuple[OnBoard, ...] = (),
    aims: Mapping[str, Aim] = EMPTY,
) -> Callable[[Run], OwnTool]:
    """Declare a function to be a tool.

    Args:
        risk: by which the person is asked, where they are.
        profiles: the kinds of sessions that are offered it.
        obstacle: why a call can't be granted as things are, whoever asks; None: it can.
        leave: None: the person is never asked.
        reads: what of the person and agent is to be in its moment, as the board has it.
        aims: what its arguments are for; those that aren't named are content.
    """

    def declare(function: Run) -> OwnTool:
        return OwnTool(
            name=function.__name__,
            arguments=registry.arguments_of(function),
            function=function,
            risk=risk,
            profiles=profiles,
            obstacle=obstacle,
            leave=leave,
            reads=reads,
            aims=aims,
        )

    return declare


def read_by(names: Iterable[str]) -> frozenset[OnBoard]:
    """Return what these tools need to know of the board."""
    known = declared()
    return frozenset(what for name in names if name in known for what in known[name].reads)


@functools.cache
def declared() -> dict[str, OwnTool]:
    """Return all that the modules of `own_tools` declare, by name."""
    return {one.name: one for one in registry.declared(OWN_TOOLS, OwnTool)}


def offers(profile: Profile, name: str, tool: Tool | None) -> bool:
    """Whether sessions of this kind are offered a tool.

    Args:
        tool: as the executor offers it; None: it doesn't.
    """
    if "__" in name:
        return MCP in profile.tools
    if name in memory_tools():
        return MEMORY in profile.tools
    offered = tool or declared().get(name)
    return name in profile.tools or (offered is not None and profile.name in offered.profiles)
