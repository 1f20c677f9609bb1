"""A Prometheus of one's own, for `make run MONITORING=1`: it scrapes the processes of this machine and has the rules of `monitoring/`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deploy.processes import LOCALHOST, Child, free_port

_RULES = Path(__file__).parent / "monitoring" / "rules.yaml"
_KEPT = "7d"


@dataclass(frozen=True, slots=True)
class Target:
    """A page of metrics.

    Args:
        job: the process's Deployment, had it one.
        pod: its name.
        address: host and port of the page.
    """

    job: str
    pod: str
    address: str


def binary() -> str | None:
    """Where Prometheus is on this machine, if anywhere."""
    return shutil.which("prometheus")


class Prometheus:
    """A Prometheus that is to run.

    Args:
        data: where its configuration and what it has scraped are kept.
        seconds: the time between two scrapes, and between two evaluations of the rules.
    """

    def __init__(self, data: Path, seconds: float) -> None:
        self._data = data
        self._seconds = seconds
        self.port = free_port()

    @property
    def address(self) -> str:
        """Host and port of its page."""
        return f"{LOCALHOST}:{self.port}"

    def child(self, targets: Iterable[Target], log: Path, env: Mapping[str, str]) -> Child:
        """Writes its configuration, and returns its process."""
        self._data.mkdir(exist_ok=True)
        (self._data / "rules.yaml").write_text(yaml.safe_dump(yaml.safe_load(_RULES.read_text())["spec"]))
        (config := self._data / "prometheus.yaml").write_text(json.dumps(self._config(targets), indent=2))
        argv = [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={self._data / 'series'}",
            f"--storage.tsdb.retention.time={_KEPT}",
            f"--web.listen-address={self.address}",
        ]
        return Child("prometheus", argv, log, env, self._data)

    def _config(self, targets: Iterable[Target]) -> dict[str, Any]:
        """Targets have the labels that the ServiceMonitors of `kustomize/components/monitoring` give them; JSON is YAML too."""
        pause = f"{round(self._seconds * 1000)}ms"
        return {
            "global": {"scrape_interval": pause, "scrape_timeout": pause, "evaluation_interval": pause},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [
                {
                    "job_name": "gloaming",
                    "static_configs": [
                        {
                            "targets": [target.address],
                            "labels": {
                                "namespace": "local",
                                "job": target.job,
                                "pod": target.pod,
                                "app_kubernetes_io_part_of": "gloaming",
                            },
                        }
                        for target in targets
                    ],
                }
            ],
        }
