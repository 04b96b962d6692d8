"""Sections of `vigil.toml`, added and removed as text, so that comments and order stay.

What comes out is read again and compared with what was meant; where a section is written in a way
that isn't understood here, nothing is changed and a person is asked to do it.
"""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from vigil.errors import ConfigError
from vigil.settings import config, credentials

from .exits import AlreadyExists, NotReady

_HEADER: Final = re.compile(r"^\s*\[")
BY_HAND: Final = "{file}: [{name}] can't be edited safely; do it by hand"


def add(file: Path, table: str, name: str, values: Mapping[str, Any]) -> None:
    """Append ``[table.name]`` to a file.

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
    sections[name] = dict(values)
    lines = [f"[{table}.{name}]", *(f"{key} = {_value(one)}" for key, one in values.items())]
    end = "\r\n" if "\r\n" in text else "\n"
    between = "" if not text else end if text.endswith("\n") else end + end
    _write(file, text + between + end.join(lines) + end, meant, f"{table}.{name}")


def set_value(file: Path, section: str, key: str, value: Any, *, remark: str) -> None:
    """Write a key that isn't there into ``[section]``, made if it's missing, below a remark.

    Raises:
        ConfigError: it can't be done safely; the file is left as it was.
    """
    text = _read(file)
    meant = tomllib.loads(text)
    known = meant.setdefault(section, {})
    if not isinstance(known, dict) or key in known:
        raise ConfigError(BY_HAND.format(file=file, name=section))
    known[key] = value
    end = "\r\n" if "\r\n" in text else "\n"
    lines = f"# {remark}{end}{key} = {_value(value)}{end}"
    header = re.search(rf"^[ \t]*\[[ \t]*{re.escape(section)}[ \t]*\][^\n]*\n", text, re.MULTILINE)
    if header is not None:
        text = text[: header.end()] + lines + text[header.end() :]
    else:
        between = "" if not text else end if text.endswith("\n") else end + end
        text = f"{text}{between}[{section}]{end}{lines}"
    _write(file, text, meant, section)


def remove(file: Path, table: str, name: str) -> None:
    """Take ``[table.name]`` and what is below it out of a file.

    Raises:
        NotReady: there is none.
        ConfigError: it can't be done safely; the file is left as it was.
    """
    text = _read(file)
    meant = tomllib.loads(text)
    if not isinstance(meant.get(table), dict) or name not in meant[table]:
        raise NotReady(f"there is no [{table}.{name}] in {file}")
    del meant[table][name]
    if not meant[table]:
        del meant[table]
    _write(file, _without(text, table, name), meant, f"{table}.{name}")


def _read(file: Path) -> str:
    """Return the text of a file that is a configuration. Raises: ConfigError."""
    try:
        # As bytes: reading it as text would change how its lines end.
        text = file.read_bytes().decode("utf-8") if file.exists() else ""
        tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
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
    """Return a value as TOML: JSON is, but for tables."""
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key)} = {_value(one)}" for key, one in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)


def _write(file: Path, text: str, meant: dict[str, Any], name: str) -> None:
    """Replace the file, readable by its owner only. Raises: ConfigError."""
    try:
        data, is_meant = text.encode("utf-8"), tomllib.loads(text) == meant
    except (tomllib.TOMLDecodeError, UnicodeEncodeError):
        is_meant = False
    if not is_meant:
        raise ConfigError(BY_HAND.format(file=file, name=name))
    _check(text, file)
    credentials.write_private(file.resolve(), data)


def _check(text: str, file: Path) -> None:
    """Read a text as the services will. Raises: ConfigError."""
    with tempfile.TemporaryDirectory(prefix="vigil-") as folder:
        there = Path(folder) / file.name
        there.write_bytes(text.encode("utf-8"))
        try:
            config.load({}, home=there.parent)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(there), str(file))) from error
