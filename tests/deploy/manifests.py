"""What the overlays of `deploy/kustomize` give, rendered and validated, and the rules of `deploy/monitoring`. `make check` runs it.

python -m tests.deploy.manifests
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import kubernetes_validate  # type: ignore[import-untyped]
import yaml
from jsonschema import Draft202012Validator

KUSTOMIZE = Path(__file__).resolve().parents[2] / "deploy" / "kustomize"
MONITORING = KUSTOMIZE.parent / "monitoring"
OVERLAYS = ("dev", "prod")
# The oldest whose kubelet knows all that is used (a preStop that sleeps), and the newest whose schemas are at hand.
VERSIONS = ("1.30", kubernetes_validate.latest_version())

Manifest: TypeAlias = dict[str, Any]


@cache
def renderer() -> tuple[str, ...]:
    """The command that renders a folder, kustomize 5 or newer, its own or kubectl's; empty where there is none."""
    for command, version in (
        (("kustomize", "build"), ("kustomize", "version")),
        (("kubectl", "kustomize"), ("kubectl", "version", "--client")),
    ):
        if shutil.which(command[0]):
            said = subprocess.run(version, capture_output=True, text=True, check=False).stdout
            if (found := re.search(r"(?:Kustomize Version: |^)v(\d+)\.", said)) and int(found[1]) >= 5:
                return command
    return ()


def render(folder: Path) -> list[Manifest]:
    """Renders a folder with a kustomization.

    Raises:
        ValueError: it cannot be rendered; the message is kustomize's.
    """
    done = subprocess.run([*renderer(), str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr)
    return list(yaml.safe_load_all(done.stdout))


def faults(manifest: Manifest) -> Iterator[str]:
    """Says what is wrong with an object: against the schemas of Kubernetes, or, for a custom resource, that in `schemas/`."""
    name = f"{manifest['kind']}/{manifest['metadata']['name']}"
    own = KUSTOMIZE / "schemas" / f"{manifest['kind'].lower()}.json"
    if own.exists():
        for error in Draft202012Validator(json.loads(own.read_text())).iter_errors(manifest):
            yield f"{name}: {error.json_path}: {error.message}"
        return
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{name}, Kubernetes {version}: {'.'.join(map(str, error.path))}: {error.message}"
        except kubernetes_validate.SchemaNotFoundError as error:
            yield f"{name}, Kubernetes {version}: {error.message}"


def rules() -> Manifest:
    """The rules of `deploy/monitoring`, as a Prometheus without the operator takes them."""
    spec: Manifest = yaml.safe_load((MONITORING / "rules.yaml").read_text())["spec"]
    return spec


def promtool(what: str, given: Manifest, *files: Path) -> str:
    """Runs `promtool check rules` or `promtool test rules`; gives what it has against them.

    Args:
        what: `check` or `test`.
        given: the rules.
        files: for `test`, tests of the rules.
    """
    with tempfile.TemporaryDirectory() as directory:
        (file := Path(directory) / "rules.yaml").write_text(yaml.safe_dump(given))
        named = [shutil.copy(each, directory) for each in files] or [str(file)]
        done = subprocess.run(["promtool", what, "rules", *named], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def main() -> int:
    """Renders and validates every overlay, and checks the rules; gives the exit status."""
    found = 0
    if not shutil.which("promtool"):
        print("The syntax of Prometheus' rules was not checked: that needs promtool.")
    elif said := promtool("check", rules()):
        print(said, file=sys.stderr)
        found += 1
    if not renderer():
        print("Kubernetes overlays were not checked: that needs kubectl 1.27 or newer, or kustomize 5.")
        return found
    for overlay in OVERLAYS:
        for fault in (fault for manifest in render(KUSTOMIZE / "overlays" / overlay) for fault in faults(manifest)):
            print(f"overlay {overlay}: {fault}", file=sys.stderr)
            found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
