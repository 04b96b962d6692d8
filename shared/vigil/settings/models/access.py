"""How a model is reached: its provider, server and key, from the section and the environment.

`ANTHROPIC_API_KEY` alone is enough for a first model, and nothing at all for the stand-in.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ...errors import ConfigError, InvalidInput
from ...fields import secrets
from ...fields.secrets import Secret
from ...words.nearest import meant
from ..config import Settings
from . import DEFAULT_MODEL, REHEARSAL, ModelRow, Provider, check_url, names

_VARIABLES: Final = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""Of the keys of providers."""


class ModelAccess(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to ask a model."""

    name: str
    """As settings, prices and costs name it."""
    provider: Provider
    model: str
    """As its provider names it."""
    url: str = ""
    """Of a server of one's own; empty: the provider's."""
    key: Secret | None = None
    key_setting: str = ""
    """The variable or setting that a key comes from, or would."""
    model_setting: str = ""
    """The settings that say which model it is, and where."""


def accesses(settings: Settings) -> dict[str, ModelAccess]:
    """Return how each model is reached that a setting names, by that name.

    Raises:
        ConfigError: of the first that can't be, naming the setting.
    """
    named = names(settings.config).items()
    return {name: access_of(settings, name, setting) for setting, name in named}


def all_names(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Return every model that a setting names or that has a section, with those settings."""
    found: dict[str, tuple[str, ...]] = {}
    for setting, given in names(settings.config).items():
        name = _name_of(settings, given)
        found[name] = (*found.get(name, ()), setting)
    return found | {name: () for name in settings.config.models if name not in found}


def access_of(settings: Settings, name: str, setting: str) -> ModelAccess:
    """Return how a model is reached.

    Args:
        name: as `setting` has it; empty: the default, if there is a key or a server for it.

    Raises:
        ConfigError: naming the setting and what is missing or wrong. Never quotes a key.
    """
    name = _name_of(settings, name)
    row = settings.config.models.get(name) or _implied(settings, name, setting)
    model = row.model or name
    if row.provider == REHEARSAL:
        return ModelAccess(name=name, provider=row.provider, model=REHEARSAL)
    try:
        url = _url(settings, row)
        key = _key(settings, name, row)
    except InvalidInput as error:
        raise ConfigError(str(error)) from error
    if not (key or url):
        raise ConfigError(_missing(name, row, setting))
    return ModelAccess(
        name=name,
        provider=row.provider,
        model=model,
        url=url,
        key=key,
        key_setting=_key_setting(name, row),
        model_setting=_model_setting(settings, name, setting),
    )


def _name_of(settings: Settings, name: str) -> str:
    has_provider = settings.anthropic_api_key or settings.anthropic_base_url
    return name or (DEFAULT_MODEL if has_provider else REHEARSAL)


def check_known(settings: Settings, name: str, setting: str) -> None:
    """Check that a setting may name that model; empty: the default. Whether it can be reached isn't
    looked at.

    Raises:
        ConfigError: there is none, naming the setting.
    """
    if name in ("", REHEARSAL, *settings.config.models):
        return
    if not (name.startswith("claude") or settings.anthropic_base_url):
        hint = meant(name, sorted(settings.config.models))
        raise ConfigError(
            f"{setting}: {name!r} is neither a [models.NAME] nor a model of Anthropic's{hint}"
        )


def _implied(settings: Settings, name: str, setting: str) -> ModelRow:
    if name == REHEARSAL:
        return ModelRow(provider="rehearsal")
    check_known(settings, name, setting)
    return ModelRow()


def _url(settings: Settings, row: ModelRow) -> str:
    if row.base_url or row.provider != "anthropic":
        return row.base_url
    url = settings.anthropic_base_url or ""
    if url:
        check_url("ANTHROPIC_BASE_URL", url)
    return url


def _key_setting(name: str, row: ModelRow) -> str:
    if row.api_key_file or row.base_url:
        return f"models.{name}.api_key_file"
    return _VARIABLES[row.provider]


def _model_setting(settings: Settings, name: str, setting: str) -> str:
    row = settings.config.models.get(name)
    if row is None:
        return "VIGIL_MODEL" if setting == "model.main" else setting
    return f"models.{name}.model" + (f" and models.{name}.base_url" if row.base_url else "")


def _key(settings: Settings, name: str, row: ModelRow) -> Secret | None:
    """Raises: InvalidInput, naming the setting or variable that it would be in."""
    setting = _key_setting(name, row)
    if row.api_key_file:
        key = secrets.of_file(setting, row.api_key_file, settings.home) or None
        if key is None:
            raise InvalidInput(setting, "the file is empty")
    elif row.base_url:
        return None
    elif row.provider == "openai":
        key = settings.openai_api_key
    else:
        key = settings.anthropic_api_key
    if key and not secrets.is_key(key):
        raise InvalidInput(setting, "has characters that no key has; was it pasted whole?")
    return key


def _missing(name: str, row: ModelRow, setting: str) -> str:
    server = "ANTHROPIC_BASE_URL" if row.provider == "anthropic" else f"models.{name}.base_url"
    return (
        f"{setting}: model {name!r} needs {_VARIABLES[row.provider]} or "
        f"models.{name}.api_key_file, or {server} for a server of your own; "
        f"VIGIL_MODEL={REHEARSAL} needs none of them"
    )
