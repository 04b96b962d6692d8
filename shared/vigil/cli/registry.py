"""How a function becomes a command: what it returns is printed, as JSON with ``--json``."""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from . import options
from .tables import Result

UNSURE: Final = object()
"""In place of a value that has to be checked."""
_DIGITS: Final = re.compile("[0-9]{1,9}", re.ASCII)
_PYDANTICS: Final = "Value error, "
Work = TypeVar("Work", bound=Callable[..., Any])


class LiteralCommand(TyperCommand):
    """A command whose help is shown as it is written, also what stands in brackets; and what is
    wrong with a value, without how Pydantic begins that."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_unchecked(one) for one in super().get_params(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix(_PYDANTICS)
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super(LiteralCommand, _literal(self)).format_help(ctx, formatter)


class _Unchecked:
    """Takes values that are what an option wants as they are. Typer (0.29) checks each by Pydantic,
    also the default of one that isn't given, and imports it for that: a sixth of a command's time.
    """

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        """Return a value as the command gets it. Raises: typer.BadParameter."""
        wanted = param.type_descriptor
        is_many = param.multiple or param.nargs == -1
        if value is None:
            return () if is_many else None
        parse = wanted.parameter_info.parser
        if parse is not None:
            with contextlib.suppress(ValueError):  # it's told below
                return [parse(one) for one in value] if is_many else parse(value)
        elif (found := plainly(wanted.annotation, value, wanted.parameter_info)) is not UNSURE:
            return found
        return type(param).get_runtime_param(param).coerce(value, param=param, ctx=ctx)


def _unchecked(parameter: Any) -> Any:
    parameter.get_runtime_param = _Unchecked
    return parameter


def plainly(annotation: Any, value: Any, bounds: Any = None) -> Any:
    """Return a value as an annotation has it, if that can be told at once; else `UNSURE`.

    Args:
        bounds: has `min` and `max` of a number.

    >>> plainly(str, "a"), plainly(int, "12"), plainly(list[Literal["a", "b"]], ("a", "b"))
    ('a', 12, ['a', 'b'])
    >>> plainly(int, "1.0") is plainly(list[int], ("1", "x")) is UNSURE
    True
    """
    if get_origin(annotation) is list and isinstance(value, list | tuple):
        (each,) = get_args(annotation)
        found = [plainly(each, one, bounds) for one in value]
        return UNSURE if UNSURE in found else found
    if get_origin(annotation) is Literal:
        return value if value in get_args(annotation) else UNSURE
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return next((one for one in annotation if value in (one, one.value)), UNSURE)
    if annotation is int and isinstance(value, str) and _DIGITS.fullmatch(value):
        number = int(value)
        least, most = getattr(bounds, "min", None), getattr(bounds, "max", None)
        is_out = (least is not None and number < least) or (most is not None and number > most)
        return UNSURE if is_out else number
    return value if annotation in (str, int, float) and type(value) is annotation else UNSURE


class LiteralGroup(TyperGroup):
    """Commands whose help is shown as it is written."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_unchecked(one) for one in super().get_params(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        shown = _literal(self)
        shown.commands = {name: _literal(one) for name, one in self.commands.items()}
        super(LiteralGroup, shown).format_help(ctx, formatter)


def _literal(one: Any) -> Any:
    """Return a copy of a command, or a parameter, for Rich to show: brackets mean nothing to it."""
    from rich.markup import escape  # what most commands don't need

    shown = copy.copy(one)
    for name in ("help", "short_help", "epilog"):
        text = getattr(one, name, None)
        if text:
            setattr(shown, name, escape(text))
    if hasattr(one, "params"):
        shown.params = [_literal(parameter) for parameter in one.params]
    return shown


class CommandLine(typer.Typer):
    """Commands. One that returns a `Result` gets the option ``--json`` and need not know of it.

    One that also prints while it works has a parameter `json` of its own.
    """

    def __init__(self, *, cls: type[TyperGroup] = LiteralGroup, **settings: Any) -> None:
        super().__init__(cls=cls, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Work], Work]:
        """Declare a function to be a command, of its own name unless another is given."""
        register = super().command(name, **{"cls": LiteralCommand} | settings)

        def declare(work: Work) -> Work:
            register(work if work.__annotations__["return"] == "None" else _printing(work))
            return work

        return declare


def _printing(work: Callable[..., Result]) -> Callable[..., None]:
    parameters = parameters_of(work)
    has_own = any(one.name == "json" for one in parameters)

    def run(**given: Any) -> None:
        is_json = given["json"] if has_own else given.pop("json")
        work(**given).print(is_json=is_json)

    more = [] if has_own else [keyword("json", options.Json, default=False)]
    return with_parameters(work, run, [*parameters, *more])


def parameters_of(work: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function, with their annotations evaluated."""
    return list(inspect.signature(work, eval_str=True).parameters.values())


def keyword(name: str, annotation: Any, *, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def with_parameters(
    work: Callable[..., Any], run: Callable[..., Any], parameters: Iterable[inspect.Parameter]
) -> Callable[..., Any]:
    """Make `run` pass for `work`, with these parameters instead of its own."""
    functools.update_wrapper(run, work)
    run.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters} | {
        "return": work.__annotations__["return"]
    }
    return run


class ListedGroup(LiteralGroup):
    """A noun's commands, of which `list` is meant where none is named."""

    meant = "list"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put what is meant before options that are its own."""
        is_help = bool(args) and args[0] in ctx.help_option_names
        is_bare = not args or args[0].startswith("-")
        if is_bare and not is_help and not ctx.resilient_parsing:
            args = [self.meant, *args]
        return super().parse_args(ctx, args)


class ShownGroup(ListedGroup):
    """A noun's commands, of which `show` is meant where none is named."""

    meant = "show"
