"""`make dist`: what others install, from this tree alone, without a download.

- `gloaming_client-<version>-py3-none-any.whl`: the Python client, the messages and stubs, and the `.proto` files beside them;
- `gloaming-protos-<version>.tar.gz`: the `.proto` files for other languages, and the baseline that later ones stay compatible with;
- the image `gloaming:<version>`, where a Docker engine answers.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from deploy.local import ROOT

PROTO = ROOT / "proto"
_ENGINE_SECONDS = 10


class DistError(RuntimeError):
    """Something cannot be built; the message is for the person who asked."""


def version() -> str:
    """The project's version."""
    said: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return said


def wheel(directory: Path) -> Path:
    """Builds the client's wheel."""
    argv = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory.resolve())]
    done = subprocess.run(argv, cwd=PROTO, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DistError(f"The wheel cannot be built:\n{done.stderr}")
    return directory / f"gloaming_client-{version()}-py3-none-any.whl"


def protos(directory: Path) -> Path:
    """Packs the protos; the same protos make the same bytes."""
    name = f"gloaming-protos-{version()}"
    archive = directory / f"{name}.tar.gz"
    with archive.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for file, inside in _files():
            entry = tarfile.TarInfo(f"{name}/{inside}")
            entry.size = file.stat().st_size
            with file.open("rb") as data:
                tar.addfile(entry, data)
    return archive


def _files() -> Iterator[tuple[Path, str]]:
    yield ROOT / "LICENSE", "LICENSE"
    for name in ("buf.yaml", "baseline.binpb"):
        yield PROTO / name, name
    for file in sorted((PROTO / "gloaming").rglob("*.proto")):
        yield file, str(file.relative_to(PROTO))


def image() -> str | None:
    """Builds the image and returns its name, or None where no Docker engine answers."""
    docker = shutil.which("docker")
    try:
        if docker is None or subprocess.run([docker, "version"], capture_output=True, timeout=_ENGINE_SECONDS, check=False).returncode:
            return None
    except subprocess.TimeoutExpired:
        return None
    name = f"gloaming:{version()}"
    if subprocess.run([docker, "build", "--file", "deploy/Dockerfile", "--tag", name, "."], cwd=ROOT, check=False).returncode:
        raise DistError("The image cannot be built.")
    return name


def main() -> int:
    """Builds all of it, and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m deploy.dist", description="Builds what others install.")
    parser.add_argument("--directory", type=Path, default=ROOT / "dist", help="where to; dist when not given")
    parser.add_argument("--no-image", action="store_true", help="leave the image out")
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    try:
        print(wheel(asked.directory))
        print(protos(asked.directory))
        if not asked.no_image:
            print(image() or "No image: no Docker engine answers here.")
    except DistError as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
