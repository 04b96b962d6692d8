"""The house files: locks, Makefile, images, licence. What can be checked without an engine."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.support.cli import Cli, eventually, running_vigil
from tests.support.compose import parse
from vigil.broker.ports import free_port
from vigil.cli.app import app
from vigil.settings import config
from vigil.topology import SERVICES

ROOT = Path(__file__).parents[2]
WATCHERS = ("prometheus", "grafana")
PACKAGES_MAX = 79
LOCKS = ("requirements.lock", "requirements-server.lock", "requirements-dev.lock")


def requirements(lock: str) -> dict[str, str]:
    """Return each pinned requirement with its hashes."""
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        pin, _, hashes = line.partition(" --hash=")
        found[pin.partition(" ")[0].partition("==")[0]] = f"{pin.strip()} {hashes}"
    return found


def test_the_locks_have_all_that_is_needed() -> None:
    """`make` installs what they name and nothing else: what is missing there is missing here."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "check"]
    checked = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("lock", [*LOCKS, "deploy/weights.lock", "bench/peers/peers.lock"])
def test_locks_are_hashed_and_name_no_index(lock: str) -> None:
    """P-1: pinned, hashed, and installable from whatever index a machine uses."""
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "index" not in text.replace("importlib", "")
    assert " @ " not in text
    for name, line in requirements(lock).items():
        assert re.match(rf"{re.escape(name)}==\S+", line), line
        assert re.search(r"sha256:[0-9a-f]{64}", line), line


