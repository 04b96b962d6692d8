"""`vigil config`: what is set, and where; one setting looked up, changed or taken back.

vigil.toml is the truth, with its comments and order; a variable overrides it for one process. Each
change is read as the services will read it before anything is written.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Final

import msgspec
import typer

from vigil.edits import toml_sections
from vigil.errors import ConfigError, InvalidInput
from vigil.fields import variables
from vigil.fields.section import Section
from vigil.local import runfile
from vigil.settings import config
from vigil.settings.config import NAMED_SECTIONS, NO_TOML, Config, Settings
from vigil.settings.live.renewal import holds_at_once
from vigil.words.nearest import did_you_mean

from .. import configured, exits, output, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

HIDDEN: Final = "…"
"""In place of a secret, where many settings are shown at once."""
_SECRET_WORDS: Final = (
    "secret",
    "secrets",
    "password",
    "token",
    "api_key",
    "headers",
    "env",
    "args",
)
_PLACE_WORDS: Final = ("url", "urls", "source")
"""What may be an address: of a calendar, a webhook or a feed it is often the secret itself."""
_HERE: Final = "vigil.toml"
_DEFAULT: Final = "default"

app = CommandLine(help="Settings: list, get, set, unset. Default: list.", cls=ListedGroup)


def keys(incomplete: str) -> list[str]:
    """Offer the keys of sections that have one name, and what stands in the file."""
    names = {*_defaults(), *_flat(_file(config.unread()))}
    return sorted(name for name in names if name.startswith(incomplete))


Key = Annotated[
    str,
    typer.Argument(metavar="KEY", help="As model.main, or models.big.model.", autocompletion=keys),
]
COLUMNS: Final = (
    Column("SETTING", "name"),
    Column("VALUE", lambda one: tables.short(_plain(one["value"]))),
    Column("FROM", "from"),
)


@app.command("list")
def list_settings(
    everything: Annotated[bool, typer.Option("--all", help="Also what is at its default.")] = False,
) -> Result:
    """List what is set, each with where it comes from. No secret is shown; of URLs the host."""
    settings = configured.settings()
    found = _found(settings)
    shown = [one for one in found if everything or one["from"] != _DEFAULT]
    empty = f"Nothing is set in {settings.file}; --all shows the defaults."
    return tables.listing("settings", shown, COLUMNS, empty=empty)


@app.command()
def get(key: Key) -> Result:
    """Print what holds for a setting. Exit code 3 if there is no such key."""
    settings = configured.settings(of=key)
    for one in _found(settings, is_open=True):
        if one["name"] == key:
            return Result(one, partial(output.data, output.printable(_plain(one["value"]))))
    raise exits.NotReady(_retired(key) or _unknown(key))


@app.command("set")
def set_(
    key: Key,
    value: Annotated[str, typer.Argument(help='Text, or as in TOML: 5, true, ["a", "b"].')],
) -> Result:
    """Set a key in vigil.toml; comments and order stay."""
    settings = config.unread()
    path = _path(key)
    if gone := _retired(key):
        raise ConfigError(gone)
    refused: ConfigError | None = None
    for given in _readings(value):
        try:
            toml_sections.set_value(settings.file, path, given)
        except ConfigError as error:
            refused = refused or error
            continue
        configured.tell(config.load_right())
        shown = _closed(key, given)
        facts = {"name": key, "value": shown, "file": str(settings.file)}
        said = f"{key} = {json.dumps(shown, ensure_ascii=False, default=str)}"
        return tables.done(f"{said}{_when(settings, key)}", facts)
    raise refused or ConfigError(_unknown(key))


@app.command()
def unset(key: Key) -> Result:
    """Take a key out of vigil.toml: its default holds again. Exit code 3 if it isn't there."""
    settings = config.unread()
    toml_sections.unset(settings.file, _path(key))
    configured.tell(config.load_right())
    facts = {"name": key, "file": str(settings.file)}
    if gone := _retired(key):
        return tables.done(f"{key} is taken out: {gone}", facts)
    return tables.done(f"{key} is at its default{_when(settings, key)}", facts)


# ---------------------------------------------------------------- inside


