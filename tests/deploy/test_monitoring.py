from __future__ import annotations

import json
import re
import shutil
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from deploy.local import Local
from gateway.registry import GAMES
from tests.deploy.manifests import KUSTOMIZE, MONITORING, promtool, rules

DASHBOARDS = sorted((MONITORING / "dashboards").glob("*.json"))
RULES = [rule for group in rules()["groups"] for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDS = {rule["record"]: rule for rule in RULES if "record" in rule}

# What others expose, by the end of the title of the dashboard row that shows it.
EXPORTERS = {
    "redis_exporter": {
        "redis_aof_last_write_status",
        "redis_commands_processed_total",
        "redis_connected_clients",
        "redis_connected_slaves",
        "redis_evicted_keys_total",
        "redis_memory_max_bytes",
        "redis_memory_used_bytes",
        "redis_up",
    },
    "kube-state-metrics": {
        "kube_deployment_status_replicas_available",
        "kube_horizontalpodautoscaler_spec_max_replicas",
        "kube_horizontalpodautoscaler_status_desired_replicas",
    },
}
FOREIGN = set().union(*EXPORTERS.values())
# Prometheus' own.
SCRAPING = {"up"}
# What Prometheus adds to every series of a target.
OF_TARGETS = {"namespace", "job", "pod", "instance", "app_kubernetes_io_part_of"}

_WORDS = {"and", "bool", "offset", "or", "unless"}


def names(expression: str) -> set[str]:
    """The metrics that an expression of PromQL reads."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]', "", expression)
    bare = re.sub(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", "", bare)
    return set(re.findall(r"(?<![\w:.$])[a-zA-Z_:][\w:]*+(?!\s*\()", bare)) - _WORDS


def selectors(expression: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each metric with what is asked of its labels: by label, the operator and the value."""
    for name, matchers in re.findall(r"([\w:]+)\{([^}]*)\}", expression):
        yield name, {label: f"{operator}{value}" for label, operator, value in re.findall(r'(\w+)\s*([=!~]+)\s*"([^"]*)"', matchers)}


def panels(dashboard: Path) -> list[Any]:
    read: list[Any] = json.loads(dashboard.read_text())["panels"]
    return read


def expressions() -> Iterator[tuple[str, str]]:
    """Everything that is asked of Prometheus, and where."""
    for rule in RULES:
        yield rule.get("alert") or rule["record"], rule["expr"]
    for dashboard in DASHBOARDS:
        for panel in panels(dashboard):
            for target in panel.get("targets", ()):
                yield f"{dashboard.name}, {panel['title']}", target["expr"]


def scrape(url: str) -> Iterator[Metric]:
    with urllib.request.urlopen(url, timeout=5) as response:
        yield from text_string_to_metric_families(response.read().decode())


def ask(url: str, token: str = "", body: Mapping[str, Any] | None = None) -> Any:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=5) as response:
        return json.load(response)


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> dict[str, list[Mapping[str, str]]]:
    """The series of a gateway and of every game's service, which have served a match each: their labels, by the name of the metric."""
    found: dict[str, list[Mapping[str, str]]] = {}
    with Local(tmp_path_factory.mktemp("local"), env={"REDIS_URL": redis_url}) as local:
        token = ask(f"{local.url}/v1/players", body={"name": "Ann"})["accessToken"]
        for game in GAMES.values():
            seats = [{"player": "me"}, *({"bot": "STANDARD"} for _ in range(1, game.min_seats))]
            match = f"{local.url}/v1/matches/{ask(f'{local.url}/v1/matches', token, {'game': game.id, 'seats': seats})['id']}"
            # Where it is one's turn at once.
            for move in ask(f"{match}/moves", token)["moves"][:1]:
                ask(f"{match}/moves", token, {"move": move})
            ask(f"{match}:resign", token, {})
        pages = [f"{url}/metrics" for url in local.urls] + [
            f"http://{address}/metrics" for all_ in local.metrics.values() for address in all_
        ]
        for family in (family for page in pages for family in scrape(page)):
            endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}
            # A metric with labels has no series before something has happened.
            for ending in endings.get(family.type, ("",)):
                found.setdefault(f"{family.name}{ending}", [])
            for sample in family.samples:
                found.setdefault(sample.name, []).append(sample.labels)
    return found


def test_every_metric_that_is_asked_for_is_exposed(exposed: Mapping[str, object]) -> None:
    known = set(exposed) | FOREIGN | SCRAPING | set(RECORDS)
    assert {where: unknown for where, expression in expressions() if (unknown := names(expression) - known)} == {}


