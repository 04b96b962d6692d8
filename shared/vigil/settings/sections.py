"""The sections of the configuration, a frozen struct each; `vigil.settings.config` reads it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ..fields.section import NotNegative, Positive, PositiveS, Section


class Gateway(Section, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    """Listen address."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8420
    """Listen port; 0: chosen by the system."""
    allowed_hosts: tuple[str, ...] = ()
    """Accepted host names besides loopback."""
    public_url: str = ""
    """Where people reach it through a proxy, with the path that it has there, if any:
    https://home.example/vigil. Its host is accepted; pages and links lead there."""
    allow_public: bool = False
    """Allow an address that isn't loopback. Put TLS in front."""
    body_bytes_max: Positive = 256 * 1024
    """Request body or socket frame."""
    text_bytes_max: Annotated[int, msgspec.Meta(ge=1, le=65536)] = 64 * 1024
    """Text of a message."""
    attachment_bytes_max: Positive = 3584 * 1024
    """A file that is uploaded: an image, a PDF file or a text."""
    person_attachments_bytes_max: Positive = 512 * 1024 * 1024
    """All files of a person."""
    json_depth_max: Positive = 32
    """JSON nesting."""
    rate_per_s: PositiveS = 2000.0
    """Average requests per second and token."""
    rate_burst: Positive = 4000
    """Requests of a token at once."""
    backlog_max: Positive = 200
    """Unprocessed events of a session; beyond, 429 (ARCHITECTURE 3)."""
    person_backlog_max: Positive = 500
    """The same for a person, as seen by one gateway."""
    connections_max: NotNegative = 0
    """Open connections, 2/3 for authenticated clients; 0: 3/4 of the file limit, the maximum."""
    strangers_of_address_max: Positive = 256
    """Unauthenticated connections of an address; beyond, the oldest is closed. A proxy is one
    address: set limits there and raise this."""
    head_timeout_s: PositiveS = 10.0
    """From connecting, or a request's first byte, to the end of its head."""
    body_timeout_s: PositiveS = 60.0
    """From there to the end of the body."""
    a2a: bool = False
    """Whether agents answer programs that speak A2A, at `/a2a/AGENT`; extra `a2a`."""
    registry: str = ""
    """Catalogue of MCP servers: a URL, or a file with its answer; empty: MCP's own."""
    chat_wait_s: PositiveS = 60.0
    """How long `POST /api/chat` waits for the answer."""
    socket_queue_max: Positive = 1000
    """Messages waiting for a slow reader until its socket is closed; none is lost."""
    disk_free_bytes_min: NotNegative = 64 * 1024 * 1024
    """Embedded broker: below this, 503."""


class Autonomy(Section, frozen=True, kw_only=True):
    enabled: bool = False
    """May agents follow up unprompted? `up` writes true into a new file (SPEC S-11)."""
    max_consecutive: NotNegative = 3
    """Autonomous messages in a row, until the person writes."""
    cooldown_ms: NotNegative = 15_000
    """Between two autonomous messages."""
    ordered_per_hour: NotNegative = 12
    """Reminders that a person asked for."""
    clear_policy: Literal["autonomous", "all"] = "autonomous"
    """`"all"`: a new message also voids unsent direct replies."""
    restart_policy: Literal["keep", "clear"] = "keep"
    """`"clear"`: follow-ups, not reminders, end when a scheduler process first becomes active."""
    authority_max: Literal["off", "observe", "suggest", "act"] = "act"
    """Upper limit of every `agent.authority`."""
    follow_ups_max: Positive = 100
    """Open follow-ups per session."""


