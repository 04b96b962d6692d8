"""The chart of deploy/helm: valid by Kubernetes' own schemas, and what is said of it holds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest

from services.gateway.http.decide import allowed_hosts, is_host_allowed
from tests.support.compose import parse
from tests.support.helm import rendered
from vigil import __version__
from vigil.topology import SERVICES

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy" / "helm" / "vigil"
KUBERNETES: Final = "1.34"
VALUES: Final[dict[str, dict[str, Any]]] = {
    "as it is": {},
    "otherwise": {
        "memory": {"replicas": 3, "storageClass": "fast"},
        "services": {"cortex": {"replicas": 5}},
        "config": "# a \"quoted\" {{ line }}\n[person]\ntimezone = 'Europe/Vienna'\n",
    },
}


@cache
def made(values: str = "as it is") -> tuple[dict[str, Any], ...]:
    return tuple(rendered(CHART, **VALUES[values]))


def of_kind(*kinds: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in made() if one["kind"] in kinds}


def pods() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield what each workload's pods are: its name, their labels, and what they run."""
    for name, one in of_kind("Deployment", "StatefulSet", "Job").items():
        template = one["spec"]["template"]
        yield name, template["metadata"]["labels"], template["spec"]


@pytest.mark.parametrize("values", VALUES)
def test_kubernetes_takes_all_of_it(values: str) -> None:
    """By the published schemas, in which no field is unknown."""
    for one in made(values):
        kubernetes_validate.validate(one, KUBERNETES, strict=True)
    names = [(one["kind"], one["metadata"]["name"]) for one in made(values)]
    assert len(names) == len(set(names))


def test_values_are_heeded() -> None:
    found = {(one["kind"], one["metadata"]["name"]): one for one in made("otherwise")}
    assert found["StatefulSet", "vigil-memory"]["spec"]["replicas"] == 3
    claim = found["StatefulSet", "vigil-memory"]["spec"]["volumeClaimTemplates"][0]
    assert claim["spec"]["storageClassName"] == "fast"
    assert found["Deployment", "vigil-cortex"]["spec"]["replicas"] == 5
    config = found["ConfigMap", "vigil-config"]["data"]["vigil.toml"]
    assert config == VALUES["otherwise"]["config"]
    before = {(one["kind"], one["metadata"]["name"]): one for one in made()}
    for name in SERVICES:
        place = "StatefulSet" if name == "memory" else "Deployment", f"vigil-{name}"
        old, new = (one[place]["spec"]["template"]["metadata"] for one in (before, found))
        assert old["annotations"] != new["annotations"]  # so that pods with it take their place


def test_there_are_three_brokers_and_each_service_is_there_twice() -> None:
    workloads = of_kind("Deployment", "StatefulSet")
    replicas = {name: one["spec"]["replicas"] for name, one in workloads.items()}
    services = {f"vigil-{name}": 2 for name in SERVICES}
    assert replicas == {"vigil-nats": 3, "vigil-qdrant": 1, **services}
    budgets = set(of_kind("PodDisruptionBudget"))
    assert budgets >= set(services) - {"vigil-memory"} | {"vigil-nats"}


