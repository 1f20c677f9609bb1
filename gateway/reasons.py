"""Every reason that a refusal may have, read from the code that refuses: `python -m gateway reasons` prints them for gateway/ERRORS.md.

A reason stands in the source as a literal, where an error of `services.kit.errors`, a problem of HTTP or a game's `Refusal` is made, with
the sentence that goes with it. So the sources are read, and not run; games are not imported.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import grpc

from gateway import problems
from gateway.registry import GAMES
from services.kit import errors
from services.kit.problems import STATUS_BY_CODE, STATUS_BY_REASON

_ROOT = Path(__file__).parent.parent
# What refuses by another module's words: problems.py tells what it is given, reactions.py and matches.py what a game's rules say.
_HANDED_ON = ("str(refusal.reason)", "str(step.reason)")
# Every error whose reason stands where it is made.
KINDS = {
    name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if hasattr(kind, "code") and kind is not errors.Unreadable
}


class UnknownReasonError(ValueError):
    """A refusal's reason cannot be read from its source."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One place that refuses.

    Args:
        grpc: the code; none of what is never said over gRPC.
    """

    reason: str
    status: int
    grpc: str
    says: str


def table() -> str:
    """All reasons: those that any call may get, then those of each game's rules, as tables in Markdown."""
    lines = ["| HTTP | gRPC | reason | what is said |", "| --- | --- | --- | --- |"]
    for (status, reason), places in _grouped(_platform()):
        codes = sorted({f"`{place.grpc}`" for place in places if place.grpc})
        lines.append(f"| {status} | {' '.join(codes) or '–'} | `{reason}` | {_said(places)} |")
    for game in GAMES.values():
        refused = errors.Refused.code
        lines += ["", f"**{game.title}** (`{game.id}`), a move against its rules: {STATUS_BY_CODE[refused]}, `{refused.name}`.", ""]
        lines += ["| reason | what is said |", "| --- | --- |"]
        of_rules = _of_rules(_ROOT / "services" / game.id / "rules.py")
        lines += [f"| `{reason}` | {_said(places)} |" for (_, reason), places in _grouped(of_rules)]
    return "\n".join(lines)


def _grouped(refusals: Iterator[Refusal]) -> list[tuple[tuple[int, str], list[Refusal]]]:
    """The places that refuse with the same status and reason, in that order."""
    found: dict[tuple[int, str], list[Refusal]] = {}
    for refusal in refusals:
        found.setdefault((refusal.status, refusal.reason), []).append(refusal)
    return sorted(found.items())


def _said(places: list[Refusal]) -> str:
    return "; or: ".join(sorted({place.says.rstrip(".") for place in places if place.says}))


def _platform() -> Iterator[Refusal]:
    invalid = errors.Unreadable.code
    yield Refusal(
        "INVALID_ARGUMENT", STATUS_BY_CODE[invalid], invalid.name, "a field cannot be parsed or is out of range: `violations` says which"
    )
    yield Refusal("INTERNAL", 500, grpc.StatusCode.INTERNAL.name, "this is our fault; it has been logged")
    for status, (reason, detail) in problems.OF_HTTP.items():
        yield Refusal(reason, status, "", detail)
    for code, detail in problems.WITHOUT_REASON.items():
        yield Refusal(code.name, STATUS_BY_CODE[code], "", detail)
    for folder in ("gateway", "services"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            # Rules refuse by values, below; problems.py is what tells others' refusals.
            if path.name != "rules.py" and path != Path(problems.__file__):
                yield from of_module(path)


def of_module(path: Path) -> Iterator[Refusal]:
    """What a module refuses.

    Raises:
        UnknownReasonError: a reason of it cannot be read.
    """
    tree, over_grpc = ast.parse(path.read_text()), path.is_relative_to(_ROOT / "services")
    texts = _texts(tree)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
        if (kind := KINDS.get(name)) is not None:
            reason, detail = _literal(call.args[0]), _sentence(call.args[1], texts)
            if reason:
                status = STATUS_BY_REASON.get(reason) or STATUS_BY_CODE[kind.code]
                yield Refusal(reason, status, kind.code.name if over_grpc else "", detail)
            elif ast.unparse(call.args[0]) not in _HANDED_ON:
                raise UnknownReasonError(f"{path}:{call.lineno}: the reason must be a literal")
        elif name in ("Unacceptable", "problem") and len(call.args) >= 3:
            said, reason = _status(call.args[0]), _literal(call.args[1])
            if said is None or not reason:
                raise UnknownReasonError(f"{path}:{call.lineno}: status and reason must be literals")
            yield Refusal(reason, said, "", _sentence(call.args[2], texts))


def _of_rules(path: Path) -> Iterator[Refusal]:
    tree, code = ast.parse(path.read_text()), errors.Refused.code
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Refusal":
            if not isinstance(call.args[0], ast.Attribute):
                raise UnknownReasonError(f"{path}:{call.lineno}: the reason must be one of Reason")
            yield Refusal(call.args[0].attr, STATUS_BY_CODE[code], code.name, _sentence(call.args[1], {}))


def _texts(tree: ast.Module) -> Mapping[str, str]:
    """What names stand for that are given a literal text."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    return {node.targets[0].id: _literal(node.value) for node in assigned if isinstance(node.targets[0], ast.Name)}


def _literal(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _sentence(node: ast.expr, texts: Mapping[str, str]) -> str:
    """The sentence that an expression makes, with `…` for what only the moment knows."""
    match node:
        case ast.Name():
            said = texts.get(node.id, "")
        case ast.JoinedStr():
            said = "".join(_literal(part) or "…" for part in node.values).replace("… …", "…")
        case _:
            said = _literal(node)
    return said.replace("|", r"\|").replace("<", r"\<")


def _status(node: ast.expr) -> int | None:
    if isinstance(node, ast.Attribute):
        return HTTPStatus[node.attr].value
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