class Model(Section, frozen=True, kw_only=True):
    main: str = ""
    """A `[models.NAME]`, a model id or `"rehearsal"`; empty: the default, or without key that."""
    cheap: str = ""
    """Model of the cheap tier: workers, readers, summaries; empty: the same."""
    profiles: dict[str, str] = msgspec.field(default_factory=dict)
    """Models of single kinds of sessions, whatever their tier: `{worker = "NAME"}`."""
    fallback: str = ""
    """Who answers a session for a while whose model fails; empty: nobody."""
    fallback_after: Positive = 2
    """Failed attempts in a row before that; a refused key or an unknown model is enough at once."""
    fallback_pause_s: PositiveS = 300.0
    """After this the model itself is asked again; fails it anew, the fallback goes on at once."""
    max_tokens: Positive = 4096
    """Per answer."""
    timeout_s: PositiveS = 120.0
    """Of silence: until the first sign of an answer, and between two."""
    answer_s: PositiveS = 900.0
    """Per call in all, however steadily it streams."""
    calls_max: Positive = 10
    """Model calls per event (SPEC S-12)."""
    tool_timeout_s: PositiveS = 30.0
    """How long a conversation waits for tools of other services."""
    caller_timeout_s: PositiveS = 600.0
    """How long a conversation waits for what a program is to run that brought tools along."""
    retries_max: NotNegative = 5
    """Retries of a failed call, also across crashes."""
    retry_base_s: PositiveS = 2.0
    """First delay; doubles each time."""
    retry_cap_s: PositiveS = 120.0
    """Longest delay."""
    context_tokens: Annotated[int, msgspec.Meta(ge=2000)] = 200_000
    """Context window; at 80 % the oldest part is summarized (SPEC I-4)."""
    history_rows: Annotated[int, msgspec.Meta(ge=2)] = 160
    """Most rows of the history shown to the model; when there are more, the older half goes."""
    rehearsal_word_ms: NotNegative = 30
    """Rehearsal model: time per word."""


class HealthSection(Section, frozen=True, kw_only=True):
    circuit_open_s: PositiveS = 30.0
    """What failed three times in a row isn't asked for so long; doubles with each failing trial."""
    circuit_open_s_max: PositiveS = 300.0
    """Longest time."""


class Nats(Section, frozen=True, kw_only=True):
    url: str = ""
    """Your own broker, or a cluster's nodes separated by commas; empty: embedded."""
    port: NotNegative = 0
    """Embedded broker; 0: the previous port, at first one the system chooses."""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    """Of each stream and bucket; 3 or 5 need a cluster."""
    partitions: Annotated[int, msgspec.Meta(ge=1, le=16)] = 2
    """Streams that sessions are spread over, more for a cluster; fixed at the first start."""
    sync: Literal["always", "default"] = "always"
    """`"default"` flushes every two minutes: a power cut loses acknowledged data."""
    max_file_bytes: Annotated[int, msgspec.Meta(ge=1024**3)] = 8 * 1024**3
    """Embedded broker's storage, of which EVENTS and DEAD reserve 384 MiB."""

    def __post_init__(self) -> None:
        if "@" in self.url:
            why = "services sign in by their keys (nkeys/), and a URL is shown and logged"
            raise ValueError(f"url: leave out user and password: {why}")


class Sessions(Section, frozen=True, kw_only=True):
    idle_release_s: PositiveS = 10.0
    """How long a replica keeps an idle session open."""
    queue_max: Positive = 1000
    """Follow-ups and outside events waiting behind an open loop."""
    concurrency_max: Positive = 5000
    """Open sessions per cortex replica."""
    busy_per_user_max: Positive = 8
    """A person's busy conversations per cortex replica, and as many workers; more wait and block
    nobody else's."""
    depth_max: Annotated[int, msgspec.Meta(ge=0, le=10)] = 3
    """Nesting of child sessions; 1: only conversations start them."""
    children_max: Annotated[int, msgspec.Meta(ge=0, le=200)] = 5
    """Concurrent children of a session."""
    fan_out_max: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 20
    """Sessions descending from one event."""
    branch_timeout_s: PositiveS = 60.0
    """Total time of a branch."""
    reader_timeout_s: PositiveS = 300.0
    """The same for a reader."""
    worker_timeout_s: PositiveS = 300.0
    """A worker silent for this long is ended; a tool may take this less `status_every_s` and 15 s
    (SPEC C-1)."""
    status_every_s: PositiveS = 30.0
    """Shortest interval of a worker's reports."""
    letters_open_s: Annotated[int, msgspec.Meta(ge=0)] = 1800
    """So long after an exchange you may go on with what it read from outside; later you open it."""


