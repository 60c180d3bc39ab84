"""p4runtime-shell, unchanged, against the switch."""

import subprocess

import grpc
import p4runtime_sh.shell as sh
import pytest
from conftest import ADDR, PROGRAM, eventually
from p4.v1 import p4runtime_pb2
from p4runtime_sh.p4runtime import P4RuntimeWriteException

FRAME = bytes.fromhex("020000000001" "020000000063" "0800") + b"\xee" * 50
OTHER = bytes.fromhex("020000000009" "020000000063" "0800") + b"\xee" * 50


@pytest.fixture
def shell(switch, p4info):
    sh.setup(
        device_id=1,
        grpc_addr=ADDR,
        election_id=(0, 1),
        config=sh.FwdPipeConfig(str(p4info), str(PROGRAM)),
        verbose=False,
    )
    yield switch
    sh.teardown()


def forward(port):
    entry = sh.TableEntry("Rig.dmac")(action="Rig.forward")
    entry.match["hdr.ethernet.dst"] = "02:00:00:00:00:01"
    entry.action["port"] = str(port)
    return entry


def test_entries_are_written_read_modified_and_deleted(shell):
    forward(2).insert()
    found = list(sh.TableEntry("Rig.dmac").read())
    assert len(found) == 1
    assert found[0].action["port"].value == b"\x02"
    forward(1).modify()
    assert [e.action["port"].value for e in sh.TableEntry("Rig.dmac").read()] == [b"\x01"]
    forward(1).delete()
    assert list(sh.TableEntry("Rig.dmac").read()) == []


def test_frames_are_forwarded_by_the_entries(shell):
    shell.ports[1].send(FRAME)
    assert shell.ports[2].receive(0.2) is None, "the table is empty"
    forward(2).insert()
    shell.ports[1].send(FRAME)
    assert shell.ports[2].receive() == FRAME
    shell.ports[1].send(OTHER)
    assert shell.ports[2].receive(0.2) is None


def test_counters_are_read_and_reset(shell):
    forward(2).insert()
    for _ in range(3):
        shell.ports[1].send(FRAME)
        assert shell.ports[2].receive() == FRAME
    kinds = sh.CounterEntry("Rig.kinds")
    kinds.index = 1
    read = next(kinds.read())
    assert (read.packet_count, read.byte_count) == (3, 3 * len(FRAME))
    direct = sh.DirectCounterEntry("Rig.hits")
    direct.table_entry = forward(2)
    assert next(direct.read()).packet_count == 3
    kinds.packet_count = 0
    kinds.byte_count = 0
    kinds.modify()
    assert next(kinds.read()).packet_count == 0
    assert len(list(sh.CounterEntry("Rig.kinds").read())) == 8


def test_ternary_entries_take_a_priority(shell):
    forward(2).insert()
    entry = sh.TableEntry("Rig.acl")(action="Rig.drop")
    entry.match["hdr.ethernet.type"] = "0x0800 &&& 0xff00"
    entry.priority = 5
    entry.insert()
    shell.ports[1].send(FRAME)
    assert shell.ports[2].receive(0.2) is None
    assert [e.priority for e in sh.TableEntry("Rig.acl").read()] == [5]
    entry.delete()
    shell.ports[1].send(FRAME)
    assert shell.ports[2].receive() == FRAME


def test_the_default_action_is_set_and_reset(shell):
    default = sh.TableEntry("Rig.dmac")(action="Rig.forward", is_default=True)
    default.action["port"] = "2"
    default.modify()
    shell.ports[1].send(OTHER)
    assert shell.ports[2].receive() == OTHER
    sh.TableEntry("Rig.dmac")(is_default=True).modify()
    shell.ports[1].send(OTHER)
    assert shell.ports[2].receive(0.2) is None


def test_multicast_groups_copy_frames(shell):
    group = sh.MulticastGroupEntry(7)
    group.add(1).add(2)
    group.insert()
    read = next(sh.MulticastGroupEntry(7).read())
    assert sorted(replica.egress_port for replica in read.replicas) == [1, 2]
    entry = sh.TableEntry("Rig.dmac")(action="Rig.to_group")
    entry.match["hdr.ethernet.dst"] = "02:00:00:00:00:01"
    entry.action["group"] = "7"
    entry.insert()
    shell.ports[1].send(FRAME)
    assert shell.ports[1].receive() == FRAME
    assert shell.ports[2].receive() == FRAME
    group.delete()
    assert list(sh.MulticastGroupEntry().read()) == []


def test_meters_are_configured(shell):
    meter = sh.MeterEntry("Rig.rates")
    meter.index = 2
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1000, 100, 2000, 200
    meter.modify()
    read = next(meter.read())
    assert (read.cir, read.cburst, read.pir, read.pburst) == (1000, 100, 2000, 200)


def test_packets_go_out_and_come_in(shell):
    packet = sh.PacketOut(FRAME, egress_port="2", kind="0")
    packet.send()
    assert shell.ports[2].receive() == FRAME
    entry = sh.TableEntry("Rig.dmac")(action="Rig.to_controller")
    entry.match["hdr.ethernet.dst"] = "02:00:00:00:00:01"
    entry.insert()
    shell.ports[1].send(FRAME)
    came = sh.client.get_stream_packet("packet", timeout=5)
    assert came.packet.payload == FRAME
    assert [field.value for field in came.packet.metadata] == [b"\x01", b"\x05"]


