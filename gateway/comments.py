"""What the .proto files say of their messages, fields and enum values, for the descriptions in /openapi.json and the catalogue.

Descriptors carry no comments at run time, so they are kept in comments.json. After a change to a .proto file:

    python -m gateway.comments

makes it anew (grpcio-tools, a development dependency, is needed for that alone).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

FILE = Path(__file__).with_name("comments.json")
_PROTO = Path(__file__).parent.parent / "proto"


@cache
def comments() -> Mapping[str, str]:
    """Returns comments by the full name of what they stand at: `gloaming.table.v1.Seat.player`."""
    kept: dict[str, str] = json.loads(FILE.read_text())
    return kept


def parse(proto: Path = _PROTO) -> descriptor_pb2.FileDescriptorSet:
    """Reads every .proto file, its comments included."""
    from grpc_tools import protoc

    files = sorted(str(path) for path in proto.glob("gloaming/*/v*/*.proto"))
    well_known = str(Path(protoc.__file__).parent / "_proto")
    with tempfile.NamedTemporaryFile() as image:
        flags = [f"-I{proto}", f"-I{well_known}", "--include_source_info", f"--descriptor_set_out={image.name}"]
        if protoc.main(["protoc", *flags, *files]) != 0:
            raise RuntimeError("the .proto files cannot be read")
        return descriptor_pb2.FileDescriptorSet.FromString(Path(image.name).read_bytes())


def extract(proto: Path = _PROTO) -> dict[str, str]:
    """Returns the comments of every .proto file, as `comments` does."""
    found: dict[str, str] = {}
    for file in parse(proto).file:
        for location in file.source_code_info.location:
            comment = " ".join(location.leading_comments.split())
            name = _name(file, location.path)
            if comment and name:
                found[name] = comment
    return dict(sorted(found.items()))


def _name(file: descriptor_pb2.FileDescriptorProto, path: Sequence[int]) -> str:
    """Returns the full name at a path of field numbers and indices, or nothing for what is no message, field, enum or value."""
    names, here = [file.package], file
    for number, index in zip(path[::2], path[1::2], strict=False):
        children: Iterable[Any] = getattr(here, type(here).DESCRIPTOR.fields_by_number[number].name)
        if not isinstance(children, Sequence):
            return ""
        here = children[index]
        if not isinstance(here, _NAMED):
            return ""
        names.append(here.name)
    return ".".join(names) if len(path) % 2 == 0 and len(names) > 1 else ""


_NAMED = (
    descriptor_pb2.DescriptorProto,
    descriptor_pb2.FieldDescriptorProto,
    descriptor_pb2.EnumDescriptorProto,
    descriptor_pb2.EnumValueDescriptorProto,
)


if __name__ == "__main__":
    FILE.write_text(json.dumps(extract(), indent=1, ensure_ascii=False) + "\n")