class SearchSection(Section, frozen=True, kw_only=True):
    """Where readers search the web."""

    url: str = ""
    """A SearXNG-compatible endpoint, yours: `https://search.example.org`. Empty: no search."""
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=120)] = 15.0
    """Per search."""
    results_max: Annotated[int, msgspec.Meta(ge=1, le=50)] = 10
    """Per search."""


class SpeechSection(Section, frozen=True, kw_only=True):
    """What understands voice messages that people send in chat networks."""

    url: str = ""
    """An endpoint with OpenAI's `/audio/transcriptions`, up to and with `/v1`, which gets all of
    them: `http://127.0.0.1:8080/v1`. Empty: voice messages aren't taken."""
    model: Annotated[str, msgspec.Meta(min_length=1)] = "whisper-1"
    """What the endpoint calls it."""
    key_file: str = ""
    """A file with the endpoint's key; relative to the home."""
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=300)] = 30.0
    """Per message."""


LANGUAGE: Final = "^([a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3})?$"


class Person(Section, frozen=True, kw_only=True):
    """What holds for a person. `[people.NAME]` replaces the section for one."""

    timezone: str = "UTC"
    """IANA name."""
    language: Annotated[str, msgspec.Meta(pattern=LANGUAGE)] = ""
    """Tag of the language to write in, as `de-AT`; empty: that of the person's message."""
    quiet_hours: str = ""
    """`"22:00-07:00"`, local time: no proactive messages."""
    channel: str = ""
    """Where autonomous messages go, too: of `[channels]`, `socket`; empty: where you wrote last."""
    home_thread: str = "main"
    """The conversation that is told what belongs to no other."""
    digest_at: str = "08:00"
    """Local time at which it is told together what could wait, or repeats itself."""
    contacts: tuple[str, ...] = ()
    """Whom they know, each as `Ben Miller <ben@example.org>`: may be written to by their name."""
    pause: str = ""
    """`"on"`: nothing is said or begun unasked; an instant, as `2026-12-01T08:00`: until then."""


class InterestSection(Section, frozen=True, kw_only=True):
    """What an agent keeps up with, and when."""

    what: str
    """An address, `feed:`, `search:` or `mcp:SERVER__TOOL`."""
    every_s: Annotated[int, msgspec.Meta(ge=300, le=7 * 86_400)] | None = None
    """How often; without: `cortex.autonomy_look_secs`."""
    hours: str = ""
    """Only then, as `"07:00-22:00"`, local time; empty: always."""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    """What cycles tell of it in a closed form: name = "SHAPE", or "SHAPE news RULE"; with all looks
    of the agent at most 8, each with another name."""


class Agent(Section, frozen=True, kw_only=True):
    """How an agent behaves. `[agents.NAME]` replaces the section for one."""

    double_text: Literal["enqueue", "interrupt", "coalesce"] = "enqueue"
    """What a message during another's turn does (SPEC S-13)."""
    coalesce_ms: Annotated[int, msgspec.Meta(ge=1, le=60_000)] = 500
    """How long `"coalesce"` waits for more."""
    kind: Literal["personal", "team"] = "personal"
    """`"team"`: it belongs to its members together ([api.md](../api.md#teams))."""
    members: tuple[str, ...] = ()
    """Of the team: users, who read and decide what is the team's. In `[agents.NAME]` only."""
    authority: Literal["off", "observe", "suggest", "act"] = "suggest"
    """What it may do unasked: nothing, read, change its own data, or act outside."""
    model: str = ""
    """Its own, instead of `model.main`."""
    looks: tuple[str | InterestSection, ...] = ()
    """What its cycles keep up with: addresses, `feed:`, `search:`, `mcp:SERVER__TOOL`; or tables of
    `what`, `every_s`, `hours` and `facts`."""
    content_to_contacts: Literal["own", "any"] = "own"
    """What contacts that your message doesn't name may be sent without leave, once outside content
    had a part: your own words; `"any"`: also what a page worded (22 of 609 attacks, not 6)."""