def test_locks_agree_and_cover_the_project() -> None:
    """P-1: tests run on what `make up` installs, and the build tools are pinned, too."""
    small, server, large = map(requirements, LOCKS)
    for name, line in (*small.items(), *server.items()):
        assert large[name].split()[0] == line.split()[0]
    assert small.keys() < server.keys() < large.keys()
    assert server.keys() >= {
        "qdrant-client",
        "opentelemetry-sdk",
    }  # the images' compose file has both
    assert "requirements-server.lock" in (ROOT / "deploy" / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = list(project["project"]["dependencies"])
    wanted += (ROOT / "deploy" / "build-requirements.in").read_text().splitlines()
    names = {re.match(r"[A-Za-z0-9-]+", w)[0].lower() for w in wanted if w and w[0] != "#"}  # type: ignore[index]
    assert names <= small.keys()
    build = {re.match(r"[a-z]+", b)[0] for b in project["build-system"]["requires"]}  # type: ignore[index]
    weights = requirements("deploy/weights.lock")
    assert build <= small.keys() | weights.keys()
    # What goes into the wheel is what `make up` takes out of WordLlama's.
    assert any(
        weights["wordllama"].startswith(b.partition(";")[0])
        for b in project["build-system"]["requires"]
    )


def test_what_everybody_installs_stays_small() -> None:
    """P-1: a ratchet. Packages for Linux, without what only builds Vigil, and without Vigil."""
    text = (ROOT / "requirements.lock").read_text()
    builds = {"editables", "hatchling", "pathspec", "pluggy", "trove-classifiers"}
    elsewhere = re.compile(r"sys_platform == '(win32|emscripten)'")
    needed = [
        line.partition("==")[0]
        for line in text.splitlines()
        if re.match(r"[a-z]", line) and not elsewhere.search(line)
    ]
    assert len(set(needed) - builds) <= PACKAGES_MAX
    # Each of them is 15 MB or more, and an extra's.
    assert not {"grpcio", "onnxruntime", "tokenizers", "huggingface-hub", "openai"} & set(needed)


def test_the_licence_is_the_apache_license_2() -> None:
    """The text of the Apache License 2.0, unchanged."""
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


def make(*args: str) -> str:
    done = subprocess.run(
        ["make", *args], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_makefile_has_what_the_contract_names() -> None:
    """P-1: help by default; up, test and bench need no step before them."""
    shown = make()
    for target in ("up", "down", "test", "check", "bench", "chaos", "lock", "clean"):
        assert re.search(rf"make {target} +\S", shown), target
    installs = make("-n", "-B", "up")
    assert "requirements.lock; pips=" in installs
    assert "--require-hashes --requirement .venv/part-$part.lock" in installs
    assert "pytest" in make("-n", "test")
    asked = make("-n", "-B", "test")
    assert "install --quiet=2 --yes --no-install-recommends $missing" in asked
    assert "missing=bubblewrap" in asked
    assert "$missing chromium" in asked
    assert "exec make test" in (ROOT / ".ci" / "run").read_text()


# ---------------------------------------------------------------- images


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return parse((ROOT / "docker-compose.yml").read_text())


def test_compose_starts_things_in_order(compose: dict[str, Any]) -> None:
    """P-1: credentials, then the broker that knows them, then streams, then services."""
    services = compose["services"]
    done, healthy = "service_completed_successfully", "service_healthy"
    assert services["nats"]["depends_on"] == {"credentials": {"condition": done}}
    assert services["provision"]["depends_on"] == {"nats": {"condition": healthy}}
    for name in SERVICES:
        assert services[name]["depends_on"] == {"provision": {"condition": done}}
        assert services[name]["restart"] == "unless-stopped"
    assert services.keys() == {"credentials", "nats", "provision", "qdrant", *SERVICES, *WATCHERS}
    for name, service in services.items():
        # What is there only for those who want it is in a profile; what goes on is looked after.
        assert ("profiles" in service) is (name in WATCHERS)
        assert (service["restart"] == "no") is ("healthcheck" not in service), name
        for mount in service["volumes"]:
            source = mount.partition(":")[0]
            assert source in compose["volumes"] or (ROOT / source).exists(), mount


def test_compose_asks_each_service_whether_it_works(compose: dict[str, Any]) -> None:
    """X-7: on the port that its image serves; the images ask only whether it lives."""
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    assert "VIGIL_METRICS__PORT=9464" in dockerfile
    assert re.findall(r"127\.0\.0\.1:(\d+)/healthz", dockerfile) == ["8420", "9464"]
    for name in SERVICES:
        command = compose["services"][name]["healthcheck"]["test"]
        port = 8420 if name == "gateway" else 9464
        assert command[:3] == ["CMD", "python", "-c"]
        assert f"http://127.0.0.1:{port}/readyz" in command[3]


@pytest.mark.parametrize("is_ready", [True, False])
def test_the_probes_tell_what_they_are_told(
    compose: dict[str, Any], tmp_path: Path, is_ready: bool
) -> None:
    """X-7: the very command of the file, against a service that works, and one that waits."""
    port = free_port()
    environ = {"VIGIL_METRICS__PORT": str(port), "NATS_URL": "nats://127.0.0.1:1"}
    with contextlib.ExitStack() as stack:
        if is_ready:
            run = stack.enter_context(running_vigil(tmp_path / "home")).run_state
            environ["NATS_URL"] = run.nats_url
        else:
            Cli(tmp_path / "home")("provision", "--credentials-only")
        process = Cli(tmp_path / "home", **environ).start("serve", "scheduler")
        stack.callback(process.communicate)
        stack.callback(process.terminate)
        _, *command = compose["services"]["scheduler"]["healthcheck"]["test"]
        command = [sys.executable, *(word.replace("9464", str(port)) for word in command[1:])]
        alive = [word.replace("readyz", "healthz") for word in command]
        eventually(lambda: subprocess.run(alive, capture_output=True, check=False).returncode == 0)
        if is_ready:
            eventually(
                lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0
            )
        else:
            assert subprocess.run(command, capture_output=True, check=False).returncode == 1


def test_compose_gives_each_service_its_own_seed(compose: dict[str, Any]) -> None:
    """X-4: no service mounts another's seed, nor the operator's home."""
    handed = compose["services"]["credentials"]["volumes"]
    for name in SERVICES:
        mounts = compose["services"][name]["volumes"]
        seeds = [m for m in mounts if m.startswith(("seed-", "operator", "nats"))]
        assert seeds == [f"seed-{name}:/var/lib/vigil/nkeys:ro"]
        assert f"seed-{name}:/out/{name}" in handed


def test_compose_is_closed_to_the_network_and_to_root(compose: dict[str, Any]) -> None:
    """X-4: published on loopback only; our containers have no privileges."""
    for name, service in compose["services"].items():
        for port in service.get("ports", ()):
            assert port.partition(":")[0] == "127.0.0.1"
            assert name in ("gateway", *WATCHERS)
        assert service["security_opt"] == ["no-new-privileges:true"]
        if name != "nats":
            assert service["cap_drop"] == ["ALL"]
            assert service["read_only"] is True


def test_only_the_executor_and_the_command_line_have_the_files_of_tools(
    compose: dict[str, Any],
) -> None:
    """X-4, X-8, X-9: what erases and backs up reaches them, too; the image makes the folders."""
    services = compose["services"]
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    for name in ("workspaces", "mcp"):
        mount = f"{name}:/var/lib/vigil/{name}"
        assert {n for n, s in services.items() if mount in s["volumes"]} == {
            "executor",
            "provision",
        }
        assert f"/var/lib/vigil/{name} " in dockerfile
    (stage,) = re.findall(r"AS executor\n(.*?)\nFROM ", dockerfile, re.S)
    assert "--yes bubblewrap " in stage
    assert all(f"/usr/local/bin/{program}" in stage for program in ("node", "npm", "npx"))


def test_only_memory_reaches_the_vectors(compose: dict[str, Any]) -> None:
    """X-4, M-2: the index knows no owners' keys, so nobody else is on its network."""
    services = compose["services"]
    assert compose["networks"] == {"vectors": {"internal": True}}
    there = {name for name, one in services.items() if "vectors" in one.get("networks", ())}
    assert there == {"qdrant", "memory"}
    assert services["qdrant"]["networks"] == ["vectors"]
    assert services["memory"]["environment"]["QDRANT_URL"] == "http://qdrant:6333"
    # No service waits for it: without it, recall is degraded and says so.
    assert "qdrant" not in services["memory"]["depends_on"]
    assert "memory-data:/var/lib/vigil/memory" in services["memory"]["volumes"]


def test_compose_settings_are_accepted(compose: dict[str, Any], tmp_path: Path) -> None:
    """P-3: what the containers get is a valid configuration."""
    for name in SERVICES:
        environ = {k: _filled(v) for k, v in compose["services"][name]["environment"].items()}
        settings = config.load(environ, home=tmp_path)
        assert settings.config.nats.url == "nats://nats:4222"
        assert settings.config.autonomy.enabled or name in ("gateway", "memory", "executor")
        assert bool(settings.config.memory.qdrant_url) is (name == "memory")
        if name == "gateway":
            assert settings.config.gateway.host == "0.0.0.0"  # noqa: S104
            assert settings.config.gateway.allow_public


def _filled(value: str) -> str:
    """Fill in what ${NAME:-default} stands for without the variable."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def test_images_are_pinned_and_have_a_target_for_each_service(compose: dict[str, Any]) -> None:
    """P-1: no floating tag; hashes at build time; not root."""
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    froms = re.findall(r"^FROM (\S+) AS (\S+)$", dockerfile, re.M)
    images = {target: image for image, target in froms}
    assert images.keys() == {"base", "worker", "node", "provision", *SERVICES}
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-bookworm", images["base"])
    assert re.fullmatch(r"node:\d+\.\d+\.\d+-bookworm-slim", images["node"])
    assert "--require-hashes" in dockerfile
    # By number, which an orchestrator that refuses root can compare.
    assert re.findall(r"^USER (.+)$", dockerfile, re.M) == ["10001:10001", "root", "10001:10001"]
    assert dockerfile.index("USER 10001") < dockerfile.index("ENTRYPOINT")
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.M):
        for name in source.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in (ROOT / ".dockerignore").read_text()
    assert re.fullmatch(r"nats:2\.15\.\d+-alpine", compose["services"]["nats"]["image"])
    for name, service in compose["services"].items():
        if name in (*WATCHERS, "qdrant"):
            assert re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+(-unprivileged)?", service["image"])
        elif name != "nats":
            target = "provision" if name == "credentials" else name
            assert service["build"]["target"] == target


def test_deployments_name_commands_that_there_are() -> None:
    """P-2: in what people read while they deploy: comments, messages of alerts, units."""
    files = [ROOT / "docker-compose.yml", *(f for f in (ROOT / "deploy").rglob("*") if f.is_file())]
    named = {
        (file.name, word)
        for file in files
        if file.suffix != ".pyc"
        for word in re.findall(r"(?:`|bin/)vigil ([a-z]+)", file.read_text("utf-8"))
    }
    assert {"doctor", "up", "serve", "dead"} <= {word for _, word in named}
    commands = set(get_command(app).commands)  # type: ignore[attr-defined]
    assert {(file, word) for file, word in named if word not in commands} == set()


def test_the_variant_of_three_nodes_changes_nothing_else(
    compose: dict[str, Any], tmp_path: Path
) -> None:
    """P-1: all know all nodes, each node has its file and its data, and looks like the first."""
    variant = parse((ROOT / "deploy" / "compose-cluster.yml").read_text())
    services = variant["services"]
    command = services["credentials"]["command"]
    nodes = [command[at + 1] for at, word in enumerate(command) if word == "--node"]
    assert nodes == ["nats", "nats-2", "nats-3"]
    url = ",".join(f"nats://{node}:4222" for node in nodes)
    for name in ("provision", *SERVICES):
        assert services[name]["environment"] == {"NATS_URL": url, "VIGIL_NATS__REPLICAS": "3"}
    for number, node in enumerate(nodes, start=1):
        assert services[node]["command"] == ["--config", f"/etc/vigil/nats-{number}.conf"]
    for node in nodes[1:]:
        assert services["provision"]["depends_on"][node] == {"condition": "service_healthy"}
        changed = {"command": services[node]["command"]}
        changed["volumes"] = ["nats-conf:/etc/vigil:ro", f"{node}-data:/data"]
        assert services[node] == compose["services"]["nats"] | changed
        assert f"{node}-data" in variant["volumes"]
    outs = [word.replace("/out", str(tmp_path / "out")) for word in command]
    Cli(tmp_path / "home")(*outs)
    written = {path.name for path in (tmp_path / "out" / "nats").iterdir()}
    assert written == {"nats-1.conf", "nats-2.conf", "nats-3.conf"}


def engine_missing() -> str:
    """Return why images can't be built here, or nothing."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    for command in (["docker", "info"], ["docker", "compose", "version"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode:
            return f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1][:120]}"
    return ""


@pytest.mark.docker
def test_compose_up_answers(tmp_path: Path) -> None:
    """P-1: `docker compose up` gives the same as `make up`."""
    if reason := engine_missing():
        pytest.skip(reason)
    docker = ["docker", "compose", "--project-name", "vigil-test"]
    try:
        subprocess.run(
            [*docker, "up", "--build", "--wait", "-d"], cwd=ROOT, timeout=900, check=True
        )
        logs = subprocess.run(
            [*docker, "logs", "--no-log-prefix", "provision"],
            cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
        ).stdout  # fmt: skip
        token = re.search(r"pat_\S+", logs)
        assert token is not None
        cli = Cli(tmp_path, VIGIL_URL="http://127.0.0.1:8420", VIGIL_TOKEN=token[0])
        eventually(lambda: cli("status", code=None).returncode == 0, timeout_s=60)
        assert "hello" in cli("send", "hello").stdout
        assert len(cli.json("status")["services"]) == len(SERVICES)
    finally:
        subprocess.run([*docker, "down", "--volumes"], cwd=ROOT, timeout=120, check=True)
