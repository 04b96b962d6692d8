"""The servers that are run, the well known ones first. None needs more than this machine."""

from __future__ import annotations

from typing import Final

from .peer import Asked, Peer

_KIWI: Final = "Kiwi"
_WORK: Final = ("--folder", "{work}")
_OFFICIAL: Final = "@modelcontextprotocol/server-"


def _node(package: str, file: str, *args: str) -> tuple[str, ...]:
    return ("{node}", f"{{modules}}/{package}/{file}", *args)


def _reference(name: str, *args: str) -> tuple[str, ...]:
    return _node(f"{_OFFICIAL}{name}", "dist/index.js", *args)


SERVERS: Final = (
    Peer(
        name="filesystem", source="npm", package=f"{_OFFICIAL}filesystem", version="2026.8.31",
        command=_reference("filesystem", "{work}"), options=_WORK,
        asked=(Asked(tool="read_text_file", given={"path": "{work}/note.txt"}, expects=_KIWI),),
    ),
    Peer(
        name="memory", source="npm", package=f"{_OFFICIAL}memory", version="2026.8.31",
        command=_reference("memory"),
        asked=(
            Asked(
                tool="create_entities", expects="parrot",
                given={"entities": [
                    {"name": "Kiwi", "entityType": "parrot", "observations": ["sings"]}
                ]},
            ),
            Asked(tool="read_graph", expects="sings"),
        ),
    ),
    Peer(
        name="everything", source="npm", package=f"{_OFFICIAL}everything", version="2026.8.31",
        command=_reference("everything"),
        asked=(
            Asked(tool="get-sum", given={"a": 2, "b": 3}, expects="is 5"),
            Asked(tool="get-tiny-image", expects="image/png"),
            Asked(
                tool="get-resource-reference", expects="plaintext resource",
                given={"resourceType": "Text", "resourceId": 1},
            ),
            Asked(
                tool="trigger-long-running-operation", given={"duration": 2, "steps": 4},
                expects="completed",
            ),
            Asked(tool="skill_simple-prompt", expects="simple prompt"),
        ),
        said="a text, an image, a resource, progress, a prompt",
    ),
    Peer(
        name="everything-http", source="npm", package=f"{_OFFICIAL}everything",
        version="2026.8.31", command=_reference("everything", "streamableHttp"),
        environ={"PORT": "{port}"}, path="/mcp",
        asked=(
            Asked(tool="get-structured-content", given={"location": "New York"}, expects="temper"),
            Asked(
                tool="trigger-long-running-operation", given={"duration": 2, "steps": 4},
                expects="completed",
            ),
        ),
        said="structured content, progress",
    ),
    Peer(
        name="thinking", source="npm", package=f"{_OFFICIAL}sequential-thinking",
        version="2026.8.31", command=_reference("sequential-thinking"),
        asked=(
            Asked(
                tool="sequentialthinking", expects="thoughtNumber",
                given={
                    "thought": "Birds sing.", "nextThoughtNeeded": False, "thoughtNumber": 1,
                    "totalThoughts": 1,
                },
            ),
        ),
    ),
    Peer(
        name="time", source="pypi", package="mcp-server-time", version="2026.10.19",
        command=("{bin}/mcp-server-time", "--local-timezone", "Europe/Vienna"),
        asked=(
            Asked(
                tool="convert_time", expects="00:00",
                given={
                    "source_timezone": "Europe/Vienna", "time": "16:00",
                    "target_timezone": "Asia/Tokyo",
                },
            ),
        ),
    ),
    Peer(
        name="git", source="pypi", package="mcp-server-git", version="2026.10.19",
        command=("{bin}/mcp-server-git",), options=_WORK,
        asked=(Asked(tool="git_log", given={"repo_path": "{work}/repository"}, expects=_KIWI),),
    ),
    Peer(
        name="fetch", source="pypi", package="mcp-server-fetch", version="2026.10.24",
        command=("{bin}/mcp-server-fetch", "--allow-private-ips"),
        options=("--network", "--env", "PATH={bin}"),
        asked=(Asked(tool="fetch", given={"url": "{page}/"}, expects=_KIWI),),
        said="with Node in its PATH it installs more into its own folder, which it can't write",
    ),
    Peer(
        name="sqlite", source="pypi", package="mcp-server-sqlite", version="2025.4.25",
        beside=("mcp==1.30.0",),
        command=("{bin}/mcp-server-sqlite", "--db-path", "{work}/birds.db"), options=_WORK,
        asked=(
            Asked(tool="read_query", given={"query": "SELECT * FROM birds"}, expects=_KIWI),
            Asked(tool="skill_mcp-demo", given={"topic": "birds"}, expects="birds"),
        ),
        said="a query, a prompt; with 1.30 of the SDK: it lets 2 in, and ends with that",
    ),
    Peer(
        name="calculator", source="pypi", package="mcp-server-calculator", version="0.2.1",
        command=("{bin}/mcp-server-calculator",),
        asked=(Asked(tool="calculate", given={"expression": "6*7"}, expects="42"),),
    ),
    Peer(
        name="markitdown", source="pypi", package="markitdown-mcp", version="0.0.1a8",
        command=("{bin}/markitdown-mcp",), options=_WORK,
        asked=(
            Asked(
                tool="convert_to_markdown", given={"uri": "file://{work}/birds.csv"},
                expects=r"\| Kiwi",
            ),
        ),
    ),
    Peer(
        name="motherduck", source="pypi", package="mcp-server-motherduck", version="1.1.0",
        command=("{bin}/mcp-server-motherduck", "--db-path", ":memory:", "--read-write"),
        options=_WORK,
        asked=(
            Asked(
                tool="execute_query",
                given={"sql": "SELECT sum(age) AS years FROM '{work}/birds.csv'"}, expects="10",
            ),
        ),
        said="DuckDB in memory, over a CSV file",
    ),
    Peer(
        name="excel", source="pypi", package="excel-mcp-server", version="2.2.2",
        command=("{bin}/excel-mcp-server", "stdio"), options=_WORK,
        asked=(
            Asked(tool="create_workbook", given={"path": "{work}/a.xlsx"}, expects=r"a\.xlsx"),
        ),
    ),
    Peer(
        name="word", source="pypi", package="office-word-mcp-server", version="1.1.11",
        command=("{bin}/word_mcp_server",), options=_WORK,
        asked=(
            Asked(tool="create_document", given={"filename": "{work}/a.docx"}, expects="reated"),
        ),
    ),
    Peer(
        name="powerpoint", source="pypi", package="office-powerpoint-mcp-server", version="2.0.7",
        beside=("mcp==1.30.0",),
        command=("{bin}/ppt_mcp_server",), options=_WORK,
        asked=(Asked(tool="create_presentation", expects="presentation"),),
        said="with 1.30 of the SDK: it lets 2 in, and ends with that",
    ),
    Peer(
        name="pymupdf4llm", source="pypi", package="pymupdf4llm-mcp", version="1.28.0",
        beside=("mcp==1.30.0",),
        command=("{bin}/pymupdf4llm-mcp", "stdio"), options=_WORK,
        asked=(
            Asked(
                tool="convert_pdf_to_markdown", given={"file_path": "{work}/note.pdf"},
                expects=_KIWI,
            ),
        ),
        said="with 1.30 of the SDK: it lets 2 in, and ends with that",
    ),
    Peer(
        name="alchemy", source="pypi", package="mcp-alchemy", version="2026.10.15.202659",
        command=("{bin}/mcp-alchemy",),
        options=(*_WORK, "--env", "DB_URL=sqlite:///{work}/birds.db"),
        asked=(Asked(tool="execute_query", given={"query": "SELECT * FROM birds"}, expects=_KIWI),),
    ),
    Peer(
        name="proxy", source="pypi", package="mcp-proxy", version="0.13.0",
        beside=("mcp-server-calculator==0.2.1",), path="/mcp",
        command=("{bin}/mcp-proxy", "--port", "{port}", "{bin}/mcp-server-calculator"),
        asked=(
            Asked(tool="calculate", given={"expression": "6*7"}, expects="42"),
        ),
        said="before mcp-server-calculator",
    ),
    Peer(
        name="openapi-aws", source="pypi", package="awslabs-openapi-mcp-server", version="1.1.6",
        command=(
            "{bin}/awslabs.openapi-mcp-server", "--api-name", "birds", "--api-url", "{page}",
            "--spec-path", "{work}/openapi.json", "--allow-insecure-http",
            "--allow-private-networks", "--allowed-spec-dirs", "{work}",
        ),
        options=("--network", *_WORK),
        asked=(Asked(tool="get_bird", given={"name": "kiwi"}, expects="squawk"),),
        said="an API on loopback",
    ),
    Peer(
        name="system-monitor", source="npm", package=f"{_OFFICIAL}system-monitor", version="2.0.3",
        command=_node(f"{_OFFICIAL}system-monitor", "dist/index.js"),
        environ={"PORT": "{port}"}, path="/mcp",
        asked=(Asked(tool="get-system-info", expects="cpu|CPU"),),
    ),
    Peer(
        name="playwright", source="npm", package="@playwright/mcp", version="0.0.83", path="/mcp",
        command=_node(
            "@playwright/mcp", "cli.js", "--port", "{port}", "--host", "127.0.0.1", "--headless",
            "--isolated", "--no-sandbox", "--executable-path", "{chromium}",
            "--allowed-hosts", "127.0.0.1:{port}",
        ),
        asked=(Asked(tool="browser_navigate", given={"url": "{page}/"}, expects="Title: Birds"),),
        said="Debian's Chromium, a page on loopback",
    ),
    Peer(
        name="chrome-devtools", source="npm", package="chrome-devtools-mcp", version="1.11.0",
        command=_node(
            "chrome-devtools-mcp", "build/src/bin/chrome-devtools-mcp.js", "--headless",
            "--isolated", "--executablePath", "{chromium}", "--chromeArg=--no-sandbox",
        ),
        options=("--network",),
        asked=(Asked(tool="new_page", given={"url": "{page}/"}, expects="Target closed"),),
        said="no page: its Chromium wants Unix sockets, which the sandbox refuses; that is told",
    ),
    Peer(
        name="calc", source="npm", package="@coo-quack/calc-mcp", version="2.1.1",
        command=_node("@coo-quack/calc-mcp", "dist/index.js"),
        asked=(Asked(tool="math", given={"expression": "6*7"}, expects="42"),),
    ),
    Peer(
        name="git-node", source="npm", package="@cyanheads/git-mcp-server", version="2.15.3",
        command=_node("@cyanheads/git-mcp-server", "dist/index.js"), options=_WORK,
        asked=(Asked(tool="git_log", given={"path": "{work}/repository"}, expects=_KIWI),),
    ),
    Peer(
        name="openapi-node", source="npm", package="@ivotoby/openapi-mcp-server",
        version="1.16.1", options=("--network",),
        command=_node(
            "@ivotoby/openapi-mcp-server", "bin/mcp-server.js", "--api-base-url", "{page}",
            "--openapi-spec", "{page}/openapi.json",
        ),
        asked=(Asked(tool="get-bird", given={"name": "kiwi"}, expects="squawk"),),
    ),
    Peer(
        name="time-node", source="npm", package="time-mcp", version="1.0.6",
        command=_node("time-mcp", "dist/index.js"),
        asked=(
            Asked(
                tool="convert_time", expects="23:00",
                given={
                    "sourceTimezone": "Europe/Vienna", "targetTimezone": "Asia/Tokyo",
                    "time": "2026-11-29 15:00:00",
                },
            ),
        ),
    ),
    Peer(
        name="excel-go", source="npm", package="@negokaz/excel-mcp-server", version="0.12.0",
        command=_node("@negokaz/excel-mcp-server", "dist/launcher.js"), options=_WORK,
        asked=(Asked(tool="excel_describe_sheets", given={"fileAbsolutePath": "{work}/birds.xlsx"},
                     expects="Birds"),),
    ),
)  # fmt: skip
