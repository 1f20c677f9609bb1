from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.routing import BaseRoute

from gateway.app import create_app
from gateway.outward import PORTS
from gateway.registry import GAMES
from gateway.relay import Patience
from gateway.settings import GatewaySettings, table
from gateway.tokens import write_keys
from services.kit.settings import ServiceSettings
from tests.deploy.manifests import KUSTOMIZE, OVERLAYS, Manifest, faults, main, render, renderer
from tests.tls import Authority

pytestmark = pytest.mark.skipif(not renderer(), reason="needs kubectl 1.27 or newer, or kustomize 5, to render with")

NAMES = {game: game.replace("_", "-") for game in GAMES}
# What the operator makes beforehand.
GIVEN = {"jwks"}
INGRESS = {"gloaming/ingress": "true"}
MONITORING = {"gloaming/monitoring": "true"}

each_overlay = pytest.mark.parametrize("overlay", OVERLAYS)


@cache
def _rendered(folder: str) -> list[Manifest]:
    return render(KUSTOMIZE / folder)


def rendered(overlay: str) -> list[Manifest]:
    return copy.deepcopy(_rendered(f"overlays/{overlay}"))


def composed(tmp_path: Path, *components: str) -> list[Manifest]:
    """The base with components, rendered and valid."""
    there = os.path.relpath(KUSTOMIZE, tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": [f"{there}/base"], "components": [f"{there}/components/{name}" for name in components]})
    )
    manifests = render(tmp_path)
    assert [fault for manifest in manifests for fault in faults(manifest)] == []
    return manifests


def of_kind(manifests: list[Manifest], *kinds: str) -> dict[str, Manifest]:
    return {manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] in kinds}


def pods(manifests: list[Manifest]) -> dict[str, Any]:
    """The templates of pods, by the name of whatever makes them."""
    return {name: each["spec"]["template"] for name, each in of_kind(manifests, "Deployment", "StatefulSet").items()}


def container(pod: Any) -> Any:
    (only,) = pod["spec"]["containers"]
    return only


def environment(manifests: list[Manifest], pod: Any) -> dict[str, str]:
    """The variables that a container gets; one whose value is a Secret's is empty."""
    maps = of_kind(manifests, "ConfigMap")
    found: dict[str, str] = {}
    for each in container(pod).get("envFrom", ()):
        found |= maps[each["configMapRef"]["name"]]["data"]
    return found | {each["name"]: each.get("value", "") for each in container(pod).get("env", ())}


