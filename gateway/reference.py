"""A reference of the protobuf packages, made of what the .proto files say themselves: proto/REFERENCE.md and a page a package.

Git hosts show the pages as they are; links between them name a message by its heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from google.protobuf import descriptor_pb2

from gateway.comments import parse
from gloaming.table.v1 import table_pb2

_FOLDER = Path("proto/reference")
_INDEX = Path("proto/REFERENCE.md")
_NOTE = "<!-- made of the .proto files by `make proto`: change those -->"
# Typed for descriptors that are generated; the stubs do not know extensions of options as such.
_GAME, _OF_GAME = cast(Any, table_pb2.game), cast(Any, table_pb2.of_game)

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {number: name.removeprefix("TYPE_").lower() for name, number in _Field.Type.items()}
# The numbers by which source_code_info names what a file, a message, an enum or a service holds.
_PACKAGE, _MESSAGE, _ENUM, _SERVICE, _EXTENSION = 2, 4, 5, 6, 7
_M_FIELD, _M_NESTED, _M_ENUM, _M_ONEOF = 2, 3, 4, 8
_E_VALUE, _S_METHOD = 2, 2


def pages() -> dict[Path, str]:
    """Every page by its place in the repository."""
    files = [file for file in parse().file if file.package.startswith("gloaming.")]
    made = [_Page(file) for file in files]
    rows = [f"| [`{page.package}`](reference/{page.package}.md) | {page.about()} |" for page in made]
    head = [
        "# Protobuf reference",
        "",
        _NOTE,
        "",
        "All packages, from the comments in their [`.proto` files](gloaming). How to use them: [INTEGRATING](INTEGRATING.md).",
        "",
        "| package | what it is |",
        "| --- | --- |",
    ]
    return {_INDEX: "\n".join([*head, *rows, ""]), **{_FOLDER / f"{page.package}.md": page.text() for page in made}}


class _Page:
    """The page of one file."""

    def __init__(self, file: descriptor_pb2.FileDescriptorProto) -> None:
        self.package = file.package
        self._file = file
        self._comments: Mapping[tuple[int, ...], str] = {
            tuple(location.path): location.leading_comments for location in file.source_code_info.location if location.leading_comments
        }

    def about(self) -> str:
        """What the package is, in a sentence."""
        first, _, _ = self._line((_PACKAGE,)).partition(". ")
        return first.rstrip(".") + "."

    def text(self) -> str:
        """The page in Markdown."""
        source = f"../{self._file.name}"
        lines = [f"# {self._file.package}", "", _NOTE, "", *self._paragraphs((_PACKAGE,)), f"Source: [`{self._file.name}`]({source})."]
        for index, service in enumerate(self._file.service):
            lines += self._service(service, (_SERVICE, index))
        for index, message in enumerate(self._file.message_type):
            lines += self._message(message, "", (_MESSAGE, index))
        for index, enum in enumerate(self._file.enum_type):
            lines += self._enum(enum, "", (_ENUM, index))
        if self._file.extension:
            lines += ["", "## Options", "", "| option of | name | type | what it says |", "| --- | --- | --- | --- |"]
            for index, field in enumerate(self._file.extension):
                of = field.extendee.removeprefix(".google.protobuf.")
                lines.append(f"| {of} | `{field.name}` | {self._type(field)} | {self._line((_EXTENSION, index))} |")
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"

    def _service(self, service: descriptor_pb2.ServiceDescriptorProto, path: tuple[int, ...]) -> Iterator[str]:
        yield from ("", f"## {service.name}", "", *self._paragraphs(path))
        if service.options.HasExtension(_GAME):
            game: table_pb2.GameInfo = service.options.Extensions[_GAME]
            seats = f"{game.min_seats}" if game.min_seats == game.max_seats else f"{game.min_seats} to {game.max_seats}"
            yield from (f"Game `{game.id}`, {seats} seats{', in real time' if game.real_time else ''}.", "")
        yield from ("| verb | takes | answers | what it does |", "| --- | --- | --- | --- |")
        for index, method in enumerate(service.method):
            takes, answers = (
                f"{'stream of ' if stream else ''}{self._link(name)}"
                for stream, name in ((method.client_streaming, method.input_type), (method.server_streaming, method.output_type))
            )
            yield f"| `{method.name}` | {takes} | {answers} | {self._line((*path, _S_METHOD, index))} |"

    def _message(self, message: descriptor_pb2.DescriptorProto, outer: str, path: tuple[int, ...]) -> Iterator[str]:
        name = f"{outer}{message.name}"
        yield from ("", f"## {name}", "", *self._paragraphs(path))
        oneofs = {field.oneof_index for field in message.field if field.HasField("oneof_index") and not field.proto3_optional}
        for index in sorted(oneofs):
            yield from (f"`{message.oneof_decl[index].name}`, one of several fields: {self._line((*path, _M_ONEOF, index))}", "")
        if message.field:
            yield from ("| field | no. | type | what it says |", "| --- | --- | --- | --- |")
        for index, field in enumerate(message.field):
            name_of = f"`{field.name}`"
            if field.HasField("oneof_index") and field.oneof_index in oneofs:
                name_of += f" *of `{message.oneof_decl[field.oneof_index].name}`*"
            yield f"| {name_of} | {field.number} | {self._type(field)} | {self._line((*path, _M_FIELD, index))} |"
        for index, nested in enumerate(message.nested_type):
            yield from self._message(nested, f"{name}.", (*path, _M_NESTED, index))
        for index, enum in enumerate(message.enum_type):
            yield from self._enum(enum, f"{name}.", (*path, _M_ENUM, index))

    def _enum(self, enum: descriptor_pb2.EnumDescriptorProto, outer: str, path: tuple[int, ...]) -> Iterator[str]:
        yield from ("", f"## {outer}{enum.name}", "", *self._paragraphs(path), "| value | no. | what it means |", "| --- | --- | --- |")
        for index, value in enumerate(enum.value):
            yield f"| `{value.name}` | {value.number} | {self._line((*path, _E_VALUE, index))} |"

    def _type(self, field: _Field) -> str:
        kind = self._link(field.type_name) if field.type_name else _SCALARS[field.type]
        if field.options.HasExtension(_OF_GAME):
            kind += f", the game's `{field.options.Extensions[_OF_GAME]}`"
        if field.label == _Field.LABEL_REPEATED:
            return f"repeated {kind}"
        return f"optional {kind}" if field.proto3_optional else kind

    def _link(self, full_name: str) -> str:
        """A message or enum, by its full name with a leading dot."""
        name = full_name.removeprefix(".")
        parts = name.split(".")
        if parts[0] != "gloaming":
            return f"`{name}`"
        package, inner = ".".join(parts[:3]), ".".join(parts[3:])
        anchor = "#" + inner.replace(".", "").lower()
        return f"[{inner}]({anchor})" if package == self._file.package else f"[{package.split('.')[1]}.{inner}]({package}.md{anchor})"

    def _paragraphs(self, path: tuple[int, ...]) -> list[str]:
        """What stands at a path, a line a paragraph, each followed by an empty one."""
        texts = [" ".join(paragraph.split()) for paragraph in self._comments.get(path, "").split("\n\n")]
        return [line for text in texts if text for line in (_plain(text), "")]

    def _line(self, path: tuple[int, ...]) -> str:
        """What stands at a path, for a cell of a table."""
        return _plain(" ".join(self._comments.get(path, "").split())).replace("|", r"\|")


def _plain(text: str) -> str:
    """A text in which `<` begins no HTML; in code it never does."""
    return "`".join(part if index % 2 else part.replace("<", r"\<") for index, part in enumerate(text.split("`")))