class Executor(Section, frozen=True, kw_only=True):
    """What runs tools, and within which limits (SPEC X-1)."""

    sandbox: Literal["auto", "bubblewrap", "landlock", "off"] = "auto"
    """`"auto"`: the best available; `"off"`: tools that need one aren't offered."""
    allow_unsafe: bool = False
    """With `"off"`: offer them without a sandbox."""
    network: bool = False
    """Network for commands; their output is then untrusted."""
    shell_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 120.0
    """Per command."""
    http_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 30.0
    """Per page."""
    http_bytes_max: Positive = 2 * 1024 * 1024
    """Per page."""
    output_bytes_max: Annotated[int, msgspec.Meta(ge=1024, le=160 * 1024)] = 64 * 1024
    """Per result; the rest is cut."""
    memory_bytes_max: Annotated[int, msgspec.Meta(ge=64 * 1024 * 1024)] = 1024**3
    """Per process of a command or MCP server, of what it uses, not of what it reserves."""
    processes_max: Annotated[int, msgspec.Meta(ge=4)] = 64
    """Per command."""
    file_bytes_max: Annotated[int, msgspec.Meta(ge=1024)] = 256 * 1024 * 1024
    """Per file written."""
    workspace_bytes_max: Annotated[int, msgspec.Meta(ge=1024)] = 2 * 1024**3
    """Per workspace; beyond, commands can only delete."""
    workspace_files_max: Positive = 100_000
    """Files and folders per workspace."""
    calls_at_once_max: Positive = 16
    """Concurrent calls per replica; people take turns."""
    calls_at_once_per_user: Positive = 6
    """Concurrent calls of a person; one of several is always left for others."""


class WatchSection(Section, frozen=True, kw_only=True):
    """What rows of the timetable watch, and who may be trusted there. A tool: in `[mcp.NAME]`."""

    source: str
    """Exactly as `vigil cron show` tells it: `feed:https://example.org/feed`."""
    user: str
    """Whose rows."""
    agent: str = "vigil"
    """Of which agent."""
    is_trusted: bool = False
    """What changes there counts as trusted."""


class Hook(Section, frozen=True, kw_only=True):
    """`POST /hooks/NAME`: what it takes in, and for which session.

    NAME is of `A-Z a-z 0-9 _ -`. An unusable secret ends the gateway at start.
    """

    scheme: Literal["standard", "github", "stripe"] = "standard"
    """Signatures: Standard Webhooks, GitHub's or Stripe's."""
    user: str
    """Of the target session."""
    thread: str = ""
    """Of the target session; can't begin with `_`. Empty: the agent's mind."""
    agent: str = "vigil"
    """Of the target session."""
    secrets: tuple[str, ...] = ()
    """Accepted, several while you replace one: `whsec_…`; others: 16 visible characters or more."""
    secrets_file: str = ""
    """Instead: one secret a line; relative to the home."""
    is_trusted: bool = False
    """Its events count as trusted."""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    """What its events tell in a closed form, without a model: name = "SHAPE at /JSON/POINTER"."""


class Retention(Section, frozen=True, kw_only=True):
    """How long streams keep what they hold, in days; 0: for good."""

    sessions_days: NotNegative = 0
    """Conversations, and files in them. One idle for longer starts anew."""
    system_days: Positive = 30
    """Workers, branches, jobs."""
    board_days: NotNegative = 0
    """Approvals, jobs, standing grants, tasks, the timetable: they end, too, so leave it at 0."""
    slots_days: Positive = 400
    """What became of each time at which a row of the timetable was due."""
    mails_days: Positive = 90
    """What came to mailboxes, as far as it's kept; the mails stay where they are."""
    signals_days: Positive = 7
    """Signals."""
    dead_days: Positive = 90
    """Dead letters."""
    events_days: Positive = 7
    """Outside events not taken in; others go at once."""


class MetricsSection(Section, frozen=True, kw_only=True):
    """`/metrics`, `/healthz` and `/readyz` of a service that runs alone (`vigil serve`)."""

    host: str = "127.0.0.1"
    """Listen address."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Listen port; 0: none."""
