"""The standing grant that a request of an agent suggests: as narrow as the call itself.

A person is shown it before it's made, and may narrow it further; nobody else makes one.
"""

from __future__ import annotations

from typing import Any

from ..contracts.board.grant import Address, AnyConstraint, Argv, Equal, Exact, Folder
from ..contracts.tools import Risk
from ..errors import InvalidInput
from . import address, command
from . import folder as folders
from .rule import COMMAND


def constraints_of(tool: str, risk: Risk, given: dict[str, Any]) -> tuple[AnyConstraint, ...]:
    """Return constraints that hold for this call, and for as few others as its tool allows.

    >>> constraints_of("shell", "external", {"command": "df -h"})
    (Argv(argv=('df', '-h'), more='nothing'),)
    >>> constraints_of("shell", "external", {"command": "df | sort"})
    (Exact(input={'command': 'df | sort'}),)
    """
    narrow: tuple[AnyConstraint, ...] | None = None
    if risk != "destructive":
        try:
            narrow = _narrowed(tool, given)
        except InvalidInput:
            narrow = None
    return narrow if narrow is not None else (Exact(input=given),)


def _narrowed(tool: str, given: dict[str, Any]) -> tuple[AnyConstraint, ...] | None:
    """Raises: InvalidInput, the call can be granted by its exact arguments alone."""
    match tool:
        case "shell":
            return (command.check(Argv(argv=command.parse(given[COMMAND]))),)
        case "http_get":
            target, path = address.parse(given["url"])
            scheme: Any = target.scheme
            return (Address(scheme=scheme, host=target.host, port=target.port, path=path),)
        case "read_file" | "attach_file" | "write_file":
            *parents, _name = folders.parse(given["path"])
            return (folders.check(Folder(folder="/".join(parents))),) if any(parents) else None
    return tuple(Equal(field=name, value=value) for name, value in sorted(given.items())) or None
