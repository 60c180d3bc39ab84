"""finsy, unchanged, against the switch."""

import asyncio

import finsy as fy
import pytest
from conftest import ADDR, PROGRAM
from finsy.p4entity import P4ValueSetMember
from finsy.proto import stratum

FRAME = bytes.fromhex("020000000001" "020000000063" "0800") + b"\xee" * 50
DIGEST = bytes.fromhex("020000000001" "020000000063" "1234") + b"\xee" * 50
TIMEOUT_S = 10


@pytest.fixture
def session(switch, p4info):
    """Runs an async function of a ready `fy.Switch`."""

    def run(work, **options):
        options = fy.SwitchOptions(p4info=p4info, p4blob=PROGRAM, device_id=1, **options)

        async def inside():
            async with fy.Switch("rig", ADDR, options) as sw:
                await work(sw)

        asyncio.run(asyncio.wait_for(inside(), TIMEOUT_S))

    run.ports = switch.ports
    return run


def forward(port, dst="02:00:00:00:00:01"):
    return fy.P4TableEntry("dmac", match=fy.Match(dst=dst), action=fy.Action("forward", port=port))


async def everything(reading):
    return [found async for found in reading]


def test_entries_are_written_read_modified_and_deleted(session):
    async def work(sw):
        await sw.write([+forward(2), +forward(1, "02:00:00:00:00:02")])
        found = await everything(sw.read(fy.P4TableEntry("dmac")))
        assert sorted(entry.action.args["port"] for entry in found) == [1, 2]
        await sw.modify([forward(1)])
        (one,) = await everything(sw.read(forward(1)))
        assert one.action.args["port"] == 1
        await sw.delete_all()
        assert await everything(sw.read(fy.P4TableEntry("dmac"))) == []

    session(work)


def test_ternary_optional_and_range_keys_come_back_as_they_were_written(session):
    async def work(sw):
        match = fy.Match(type=(0x0800, 0xFF00), src="02:00:00:00:00:63", ingress_port=(1, 5))
        entry = fy.P4TableEntry("acl", match=match, action=fy.Action("drop"), priority=7)
        await sw.insert([entry])
        (found,) = await everything(sw.read(fy.P4TableEntry("acl")))
        assert found.priority == 7
        assert found.match["type"] == (0x0800, 0xFF00)
        assert found.match["ingress_port"] == (1, 5)
        assert found.match["src"] == 0x020000000063

    session(work)


def test_a_refused_update_is_named(session):
    async def work(sw):
        await sw.insert([forward(2)])
        with pytest.raises(fy.P4ClientError) as refused:
            await sw.insert([forward(1, "02:00:00:00:00:02"), forward(1)])
        assert refused.value.code == fy.GRPCStatusCode.UNKNOWN
        (detail,) = refused.value.details.values()
        assert detail.canonical_code == fy.GRPCStatusCode.ALREADY_EXISTS

    session(work)


def test_groups_of_members_carry_tunnelled_frames(session):
    async def work(sw):
        await sw.write([fy.P4ValueSetEntry("tunnels", members=[P4ValueSetMember(0x88B6)])])
        await sw.write(
            [
                +fy.P4ActionProfileMember("spread", member_id=1, action=fy.Action("via", port=1)),
                +fy.P4ActionProfileMember("spread", member_id=2, action=fy.Action("via", port=2)),
                +fy.P4ActionProfileGroup("spread", group_id=9, max_size=4, members=[fy.P4Member(2, weight=3)]),
                +fy.P4TableEntry(
                    "hops", match=fy.Match(tunnel=1), action=fy.P4IndirectAction(group_id=9)
                ),
            ]
        )
        frame = FRAME[:12] + b"\x88\xb6" + FRAME[14:]
        session.ports[1].send(frame)
        assert session.ports[2].receive() == frame
        members = [fy.P4Member(1, weight=1)]
        await sw.modify([fy.P4ActionProfileGroup("spread", group_id=9, max_size=4, members=members)])
        session.ports[2].send(frame)
        assert session.ports[1].receive() == frame
        (group,) = await everything(sw.read(fy.P4ActionProfileGroup("spread")))
        assert [(member.member_id, member.weight) for member in group.members] == [(1, 1)]
        await sw.delete_all()

    session(work)


def test_one_shot_actions_are_read_back(session):
    async def work(sw):
        action = fy.P4IndirectAction([2 * fy.Action("via", port=1), 1 * fy.Action("via", port=2)])
        await sw.insert([fy.P4TableEntry("hops", match=fy.Match(tunnel=1), action=action)])
        (entry,) = await everything(sw.read(fy.P4TableEntry("hops")))
        assert sorted(weight for weight, _ in entry.action.action_set) == [1, 2]

    session(work)