def test_members_and_groups_of_an_action_profile(shell):
    for number in (1, 2):
        member = sh.ActionProfileMember("Rig.spread")(member_id=number, action="Rig.via")
        member.action["port"] = str(number)
        member.insert()
    group = sh.ActionProfileGroup("Rig.spread")(group_id=9)
    group.add(1, 1).add(2, 3)
    group.insert()
    entry = sh.TableEntry("Rig.hops")(group_id=9)
    entry.match["meta.tunnel"] = "1"
    entry.insert()
    assert [found.group_id for found in sh.TableEntry("Rig.hops").read()] == [9]
    (found,) = sh.ActionProfileGroup("Rig.spread")(group_id=9).read()
    assert sorted((m.member_id, m.weight) for m in found.members) == [(1, 1), (2, 3)]
    with pytest.raises(P4RuntimeWriteException, match="take it out first"):
        sh.ActionProfileMember("Rig.spread")(member_id=1).delete()
    entry.delete()
    group.delete()
    for number in (1, 2):
        sh.ActionProfileMember("Rig.spread")(member_id=number).delete()


def test_a_member_whose_port_is_down_is_not_chosen(shell):
    tunnels = p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY)
    tunnels.entity.value_set_entry.value_set_id = sh.context.p4info.value_sets[0].preamble.id
    match = tunnels.entity.value_set_entry.members.add().match.add()
    match.field_id, match.exact.value = 1, b"\x65\x58"
    sh.client.write_update(tunnels)
    group = sh.ActionProfileGroup("Rig.spread")(group_id=9)
    for number in (1, 2):
        member = sh.ActionProfileMember("Rig.spread")(member_id=number, action="Rig.via")
        member.action["port"] = str(number)
        member.insert()
        group.add(number, 1, watch_port=bytes([number]))
    group.insert()
    entry = sh.TableEntry("Rig.hops")(group_id=9)
    entry.match["meta.tunnel"] = "1"
    entry.insert()

    def ports():
        """Where frames of 20 hosts go."""
        came = set()
        for host in range(20):
            shell.ports[1].send(FRAME[:11] + bytes([host]) + b"\x65\x58" + FRAME[14:])
        for number, port in shell.ports.items():
            while port.receive(0.05):
                came.add(number)
        return came

    assert eventually(lambda: ports() == {1, 2})
    subprocess.run(["ip", "link", "set", shell.ports[2].interface, "down"], check=True)
    assert eventually(lambda: ports() == {1})
    subprocess.run(["ip", "link", "set", shell.ports[2].interface, "up"], check=True)
    assert eventually(lambda: ports() == {1, 2})


def test_digests_come_to_the_shell(shell):
    digest = sh.DigestEntry("seen_t")
    digest.max_list_size = 1
    digest.ack_timeout_ns = 1_000_000_000
    digest.insert()
    shell.ports[1].send(FRAME[:12] + b"\x12\x34" + FRAME[14:])
    seen = sh.DigestList()
    lists = []
    seen.sniff(lists.append, timeout=1)
    (data,) = lists[0].digest.data
    assert [member.bitstring for member in data.struct.members] == [b"\x02\0\0\0\0\x63", b"\x01"]


def test_a_refused_write_says_why(shell):
    forward(2).insert()
    with pytest.raises(P4RuntimeWriteException, match="ALREADY_EXISTS"):
        forward(2).insert()
    entry = sh.TableEntry("Rig.fixed")(action="Rig.drop")
    entry.match["hdr.ethernet.type"] = "0x1234"
    with pytest.raises(P4RuntimeWriteException, match="PERMISSION_DENIED"):
        entry.insert()


def test_registers_are_reached_by_the_bindings(shell):
    """The shell has no registers; the bindings below it do."""
    stub = sh.client.stub
    register = next(r for r in sh.client.get_p4info().registers if r.preamble.alias == "cells")
    request = p4runtime_pb2.WriteRequest(device_id=1)
    request.election_id.low = 1
    update = request.updates.add(type=p4runtime_pb2.Update.MODIFY)
    update.entity.register_entry.register_id = register.preamble.id
    update.entity.register_entry.index.index = 5
    update.entity.register_entry.data.bitstring = b"\x0a\xbc"
    stub.Write(request)
    read = p4runtime_pb2.ReadRequest(device_id=1)
    read.entities.add().register_entry.register_id = register.preamble.id
    cells = [entity.register_entry for answer in stub.Read(read) for entity in answer.entities]
    assert [cell.data.bitstring for cell in cells] == [b"\0"] * 5 + [b"\x0a\xbc"] + [b"\0"] * 10


def test_a_program_with_an_error_is_refused_with_its_line(switch, p4info):
    client = sh.P4RuntimeClient(1, ADDR, (0, 1))
    try:
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=1)
        request.election_id.low = 1
        request.action = p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request.config.p4info.SetInParent()
        request.config.p4_device_config = PROGRAM.read_bytes().replace(b"= port;", b"= prt;")
        with pytest.raises(grpc.RpcError) as refused:
            client.stub.SetForwardingPipelineConfig(request)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "prt" in refused.value.details()
    finally:
        client.tear_down()


def test_the_next_controller_waits_for_a_higher_election_id(shell):
    second = sh.P4RuntimeClient(1, ADDR, (0, 2))
    try:
        told = lambda: not sh.client.stream_in_q["arbitration"].empty()
        assert eventually(told), "the first is told that it is not primary any more"
        with pytest.raises(grpc.RpcError) as refused:
            forward(2).insert()
        assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
    finally:
        second.tear_down()
