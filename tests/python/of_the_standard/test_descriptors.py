"""Our .proto files against those of the `p4runtime` package, descriptor by descriptor."""

import os
import pathlib
import subprocess

import pytest
from google.protobuf import descriptor_pb2
from google.rpc import code_pb2, status_pb2
from p4.config.v1 import p4info_pb2, p4types_pb2
from p4.v1 import p4data_pb2, p4runtime_pb2

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Additions of P4Runtime 1.6, which the released package lacks. The switch reads them to refuse them by name.
OF_1_6 = {
    "p4/config/v1/p4info.proto": [("messages", "ActionRef", "enums", "Scope", "GROUP_ACTION")],
    "p4/v1/p4runtime.proto": [("messages", "ActionProfileActionSet", "fields", "group_action")],
}
STANDARD = [code_pb2, status_pb2, p4info_pb2, p4types_pb2, p4data_pb2, p4runtime_pb2]


@pytest.fixture(scope="session")
def ours():
    cargo = os.environ.get("CARGO", "cargo")
    # Of the whole workspace, as the tests in Rust are built: else every library is rebuilt for it.
    command = [cargo, "build", "-q", "--offline", "--profile", "verify", "--workspace", "--example", "descriptors"]
    subprocess.run(command, cwd=ROOT, check=True)
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    output = subprocess.run([target / "verify/examples/descriptors"], check=True, stdout=subprocess.PIPE).stdout
    files = descriptor_pb2.FileDescriptorSet.FromString(output)
    return {file.name: file for file in files.file}


def enum(value):
    return {member.name: member.number for member in value.value}


def field(value, message):
    oneof = message.oneof_decl[value.oneof_index].name if value.HasField("oneof_index") else None
    return {
        "number": value.number,
        "type": value.type,
        "type_name": value.type_name,
        "label": value.label,
        "oneof": oneof,
        "optional": value.proto3_optional,
        "deprecated": value.options.deprecated,
    }


def message(value):
    return {
        "fields": {member.name: field(member, value) for member in value.field},
        "oneofs": {member.name for member in value.oneof_decl},
        "enums": {member.name: enum(member) for member in value.enum_type},
        "messages": {member.name: message(member) for member in value.nested_type},
        "map_entry": value.options.map_entry,
    }


def service(value):
    return {
        method.name: (method.input_type, method.output_type, method.client_streaming, method.server_streaming)
        for method in value.method
    }


def shape(file):
    return {
        "package": file.package,
        "syntax": file.syntax,
        "messages": {member.name: message(member) for member in file.message_type},
        "enums": {member.name: enum(member) for member in file.enum_type},
        "services": {member.name: service(member) for member in file.service},
    }


@pytest.mark.parametrize("standard", STANDARD, ids=lambda module: module.DESCRIPTOR.name)
def test_file_is_the_standards(ours, standard):
    theirs = descriptor_pb2.FileDescriptorProto()
    standard.DESCRIPTOR.CopyToProto(theirs)
    mine = shape(ours[theirs.name])
    for *path, added in OF_1_6.get(theirs.name, []):
        place = mine
        for name in path:
            place = place[name]
        del place[added]
    assert mine == shape(theirs)


def test_the_comparison_notices_a_difference(ours):
    file = descriptor_pb2.FileDescriptorProto()
    p4runtime_pb2.DESCRIPTOR.CopyToProto(file)
    file.message_type[0].field[0].number += 100
    assert shape(ours[file.name]) != shape(file)
