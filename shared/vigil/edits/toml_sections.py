"""Sections and keys of `vigil.toml`, added, changed and removed so that comments and order stay.

What comes out is read again and compared with what was meant; where a section is written in a way
that isn't understood here, nothing is changed and a person is asked to do it. One change is made
after the other, whoever makes them: commands, or admins in the console.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec

from ..errors import AlreadyExists, ConfigError, NotReady
from ..files import alone
from ..settings import config, credentials
from ..words.nearest import meant

_HEADER: Final = re.compile(r"^\s*\[")
AT_ONCE: Final = "It holds in a moment, also while Vigil runs."
"""What is said of a change that services take in."""
BY_HAND: Final = "{file}: {name} can't be edited safely; do it by hand"


_More = ParamSpec("_More")
_Edit = Callable[Concatenate[Path, _More], None]


def _one_at_a_time(edit: _Edit[_More]) -> _Edit[_More]:
    """Have a change wait for others of the same file: each reads the file, and replaces it."""

    @functools.wraps(edit)
    def made(file: Path, /, *args: _More.args, **options: _More.kwargs) -> None:
        with alone(file.resolve().parent):
            edit(file, *args, **options)

    return made


@_one_at_a_time
def add(
    file: Path,
    table: str,
    name: str,
    values: Mapping[str, Any],
    secrets: Mapping[Path, str] | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Append ``[table.name]`` to a file.

    Args:
        secrets: texts of files that belong to the section, each a line; another section of this
            name keeps its own.
        check: called with those files there; what it raises leaves nothing of them, nor what else
            keeps the section from being added.

    Raises:
        AlreadyExists: there is one already.
        ConfigError: the file would not be a configuration; it is left as it was.
    """
    text = _read(file)
    meant = tomllib.loads(text)
    sections = meant.setdefault(table, {})
    if not isinstance(sections, dict):
        raise ConfigError(f"{file}: {table}: must be a section")
    if name in sections:
        raise AlreadyExists(f"there is a [{table}.{name}] in {file} already")
    sections[name] = _as_read(values)
    lines = [f"[{table}.{name}]", *(f"{key} = {_value(one)}" for key, one in values.items())]
    end = "\r\n" if "\r\n" in text else "\n"
    between = "" if not text else end if text.endswith("\n") else end + end
    with _kept(secrets or {}):
        check()
        _write(file, text + between + end.join(lines) + end, meant, f"[{table}.{name}]")


@contextlib.contextmanager
def _kept(secrets: Mapping[Path, str]) -> Iterator[None]:
    """Write files, and take them away if what they are for fails."""
    try:
        for one, text in secrets.items():
            credentials.write_private(one, f"{text}\n".encode())
        yield
    except BaseException:
        for one in secrets:
            one.unlink(missing_ok=True)
        raise


@_one_at_a_time
def set_value(file: Path, path: Sequence[str], value: Any, *, remark: str = "") -> None:
    """Write a key, in the section that it belongs to, with all else as it is.

    Args:
        path: the names of the sections, and of the key.
        remark: written above a key that is new.

    Raises:
        ConfigError: it can't be done safely, or isn't a configuration; the file is left as it was.
    """
    text = _read(file)
    meant = tomllib.loads(text)
    _put(meant, path, value, file)
    _write(file, _edited(text, lambda found: _set(found, path, value, remark)), meant, _name(path))


@_one_at_a_time
def set_values(file: Path, changes: Sequence[tuple[Sequence[str], Any]]) -> None:
    """Write several keys at once, or none. Raises: as `set_value`."""
    if not changes:
        return
    text = _read(file)
    meant = tomllib.loads(text)
    for path, value in changes:
        _put(meant, path, value, file)

    def change(found: Any) -> None:
        for path, value in changes:
            _set(found, path, value, "")

    _write(file, _edited(text, change), meant, ", ".join(_name(path) for path, _ in changes))


@_one_at_a_time
def unset(file: Path, path: Sequence[str]) -> None:
    """Take a key out, with all else as it is; its default holds again.

    Raises:
        NotReady: it isn't there.
        ConfigError: it can't be done safely; the file is left as it was.
    """
    text = _read(file)
    meant = tomllib.loads(text)
    section = _section_of(meant, path)
    if section is None or path[-1] not in section:
        raise NotReady(f"{_name(path)} isn't set in {file}")
    if isinstance(section[path[-1]], dict):
        raise ConfigError(f"{_name(path)} is a section: do it by hand in {file}")
    del section[path[-1]]

    def drop(found: Any) -> None:
        del _section_of(found, path)[path[-1]]

    _write(file, _edited(text, drop), meant, _name(path))


