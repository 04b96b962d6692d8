"""Values of options that are taken without Typer's check: they are what it would make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from typer._click.core import Context
from typer._click.exceptions import ClickException

from vigil.cli.app import app
from vigil.cli.frame import commands
from vigil.cli.registry import UNSURE, plainly

VALUES: Final = ("a", "5", "0", "-1", "1.5", "1000000", "preference", "act", "off", "2026-01-05")


def _commands(group: Any) -> Iterator[Any]:
    for one in group.commands.values():
        yield from _commands(one) if hasattr(one, "commands") else (one,)


def test_what_is_taken_as_it_is_is_what_typer_makes_of_it() -> None:
    """P-2: of every option of every command."""
    taken = 0
    for command in _commands(commands(app)):
        context = Context(command)
        for option in command.params:
            wanted = option.type_descriptor
            if wanted.parameter_info.parser is not None:
                continue
            is_many = option.multiple or option.nargs == -1
            for text in VALUES:
                value = (text,) if is_many else text
                found = plainly(wanted.annotation, value, wanted.parameter_info)
                if found is UNSURE:
                    continue
                checked = type(option).get_runtime_param(option)
                try:
                    made = checked.coerce(value, param=option, ctx=context)
                except ClickException as error:
                    raise AssertionError(f"{command.name} {option.name} {text}: {error}") from error
                assert (found, type(found)) == (made, type(made)), (command.name, option.name)
                taken += 1
    assert taken > 1_000