def selects(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects what has these labels."""
    assert set(selector) <= {"matchLabels", "matchExpressions"}
    for expression in selector.get("matchExpressions", ()):
        assert expression["operator"] == "In"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def allowed(manifests: list[Manifest], way: str, pod: Any, peer: Mapping[str, str], namespace: Mapping[str, str] | None, port: Any) -> bool:
    """Whether the NetworkPolicies let a pod's traffic pass.

    Args:
        way: `Ingress` or `Egress`.
        peer: the labels of the pod at the other end.
        namespace: the labels of its namespace; None for the pod's own.
        port: by name and by number.
    """
    policies = [
        policy["spec"]
        for policy in of_kind(manifests, "NetworkPolicy").values()
        if way in policy["spec"]["policyTypes"] and selects(policy["spec"]["podSelector"], pod["metadata"]["labels"])
    ]

    def fits(one: Any) -> bool:
        if "namespaceSelector" not in one:
            return "podSelector" in one and namespace is None and selects(one["podSelector"], peer)
        return selects(one["namespaceSelector"], namespace or {}) and selects(one.get("podSelector", {}), peer)

    # A pod that no policy selects is open to all; so is a rule, for all peers or ports, that names none.
    return not policies or any(
        ("ports" not in rule or any(each["port"] in port for each in rule["ports"])) and (end not in rule or any(map(fits, rule[end])))
        for end, rules in (("from", "ingress"), ("to", "egress"))
        for policy in policies
        for rule in policy.get(rules, ())
        if rules == way.lower()
    )


def reaches(manifests: list[Manifest], source: str | Mapping[str, str], target: str, port: str) -> bool:
    """Whether a port of pods is reached by others: of the same namespace, by name, or of another, by the labels of that."""
    to = pods(manifests)[target]
    number = {each["name"]: each["containerPort"] for each in container(to)["ports"]}[port]
    if not isinstance(source, str):
        return allowed(manifests, "Ingress", to, {}, source, (port, number))
    sender = pods(manifests)[source]
    return allowed(manifests, "Egress", sender, to["metadata"]["labels"], None, (port, number)) and allowed(
        manifests, "Ingress", to, sender["metadata"]["labels"], None, (port, number)
    )


@each_overlay
def test_overlays_render_and_are_valid(overlay: str) -> None:
    assert [fault for manifest in rendered(overlay) for fault in faults(manifest)] == []


def test_a_field_that_nobody_knows_is_a_fault() -> None:
    for manifest in {manifest["kind"]: manifest for manifest in rendered("prod")}.values():
        manifest["spec" if "spec" in manifest else "metadata"]["replica"] = 1
        assert list(faults(manifest)), manifest["kind"]


def test_make_check_fails_on_a_fault_and_says_which(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: Manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "wrong"}, "spec": {"ports": [{"port": "many"}]}}
    monkeypatch.setattr("tests.deploy.manifests.render", lambda _: [wrong])
    assert main() == 1
    assert "overlay prod: Service/wrong, Kubernetes 1.30: spec.ports.0.port:" in capsys.readouterr().err


@each_overlay
def test_every_game_has_its_folder_and_its_processes_and_the_gateway_finds_them(overlay: str, jwks: Path) -> None:
    assert {folder.name for folder in (KUSTOMIZE / "games").iterdir() if folder.is_dir()} == set(NAMES.values())
    manifests = rendered(overlay)
    commands = {name: container(pod)["args"] for name, pod in pods(manifests).items() if name != "redis"}
    assert commands == {"gateway": ["gateway"]} | {NAMES[game]: [f"services.{game}"] for game in GAMES}
    said = environment(manifests, pods(manifests)["gateway"])["GLOAMING_SERVICES"]
    targets = GatewaySettings(services=said, jwks_file=jwks, signing_key_file=jwks).services  # type: ignore[arg-type]
    assert targets == {game: f"dns:///{NAMES[game]}:50051" for game in GAMES}
    services = of_kind(manifests, "Service")
    assert all(services[name]["spec"]["clusterIP"] == "None" for name in NAMES.values())


def test_a_game_is_added_by_a_few_lines() -> None:
    for name in NAMES.values():
        assert len((KUSTOMIZE / "games" / name / "kustomization.yaml").read_text().splitlines()) <= 8


@each_overlay
def test_processes_know_and_accept_every_variable_that_they_are_given(overlay: str, jwks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = set(re.findall(r"^\| `(\w+)` \|", table(), re.MULTILINE))
    for name in list(os.environ):
        if name.startswith("GLOAMING_") or name == "REDIS_URL":
            monkeypatch.delenv(name)
    manifests = rendered(overlay)
    for name, pod in pods(manifests).items():
        if name == "redis":
            continue
        given = environment(manifests, pod)
        kind = GatewaySettings if name == "gateway" else ServiceSettings
        assert set(given) <= known
        assert set(given) <= {"REDIS_URL", "REDIS_URL_FILE", *(f"GLOAMING_{field.upper()}" for field in kind.model_fields)}
        # Files are the operator's.
        files = {variable: str(_file(variable, jwks)) for variable, path in given.items() if variable.endswith("_FILE") and path}
        with monkeypatch.context() as patch:
            for variable, value in (given | files).items():
                patch.setenv(variable, value)
            settings = kind()  # type: ignore[call-arg]
        assert settings.redis_url == ("rediss://user:word@redis.example/0" if overlay == "prod" else "redis://redis:6379/0")
        ports = {each["name"]: each["containerPort"] for each in container(pod)["ports"]}
        listens = {"http": settings.listen} if isinstance(settings, GatewaySettings) else {"grpc": settings.listen}
        if isinstance(settings, ServiceSettings):
            listens["metrics"] = settings.metrics_listen
            if overlay == "prod":
                listens["public"] = settings.public_listen
        assert {key: f"0.0.0.0:{port}" for key, port in ports.items()} == listens
        mounted = {each["mountPath"] for each in container(pod)["volumeMounts"]}
        assert {str(Path(given[variable]).parent) for variable in files} <= mounted


def _file(variable: str, jwks: Path) -> Path:
    """A file that a variable may name."""
    found = re.fullmatch(r"GLOAMING_(?:PUBLIC_)?TLS_(CERT|KEY|CA)_FILE", variable)
    names = {"CERT": "own.crt", "KEY": "own.key", "CA": "ca.crt"}
    return jwks.with_name(names[found[1]] if found else "url" if variable == "REDIS_URL_FILE" else jwks.name)


@each_overlay
def test_services_live_whatever_redis_does_and_are_ready_while_the_game_is_served(overlay: str) -> None:
    manifests = rendered(overlay)
    for game, name in NAMES.items():
        probes = container(pods(manifests)[name])
        # Kubelets speak no TLS.
        given = environment(manifests, pods(manifests)[name])
        port = int(given["GLOAMING_HEALTH_LISTEN" if "GLOAMING_TLS_CERT_FILE" in given else "GLOAMING_LISTEN"].rpartition(":")[2])
        # Without a name it is the process that is asked after.
        assert probes["startupProbe"]["grpc"] == {"port": port}
        assert probes["livenessProbe"]["grpc"] == {"port": port}
        assert probes["readinessProbe"]["grpc"] == {"port": port, "service": GAMES[game].service}
    gateway = container(pods(manifests)["gateway"])
    asked = {probe: gateway[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe: get["path"] for probe, get in asked.items()} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }


@each_overlay
def test_nothing_runs_as_root_writes_to_its_image_or_may_more_than_it_needs(overlay: str) -> None:
    for name, pod in pods(rendered(overlay)).items():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] > 0, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert "initContainers" not in spec, name
        only = container(pod)
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        assert set(only["resources"]["requests"]) == {"cpu", "memory"}, name
        assert set(only["resources"]["limits"]) == {"memory"}, name
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(only), name
    (namespace,) = of_kind(rendered(overlay), "Namespace").values()
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@each_overlay
def test_a_pod_is_waited_for_longer_than_it_drains(overlay: str) -> None:
    manifests = rendered(overlay)
    for name in ("gateway", *NAMES.values()):
        pod = pods(manifests)[name]
        before = container(pod)["lifecycle"]["preStop"]["sleep"]["seconds"]
        drain = float(environment(manifests, pod)["GLOAMING_DRAIN_SECONDS"])
        assert pod["spec"]["terminationGracePeriodSeconds"] >= before + drain + 5
        # Gateways have looked its name up again before it refuses calls, and found the one that took its place.
        assert before > Patience().resolve
    for name in NAMES.values():
        assert of_kind(manifests, "Deployment")[name]["spec"]["minReadySeconds"] > Patience().resolve


@each_overlay
def test_every_deployment_is_scaled_spread_and_not_taken_away_all_at_once(overlay: str) -> None:
    manifests = rendered(overlay)
    deployments = of_kind(manifests, "Deployment")
    scalers = of_kind(manifests, "HorizontalPodAutoscaler")
    budgets = of_kind(manifests, "PodDisruptionBudget")
    assert set(deployments) == set(scalers) == set(budgets) == {"gateway", *NAMES.values()}
    for name, deployment in deployments.items():
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert "replicas" not in deployment["spec"], "how many there are is the autoscaler's"
        assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        assert scalers[name]["spec"]["scaleTargetRef"]["name"] == name
        assert scalers[name]["spec"]["minReplicas"] >= (1 if overlay == "dev" else 2)
        selectors = [
            deployment["spec"]["selector"],
            budgets[name]["spec"]["selector"],
            *(each["labelSelector"] for each in deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]),
        ]
        assert len(selectors) == 4
        # Each selects these pods and no others.
        for selector in selectors:
            assert [other for other, pod in pods(manifests).items() if selects(selector, pod["metadata"]["labels"])] == [name]
        assert labels == deployment["metadata"]["labels"]


@each_overlay
def test_services_select_their_own_pods_and_name_ports_that_these_have(overlay: str) -> None:
    manifests = rendered(overlay)
    services = of_kind(manifests, "Service")
    assert set(services) == set(pods(manifests))
    for name, service in services.items():
        chosen = {
            other: pod
            for other, pod in pods(manifests).items()
            if selects({"matchLabels": service["spec"]["selector"]}, pod["metadata"]["labels"])
        }
        assert list(chosen) == [name]
        assert {port["targetPort"] for port in service["spec"]["ports"]} == {port["name"] for port in container(chosen[name])["ports"]}


@each_overlay
def test_only_the_gateway_is_reached_from_outside_and_services_only_from_it(overlay: str) -> None:
    manifests = rendered(overlay)
    services = list(NAMES.values())
    assert reaches(manifests, INGRESS, "gateway", "http")
    for service in services:
        assert reaches(manifests, "gateway", service, "grpc")
        assert not reaches(manifests, INGRESS, service, "grpc")
        assert not reaches(manifests, INGRESS, service, "metrics")
        assert not reaches(manifests, "gateway", service, "metrics")
        assert not reaches(manifests, service, "gateway", "http")
        assert not any(reaches(manifests, other, service, "grpc") for other in services)
        # Nor is any other pod of the namespace let in, whatever it may send; and what probes ask is for nobody.
        for port in (("grpc", 50051), ("health", 50052), ("public", 50053)):
            assert not allowed(manifests, "Ingress", pods(manifests)[service], {"app.kubernetes.io/name": "other"}, None, port)
        for labels in (INGRESS, MONITORING):
            assert not allowed(manifests, "Ingress", pods(manifests)[service], {}, labels, ("health", 50052))
    for stranger in ({}, {"kubernetes.io/metadata.name": "default"}):
        assert not reaches(manifests, stranger, "gateway", "http")
        assert not any(reaches(manifests, stranger, service, "grpc") for service in services)


def test_only_the_gateway_and_services_reach_redis() -> None:
    manifests = rendered("dev")
    assert all(reaches(manifests, name, "redis", "redis") for name in ("gateway", *NAMES.values()))
    assert not any(reaches(manifests, labels, "redis", "redis") for labels in ({}, INGRESS, MONITORING))
    # Elsewhere Redis is out of the cluster: who may go there, and to nothing else.
    outside = of_kind(rendered("prod"), "NetworkPolicy")["to-redis"]["spec"]
    assert [name for name, pod in pods(rendered("prod")).items() if selects(outside["podSelector"], pod["metadata"]["labels"])] == sorted(
        ["gateway", *NAMES.values()]
    )
    assert all("ipBlock" in peer and rule["ports"] for rule in outside["egress"] for peer in rule["to"])


def test_prometheus_reaches_metrics_and_no_game() -> None:
    manifests = rendered("prod")
    assert reaches(manifests, MONITORING, "gateway", "http")
    for name in NAMES.values():
        assert reaches(manifests, MONITORING, name, "metrics")
        assert not reaches(manifests, MONITORING, name, "grpc")
    monitors = of_kind(manifests, "ServiceMonitor").values()
    scraped = {
        name: endpoint["port"]
        for monitor in monitors
        for endpoint in monitor["spec"]["endpoints"]
        for name, service in of_kind(manifests, "Service").items()
        if selects(monitor["spec"]["selector"], service["metadata"]["labels"])
    }
    assert scraped == {"gateway": "http"} | dict.fromkeys(NAMES.values(), "metrics")


@each_overlay
def test_secrets_are_named_and_never_written_down(overlay: str) -> None:
    manifests = rendered(overlay)
    assert of_kind(manifests, "Secret") == {}
    text = yaml.safe_dump_all(manifests)
    assert "PRIVATE KEY" not in text
    assert not re.search(r"rediss?://[^/\s]*:[^/\s]*@", text)
    holders = {
        name
        for name, pod in pods(manifests).items()
        for volume in pod["spec"].get("volumes", ())
        if volume.get("secret", {}).get("secretName") == "signing-key"
    }
    assert holders == {"gateway"}
    guide = (KUSTOMIZE.parent / "README.md").read_text()
    referred = {*re.findall(r"secretName: ([\w.-]+)", text), *re.findall(r"secretKeyRef:\s+key: [\w-]+\s+name: ([\w-]+)", text)}
    mutual = {f"mtls.{name}" for name in pods(manifests)}
    assert referred == ({"signing-key", "redis", "grpc-tls"} | mutual if overlay == "prod" else {"signing-key"})
    assert "signing-key --from-file" in guide
    if overlay == "prod":
        for made in ("generic redis ", "tls gloaming-tls ", "tls grpc-tls ", "generic mtls.$name "):
            assert f"create secret {made}" in guide
        for name, pod in pods(manifests).items():
            secrets = {each["name"]: each["secret"] for each in pod["spec"]["volumes"] if "secret" in each}
            # A user each, and a certificate each.
            assert secrets["redis"]["items"] == [{"key": name, "path": "url"}]
            assert secrets["mtls"]["secretName"] == f"mtls.{name}"
            assert all(secret["defaultMode"] == 0o440 for secret in secrets.values())
            assert "env" not in container(pod), "what is secret is in files"


@each_overlay
def test_a_changed_setting_replaces_the_processes(overlay: str) -> None:
    manifests = rendered(overlay)
    maps = of_kind(manifests, "ConfigMap")
    for pod in pods(manifests).values():
        named = [each["configMapRef"]["name"] for each in container(pod).get("envFrom", ())]
        assert set(named) <= set(maps)
        # The name ends in a hash of what is in it.
        assert all(re.fullmatch(r"[a-z]+-[a-z0-9]{10}", name) for name in named)
        assert {each["configMap"]["name"] for each in pod["spec"].get("volumes", ()) if "configMap" in each} <= GIVEN


@each_overlay
def test_images_are_of_a_version(overlay: str) -> None:
    for pod in pods(rendered(overlay)).values():
        image, _, tag = container(pod)["image"].rpartition(":")
        assert image
        assert tag not in ("", "latest")


def test_what_people_use_is_routed_and_what_operators_use_is_not(jwks: Path) -> None:
    rules = of_kind(rendered("prod"), "HTTPRoute")["gloaming"]["spec"]["rules"]
    matches = [match["path"] for rule in rules for match in rule["matches"]]

    def routed(path: str) -> bool:
        return any(path == each["value"] or (each["type"] == "PathPrefix" and path.startswith(f"{each['value']}/")) for each in matches)

    paths = {getattr(route, "path", "") for route in routes(jwks)}
    assert "/v1/live" in paths
    assert {path for path in paths if not routed(path)} == {"/healthz", "/readyz", "/drainz", "/metrics"}


def test_limits_by_address_are_by_that_of_the_client_behind_the_proxies() -> None:
    for overlay in OVERLAYS:
        manifests = rendered(overlay)
        behind = "GLOAMING_TRUSTED_PROXIES" in environment(manifests, pods(manifests)["gateway"])
        assert behind == bool(of_kind(manifests, "Gateway"))


def test_sockets_and_streams_have_no_time_limit_and_come_by_https() -> None:
    manifests = rendered("prod")
    routes = of_kind(manifests, "HTTPRoute")
    (live,) = [rule for rule in routes["gloaming"]["spec"]["rules"] if any(match["path"]["value"] == "/v1" for match in rule["matches"])]
    assert live["timeouts"] == {"request": "0s", "backendRequest": "0s"}
    (gateway,) = of_kind(manifests, "Gateway").values()
    listeners = {each["name"]: each["protocol"] for each in gateway["spec"]["listeners"]}
    assert listeners == {"http": "HTTP", "https": "HTTPS", "grpc": "HTTPS"}
    assert [each["sectionName"] for each in routes["gloaming"]["spec"]["parentRefs"]] == ["https"]
    assert [rule["filters"][0]["requestRedirect"]["scheme"] for rule in routes["redirect"]["spec"]["rules"]] == ["https"]
    assert [each["sectionName"] for each in routes["redirect"]["spec"]["parentRefs"]] == ["http"]
    backends = {backend["name"]: backend["port"] for rule in routes["gloaming"]["spec"]["rules"] for backend in rule["backendRefs"]}
    service = of_kind(manifests, "Service")["gateway"]
    assert backends == {"gateway": service["spec"]["ports"][0]["port"]}


def test_players_from_outside_reach_every_game_by_grpc_through_the_proxies_and_no_other_way() -> None:
    manifests = rendered("prod")
    (route,) = of_kind(manifests, "GRPCRoute").values()
    led = {match["method"]["service"]: rule["backendRefs"] for rule in route["spec"]["rules"] for match in rule["matches"]}
    assert led == {GAMES[game].service: [{"name": name, "port": 50053}] for game, name in NAMES.items()}
    (policy,) = of_kind(manifests, "BackendTLSPolicy").values()
    assert {(each["name"], each["sectionName"]) for each in policy["spec"]["targetRefs"]} == {(name, "public") for name in NAMES.values()}
    (gateway,) = of_kind(manifests, "Gateway").values()
    (listener,) = [each for each in gateway["spec"]["listeners"] if each["name"] == "grpc"]
    assert route["spec"]["parentRefs"] == [{"name": gateway["metadata"]["name"], "sectionName": "grpc"}]
    # One host, another than that of REST: routes of both kinds may not share one.
    assert route["spec"]["hostnames"] == [listener["hostname"]] == [policy["spec"]["validation"]["hostname"]]
    assert listener["hostname"] not in of_kind(manifests, "HTTPRoute")["gloaming"]["spec"]["hostnames"]
    for name in NAMES.values():
        assert reaches(manifests, INGRESS, name, "public")
        assert not any(reaches(manifests, other, name, "public") for other in ("gateway", *NAMES.values()))
        assert not any(reaches(manifests, labels, name, "public") for labels in ({}, MONITORING))


def test_games_of_real_time_are_scaled_by_their_latency_too_where_that_is_chosen(tmp_path: Path) -> None:
    manifests = composed(tmp_path, "redis", "monitoring", "hpa-latency")
    scalers = of_kind(manifests, "HorizontalPodAutoscaler")
    by_latency = {
        name: metric["pods"]["metric"]["name"]
        for name, scaler in scalers.items()
        for metric in scaler["spec"]["metrics"]
        if metric["type"] == "Pods"
    }
    assert set(by_latency) == {"gateway", *(NAMES[game.id] for game in GAMES.values() if game.real_time)}
    (rule,) = yaml.safe_load((KUSTOMIZE / "components" / "hpa-latency" / "prometheus-adapter.yaml").read_text())["rules"]["custom"]
    assert set(by_latency.values()) == {rule["name"]["as"]}
    recorded = {
        each["record"]
        for group in of_kind(manifests, "PrometheusRule")["gloaming"]["spec"]["groups"]
        for each in group["rules"]
        if "record" in each
    }
    assert rule["seriesQuery"].partition("{")[0] in recorded


def test_webhooks_are_sent_by_gateways_alone_to_public_addresses_by_the_ports_that_they_call(tmp_path: Path) -> None:
    manifests = composed(tmp_path, "redis", "webhooks")
    policy = of_kind(manifests, "NetworkPolicy")["webhooks"]["spec"]
    assert [name for name, pod in pods(manifests).items() if selects(policy["podSelector"], pod["metadata"]["labels"])] == ["gateway"]
    (rule,) = policy["egress"]
    assert {each["port"] for each in rule["ports"]} == PORTS
    blocks = [each["ipBlock"] for each in rule["to"]]

    def open_to(address: str) -> bool:
        return any(
            ip_address(address) in ip_network(block["cidr"])
            and not any(ip_address(address) in ip_network(closed) for closed in block.get("except", ()))
            for block in blocks
        )

    assert open_to("8.8.8.8")
    assert open_to("2606:4700::1111")
    for private in ("10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.169.254", "127.0.0.1", "100.64.0.1", "fd00::1", "fe80::1", "::1"):
        assert not open_to(private), private
    for name, pod in pods(manifests).items():
        assert name == "redis" or environment(manifests, pod)["GLOAMING_WEBHOOKS"] == "true"


def test_the_authority_of_redis_is_given_to_every_process(tmp_path: Path) -> None:
    manifests = composed(tmp_path, "external-redis", "redis-ca")
    for name in ("gateway", *NAMES.values()):
        pod = pods(manifests)[name]
        assert {"name": "redis-ca", "configMap": {"name": "redis-ca"}} in pod["spec"]["volumes"]
        assert {"name": "redis-ca", "mountPath": "/redis-ca", "readOnly": True} in container(pod)["volumeMounts"]


@pytest.fixture(scope="module")
def jwks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Public keys; beside them the private one, and whatever else processes read from files."""
    directory = tmp_path_factory.mktemp("keys")
    write_keys(directory)
    Authority(directory).issue("own")
    (directory / "url").write_text("rediss://user:word@redis.example/0\n")
    return directory / "jwks.json"


def routes(jwks: Path) -> Iterator[BaseRoute]:
    """What the gateway serves."""
    targets = ",".join(f"{game}=127.0.0.1:1" for game in GAMES)
    settings = GatewaySettings(services=targets, jwks_file=jwks, signing_key_file=jwks.with_name("signing-key.pem"))  # type: ignore[arg-type]
    yield from create_app(settings).routes
