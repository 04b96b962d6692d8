"""One frozen struct with every setting; the sections are in :mod:`vigil.settings.sections`.

``VIGIL_SECTION__KEY`` and the seed's variables go over ``$VIGIL_HOME/vigil.toml``, and that over
the defaults. All mistakes are reported at once, with place and reason; then nothing starts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import platformdirs

from ..calendars import section as calendars
from ..channels import kinds
from ..channels.contract import Channel
from ..contacts.section import ContactSource, check_contacts
from ..errors import ConfigError, InvalidInput, VigilError
from ..fields import secrets, variables
from ..fields.secrets import Secret
from ..fields.section import Section
from ..subjects import check_part
from ..teams import Teams
from ..words.nearest import did_you_mean
from . import checks, mailboxes, models, sites
from .checks import read_public_url
from .cortex import Approvals, BulletinSection, Cortex, Goals, Jobs, Preferences, Tasks
from .grants import GrantSection
from .hours import PARSED, check_zone
from .live.stamps import Stamps, stamps_of
from .mailboxes import MailboxSection
from .memory import MemorySection, MindSection
from .models import ModelRow
from .models.caps import Caps
from .models.prices import Prices
from .sections import (
    Agent,
    Autonomy,
    Executor,
    Gateway,
    HealthSection,
    Hook,
    MetricsSection,
    Model,
    Nats,
    Person,
    Retention,
    SearchSection,
    Sessions,
    SpeechSection,
    WatchSection,
)
from .servers import A2aAgent, McpServer, ToolServer
from .sites import Site

NO_TOML: Final = (OSError, ValueError, RecursionError)
"""What reading a file may end with: also numbers of 5,000 digits, and brackets of 1,000 levels."""


class Config(Section, frozen=True, kw_only=True):
    """Everything. `home` and `secrets` come from the environment, never from the file."""

    gateway: Gateway = Gateway()
    autonomy: Autonomy = Autonomy()
    cortex: Cortex = Cortex()
    bulletin: BulletinSection = BulletinSection()
    model: Model = Model()
    models: dict[str, ModelRow] = msgspec.field(default_factory=dict)
    budget: Caps = Caps()
    memory: MemorySection = MemorySection()
    mind: MindSection = MindSection()
    nats: Nats = Nats()
    sessions: Sessions = Sessions()
    executor: Executor = Executor()
    approvals: Approvals = Approvals()
    jobs: Jobs = Jobs()
    tasks: Tasks = Tasks()
    goals: Goals = Goals()
    preferences: Preferences = Preferences()
    search: SearchSection = SearchSection()
    speech: SpeechSection = SpeechSection()
    mcp: dict[str, McpServer] = msgspec.field(default_factory=dict)
    a2a: dict[str, A2aAgent] = msgspec.field(default_factory=dict)
    sites: dict[str, Site] = msgspec.field(default_factory=dict)
    calendars: dict[str, calendars.CalendarSection] = msgspec.field(default_factory=dict)
    contacts: dict[str, ContactSource] = msgspec.field(default_factory=dict)
    grants: tuple[GrantSection, ...] = ()
    person: Person = Person()
    """What holds for people without a section of their own."""
    people: dict[str, Person] = msgspec.field(default_factory=dict)
    agent: Agent = Agent()
    """What holds for agents without a section of their own."""
    agents: dict[str, Agent] = msgspec.field(default_factory=dict)
    watch: dict[str, WatchSection] = msgspec.field(default_factory=dict)
    hooks: dict[str, Hook] = msgspec.field(default_factory=dict)
    mailboxes: dict[str, MailboxSection] = msgspec.field(default_factory=dict)
    channels: dict[str, Channel] = msgspec.field(default_factory=dict)
    health: HealthSection = HealthSection()
    retention: Retention = Retention()
    metrics: MetricsSection = MetricsSection()

    @property
    def tool_servers(self) -> dict[str, ToolServer]:
        """Return all whose tools agents are offered, beside Vigil's own, by name."""
        return {**self.mcp, **self.a2a}

    def person_of(self, user: str) -> Person:
        return self.people.get(user, self.person)

    def agent_of(self, agent: str) -> Agent:
        return self.agents.get(agent, self.agent)

    def prices_of(self, model: str) -> Prices:
        """Return the prices of a model; empty: none are known."""
        row = self.models.get(model)
        return () if row is None else row.prices

    @property
    def caps_digest(self) -> str:
        """What stands for the caps and prices that are configured; a model without any is as one
        that there isn't."""
        prices = {name: row.prices for name, row in sorted(self.models.items()) if row.prices}
        return hashlib.sha256(msgspec.json.encode((self.budget, prices))).hexdigest()[:32]

    @property
    def teams(self) -> Teams:
        """The agents of teams, and who is a member."""
        return {name: one.members for name, one in self.agents.items() if one.kind == "team"}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration, where state lives, the secrets, and what to tell at start."""

    config: Config
    home: Path
    anthropic_api_key: Secret | None = None
    anthropic_base_url: str | None = None
    openai_api_key: Secret | None = None
    qdrant_api_key: Secret | None = None
    embedder_api_key: Secret | None = None
    remarks: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """What is wrong; only of `load_right`."""
    left_out: frozenset[str] = frozenset()
    """Where that is: `gateway.port`, `channels.pager`, `grants`."""
    stamps: Stamps | None = None
    """Of the files as they were read, of whichever home; None: of none."""

    def __repr__(self) -> str:
        return f"Settings(home={str(self.home)!r}, has_key={bool(self.anthropic_api_key)})"

    @property
    def credentials(self) -> Path:
        return self.home / "nkeys"

    @property
    def file(self) -> Path:
        return self.home / "vigil.toml"

    @property
    def run_file(self) -> Path:
        """What is running: pids, ports, the broker's URL. Written by `up`."""
        return self.home / "run" / "up.json"

    @property
    def broker_store(self) -> Path:
        """Where the embedded broker keeps the streams."""
        return self.home / "nats" / "data"

    @property
    def agents(self) -> Path:
        return self.home / "agents"

    @property
    def skills(self) -> Path:
        """What can be done: one `*.md` for each skill of jobs, a folder for each other one."""
        return self.home / "skills"

    @property
    def workspaces(self) -> Path:
        """Where tools work: ``{agent}/{owner}``."""
        return self.home / "workspaces"

    @property
    def memory(self) -> Path:
        """What the memory service makes of the log: SQLite and vectors."""
        return self.home / "memory"


