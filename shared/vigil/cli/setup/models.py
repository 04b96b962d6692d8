"""`vigil models`: which there are and whether they answer, their keys, and which one thinks.

What is set here lives in the home, so that the next start is the same agent, from whatever shell:
sections in vigil.toml, keys in files of their own that only the owner may read. A running cortex
takes it in by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import typer

from vigil.doctor.models import tried
from vigil.edits import toml_sections
from vigil.errors import InvalidInput
from vigil.fields.secrets import file_of_provider, is_key
from vigil.local import model_servers
from vigil.settings import config, credentials
from vigil.settings.config import Settings
from vigil.settings.models import REHEARSAL, context_tokens_of
from vigil.settings.models.access import access_of, all_names
from vigil.settings.models.prices import band_of
from vigil.settings.models.trial import IN_PROSE, TOOLS, TriedModel
from vigil.subjects import check_part

from .. import exits, output, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

Provider = Literal["anthropic", "openai"]
STDIN: Final = "-"

app = CommandLine(
    help="Models: list, find, add, use, key, remove. Default: list, which asks each.",
    cls=ListedGroup,
)


def names(incomplete: str) -> list[str]:
    """Offer the models that are configured."""
    return [name for name in all_names(config.load_right()) if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="NAME", help="As settings and prices name it.")]
Known = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Of [models.NAME], or a model id.", autocompletion=names),
]
COLUMNS: Final = (
    Column("NAME", "name"),
    Column("USED BY", lambda one: ", ".join(one["used_by"])),
    Column("PROVIDER", "provider"),
    Column("MODEL", "model"),
    Column("AT", "server"),
    Column("MS", "latency_ms"),
    Column("USD PER MILLION", lambda one: _price(one["price"])),
    Column("CAN'T", lambda one: ", ".join(one["lacks"])),
)


@app.command("list")
def list_models() -> Result:
    """Ask each configured model for a token. Exit code 1 if one gives no answer."""
    settings = config.load()
    found = [_shown(settings, one) for one in tried(settings)]
    end = typer.Exit(exits.FAILURE) if any(one["error"] for one in found) else None
    return Result({"models": found}, partial(_show, found), end)


def _shown(settings: Settings, one: TriedModel) -> dict[str, Any]:
    prices = settings.config.prices_of(one.name)
    band = band_of(prices, datetime.now(UTC).date())
    is_free = one.provider == REHEARSAL
    lacks = one.lacks if band or is_free else (*one.lacks, "a cap in USD: it has no price")
    facts: dict[str, Any] = msgspec.to_builtins(one)
    return facts | {
        "context_tokens": context_tokens_of(settings.config, one.name),
        "lacks": lacks,
        "price": {"input": 0, "output": 0} if is_free else msgspec.to_builtins(band),
    }


def _show(found: Sequence[dict[str, Any]]) -> None:
    tables.table(COLUMNS, found)
    for one in found:
        if one["error"]:
            output.message(f"{one['name']}: {output.printable(one['error'])}")
        if TOOLS in one["lacks"]:
            output.message(f"{one['name']}: {IN_PROSE}")


def _price(price: dict[str, float] | None) -> str:
    return "" if price is None else f"{price['input']:g} in, {price['output']:g} out"


@app.command()
def find() -> Result:
    """Look for servers of models on this machine, at the usual ports."""
    there = model_servers.found()
    facts = [msgspec.to_builtins(one) for one in there]
    usual = ", ".join(f"{name} {port}" for name, port in model_servers.USUAL.items())
    empty = f"None answers ({usual}). `vigil models add NAME --url URL` takes any other."
    listed = tables.listing("servers", facts, SERVER_COLUMNS, empty=empty)
    return listed._replace(show=partial(_show_found, listed, there))


SERVER_COLUMNS: Final = (
    Column("SERVER", "name"),
    Column("URL", "url"),
    Column("MODELS", lambda one: ", ".join(one["models"])),
)


def _show_found(listed: Result, there: Sequence[model_servers.ModelServer]) -> None:
    listed.show()
    for one in there[:1]:
        output.message(
            f"To use one: vigil models add local --url {one.url} --model {one.models[0]} --main"
        )


@app.command()
def add(
    name: Name,
    provider: Annotated[
        Provider | None,
        typer.Option(help="The wire it speaks. Default: openai for a URL that ends with /v1."),
    ] = None,
    model: Annotated[str, typer.Option(help="Its id there. Default: NAME.")] = "",
    url: Annotated[str, typer.Option(help="Of your own server. Default: the provider's.")] = "",
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="With its key, if it isn't the provider's.")
    ] = None,
    context_tokens: Annotated[
        int, typer.Option("--context-tokens", min=0, help="How much it reads at once; 0: as usual.")
    ] = 0,
    main: Annotated[bool, typer.Option("--main", help="Have it think from now on.")] = False,
) -> Result:
    """Add a model to vigil.toml, and ask it for a token. Exit code 1 if it gives no answer."""
    check_part("NAME", name)
    settings = config.load()
    wire = provider or ("openai" if url.rstrip("/").endswith("/v1") else "anthropic")
    values: dict[str, Any] = {"provider": wire}
    given = {"model": model, "base_url": url, "context_tokens": context_tokens}
    values |= {key: value for key, value in given.items() if value}
    if key_file is not None:
        values["api_key_file"] = str(key_file.expanduser().absolute())
    toml_sections.add(settings.file, "models", name, values)
    facts = _tried(name)
    if facts["error"]:
        return _refused(facts, f"It stays in {settings.file}: `vigil models remove {name}`.")
    return (
        _used(name, facts) if main else _answers(facts, f"`vigil models use {name}` has it think.")
    )


@app.command()
def use(name: Known) -> Result:
    """Have a model think, if it answers: model.main. Exit code 1 if it doesn't."""
    settings = config.load()
    access_of(settings, name, "NAME")
    facts = _tried(name, settings)
    if facts["error"]:
        return _refused(facts, "Nothing was changed.")
    return _used(name, facts)