def _name(path: Sequence[str]) -> str:
    return ".".join(path)


def _section_of(found: Any, path: Sequence[str]) -> Any:
    """Return the section that a key is in; None: there is none."""
    for name in path[:-1]:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _put(meant: dict[str, Any], path: Sequence[str], value: Any, file: Path) -> None:
    """Set a key of what a file says. Raises: ConfigError, something else stands in its way."""
    section: Any = meant
    for name in path[:-1]:
        section = section.setdefault(name, {})
        if not isinstance(section, dict):
            raise ConfigError(BY_HAND.format(file=file, name=name))
    section[path[-1]] = _as_read(value)


def _edited(text: str, change: Callable[[Any], None]) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    found = tomlkit.parse(text)
    try:
        change(found)
        return tomlkit.dumps(found)
    except (TOMLKitError, KeyError, TypeError, ValueError):
        return ""  # which isn't what was meant: a person is asked to do it


def _set(found: Any, path: Sequence[str], value: Any, remark: str) -> None:
    import tomlkit

    section = found
    for name in path[:-1]:
        if name not in section:
            section[name] = tomlkit.table(is_super_table=name != path[-2])
        section = section[name]
    if remark and path[-1] not in section:
        section.add(tomlkit.comment(remark))
    section[path[-1]] = value


@_one_at_a_time
def remove(file: Path, table: str, name: str, secrets: Sequence[Path] = ()) -> None:
    """Take ``[table.name]`` and what is below it out of a file.

    Args:
        secrets: files that go with it.

    Raises:
        NotReady: there is none.
        ConfigError: it can't be done safely; the file is left as it was.
    """
    text = _read(file)
    whole = tomllib.loads(text)
    there = found if isinstance(found := whole.get(table), dict) else {}
    if name not in there:
        raise NotReady(f"there is no [{table}.{name}] in {file}{meant(name, there)}")
    del there[name]
    if not there:
        del whole[table]
    _write(file, _without(text, table, name), whole, f"[{table}.{name}]")
    for one in secrets:
        one.unlink(missing_ok=True)


def _read(file: Path) -> str:
    """Return the text of a file that is a configuration. Raises: ConfigError."""
    try:
        # As bytes: reading it as text would change how its lines end.
        text = file.read_bytes().decode("utf-8") if file.exists() else ""
        tomllib.loads(text)
    except config.NO_TOML as error:
        raise ConfigError(f"{file}: {error}") from error
    return text


def _without(text: str, table: str, name: str) -> str:
    own = re.compile(rf"^\s*\[\s*{re.escape(table)}\s*\.\s*[\"']?{re.escape(name)}[\"']?\s*[.\]]")
    kept: list[str] = []
    held: list[str] = []  # remarks that may belong to the section after this one
    is_inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            is_inside = own.match(line) is not None
            if not is_inside:
                kept += held
            held = []
        if not is_inside:
            kept.append(line)
        elif line.lstrip().startswith("#"):
            held.append(line)
        elif line.strip():
            held = []
    return "".join(kept)


def _value(value: Any) -> str:
    """Return a value as TOML: JSON is, but for tables, and DEL, which it has as it stands."""
    if isinstance(value, Mapping):
        pairs = (f"{_value(key)} = {_value(one)}" for key, one in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)


def _as_read(value: Any) -> Any:
    """Return a value as it comes out of a file again: a sequence is a list there.

    >>> _as_read({"a": (1, (2,))})
    {'a': [1, [2]]}
    """
    if isinstance(value, Mapping):
        return {key: _as_read(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_read(one) for one in value]
    return value


def _write(file: Path, text: str, meant: dict[str, Any], name: str) -> None:
    """Replace the file, readable by its owner only. Raises: ConfigError."""
    try:
        data, is_meant = text.encode("utf-8"), tomllib.loads(text) == meant
    except (tomllib.TOMLDecodeError, UnicodeEncodeError):
        is_meant = False
    if not is_meant:
        raise ConfigError(BY_HAND.format(file=file, name=name))
    if mistakes := _mistakes(text, file):
        before = _mistakes(_read(file), file)
        if not set(mistakes) < set(before):  # else it mends one of several
            raise ConfigError("\n".join(mistakes))
    credentials.write_private(file.resolve(), data)


def _mistakes(text: str, file: Path) -> list[str]:
    """Read a text as the services will; return what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="vigil-") as folder:
        there = Path(folder) / file.name
        there.write_bytes(text.encode("utf-8"))
        found = config.load_right({}, home=there.parent).problems
        return [one.replace(str(there), str(file)) for one in found]