def home_of(environ: Mapping[str, str]) -> Path:
    """Return where state lives."""
    home = Path(environ.get("VIGIL_HOME") or platformdirs.user_data_path("vigil"))
    return home.expanduser().absolute()


def unread() -> Settings:
    """Return where state lives, with nothing configured: for what only looks there for what runs.
    A mistake in the file doesn't take that away."""
    return Settings(config=Config(), home=home_of(os.environ))


def load(environ: Mapping[str, str] | None = None, *, home: Path | None = None) -> Settings:
    """Read the file and the environment.

    Raises:
        ConfigError: with every mistake, one a line.
    """
    settings = load_right(environ, home=home)
    if settings.problems:
        raise ConfigError("\n".join(settings.problems))
    return settings


def load_right(environ: Mapping[str, str] | None = None, *, home: Path | None = None) -> Settings:
    """Read what is right of the file and the environment, for what only looks; `problems` tells the
    rest.

    Raises:
        ConfigError: the file can't be read, so nothing is known of it.
    """
    environ = os.environ if environ is None else environ
    home = home_of(environ) if home is None else home.expanduser().absolute()
    problems: list[str] = []
    left_out: set[str] = set()
    remarks: list[str] = []
    raw: dict[str, Any] = {}
    file, unreadable = home / "vigil.toml", False
    stamps = stamps_of(home)
    if file.exists():
        try:
            raw = tomllib.loads(file.read_text("utf-8"))
        except NO_TOML as error:
            problems.append(f"{file}: {error}")
            unreadable = True
        else:
            remarks += [f"{file.name}: {one}" for one in variables.take_out(raw)]
            right, found = _sorted(raw)
            problems += [f"{file}: {p}" for p in found]
            left_out.update(_left_out(raw, right))
            raw = right
    remarks += variables.remarks(environ)
    for (section, key), value, variable in variables.overlay(environ, problems):
        said = {section: {key: value}}
        remarks += [f"{variable}: {one}" for one in variables.take_out(said)]
        right, found = _sorted(said)
        problems += [f"{variable}: {p}" for p in found]
        left_out.update(_left_out(said, right))
        if right:
            raw.setdefault(section, {}).update(right[section])
    if unreadable:
        raise ConfigError("\n".join(problems))
    config = read(raw)
    if not problems:  # of what isn't whole, parts don't fit because of what is left out
        problems = [f"{file}: {p}" for p in checks.contradictions(config)]
    return Settings(
        config=config,
        home=home,
        anthropic_api_key=secrets.of_provider(environ, home, "anthropic"),
        anthropic_base_url=environ.get("ANTHROPIC_BASE_URL") or None,
        openai_api_key=secrets.of_provider(environ, home, "openai"),
        qdrant_api_key=secrets.of_environment(environ, "QDRANT_API_KEY"),
        embedder_api_key=secrets.of_environment(environ, "EMBEDDER_API_KEY"),
        remarks=tuple(remarks),
        problems=tuple(problems),
        left_out=frozenset(left_out),
        stamps=stamps,
    )


