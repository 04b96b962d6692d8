"""The tools that are ours, as a model sees them, from the types that check their input. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from vigil.contracts import Loop, State, Tool
from vigil.contracts.arguments import brief, description_of, schema_of

from ..core.draft.policy import REPORT_FACTS
from ..core.draft.profile import Profile
from ..core.tools.arguments import FOREIGN
from ..core.tools.declaration import offers
from ..core.tools.search import FIND_TOOLS, arguments, is_first
from ..model import ToolSpec
from ..own_tools.facts import offered

FOREIGN_BYTES_MAX: Final = 4 * 1024
"""Of the tools of MCP servers together: with more of them a model finds those that it needs."""
FOUND_BYTES_MAX: Final = 16 * 1024
"""Of what a session found; of more the newest are shown."""
NAMED_MAX: Final = 40
"""Tools of MCP servers that are listed by name; of more the servers are."""


@functools.cache
def specs() -> tuple[ToolSpec, ...]:
    """Return those tools as the model sees them."""
    return tuple(
        ToolSpec(name=name, description=description_of(kind), input_schema=brief(schema_of(kind)))
        for name, kind in arguments().items()
    )


def spec_of(tool: Tool) -> ToolSpec:
    """Return a tool of the executor as a model sees it: of another's server as it is."""
    schema = tool.input_schema if FOREIGN in tool.name else brief(tool.input_schema)
    return ToolSpec(
        name=tool.name, description=tool.description, input_schema={"type": "object"} | schema
    )


def reflection_specs() -> tuple[ToolSpec, ...]:
    """Return what a model may call that sums up or looks back: nobody is there to whom it could
    speak."""
    return tuple(spec for spec in specs() if spec.name == "memory_save")


def with_facts(shown: tuple[ToolSpec, ...], state: State) -> tuple[ToolSpec, ...]:
    """Return tools as a session is shown them: a small model fills in a form that is there."""
    if REPORT_FACTS not in [one.name for one in shown]:
        return shown  # the very same: what was counted of them is known by that
    return tuple(
        replace(one, input_schema=offered(state)) if one.name == REPORT_FACTS else one
        for one in shown
    )


def of_caller(loop: Loop | None, *, after: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Return tools and, last, those that the program brought along: all before them is the same in
    other loops, so a provider's cache holds it."""
    if loop is None or loop.caller is None:
        return after
    return (*after, *map(spec_of, loop.caller.tools))


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """What a kind of session is offered."""

    first: tuple[ToolSpec, ...]
    """Shown from the start, in an order that stays."""
    others: Mapping[str, ToolSpec] = {}
    """Shown once they were found, by name."""

    @property
    def all(self) -> tuple[ToolSpec, ...]:
        """Whatever can be called."""
        return (*self.first, *self.others.values())

    def shown(self, found: Sequence[str]) -> tuple[ToolSpec, ...]:
        """Return what a session is shown that found these: they stand last, so that only what comes
        after the tools changes by one more."""
        left, more = FOUND_BYTES_MAX, list[ToolSpec]()
        for name in reversed(found):
            spec = self.others.get(name)
            if spec is not None and (size_of(spec) <= left or not more):
                left -= size_of(spec)
                more.append(spec)
        return (*self.first, *reversed(more)) if more else self.first


def offered_to(profile: Profile, tools: Mapping[str, Tool]) -> Offered:
    """Return what a session of this kind is offered, the core's and memory's tools first."""
    own = [spec for spec in specs() if offers(profile, spec.name, None)]
    every = [*own, *(spec_of(one) for one in tools.values() if offers(profile, one.name, one))]
    foreign = [spec for spec in every if FOREIGN in spec.name]
    is_foreign_first = sum(map(size_of, foreign)) <= FOREIGN_BYTES_MAX
    first, others = [], {}
    for spec in every:
        if FOREIGN in spec.name:
            is_shown = is_foreign_first
        else:
            is_shown = spec.name != FIND_TOOLS and is_first(profile, spec.name)
        if is_shown:
            first.append(spec)
        else:
            others[spec.name] = spec
    finder = others.pop(FIND_TOOLS, None)
    if finder is None or not others:
        return Offered(first=(*first, *others.values()))
    text = f"{finder.description} There are: {listed(others)}."
    return Offered(first=(*first, replace(finder, description=text)), others=others)


def listed(names: Iterable[str]) -> str:
    """Name what can be found.

    >>> listed(["cron", "box__open", "box__shut"])
    'cron, box__open, box__shut'
    """
    own = [name for name in names if FOREIGN not in name]
    foreign = [name for name in names if FOREIGN in name]
    if len(foreign) > NAMED_MAX:
        servers: dict[str, int] = {}
        for name in foreign:
            server = name.partition(FOREIGN)[0]
            servers[server] = servers.get(server, 0) + 1
        foreign = [f"{count} of {server}" for server, count in servers.items()]
    return ", ".join((*own, *foreign))


def size_of(spec: ToolSpec) -> int:
    """Return how many bytes a request gets longer by a tool, about."""
    return len(msgspec.json.encode((spec.name, spec.description, spec.input_schema)))
