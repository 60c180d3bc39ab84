"""A collector of metrics that knows nothing of the program, step for step as Telegraf's
`p4runtime` input: the whole forwarding pipeline's P4Info, its `pkg_info` name as a tag, and of every
counter all cells by one read without an index. It never arbitrates, so it is never a primary."""

import json
import subprocess

import grpc
import pytest
from conftest import ADDR, ROOT
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from test_shell import FRAME, forward, shell  # noqa: F401


@pytest.fixture
def collector():
    with grpc.insecure_channel(ADDR) as channel:
        yield p4runtime_pb2_grpc.P4RuntimeStub(channel)


def collect(stub):
    """Points: counter's name → index → (packets, bytes)."""
    request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=1)
    request.response_type = p4runtime_pb2.GetForwardingPipelineConfigRequest.ALL
    info = stub.GetForwardingPipelineConfig(request, timeout=5).config.p4info
    points = {}
    for counter in info.counters:
        read = p4runtime_pb2.ReadRequest(device_id=1)
        read.entities.add().counter_entry.counter_id = counter.preamble.id
        cells = [entity.counter_entry for answer in stub.Read(read, timeout=5) for entity in answer.entities]
        points[counter.preamble.name] = {
            cell.index.index: (cell.data.packet_count, cell.data.byte_count) for cell in cells
        }
    return info.pkg_info.name, points


def test_every_counter_is_read_whole_by_who_is_nobodys_primary(shell, collector):  # noqa: F811
    _, points = collect(collector)
    assert points == {"Rig.kinds": {index: (0, 0) for index in range(8)}}
    forward(2).insert()
    for _ in range(3):
        shell.ports[1].send(FRAME)
        assert shell.ports[2].receive() == FRAME
    _, points = collect(collector)
    assert points["Rig.kinds"][1] == (3, 3 * len(FRAME))


def test_before_there_is_a_program_there_is_nothing_to_read(switch, collector):
    name, points = collect(collector)
    assert (name, points) == ("", {})


def test_generated_programs_have_a_name_to_tag_with(switch, collector, binary, tmp_path):
    rack = ROOT / "examples/two-hosts.toml"
    subprocess.run([binary, "deploy", rack, "--grpc-addr", ADDR], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([binary, "generate", rack, "-o", tmp_path], check=True, stdout=subprocess.DEVNULL)
    constants = json.loads((tmp_path / "two-hosts.json").read_text())
    name, points = collect(collector)
    assert name == "pl2_clock"
    assert list(points[constants["drop_counter"]]) == list(range(len(constants["drop_reasons"])))