def port_in(environ: Mapping[str, str], home: Path) -> int | None:
    """Return the gateway's port as far as it can be read, whatever else is wrong; None: it isn't
    said, or is no port."""
    raw: dict[str, Any] = {}
    with contextlib.suppress(*NO_TOML):
        raw = tomllib.loads((home / "vigil.toml").read_text("utf-8"))
    gateway = raw.get("gateway")
    found = gateway.get("port") if isinstance(gateway, dict) else None
    for place, value, _ in variables.overlay(environ, []):
        found = value if place == ("gateway", "port") else found
    said = {"gateway": {"port": found}}
    return None if _sorted(said)[1] else read(said).gateway.port


def read(sections: Mapping[str, Any]) -> Config:
    """Convert what a file says.

    Raises:
        ConfigError: of a channel.
        msgspec.ValidationError: of another section.
    """
    rest = {name: section for name, section in sections.items() if name != "channels"}
    return msgspec.structs.replace(
        msgspec.convert(rest, Config, strict=False),
        channels=kinds.read(sections.get("channels", {})),
    )


NAMED_SECTIONS: Final = (
    *("people", "agents", "hooks", "channels", "mailboxes", "calendars", "contacts"),
    *("mcp", "a2a", "sites", "watch", "models"),
)
"""Sections of sections, each with a name that people choose."""
_SECTIONS: Final = {one.name: one.type for one in msgspec.structs.fields(Config)}
LISTED_SECTION: Final = "grants"
"""The section that may stand there any number of times."""


def _sorted(raw: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what of `raw` is right, section by section and key by key, and what isn't."""
    right: dict[str, Any] = {}
    if problems := list(checks.unusable(raw)):
        return right, problems
    for section, values in raw.items():
        kind = _SECTIONS.get(section)
        if kind is None:
            problems.append(f"[{section}]: no such section{did_you_mean(section, _SECTIONS)}")
        elif section == LISTED_SECTION:
            is_list = isinstance(values, list)
            problems += [] if is_list else [f"{section}: must be written as [[{section}]]"]
            for number, one in enumerate(values if is_list else ()):
                found = _check({section: [one]})
                place = f"{section}[{number}]"
                problems += checks.placed(found, place, f"{section}[0]", kind)
                if not found:
                    right.setdefault(section, []).append(one)
        elif not isinstance(values, dict):
            problems.append(f"{section}: must be a section")
        else:
            is_named = section in NAMED_SECTIONS
            for name, one in values.items():
                found = _check({section: {name: one}})
                place = f"{section}.{name}" if is_named else section
                shown = f"{section}[...]" if is_named else section
                problems += checks.placed(found, place, shown, kind)
                if not found:
                    right.setdefault(section, {})[name] = one
    return right, problems


def _left_out(raw: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[str]:
    """Yield the settings that are in `raw`, and not right."""
    for section, values in raw.items():
        there = right.get(section)
        if isinstance(values, dict):
            yield from (f"{section}.{name}" for name in values if name not in (there or {}))
        elif values != there:
            yield section


def _check_person(person: Person) -> None:
    """Raises: ConfigError, InvalidInput."""
    check_zone(person.timezone)
    for parse in PARSED.values():
        parse(person)
    check_part("home_thread", person.home_thread)
    if person.home_thread.startswith("_"):
        raise InvalidInput("home_thread", "must not begin with '_'")


def _check(raw: dict[str, Any]) -> list[str]:
    try:
        config = read(raw)
        for person in (config.person, *config.people.values()):
            _check_person(person)
        for section in NAMED_SECTIONS:
            for name in raw.get(section, {}):
                check_part(section, name)
        checks.check_agent("agent", config.agent)
        for name, agent in config.agents.items():
            checks.check_agent(f"agents.{name}", agent)
        _check_named(config)
    except (msgspec.ValidationError, VigilError) as error:
        return [str(error)]
    return []


def _check_named(config: Config) -> None:
    """Check what the types don't say of sections with a name of their own. Raises: VigilError."""
    for name, hook in config.hooks.items():
        checks.check_hook(name, hook)
    for name, mailbox in config.mailboxes.items():
        mailboxes.check(name, mailbox)
    checks.check_servers(config.mcp, config.a2a)
    for name, row in config.models.items():
        models.check(name, row)
    for name, site in config.sites.items():
        sites.check(f"sites.{name}", site)
    for name, calendar in config.calendars.items():
        calendars.check(name, calendar)
    read_public_url(config.gateway.public_url)
    check_contacts(config.contacts)
    checks.check_watch(config.watch)