@app.command()
def key(
    provider: Annotated[Provider, typer.Argument(help="Whose key: anthropic or openai.")],
    file: Annotated[
        str, typer.Option("--file", metavar="FILE", help="It's in a file; - reads it from stdin.")
    ] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Forget it.")] = False,
) -> Result:
    """Keep the key of a provider in the home, in a file that only you may read.

    It's asked for, and isn't shown. A key in the environment counts more.
    """
    settings = config.unread()
    there = file_of_provider(settings.home, provider)
    facts = {"provider": provider, "file": str(there)}
    if remove:
        if not there.exists():
            raise exits.NotReady(f"no key of {provider} is kept in {settings.home}")
        there.unlink()
        return tables.done("Forgotten.", facts)
    text = _asked_for(provider, file)
    credentials.keep_key(settings.home, provider, text)
    return tables.done(f"Kept in {there}.{_next_of(provider, settings)}", facts)


@app.command()
def remove(name: Known) -> Result:
    """Take a model out of vigil.toml. Refused while a setting names it."""
    settings = config.load()
    used = all_names(settings).get(name, ())
    if used:
        raise InvalidInput("NAME", f"{', '.join(used)} names it; `vigil config unset {used[0]}`")
    toml_sections.remove(settings.file, "models", name)
    return tables.done("Removed.", {"name": name})


# ---------------------------------------------------------------- inside


def _tried(name: str, settings: Settings | None = None) -> dict[str, Any]:
    """Ask one model for a token, as it's configured by now."""
    settings = settings or config.load()
    only = (one for one in tried(settings, name) if one.name == name)
    return _shown(settings, next(only, TriedModel(name=name, error="it isn't configured")))


def _answers(facts: dict[str, Any], text: str) -> Result:
    said = f"{facts['name']} answers in {facts['latency_ms']:.0f} ms. {text}"
    if TOOLS in facts["lacks"]:
        said += f"\n{facts['name']} {IN_PROSE}."
    return tables.done(said, facts)


def _refused(facts: dict[str, Any], text: str) -> Result:
    said = f"{facts['name']} gives no answer: {output.printable(facts['error'])}\n{text}"
    return tables.done(said, facts)._replace(end=typer.Exit(exits.FAILURE))


def _used(name: str, facts: dict[str, Any]) -> Result:
    toml_sections.set_value(config.load().file, ("model", "main"), name)
    return _answers(facts, "It thinks from now on.")


def _asked_for(provider: str, file: str) -> str:
    """Return a key that somebody gives. Raises: InvalidInput."""
    if file == STDIN:
        text = sys.stdin.read()
    elif file:
        text = Path(file).expanduser().read_text("utf-8")
    elif sys.stdin.isatty():
        text = typer.prompt(f"Key of {provider}", hide_input=True, err=True)
    else:
        raise InvalidInput("--file", "is needed without a terminal: a file, or - for stdin")
    text = text.strip()
    if not is_key(text):
        raise InvalidInput("key", "is empty, or has characters that no key has")
    return str(text)


def _next_of(provider: str, settings: Settings) -> str:
    """Say what is still missing."""
    if provider == "anthropic":
        return ""
    rows = config.load(home=settings.home).config.models.values()
    if any(row.provider == provider and not row.base_url for row in rows):
        return ""
    return " Name a model: `vigil models add NAME --provider openai --model ID --main`."