def _path(key: str) -> tuple[str, ...]:
    """Return the names of the sections and of the key. Raises: InvalidInput."""
    path = tuple(key.split("."))
    form = ("SECTION", "NAME", "KEY") if path[0] in NAMED_SECTIONS else ("SECTION", "KEY")
    if len(path) < len(form) or not all(path):
        meant = ".".join(form)
        raise InvalidInput("KEY", f"must be {meant}; `vigil config list --all` shows them")
    return path


def _retired(key: str) -> str:
    """Return what there is to say of a setting that was; empty: it is none."""
    return variables.remark(*key.split(".")[:2]) if "." in key else ""


def _readings(value: str) -> list[Any]:
    """Return what a word of a command line may mean: a value of TOML, then the text itself."""
    try:
        return [tomllib.loads(f"value = {value}")["value"], value]
    except NO_TOML:
        return [value]


def _unknown(key: str) -> str:
    return f"no setting is called {key}{did_you_mean(key, _defaults())}"


def _when(settings: Settings, key: str) -> str:
    """Say from when on a change holds."""
    if holds_at_once(key.partition(".")[0]) or runfile.running(settings.run_file) is None:
        return ""
    return "  It holds from the next start: `vigil down`, `vigil up`."


def _file(settings: Settings) -> dict[str, Any]:
    """Return what the file says; nothing, if that can't be read."""
    try:
        return tomllib.loads(settings.file.read_text("utf-8"))
    except NO_TOML:
        return {}


def _flat(found: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return each value by the names that lead to it."""
    flat: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{path}{name}.")
        else:
            flat[f"{path}{name}"] = value
    return flat


def _defaults() -> dict[str, Any]:
    """Return the defaults of the sections that there are once."""
    return dict(_values(Config()))


def _values(found: Config) -> Iterator[tuple[str, Any]]:
    """Yield each setting that holds, by its key."""
    for name in Config.__struct_fields__:
        section = getattr(found, name)
        if isinstance(section, Section):
            for key in section.__struct_fields__:
                yield f"{name}.{key}", msgspec.to_builtins(getattr(section, key))
        elif isinstance(section, Mapping):
            for given, one in section.items():
                for key in one.__struct_fields__:
                    yield f"{name}.{given}.{key}", msgspec.to_builtins(getattr(one, key))
        else:
            yield name, msgspec.to_builtins(section)


def _found(settings: Settings, *, is_open: bool = False) -> list[dict[str, Any]]:
    """Return all settings, each with where it comes from."""
    written, defaults = _flat(_file(settings)), _defaults()
    of_shell = {".".join(path): name for path, _, name in variables.overlay(os.environ, [])}
    found = []
    for name, value in _values(settings.config):
        if name in settings.left_out:
            continue
        is_written = name in written or any(key.startswith(f"{name}.") for key in written)
        source = of_shell.get(name, _HERE if is_written else _DEFAULT)
        default = defaults.get(name)
        shown = value if is_open or value == default else _closed(name, value)
        facts = {"name": name, "value": shown, "from": source, "default": default}
        found.append(facts)
    return found


def _closed(name: str, value: Any) -> Any:
    """Return a value without what is a secret in it.

    >>> _closed("hooks.ci.secrets", ["x"]), _closed("calendars.a.url", "https://h.example/private-1")
    ('…', 'https://h.example/…')
    >>> _closed("nats.url", "nats://me:pass@127.0.0.1:4222"), _closed("grants", [{"tool": "shell"}])
    ('nats://…@127.0.0.1:4222', [{'tool': 'shell'}])
    """
    key = name.rpartition(".")[2]
    if value and key.endswith(_SECRET_WORDS):
        return HIDDEN
    if key.endswith(_PLACE_WORDS):
        return _places(value)
    return value


def _places(value: Any) -> Any:
    """Return addresses as far as they tell which server is meant."""
    if isinstance(value, list):
        return [_places(one) for one in value]
    return _ADDRESS.sub(_place, value) if isinstance(value, str) else value


_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#]*@)?([^\s/?#]*)([/?#]\S+)?")


def _place(found: re.Match[str]) -> str:
    scheme, login, host, rest = found.groups()
    return f"{scheme}{HIDDEN + '@' if login else ''}{host}{'/' + HIDDEN if rest else ''}"


def _plain(value: Any) -> str:
    """Return a value as it is written in TOML, but a text without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
