"""One frozen struct with every setting, its default and its range.

Precedence: ``VIGIL_SECTION__KEY`` and the seed's variables over ``$VIGIL_HOME/vigil.toml`` over
the defaults below. All mistakes are reported at once, each with its place and its reason, and
the process refuses to start.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from datetime import time
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

import msgspec
import platformdirs

from .errors import ConfigError, VigilError
from .subjects import TEAM, Scope, SessionKey, check_part

Positive = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]
PositiveS = Annotated[float, msgspec.Meta(gt=0)]
NotNegativeF = Annotated[float, msgspec.Meta(ge=0)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the sections: an unknown key is an error, so a typing mistake can't hide."""


class Gateway(Section, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8420
    """0 lets the system choose."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names, beside the loopback ones, under which a browser may reach the gateway."""
    allow_public: bool = False
    """Listen on an address that is not loopback. Put TLS in front."""
    body_bytes_max: Positive = 256 * 1024
    text_bytes_max: Annotated[int, msgspec.Meta(ge=1, le=65536)] = 64 * 1024
    json_depth_max: Positive = 32
    rate_per_s: PositiveS = 2000.0
    """Requests a second that one token may make, on average: more than a gateway can answer, so who
    tells it a whole history is held up by their turn alone; only a flood is refused."""
    rate_burst: Positive = 4000
    backlog_max: Positive = 200
    """Unprocessed events of one session from which on a message gets 429 (ARCHITECTURE 3)."""
    chat_wait_s: PositiveS = 60.0
    socket_queue_max: Positive = 1000
    """Messages waiting for one slow reader before its socket is closed; none is lost."""
    disk_free_bytes_min: NotNegative = 64 * 1024 * 1024
    """With the embedded broker: below this the gateway answers 503, before the disk is full."""


class Autonomy(Section, frozen=True, kw_only=True):
    enabled: bool = False
    """Gates follow-ups only (SPEC S-11)."""
    max_consecutive: NotNegative = 3
    cooldown_ms: NotNegative = 15_000
    ordered_per_hour: NotNegative = 12
    clear_policy: Literal["autonomous", "all"] = "autonomous"
    restart_policy: Literal["keep", "clear"] = "keep"
    follow_ups_max: Positive = 100


class Model(Section, frozen=True, kw_only=True):
    name: str = ""
    """A model id, or "rehearsal"; empty picks the default model, or rehearsal without a key."""
    max_tokens: Positive = 4096
    timeout_s: PositiveS = 120.0
    calls_max: Positive = 10
    """Model calls for one event of a conversation (SPEC S-12)."""
    tool_timeout_s: PositiveS = 30.0
    """How long a conversation waits for tools that other services run."""
    retries_max: NotNegative = 5
    retry_base_s: PositiveS = 2.0
    retry_cap_s: PositiveS = 120.0
    context_tokens: Annotated[int, msgspec.Meta(ge=2000)] = 200_000
    """The context window of the model: at 80 % of it the oldest part of a conversation is summed up
    (SPEC I-4)."""
    history_rows: Annotated[int, msgspec.Meta(ge=2)] = 80
    daily_tokens: NotNegative = 2_000_000
    """Input and output of all agents together in a UTC day; the rehearsal model is free."""
    rehearsal_word_ms: NotNegative = 30
    """How long the rehearsal model takes for a word, so that streaming can be seen."""


class Memory(Section, frozen=True, kw_only=True):
    """What is remembered, and how it is found (SPEC M)."""

    recall_limit: Annotated[int, msgspec.Meta(ge=0, le=50)] = 8
    """Memories that a conversation is given before it answers; 0: none."""
    recall_timeout_s: PositiveS = 1.0
    """How long an answer waits for them; without them it says so (`vigil why`)."""
    pause_s: NotNegative = 600
    """After so long without a word the model is asked once what to remember; 0: never."""
    embedder: Literal["wordllama", "onnx", "openai"] = "wordllama"
    """What makes vectors of texts. Another one makes all of them anew."""
    embedder_model: str = ""
    """`onnx`: a folder with model.onnx and tokenizer.json, or a name that fastembed knows.
    `openai`: the model's name."""
    embedder_url: str = ""
    """`openai`: the endpoint's base, up to and with ``/v1``."""
    qdrant_url: str = ""
    """A Qdrant server; empty: the engine in this process, under the home."""
    weight_text: NotNegativeF = 1.0
    """Of BM25 over the best BM25. Of this and the next three, only the ratios matter."""
    weight_vector: NotNegativeF = 0.3
    """Of the embedder's cosine. A model that reads sentences (`onnx`, `openai`) is worth 1."""
    weight_words: NotNegativeF = 1.0
    """Of question words' nearest words."""
    weight_gist: NotNegativeF = 1.0
    """Of the cosine of means in which a word weighs as much as it is rare."""
    weight_neighbours: NotNegativeF = 0.3
    """Of the scores of what was said just before and after in the same conversation; half of it for
    what was said two turns away."""
    weight_speaker: NotNegativeF = 0.3
    """For having been said by somebody whom the question names."""
    weight_graph: NotNegativeF = 0.1
    """Of the score of what it is associated with, times the association's weight."""
    weight_recency: NotNegativeF = 0.02
    recency_half_life_days: PositiveS = 30.0
    weight_importance: NotNegativeF = 0.05
    """Of its importance after decay."""
    weight_taint: NotNegativeF = 0.2
    """What it loses for descending from untrusted content."""
    association_every_s: PositiveS = 300.0
    maintenance_every_s: PositiveS = 6 * 3600.0


class Nats(Section, frozen=True, kw_only=True):
    url: str = ""
    """Empty: start the embedded server."""
    port: NotNegative = 0
    """The embedded server's port on loopback; 0 lets the system choose."""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    sync: Literal["always", "default"] = "always"
    """`default` flushes to disk every two minutes: a power cut loses acknowledged data."""
    max_file_bytes: Annotated[int, msgspec.Meta(ge=1024**3)] = 8 * 1024**3
    """What the embedded server may keep; 384 MiB of it are set aside for EVENTS and DEAD."""


class Sessions(Section, frozen=True, kw_only=True):
    idle_release_s: PositiveS = 10.0
    queue_max: Positive = 1000
    """Events folded while a loop is open; beyond, only user messages are kept."""
    concurrency_max: Positive = 5000
    """Sessions that one cortex replica keeps open."""


class Person(Section, frozen=True, kw_only=True):
    timezone: str = "UTC"
    quiet_hours: str = ""
    """``HH:MM-HH:MM`` in the person's time zone; may wrap midnight; empty: none."""
    channel: str = "socket"
    """Where autonomous messages go, beside the transcript: "socket", or a name of [channels]."""


class Agent(Section, frozen=True, kw_only=True):
    """How an agent behaves. `[agent]` holds for all, `[agents.NAME]` for one."""

    double_text: Literal["enqueue", "interrupt", "coalesce"] = "enqueue"
    """What a message does that comes while another is worked on (SPEC S-13)."""
    coalesce_ms: Annotated[int, msgspec.Meta(ge=1, le=60_000)] = 500
    kind: Literal["personal", "team"] = "personal"
    """`personal`: each user has a memory of their own; `team`: all who use it share one."""


class Hook(Section, frozen=True, kw_only=True):
    """`[hooks.NAME]`: what `POST /hooks/NAME` takes in, and into which session."""

    scheme: Literal["standard", "github"] = "standard"
    """Whose signatures: Standard Webhooks, or GitHub's `X-Hub-Signature-256`."""
    user: str
    thread: str
    agent: str = "vigil"
    secrets: tuple[str, ...] = ()
    """Any of them may have signed, so that a secret can be replaced without a gap."""
    secrets_file: str = ""
    """A file with one secret a line, instead."""


class Channel(Section, frozen=True, kw_only=True):
    """`[channels.NAME]`: a way out beside the socket."""

    kind: Literal["webhook"] = "webhook"
    url: str
    secret: str = ""
    """`whsec_…` of Standard Webhooks, or `secret_file`."""
    secret_file: str = ""
    is_idempotent: bool = True
    """The receiver drops repeats of a `webhook-id`, as Standard Webhooks asks: an unknown outcome
    is tried again. False: it ends as `ambiguous`, for a person to look at."""
    timeout_s: PositiveS = 10.0
    attempts_max: Annotated[int, msgspec.Meta(ge=1, le=100)] = 8
    backoff_base_s: PositiveS = 5.0
    backoff_cap_s: PositiveS = 6 * 3600.0
    ports: tuple[Annotated[int, msgspec.Meta(ge=1, le=65535)], ...] = (80, 443)
    allow_private: bool = False
    """Let it reach this machine and private networks: for receivers of one's own."""

    def __repr__(self) -> str:
        return f"Channel(kind={self.kind!r}, <url and secret hidden>)"


class Retention(Section, frozen=True, kw_only=True):
    """How long streams keep what they hold, in days; 0: for good."""

    sessions_days: NotNegative = 0
    """Older records of conversations go; a session whose state is gone starts anew."""
    signals_days: Positive = 7
    dead_days: Positive = 90
    events_days: Positive = 7


class Metrics(Section, frozen=True, kw_only=True):
    """HTTP of the services without any: `/metrics`, `/healthz`, `/readyz`."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Of a service that runs alone (`vigil serve`); 0: none."""


class Config(Section, frozen=True, kw_only=True):
    """Everything. `home` and `secrets` come from the environment, never from the file."""

    gateway: Gateway = Gateway()
    autonomy: Autonomy = Autonomy()
    model: Model = Model()
    memory: Memory = Memory()
    nats: Nats = Nats()
    sessions: Sessions = Sessions()
    person: Person = Person()
    """What holds for people without a section of their own."""
    people: dict[str, Person] = {}
    agent: Agent = Agent()
    """What holds for agents without a section of their own."""
    agents: dict[str, Agent] = {}
    hooks: dict[str, Hook] = {}
    channels: dict[str, Channel] = {}
    retention: Retention = Retention()
    metrics: Metrics = Metrics()

    def person_of(self, user: str) -> Person:
        return self.people.get(user, self.person)

    def agent_of(self, agent: str) -> Agent:
        return self.agents.get(agent, self.agent)

    def scope_of(self, agent: str, user: str) -> Scope:
        """Return whose memory an agent has when it works for `user` (SPEC M-2)."""
        is_team = self.agent_of(agent).kind == "team"
        return Scope(agent, TEAM if is_team else user)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration, where state lives, the secrets, and what to tell at start."""

    config: Config
    home: Path
    anthropic_api_key: str | None = None
    anthropic_base_url: str | None = None
    qdrant_api_key: str | None = None
    embedder_api_key: str | None = None
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        key = "set" if self.anthropic_api_key else "not set"
        return f"Settings(home={str(self.home)!r}, anthropic_api_key=<{key}>)"

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
    def memory(self) -> Path:
        """What the memory service makes of the log: SQLite and vectors."""
        return self.home / "memory"


_SEED_VARIABLES: Final = {
    "AUTONOMY_ENABLED": ("autonomy", "enabled"),
    "AUTONOMY_MAX_CONSECUTIVE": ("autonomy", "max_consecutive"),
    "AUTONOMY_COOLDOWN_MS": ("autonomy", "cooldown_ms"),
    "VIGIL_PORT": ("gateway", "port"),
    "VIGIL_MODEL": ("model", "name"),
    "NATS_URL": ("nats", "url"),
    "QDRANT_URL": ("memory", "qdrant_url"),
}
_WITHOUT_MEANING: Final = ("TIMER_POLL_INTERVAL_MS", "EFFECT_POLL_INTERVAL_MS")
_NOT_SETTINGS: Final = ("VIGIL_HOME", "VIGIL_CRASH_AT", "VIGIL_URL", "VIGIL_TOKEN")


def load(environ: Mapping[str, str] | None = None, *, home: Path | None = None) -> Settings:
    """Read the file and the environment.

    Raises:
        ConfigError: with every mistake, one a line.
    """
    environ = os.environ if environ is None else environ
    home = home or Path(environ.get("VIGIL_HOME") or platformdirs.user_data_path("vigil"))
    home = home.expanduser().absolute()
    problems: list[str] = []
    remarks: list[str] = []
    raw: dict[str, Any] = {}
    file = home / "vigil.toml"
    if file.exists():
        try:
            raw = tomllib.loads(file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            problems.append(f"{file}: {error}")
        else:
            problems += [f"{file}: {p}" for p in _mistakes(raw)]
    for name in _WITHOUT_MEANING:
        if name in environ:
            remarks.append(f"{name} has no meaning here: the bus pushes, nothing is polled")
    overlay = _from_environment(environ, problems)
    for (section, key), value, variable in overlay:
        one = {section: {key: value}}
        found = _mistakes(one)
        problems += [f"{variable}: {p}" for p in found]
        if not found:
            raw.setdefault(section, {})[key] = value
    if problems:
        raise ConfigError("\n".join(problems))
    config = msgspec.convert(raw, Config, strict=False)
    for person in (config.person, *config.people.values()):
        if person.channel not in ("socket", *config.channels):
            raise ConfigError(f"{file}: person.channel {person.channel!r} is no [channels.NAME]")
    return Settings(
        config=config,
        home=home,
        anthropic_api_key=_secret(environ, "ANTHROPIC_API_KEY"),
        anthropic_base_url=environ.get("ANTHROPIC_BASE_URL") or None,
        qdrant_api_key=_secret(environ, "QDRANT_API_KEY"),
        embedder_api_key=_secret(environ, "EMBEDDER_API_KEY"),
        remarks=tuple(remarks),
    )


def _secret(environ: Mapping[str, str], name: str) -> str | None:
    """Read a secret from the variable, or from the file that `{name}_FILE` names."""
    if path := environ.get(f"{name}_FILE"):
        try:
            return Path(path).read_text("utf-8").strip() or None
        except OSError as error:
            raise ConfigError(f"{name}_FILE: {path}: {error.strerror}") from error
    return environ.get(name) or None


def _from_environment(
    environ: Mapping[str, str], problems: list[str]
) -> list[tuple[tuple[str, str], str, str]]:
    found: list[tuple[tuple[str, str], str, str]] = []
    for name, value in sorted(environ.items()):
        if name in _SEED_VARIABLES:
            found.append((_SEED_VARIABLES[name], value, name))
        elif name.startswith("VIGIL_") and name not in _NOT_SETTINGS:
            section, separator, key = name.removeprefix("VIGIL_").lower().partition("__")
            if separator:
                found.append(((section, key), value, name))
            else:
                problems.append(f"{name}: no such setting (VIGIL_SECTION__KEY)")
    return found


NAMED_SECTIONS: Final = ("people", "agents", "hooks", "channels")
"""Sections of sections, each with a name that people choose."""


def _mistakes(raw: dict[str, Any]) -> list[str]:
    """List what is wrong with `raw`, section by section and key by key."""
    problems: list[str] = []
    fields = {f.name: f.type for f in msgspec.structs.fields(Config)}
    for section, values in raw.items():
        if section not in fields:
            problems.append(f"[{section}]: no such section")
        elif not isinstance(values, dict):
            problems.append(f"{section}: must be a section")
        elif section in NAMED_SECTIONS:
            for name, one in values.items():
                problems += _check({section: {name: one}})
        else:
            for key, value in values.items():
                problems += _check({section: {key: value}})
    return problems


def _check(raw: dict[str, Any]) -> list[str]:
    try:
        config = msgspec.convert(raw, Config, strict=False)
        for person in (config.person, *config.people.values()):
            zone_of(person)
            quiet_hours_of(person)
        for section in NAMED_SECTIONS:
            for name in raw.get(section, {}):
                check_part(section, name)
        for hook in config.hooks.values():
            SessionKey.of(hook.user, hook.agent, hook.thread)
    except (msgspec.ValidationError, VigilError) as error:
        return [str(error)]
    return []


def zone_of(person: Person) -> ZoneInfo:
    """Return the person's time zone. Raises: ConfigError."""
    try:
        return ZoneInfo(person.timezone)
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(f"timezone {person.timezone!r} is not an IANA time zone") from error


def quiet_hours_of(person: Person) -> tuple[time, time] | None:
    """Return (start, end) in the person's time zone, or None. Raises: ConfigError.

    >>> quiet_hours_of(Person(quiet_hours="22:00-07:30"))
    (datetime.time(22, 0), datetime.time(7, 30))
    """
    if not person.quiet_hours:
        return None
    start, separator, end = person.quiet_hours.partition("-")
    try:
        if not separator:
            raise ValueError("no '-'")
        return time.fromisoformat(start.strip()), time.fromisoformat(end.strip())
    except ValueError as error:
        raise ConfigError(
            f"quiet_hours {person.quiet_hours!r}: expected HH:MM-HH:MM ({error})"
        ) from error


FIRST_FILE: Final = """\
# Vigil's settings. Every default is in the documentation; what is here overrides it, and the
# environment (VIGIL_SECTION__KEY) overrides this.

[autonomy]
# Let agents follow up on their own. Limits: 3 messages in a row, 15 s apart, until you write.
enabled = true

# [model]
# name = "claude-sonnet-5-5"   # with ANTHROPIC_API_KEY set; without a key: "rehearsal"

# [person]
# timezone = "Europe/Berlin"
# quiet_hours = "22:00-07:00"
"""


def ensure_home(settings: Settings) -> bool:
    """Make the home, and a first vigil.toml; return whether the file is new."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if settings.file.exists():
        return False
    settings.file.touch(mode=0o600)  # secrets of hooks and channels may come into it
    settings.file.write_text(FIRST_FILE, "utf-8")
    return True
