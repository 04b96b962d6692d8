"""The tools that are ours, as a model sees them, from the types that check their input. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from msgspec.structs import replace

from vigil.contracts import State
from vigil.contracts.arguments import Arguments, description_of, schema_of
from vigil.memory.operation import tools as memory_tools

from ..core.kinds import starters
from ..core.policy import REPORT_FACTS
from ..core.tools.declaration import declared
from ..model import ToolSpec
from ..own_tools.facts import offered


def arguments() -> dict[str, type[Arguments]]:
    """Return what each tool takes, but for those of the executor."""
    own = {name: one.arguments for name, one in declared().items()}
    starting = {name: p.starter.arguments for name, p in starters().items() if p.starter}
    memory = {name: one.arguments for name, one in memory_tools().items()}
    return {**own, **memory, **starting}


@functools.cache
def specs() -> tuple[ToolSpec, ...]:
    """Return those tools as the model sees them."""
    return tuple(
        ToolSpec(name=name, description=description_of(kind), input_schema=schema_of(kind))
        for name, kind in arguments().items()
    )


def reflection_specs() -> tuple[ToolSpec, ...]:
    """Return what a model may call that sums up or looks back: nobody is there to whom it could
    speak."""
    return tuple(spec for spec in specs() if spec.name == "memory_save")


def with_facts(shown: Iterable[ToolSpec], state: State) -> tuple[ToolSpec, ...]:
    """Return tools as a session is shown them: a small model fills in a form that is there."""
    return tuple(
        replace(one, input_schema=offered(state)) if one.name == REPORT_FACTS else one
        for one in shown
    )
