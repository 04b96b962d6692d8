"""What a person types for the constraints of a grant, as options of a command. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import msgspec

from ..contracts.board.grant import Address, AnyConstraint, Argv, Empty, Equal, Folder, More
from ..errors import InvalidInput
from . import address
from . import command as command_lines


def constraints(
    command: str | None = None,
    more: str = "nothing",
    url: str | None = None,
    folder: str | None = None,
    equal: Sequence[str] | None = None,
    empty: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Return the constraints that the options stand for.

    A command is read as one that an agent wants to run is: what no grant covers is refused here,
    and isn't allowed in vain.

    Raises:
        InvalidInput: naming the option.

    >>> constraints("df -h", "operands")
    [{'kind': 'argv', 'argv': ('df', '-h'), 'more': 'operands'}]
    >>> constraints("df -h; id")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: --command: has ';' at character 6, which no grant covers
    """
    found: list[AnyConstraint] = []
    if more not in get_args(More):
        raise InvalidInput("--more", f"must be one of {', '.join(get_args(More))}")
    if command is not None:
        found.append(_argv(command, more))
    if url is not None:
        target, path = address.parse(url)
        scheme: Any = target.scheme
        found.append(Address(scheme=scheme, host=target.host, port=target.port, path=path))
    if folder is not None:
        found.append(Folder(folder=folder))
    found += [_equal(one) for one in equal or ()]
    found += [Empty(field=one) for one in empty or ()]
    built: list[dict[str, Any]] = msgspec.to_builtins(found)
    return built


def _argv(text: str, more: str) -> Argv:
    try:
        rule = Argv(argv=command_lines.parse(text), more=more)  # type: ignore[arg-type]
        return command_lines.check(rule)
    except InvalidInput as error:
        option = "--more" if error.field == "more" else "--command"
        raise InvalidInput(option, error.reason) from error


def _equal(text: str) -> Equal:
    field, mark, value = text.partition("=")
    try:
        return Equal(field=field, value=msgspec.json.decode(value.encode()))
    except msgspec.DecodeError as error:
        reason = f"{text[:80]!r} is no FIELD=JSON" + (f": {error}" if mark else "")
        raise InvalidInput("--equal", reason) from error