def test_every_label_that_is_asked_for_is_there(exposed: Mapping[str, list[Mapping[str, str]]]) -> None:
    wrong = []
    for where, expression in expressions():
        for name, asked in selectors(expression):
            series = exposed.get(name)
            if series:
                labels = {label for each in series for label in each}
                wrong += [f"{where}: {name} has no {label}" for label in set(asked) - labels - OF_TARGETS]
                # Values that are there from the beginning.
                for label in set(asked) & {"stage", "method"}:
                    if asked[label].startswith("=") and not asked[label].startswith("=~"):
                        assert asked[label][1:] in {each.get(label) for each in series}, where
    assert wrong == []


def test_a_misspelt_metric_is_noticed() -> None:
    expression = 'histogram_quantile(0.9, sum by (le, job) (rate(a_bucket{b="c d"}[5m] offset 1h))) >= 0 or on (x) 0 * e:f:g unless bool_h'
    assert names(expression) == {"a_bucket", "e:f:g", "bool_h"}
    assert list(selectors('a{b="c", d=~"e|f"} / g{h!="i"}')) == [("a", {"b": "=c", "d": "=~e|f"}), ("g", {"h": "!=i"})]


def test_whatever_is_recorded_is_asked_for() -> None:
    asked = set().union(*(names(expression) for _, expression in expressions()))
    adapter = (KUSTOMIZE / "components" / "hpa-latency" / "prometheus-adapter.yaml").read_text()
    assert {record for record in RECORDS if record not in asked and record not in adapter} == set()


def test_dashboards_show_others_metrics_in_rows_of_their_own() -> None:
    for dashboard in DASHBOARDS:
        allowed: set[str] = set()
        for panel in panels(dashboard):
            if panel["type"] == "row":
                allowed = next((known for exporter, known in EXPORTERS.items() if panel["title"].endswith(f"needs {exporter}")), set())
            for target in panel.get("targets", ()):
                foreign = names(target["expr"]) & FOREIGN
                assert foreign <= allowed, panel["title"]
                assert bool(foreign) == bool(allowed), panel["title"]


def test_dashboards_are_whole() -> None:
    uids = [json.loads(dashboard.read_text())["uid"] for dashboard in DASHBOARDS]
    assert len(uids) == len(set(uids)) == 3
    for dashboard in DASHBOARDS:
        read = json.loads(dashboard.read_text())
        variables = {each["name"] for each in read["templating"]["list"]}
        ids = [panel["id"] for panel in read["panels"]]
        assert len(ids) == len(set(ids))
        taken: set[tuple[int, int]] = set()
        for panel in read["panels"]:
            place = panel["gridPos"]
            squares = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            assert not squares & taken, panel["title"]
            assert max(x for x, _ in squares) < 24, panel["title"]
            taken |= squares
            if panel["type"] == "row":
                continue
            assert panel["title"], dashboard.name
            assert panel["description"], panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
            assert panel["datasource"] == {"type": "prometheus", "uid": "$datasource"}
            for target in panel["targets"]:
                used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
                assert used <= variables, panel["title"]
                # What is ours is shown for the namespace that is chosen.
                assert "namespace" in used or names(target["expr"]) <= EXPORTERS["redis_exporter"], panel["title"]


def test_every_dashboard_is_deployed() -> None:
    (generated,) = yaml.safe_load((MONITORING / "kustomization.yaml").read_text())["configMapGenerator"]
    assert sorted(generated["files"]) == [f"dashboards/{dashboard.name}" for dashboard in DASHBOARDS]
    assert generated["options"]["labels"]["grafana_dashboard"] == "1"


def test_every_alert_has_a_severity_and_a_section_that_says_what_to_do() -> None:
    guide = (KUSTOMIZE.parent / "README.md").read_text()
    sections = set(re.findall(r"^### (Gloaming\w+)$", guide, re.MULTILINE))
    assert sections == set(ALERTS)
    for name, alert in ALERTS.items():
        assert alert["labels"]["severity"] in ("critical", "warning")
        assert alert["annotations"]["runbook"] == f"deploy/README.md#{name.lower()}"
        assert alert["annotations"]["summary"]


def test_alerts_know_how_much_memory_a_pod_may_hold() -> None:
    assert "512 * 1024 * 1024" in ALERTS["GloamingMemory"]["expr"]
    for deployment in ("template", "gateway"):
        read = yaml.safe_load((KUSTOMIZE / deployment / "deployment.yaml").read_text())
        (container,) = read["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["limits"]["memory"] == "512Mi"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Prometheus")
def test_rules_are_sound_and_say_what_they_should() -> None:
    assert promtool("check", rules()) == ""
    assert promtool("test", rules(), Path(__file__).with_name("alerts.yaml")) == ""


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Prometheus")
def test_dashboards_ask_in_sound_promql() -> None:
    asked = [expression.replace("$__rate_interval", "1m").replace("$namespace", ".*") for _, expression in expressions()]
    each = [{"record": f"dashboard:{n}", "expr": expression} for n, expression in enumerate(asked)]
    assert promtool("check", {"groups": [{"name": "dashboards", "rules": each}]}) == ""
