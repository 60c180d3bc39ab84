"""Base class of the tests: a rack's switch, its entries, frames of its hosts, and everything undone."""

import time

import ptf
import ptf.testutils as testutils
from p4.v1 import p4runtime_pb2
from ptf.base_tests import BaseTest
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from p4rack_ptf.names import Artefacts
from p4rack_ptf.session import Session

BROADCAST = "ff:ff:ff:ff:ff:ff"
STRANGER = "02:de:ad:00:00:01"
NO_TAG = 0x9000  # an EtherType that no switch here knows: loopback of the configuration test protocol
QUIET_S = 0.1
#: How often a machine may be slower than the lifetime of a port's reservations.
ATTEMPTS = 10


class RackTest(BaseTest):
    """A primary session and the rack's own entries; `tearDown` undoes all writes.

    Meters keep the program's initial state, open, so that no test depends on another's frames.
    """

    #: Parts of the rack's entries that the test wants: tables of NAME.json, and the multicast group.
    wants = ("guard", "forward", "group")

    def setUp(self):
        super().setUp()
        params = testutils.test_params_get()
        if reason := params["cannot"].get(self.name()):
            self.skip(reason)
        self.artefacts = Artefacts(params["artefacts"])
        self.constants, self.hosts = self.artefacts.constants, self.artefacts.hosts
        self.pl2, self.edm, self.layers = self.artefacts.pl2, self.artefacts.edm, self.artefacts.layers
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        self.undo = []
        self.token = 0
        self.session = Session(params["grpc_addr"], params["device_id"], params["election_id"])
        self.addCleanup(self.session.close)
        self.addCleanup(self.take_back)
        self.write(self.artefacts.rate_updates())
        for part in self.wants:
            updates = self.artefacts.group_updates() if part == "group" else self.artefacts.table_updates(part)
            self.write(updates)
        if self.pl2:
            # A port that was idle for 2^32 units may look reserved.
            self.free_ports()
        self.drops_before = self.drops()
        self.demoted_before = self.demoted() if self.pl2 else {}

    def name(self):
        return f"{type(self).__module__}.{type(self).__name__}"

    def skip(self, reason):
        """Ends the test, and says so."""
        # In pytest's form, for counters of skips. On a line of its own: the runner has written the
        # test's name and stays there.
        print(f"\nSKIPPED [1] {self.name()}: {reason}", flush=True)
        self.skipTest(reason)

    def counted(self, frame):
        """Its bytes as the program's counters and meters see them."""
        return len(frame) + self.constants.get("counted_fcs_bytes", 0)

    # What is written, and its undoing.

    def write(self, updates):
        """Writes, and remembers how to undo it."""
        self.session.write(updates)
        for update in updates:
            back = p4runtime_pb2.Update()
            back.CopyFrom(update)
            if update.type == p4runtime_pb2.Update.INSERT:
                back.type = p4runtime_pb2.Update.DELETE
            elif update.entity.HasField("meter_entry"):
                back.entity.meter_entry.ClearField("config")
            else:
                raise ValueError(f"no way is known to undo {update}")
            self.undo.append(back)

    def remove(self, updates):
        """Deletes the entries that `write` wrote."""
        for update in updates:
            back = p4runtime_pb2.Update(type=p4runtime_pb2.Update.DELETE, entity=update.entity)
            self.session.write([back])
            self.undo.remove(back)

    def take_back(self):
        for update in reversed(self.undo):
            self.session.write([update])
        if self.pl2:
            while self.session.packet_in(0) is not None:
                pass
            self.forget_all()
        for table in self.artefacts.info.tables:
            if table.is_const_table:
                continue
            entity = p4runtime_pb2.Entity()
            entity.table_entry.table_id = table.preamble.id
            left = self.session.read(entity)
            assert not left, f"{table.preamble.name} still holds {len(left)} entries"

    def forget_all(self):
        """Takes back the reservations of all cells and ports."""
        pairs = [(source, to) for source in range(len(self.hosts)) for to in range(len(self.hosts))]
        for source, destination in pairs:
            for cell in range(2 * self.pl2["lanes"]):
                self.forget(source, destination, cell)
        self.free_ports()

    def free_ports(self):
        """From now on, nothing is reserved at any host's port."""
        for host in self.hosts:
            for target in self.pl2["targets"]:
                self.manage("PL2_MGMT_RESET", target, host["port"])

    # Frames.

    def frame(self, source, destination, payload=bytes(46), tag=None):
        """A frame of host `source` (its index) to a host's index or an address."""
        frame = Ether(src=self.mac(source), dst=self.mac(destination), type=NO_TAG)
        if tag is not None:
            tag.type, frame.type = NO_TAG, 0x8100
            frame /= tag
        return bytes(frame / Raw(payload))

    def mac(self, host):
        return self.hosts[host]["mac"] if isinstance(host, int) else host

    def port(self, host):
        return self.hosts[host]["port"]

    def send(self, host, frame):
        testutils.send_packet(self, self.port(host), frame)

    def receive(self, host, timeout_s=2.0):
        """The next frame that reaches a host, or None."""
        result = self.dataplane.poll(device_number=0, port_number=self.port(host), timeout=timeout_s)
        return bytes(result.packet) if isinstance(result, self.dataplane.PollSuccess) else None

    def expect(self, frame, *hosts):
        """The frame reaches these hosts, and nothing else reaches anybody."""
        for host in hosts:
            found = self.receive(host)
            assert found == frame, f"{self.hosts[host]['name']} got {hexed(found)} instead of {hexed(frame)}"
        self.expect_nothing()

    def expect_nothing(self):
        time.sleep(QUIET_S)
        for host in range(len(self.hosts)):
            found = self.receive(host, timeout_s=0)
            assert found is None, f"{self.hosts[host]['name']} got {hexed(found)}"

    # Counters.

    def counter(self, name, index=None):
        """Index → (packets, bytes)."""
        entity = p4runtime_pb2.Entity()
        entity.counter_entry.counter_id = self.artefacts.id("counters", name)
        if index is not None:
            entity.counter_entry.index.index = index
        cells = [found.counter_entry for found in self.session.read(entity)]
        return {cell.index.index: (cell.data.packet_count, cell.data.byte_count) for cell in cells}

    def drops(self):
        """Reason → packets dropped for it since the program was installed."""
        return self.by_reason(self.constants["drop_counter"], self.constants["drop_reasons"])

    def demoted(self):
        """Reason → packets that lost the class they claimed for it since the program was installed."""
        return self.by_reason(self.pl2["demoted_counter"], self.pl2["demoted_reasons"])

    def by_reason(self, counter, reasons):
        cells = self.counter(counter)
        return {reason: cells[index][0] for index, reason in enumerate(reasons)}

    def expect_drops(self, **expected):
        """Expects these new drops since the test's start or the last call, and no others."""
        self.drops_before = self.expect_new("dropped", self.drops, self.drops_before, expected)

    def expect_demoted(self, **expected):
        """Expects these new demotions since the test's start or the last call, and no others."""
        self.demoted_before = self.expect_new("demoted", self.demoted, self.demoted_before, expected)

    def expect_new(self, what, read, before, expected):
        """Expects these counts beyond `before`; returns the current counts."""
        deadline = time.monotonic() + 2
        while True:
            now = read()
            new = {reason: now[reason] - before[reason] for reason in now}
            new = {reason: count for reason, count in new.items() if count}
            if new == expected or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        assert new == expected, f"{what} {new}, expected {expected}"
        return now

    # The controller's packets.

    def packet_out(self, frame, port=0):
        (field,) = self.artefacts.header("packet_out")
        self.session.packet_out(frame, [(field.id, port)])

    # PL2.

    def rsv(self, source, destination, demand=1, cell=0, tagged=True, parts=0, **fields):
        """A reservation of `demand` slots, and of parts of one, as its bytes."""
        kind = self.pl2["kinds"]["PL2_RSV"]
        demand = demand * self.pl2["slot_parts"] + parts
        control = {"version": self.pl2["version"], "kind": kind, "demand": demand, "cell": cell}
        frame = Ether(src=self.mac(source), dst=self.mac(destination))
        if tagged:
            frame /= Dot1Q(prio=self.constants["priorities"]["control"], vlan=0)
        frame = bytes(frame / self.layers.Control(**{**control, **fields}))
        return frame.ljust(60, b"\0")

    def reserve(self, source, destination, demand=1, cell=0, **fields):
        """Sends a reservation; returns the grant, and the times around the exchange."""
        frame = self.rsv(source, destination, demand, cell, **fields)
        before = time.monotonic_ns()
        self.send(source, frame)
        answer = self.receive(source)
        after = time.monotonic_ns()
        assert answer is not None, "no grant"
        return Ether(answer), (before, after)

    def waits(self, source, destination, demand=1, cell=0):
        """Both replies of a grant; None where it grants nothing now."""
        grant = self.reserve(source, destination, demand, cell)[0][self.layers.Control]
        waits = grant.send_wait, grant.recv_wait
        return None if waits == (self.pl2["not_now"], self.pl2["not_now"]) else waits

    def data(self, source, destination, unsolicited=False, cell=0, payload=46):
        """A frame of the reservation in a cell, as its bytes."""
        vlan = self.pl2["vid"] + cell
        tag = Dot1Q(prio=self.constants["priorities"]["scheduled"], dei=int(unsolicited), vlan=vlan)
        return self.frame(source, destination, bytes(payload), tag)

    def management(self, kind, target, port, value=0, **fields):
        """A management frame, as its bytes."""
        target = self.pl2["targets"].get(target, target)
        self.token += 1
        header = self.layers.Management(
            version=self.pl2["version"],
            kind=self.pl2["kinds"][kind],
            target=target,
            index=port,
            token=self.token,
            value=value,
            **fields,
        )
        return bytes(Ether(src="00:00:00:00:00:00", dst="00:00:00:00:00:00") / header).ljust(60, b"\0")

    def forget(self, source, destination, cell):
        """Takes back the slots of a pair's cell; returns their number."""
        source, destination = self.hosts[source], self.hosts[destination]
        number = source["source_cells"] + destination["destination_cells"] + cell
        return self.manage(
            "PL2_MGMT_FORGET", "in", source["port"], destination=destination["port"], cell=number
        )

    def manage(self, kind, target, port, value=0, **fields):
        """Sends a management frame by packet-out; the value in its reply."""
        self.packet_out(self.management(kind, target, port, value, **fields))
        packet = self.session.packet_in()
        assert packet is not None, f"no reply about port {port}"
        reply = Ether(packet.payload)[self.layers.Management]
        assert reply.kind == self.pl2["kinds"]["PL2_MGMT_REPLY"]
        assert (reply.token, reply.index) == (self.token, port)
        return reply.value

    def slot_units(self, host):
        """Length of a slot of the host's port: time units in clock mode, 1 in counter mode."""
        return self.hosts[host]["slot_units"] if self.pl2["mode"] == "clock" else 1

    def part_units(self, host):
        """Length of a part of a slot, the unit of reservations, in time units."""
        return self.slot_units(host) // self.pl2["slot_parts"]

    def beyond_threshold(self, host):
        """Value of an out register at which unsolicited frames are dropped: in clock mode far
        enough that it still is when the frame comes."""
        if self.pl2["mode"] == "clock":
            return self.pl2["horizon_units"] // 8 * 7
        return self.pl2["drop_threshold_slots"] + 1

    def while_beyond_threshold(self, host, attempt):
        """Writes that value and makes the attempt, again if that time was over before its end: Tofino's may be 60 ms.

        An attempt returns False, and undoes its changes, if it saw the behaviour without those reservations.
        """
        reserved = self.beyond_threshold(host) - self.pl2["drop_threshold_slots"] * self.slot_units(host)
        clock = self.pl2["mode"] == "clock"
        for _ in range(ATTEMPTS):
            began_ns = time.monotonic_ns()
            self.manage("PL2_MGMT_WRITE", "out", self.port(host), self.beyond_threshold(host))
            if attempt():
                return
            took_ns = time.monotonic_ns() - began_ns
            assert clock and self.units(took_ns) > reserved, f"as if nothing were reserved, after {took_ns} ns"
        raise AssertionError(f"{ATTEMPTS} times this machine needed longer than {reserved} units")

    def reserves_beyond_threshold(self, source, destination):
        """An attempt to get slots for a burst that may go unsolicited if it need not wait."""
        grant = self.reserve(source, destination, unsolicited=1)[0][self.layers.Control]
        if grant.recv_wait > self.pl2["t_slots"] * self.slot_units(destination):
            return True
        self.forget(source, destination, 0)
        return False

    def units(self, ns):
        """Nanoseconds in the switch's time units."""
        return ns / self.constants["time_unit_ns"]


def hexed(frame):
    return "nothing" if frame is None else frame.hex()
