"""The kinds of channels: those that come with Vigil, and those of other distributions.

A distribution adds one by an entry point of the group ``vigil.channels``: its name is the kind, its
object a subclass of :class:`~vigil.channels.contract.Channel` with that tag. It's loaded when the
configuration names it; then it's code that runs in the services, with their rights.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import msgspec

from ..errors import ConfigError
from ..words.nearest import did_you_mean, meant_field
from .contract import Channel
from .discord.section import DiscordBot
from .mail.section import MailAccount
from .matrix.section import MatrixAccount
from .notices.apprise import AppriseWay
from .notices.desktop import Desktop
from .notices.ntfy import Ntfy
from .push.section import PushChannel
from .slack.section import SlackAccount
from .telegram.section import TelegramBot
from .webhook import Webhook

GROUP: Final = "vigil.channels"
BUILT_IN: Final[Mapping[str, type[Channel]]] = {
    "apprise": AppriseWay,
    "desktop": Desktop,
    "discord": DiscordBot,
    "mail": MailAccount,
    "matrix": MatrixAccount,
    "ntfy": Ntfy,
    "push": PushChannel,
    "slack": SlackAccount,
    "telegram": TelegramBot,
    "webhook": Webhook,
}
DEFAULT: Final = "webhook"
"""Of a section that names no kind."""


def read(sections: Mapping[str, Any]) -> dict[str, Channel]:
    """Convert all of ``[channels]``.

    Raises:
        ConfigError: naming the first section that can't be used, its field and the reason.
    """
    return {name: _read(name, section) for name, section in sections.items()}


def _read(name: str, section: Any) -> Channel:
    if not isinstance(section, dict):
        raise ConfigError(f"[channels.{name}]: must be a section")
    try:
        kind = kind_of(str(section.get("kind", DEFAULT)))
        return _converted(section, kind)
    except ConfigError as error:
        raise ConfigError(f"[channels.{name}]: {error}") from error


def _converted(section: dict[str, Any], kind: type[Channel]) -> Channel:
    try:
        return msgspec.convert(section, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{error}{meant_field(str(error), kind)}") from error


def kind_of(name: str) -> type[Channel]:
    """Return the struct of a kind.

    Raises:
        ConfigError: nothing that is installed has it, or what has it can't be used.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    others = {point.name: point for point in entry_points(group=GROUP)}
    if name not in others:
        there = sorted({*BUILT_IN, *others})
        hint = did_you_mean(name, there) or f"; there is: {', '.join(there)}"
        raise ConfigError(f"kind: no kind of channel is named {name!r}{hint}")
    return _load(others[name])


def _load(point: EntryPoint) -> type[Channel]:
    of = f"kind: {point.name!r} of {point.value}"
    try:
        found = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{of} can't be loaded: {error!r}") from error
    if not (isinstance(found, type) and issubclass(found, Channel)):
        raise ConfigError(f"{of} is no vigil.channels.contract.Channel")
    if found.__struct_config__.tag != point.name:
        raise ConfigError(f"{of} has another tag: {found.__struct_config__.tag!r}")
    return found
