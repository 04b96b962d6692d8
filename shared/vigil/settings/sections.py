"""The sections of the configuration: a frozen struct each, with its keys, defaults and ranges.

What they are read from, and what else must hold of them, is in :mod:`vigil.settings.config`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

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
    person_backlog_max: Positive = 500
    """Unprocessed events of one person, in all sessions together, that came through one gateway."""
    connections_max: NotNegative = 0
    """Open at once, two thirds of them for who is signed in. 0, or more than that: three quarters
    of the files that the process may open."""
    strangers_of_address_max: Positive = 256
    """Connections of one address on which nobody has signed in; beyond it the oldest one ends. A
    proxy is one address: it needs limits of its own."""
    head_timeout_s: PositiveS = 10.0
    """From a connection, or the first byte of a request, to the end of its head."""
    body_timeout_s: PositiveS = 60.0
    """From there to the end of its body."""
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
    authority_max: Literal["off", "observe", "suggest", "act"] = "act"
    """What no agent's `authority` may exceed."""
    follow_ups_max: Positive = 100


class Model(Section, frozen=True, kw_only=True):
    name: str = ""
    """A model id, or "rehearsal"; empty picks the default model, or rehearsal without a key."""
    name_cheap: str = ""
    """Of the model that workers think with; empty: the same."""
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
    daily_share_per_user: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    """Of `daily_tokens`, what one person's sessions may use; 1: all of it."""
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
    """The embedded server's port on loopback; 0: the one it had before, or a free one."""
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
    busy_per_user_max: Positive = 8
    """Of one person, the conversations that think at once in one cortex replica, and as many of
    what works beside them; others of theirs wait, and nobody waits behind them."""
    depth_max: Annotated[int, msgspec.Meta(ge=0, le=10)] = 3
    """How deep sessions may start sessions: 1, only a conversation may."""
    children_max: Annotated[int, msgspec.Meta(ge=0, le=200)] = 5
    """Children that one session may have under way at once."""
    fan_out_max: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 20
    """Sessions that may descend from one event, at any depth."""
    branch_timeout_s: PositiveS = 60.0
    worker_timeout_s: PositiveS = 300.0
    """Without a word of how it goes (SPEC C-1)."""
    status_every_s: PositiveS = 30.0
    """How often a worker tells its parent how it goes, at most."""


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
    authority: Literal["off", "observe", "suggest", "act"] = "suggest"
    """What it may do on its own without asking: nothing, look, change what is its own, or act upon
    the world. What a person ordered, and no outside content had a part in, may act."""


class Executor(Section, frozen=True, kw_only=True):
    """What runs tools, and within which limits (SPEC X-1)."""

    sandbox: Literal["auto", "bubblewrap", "landlock", "off"] = "auto"
    """`auto`: the best that works here. `off`: the tools that need one are not offered."""
    allow_unsafe: bool = False
    """With `sandbox = "off"`, run them without one all the same."""
    network: bool = False
    """Whether commands may reach the network; they count as outside content then."""
    shell_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 120.0
    http_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 30.0
    http_bytes_max: Positive = 2 * 1024 * 1024
    """Of a page that is fetched."""
    output_bytes_max: Annotated[int, msgspec.Meta(ge=1024, le=160 * 1024)] = 64 * 1024
    """Of a result; the rest is cut off."""
    memory_bytes_max: Annotated[int, msgspec.Meta(ge=64 * 1024 * 1024)] = 1024**3
    """Of one process that a command starts."""
    processes_max: Annotated[int, msgspec.Meta(ge=4)] = 64
    file_bytes_max: Annotated[int, msgspec.Meta(ge=1024)] = 256 * 1024 * 1024
    """Of one file that a command writes."""
    workspace_bytes_max: Annotated[int, msgspec.Meta(ge=1024)] = 2 * 1024**3
    """Of all files of one workspace; beyond, commands may remove files there and not write."""
    workspace_files_max: Positive = 100_000
    """Files and folders of one workspace."""
    calls_at_once_max: Positive = 16
    """Calls that one replica runs at a time."""
    calls_at_once_per_user: Positive = 6
    """Of one person; never all of them, where there are two."""


class McpServer(Section, frozen=True, kw_only=True):
    """`[mcp.NAME]`: an MCP server whose tools the agents may use, as ``NAME__tool``."""

    command: str = ""
    """A program that speaks MCP over stdio; it runs in the sandbox."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """The only variables that it sees, beside PATH and HOME."""
    env_file: str = ""
    """A file with one ``NAME=value`` a line, for secrets."""
    folders: tuple[str, ...] = ()
    """Folders of this machine that it may read and write, under their own paths."""
    folders_read: tuple[str, ...] = ()
    """Folders that it may only read. Its own code it may read anyhow."""
    network: bool = False
    """Whether the program may reach the network."""
    url: str = ""
    """A server over streamable HTTP, instead of a command."""
    headers: dict[str, str] = {}
    headers_file: str = ""
    """A file with one ``Name: value`` a line, for secrets."""
    allow_private: bool = False
    """Let `url` lead to this machine or a private network."""
    is_enabled: bool = True
    is_trusted: bool = False
    """Whether what it answers counts as the agent's own, and not as outside content."""
    risk: Literal["read", "write", "external", "destructive"] = "external"
    """Of its tools, but for those that `risks` names. What a server says of its own tools is not
    believed."""
    risks: dict[str, Literal["read", "write", "external", "destructive"]] = {}
    idempotent: tuple[str, ...] = ()
    """Tools that may run twice after a crash."""
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 60.0

    def __repr__(self) -> str:
        return f"McpServer(command={self.command!r}, <env, url and headers hidden>)"


class Approvals(Section, frozen=True, kw_only=True):
    expires_s: Annotated[float, msgspec.Meta(ge=1, le=30 * 86400)] = 86400.0
    """After so long without a verdict a request counts as refused."""
    open_max: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    """Open requests of one session."""


class Jobs(Section, frozen=True, kw_only=True):
    steps_max: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    """Steps of one plan; a plan with more is no plan."""
    note_days: Annotated[int, msgspec.Meta(ge=1)] = 7
    """How long a job's note is kept (SPEC J-1)."""


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


class Retention(Section, frozen=True, kw_only=True):
    """How long streams keep what they hold, in days; 0: for good."""

    sessions_days: NotNegative = 0
    """Older records of conversations go; a session whose state is gone starts anew."""
    system_days: Positive = 30
    """Of what the cortex does by itself: workers, branches, jobs."""
    board_days: NotNegative = 0
    signals_days: Positive = 7
    dead_days: Positive = 90
    events_days: Positive = 7


class Metrics(Section, frozen=True, kw_only=True):
    """HTTP of the services without any: `/metrics`, `/healthz`, `/readyz`."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Of a service that runs alone (`vigil serve`); 0: none."""
