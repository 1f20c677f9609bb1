"""Runs a module with metrics that count nothing: `python -m tests.bench.unmetered`, and the module in UNMETERED_MODULE.

So the bench sees what counting costs; what production runs has no such switch. Looking a metric up and taking the time cost what they do.
"""

from __future__ import annotations

import os
import runpy
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

MODULE = "UNMETERED_MODULE"


def _nothing(*_: Any, **__: Any) -> None: ...


def main() -> None:
    """Silences every kind of metric, and runs the module as if by itself."""
    for kind, verbs in ((Counter, ("inc",)), (Gauge, ("inc", "dec", "set")), (Histogram, ("observe",))):
        for verb in verbs:
            setattr(kind, verb, _nothing)
    runpy.run_module(os.environ[MODULE], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
