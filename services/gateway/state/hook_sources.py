"""The hooks of the configuration: whose signatures each takes, and where its events go.

Read and checked at the start, so that a secret which can't be used is found before the first
webhook is. A secret is never part of an error, a log line or a `repr`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from vigil.errors import ConfigError, InvalidInput
from vigil.facts.hooked import read_hooked
from vigil.facts.wanted import WantedFact
from vigil.fields import secrets
from vigil.fields.secrets import Secret
from vigil.minds import mind_of
from vigil.settings.config import Config, Settings
from vigil.settings.sections import Hook
from vigil.settings.switches import has_mind
from vigil.subjects import Scope, SessionKey

from . import signatures


class HookSource(msgspec.Struct, frozen=True, kw_only=True):
    """A hook that is ready to take requests."""

    name: str
    scheme: signatures.Scheme
    session: SessionKey
    secrets: tuple[Secret, ...]
    is_trusted: bool = False
    """Whether what it tells is no outside content: the configuration says so, never the sender."""
    facts: dict[str, WantedFact] = {}
    """What its events tell in a closed form."""

    def __repr__(self) -> str:
        count = len(self.secrets)
        return f"HookSource({self.name!r}, {self.scheme}, {self.session}, {count} secrets)"


def load(settings: Settings) -> dict[str, HookSource]:
    """Make the hooks of the configuration ready; every secret is read and checked.

    Raises:
        ConfigError: naming the hook and what is wrong with it, never a secret.
    """
    return {name: _source(name, hook, settings) for name, hook in settings.config.hooks.items()}


def _source(name: str, hook: Hook, settings: Settings) -> HookSource:
    try:
        session = _session(hook, settings.config)
        found = _secrets(hook, settings.home)
        for secret in found:
            signatures.check_secret(hook.scheme, secret)
        facts = read_hooked(hook.facts)
    except (ConfigError, InvalidInput) as error:
        raise ConfigError(f"[hooks.{name}]: {error}") from error
    return HookSource(
        name=name,
        scheme=hook.scheme,
        session=session,
        secrets=found,
        is_trusted=hook.is_trusted,
        facts=facts,
    )


def _session(hook: Hook, config: Config) -> SessionKey:
    """Return whom a hook tells. Raises: ConfigError, InvalidInput."""
    if hook.thread:
        session = SessionKey.of(hook.user, hook.agent, hook.thread)
        if session.is_system:
            raise ConfigError("thread must not start with '_'; such threads are the agent's own")
        return session
    if not has_mind(config, hook.agent):
        raise ConfigError("thread is required: the mind of this agent is off")
    return mind_of(Scope.of(hook.agent, hook.user))


def _secrets(hook: Hook, home: Path) -> tuple[Secret, ...]:
    text = secrets.of_section("secrets", "\n".join(hook.secrets), hook.secrets_file, home)
    return tuple(Secret(one) for one in hook.secrets or text.split())