def test_no_container_is_root_or_writes_where_it_is() -> None:
    """Nor keeps a capability, or gets a token of the cluster; each tells how it is."""
    for name, _, pod in pods():
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["runAsUser"] > 0, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert pod["automountServiceAccountToken"] is False, name
        for one in pod["containers"]:
            assert one["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert {"requests", "limits"} <= set(one["resources"]), name
            if name != "vigil-provision":
                assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(one), name


def test_the_gateway_answers_its_probes() -> None:
    """It refuses a Host that it isn't known by, as is the address of a pod."""
    known = allowed_hosts((), bound="10.1.2.3")
    (container,) = next(pod for name, _, pod in pods() if name == "vigil-gateway")["containers"]
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        (host,) = (one["value"] for one in container[kind]["httpGet"]["httpHeaders"])
        assert is_host_allowed(host, known)


def test_each_service_has_its_own_seed_and_no_other() -> None:
    for name, _, pod in pods():
        secrets = {one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one}
        service = name.removeprefix("vigil-")
        expected = {
            "nats": {"vigil-broker"}, "provision": {"vigil-operator"}, "qdrant": set(),
        }.get(service, {f"vigil-seed-{service}"})  # fmt: skip
        assert secrets == expected, name


def may_reach(source: dict[str, str], target: dict[str, str], port: int) -> bool:
    """Whether the policies let a pod of these labels reach a port of another."""

    def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
        listed = selector.get("matchExpressions", ())
        same = all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items())
        return same and all(labels.get(one["key"]) in one["values"] for one in listed)

    def lets(direction: str, own: dict[str, str], peer: dict[str, str], side: str) -> bool:
        rules = [
            rule
            for policy in of_kind("NetworkPolicy").values()
            if selects(policy["spec"]["podSelector"], own)
            for rule in policy["spec"].get(direction, ())
        ]
        return any(
            (not rule.get("ports") or port in [one["port"] for one in rule["ports"]])
            and any(
                "podSelector" in one and selects(one["podSelector"], peer)
                for one in rule.get(side, ())
            )
            for rule in rules
        )

    return lets("egress", source, target, "to") and lets("ingress", target, source, "from")


def test_who_reaches_whom_is_what_has_to() -> None:
    """All services reach the broker, the brokers one another, memory the vectors; nobody else
    anybody. Only those that have to reach the web, and of it nothing that is private."""
    labels = {name.removeprefix("vigil-"): found for name, found, _ in pods()}
    ports = {"nats": (4222, 6222), "qdrant": (6333,), "gateway": (8420,)}
    found = {
        (one, other, port)
        for one in labels
        for other in labels
        for port in ports.get(other, (9464,))
        if may_reach(labels[one], labels[other], port)
    }
    clients = {(name, "nats", 4222) for name in (*SERVICES, "provision")}
    assert found == clients | {("nats", "nats", 6222), ("memory", "qdrant", 6333)}
    web = {name for name, one in labels.items() if one.get("vigil/web") == "yes"}
    assert web == {"gateway", "cortex", "executor", "delivery"}
    (rule,) = of_kind("NetworkPolicy")["vigil-to-web"]["spec"]["egress"]
    assert {"10.0.0.0/8", "169.254.0.0/16"} <= set(rule["to"][0]["ipBlock"]["except"])


def test_it_runs_what_compose_runs() -> None:
    """The same images of the broker and of the vectors, targets and variables."""
    compose = parse((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    for name, _, pod in pods():
        service = name.removeprefix("vigil-")
        (container,) = pod["containers"]
        theirs = compose[service]
        if "build" in theirs:
            target = theirs["build"]["target"]
            assert container["image"] == f"vigil/{target}:{__version__}"
        else:
            assert container["image"] == theirs["image"]


def test_services_have_the_same_files_as_with_compose() -> None:
    """Who agents are is written by the gateway and the cortex, and read by the scheduler: apart,
    a service without that folder knows no agent that a person made."""
    compose = parse((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    theirs = {
        name: {
            mount.removesuffix(":ro"): mount.endswith(":ro") for mount in compose[name]["volumes"]
        }
        for name in SERVICES
    }
    for name, _, pod in pods():
        if (service := name.removeprefix("vigil-")) in SERVICES:
            (container,) = pod["containers"]
            for mount in container["volumeMounts"]:
                folder = mount["mountPath"].removeprefix("/var/lib/vigil/")
                if folder in ("agents", "skills", "workspaces", "mcp"):
                    is_read_only = mount.get("readOnly", False)
                    assert theirs[service].pop(f"{folder}:/var/lib/vigil/{folder}") is is_read_only
    left = {mount.partition(":")[0] for mounts in theirs.values() for mount in mounts}
    assert left == {f"seed-{name}" for name in SERVICES} | {"memory-data"}