def test_counters_are_read_and_written(session):
    async def work(sw):
        await sw.insert([forward(2)])
        for _ in range(3):
            session.ports[1].send(FRAME)
            assert session.ports[2].receive() == FRAME
        (cell,) = await everything(sw.read(fy.P4CounterEntry("kinds", index=1)))
        assert (cell.packet_count, cell.byte_count) == (3, 3 * len(FRAME))
        assert len(await everything(sw.read(fy.P4CounterEntry()))) == 8, "every cell of every counter"
        (hits,) = await everything(sw.read(fy.P4DirectCounterEntry("hits")))
        assert hits.packet_count == 3
        await sw.modify([fy.P4CounterEntry("kinds", index=1, data=fy.P4CounterData(packet_count=7))])
        (cell,) = await everything(sw.read(fy.P4CounterEntry("kinds", index=1)))
        assert cell.packet_count == 7

    session(work)


def test_digests_come_and_are_acknowledged(session):
    async def work(sw):
        await sw.insert([fy.P4DigestEntry("seen_t", max_list_size=1, ack_timeout_ns=5_000_000_000)])
        digests = sw.read_digests("seen_t")
        async with asyncio.timeout(5):
            session.ports[1].send(DIGEST)
            seen = await anext(digests)
            assert list(seen) == [{"src": 0x020000000063, "port": 1}]
            # Repeats are held back until it is acknowledged.
            session.ports[1].send(DIGEST)
            # Time for the frame to get there before the acknowledgement does.
            await asyncio.sleep(0.5)
            await sw.write([seen.ack()])
            session.ports[2].send(DIGEST)
            seen = await anext(digests)
            assert list(seen) == [{"src": 0x020000000063, "port": 2}]

    session(work)


def test_packets_go_out_and_come_in(session):
    async def work(sw):
        packets = sw.read_packets()
        await sw.write([fy.P4PacketOut(FRAME, egress_port=2, kind=0)])
        assert session.ports[2].receive() == FRAME
        entry = fy.P4TableEntry(
            "dmac", match=fy.Match(dst="02:00:00:00:00:01"), action=fy.Action("to_controller")
        )
        await sw.insert([entry])
        session.ports[1].send(FRAME)
        async with asyncio.timeout(5):
            packet = await anext(packets)
        assert packet.payload == FRAME
        assert (packet["ingress_port"], packet["kind"]) == (1, 5)

    session(work)


def test_multicast_groups_and_clone_sessions_come_back(session):
    async def work(sw):
        entries = [
            fy.P4MulticastGroupEntry(7, replicas=[1, 2]),
            fy.P4CloneSessionEntry(3, class_of_service=1, replicas=[2], packet_length_bytes=64),
        ]
        await sw.insert(entries)
        (group,) = await everything(sw.read(fy.P4MulticastGroupEntry(7)))
        assert sorted(replica if isinstance(replica, int) else replica[0] for replica in group.replicas) == [1, 2]
        (clones,) = await everything(sw.read(fy.P4CloneSessionEntry(3)))
        assert (clones.class_of_service, clones.packet_length_bytes) == (1, 64)
        await sw.delete(entries)
        assert await everything(sw.read(fy.P4MulticastGroupEntry())) == []

    session(work)


def test_the_second_controller_is_a_backup_and_takes_over(session, p4info):
    async def work(first):
        assert first.is_primary
        options = fy.SwitchOptions(p4info=p4info, p4blob=PROGRAM, device_id=1, initial_election_id=5)
        async with fy.Switch("second", ADDR, options) as second:
            assert not second.is_primary
            assert second.primary_id == first.election_id
        with pytest.raises(fy.P4ClientError) as refused:
            options = options(initial_election_id=20)
            async with fy.Switch("third", ADDR, options) as third:
                assert third.is_primary
                await third.insert([forward(2)])
                while first.is_primary:
                    await asyncio.sleep(0.01)
                await first.insert([forward(1, "02:00:00:00:00:02")])
        assert refused.value.code == fy.GRPCStatusCode.PERMISSION_DENIED

    session(work)


def test_a_role_with_a_config_writes_and_reads_what_it_names(session, p4info):
    async def work(default):
        await default.insert([fy.P4MulticastGroupEntry(1, replicas=[1])])
        config = stratum.P4RoleConfig(exclusive_p4_ids=[default.p4info.tables["dmac"].id])
        options = fy.SwitchOptions(p4info=p4info, device_id=1, role_name="l2", role_config=config)
        async with fy.Switch("l2", ADDR, options) as member:
            assert member.is_primary
            await member.insert([forward(2)])
            assert len(await everything(member.read(fy.P4TableEntry()))) == 1
            with pytest.raises(fy.P4ClientError) as refused:
                await member.write([+fy.P4TableEntry(
                    "acl", match=fy.Match(type=(0x0800, 0xFF00)), action=fy.Action("drop"), priority=7
                )])
            assert "PERMISSION_DENIED" in str(refused.value)

    session(work)


def test_a_controller_with_the_same_program_keeps_it(session):
    """finsy reads the cookie or the P4Info and pushes only differences."""

    async def write(sw):
        await sw.insert([forward(2)])

    async def read(sw):
        (entry,) = await everything(sw.read(fy.P4TableEntry("dmac")))
        assert entry.action.args["port"] == 2

    session(write)
    session(read)
