"""Writes what pages repeat of the code: the settings in README.md, the calls in gateway/README.md, the reasons in
gateway/ERRORS.md, the protobuf reference.

    python -m gateway.generated            writes them where they differ
    python -m gateway.generated --check    says which differ, and then fails

What is made of the .proto files needs grpcio-tools, a development dependency.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from gateway import app, reasons, reference, settings
from gateway.operations import declared

ROOT = Path(__file__).parent.parent


def calls() -> str:
    """Every call of REST but those for operators, as a table in Markdown."""
    # The application imports every resource that it is made of.
    kinds = [kind for kind in vars(app).values() if inspect.isclass(kind)]
    found = [operation for kind in kinds for operation in declared(kind) if operation.tag != "operators"]
    rows = [(operation.path.replace(":identifier", ""), operation) for operation in found]
    rows.sort(key=lambda row: (row[1].tag, row[0], row[1].method))
    return "\n".join(["| call | does |", "| --- | --- |", *(f"| `{call.method} {path}` | {call.summary} |" for path, call in rows)])


# Where a page holds something of the code, between `<!-- name: … -->` and `<!-- /name -->`.
_MARKED = {
    "settings": (Path("README.md"), settings.table),
    "calls": (Path("gateway/README.md"), calls),
    "reasons": (Path("gateway/ERRORS.md"), reasons.table),
}


def pages() -> dict[Path, str]:
    """Every page with something of the code in it, as it should be, by its place in the repository."""
    made = reference.pages()
    for name, (path, table) in _MARKED.items():
        before, begins, _, ends, after = re.split(
            rf"(<!-- {name}: [^>]*-->\n)(.*)(\n<!-- /{name} -->)", (ROOT / path).read_text(), maxsplit=1, flags=re.DOTALL
        )
        made[path] = f"{before}{begins}{table()}{ends}{after}"
    return made


def main(arguments: Sequence[str]) -> int:
    """Returns the exit status."""
    made = pages()
    # A package that is gone has no page any more.
    gone = [path for path in (ROOT / "proto/reference").glob("*.md") if path.relative_to(ROOT) not in made]
    differ = [path for path, text in made.items() if not (ROOT / path).is_file() or (ROOT / path).read_text() != text]
    if list(arguments) == ["--check"]:
        for path in [*differ, *gone]:
            print(f"{path} is not what the code says: make proto")
        return 1 if differ or gone else 0
    for path in differ:
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(made[path])
        print(path)
    for path in gone:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
