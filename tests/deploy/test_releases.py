"""What `deploy/RELEASES.md` tells operators to do is what there is to be done."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from prometheus_client import REGISTRY

from gateway import metrics
from gateway.__main__ import main as gateway_main
from gateway.registry import GAMES
from services.kit.server import main as service_main
from services.kit.version import VERSION
from tests.harness import EVERY_GAME

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "deploy" / "RELEASES.md").read_text()


def test_the_replay_before_a_rollout_is_a_job_for_each_game_that_the_cluster_takes() -> None:
    (block,) = [block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S) if "kind: Job" in block]
    said = subprocess.run(["bash", "-euc", f"kubectl() {{ cat; echo ---; }}\n{block}"], capture_output=True, text=True, check=True).stdout
    jobs: list[Any] = [job for job in yaml.safe_load_all(said) if job]
    assert {job["spec"]["template"]["spec"]["containers"][0]["args"][0] for job in jobs} == {f"services.{game}" for game in GAMES}
    for job in jobs:
        kubernetes_validate.validate(job, "1.30", strict=True)
        pod = job["spec"]["template"]
        (container,) = pod["spec"]["containers"]
        assert container["args"][1:] == ["shadow", "--live"]
        key = container["env"][0]["valueFrom"]["secretKeyRef"]["key"]
        assert container["args"][0] == f"services.{key.replace('-', '_')}"
        assert "app.kubernetes.io/name" not in pod["metadata"]["labels"], "else it would be sent players"


def test_the_version_is_the_same_wherever_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert re.findall(r'^version = "(.+)"$', project, re.M) == [VERSION], "install it again: make test"
    overlay = yaml.safe_load((ROOT / "deploy/kustomize/overlays/prod/kustomization.yaml").read_text())
    assert [image["newTag"] for image in overlay["images"]] == [VERSION]
    mains: list[Callable[[list[str]], None]] = [gateway_main, *(partial(service_main, game) for game in EVERY_GAME)]
    for serve in mains:
        with pytest.raises(SystemExit):
            serve(["--version"])
        assert capsys.readouterr().out == f"gloaming {VERSION}\n"
    assert metrics.REQUESTS, "the gateway's page of metrics is this one"
    assert REGISTRY.get_sample_value("gloaming_build_info", {"version": VERSION}) == 1
