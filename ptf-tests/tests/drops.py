"""Every reason to drop a frame, provoked on its own."""

from p4.v1 import p4runtime_pb2
from p4rack_ptf.base import STRANGER, RackTest
from p4rack_ptf.cowbird import GAP, READ, WRITE, CowbirdTest, Set
from p4rack_ptf.edm import EdmTest
from ptf.testutils import group

#: What no single exchange provokes: cells taken between a demand's two passes, or a ring full of demands that were given
#: up; what is no loss and another test counts (`edm.DemandsWaitAndTheShortestIsGrantedFirst`).
ELSEWHERE = {"edm_no_time", "edm_waits", "edm_looked"}

#: Meters of bytes hold whole kilobits on Tofino.
KILOBIT_BYTES = 125


class CowbirdDrops(CowbirdTest):
    """How to provoke the engine's reasons, each after a new beginning."""

    def fresh(self):
        self.begin(self.served)
        return self.served

    def cowbird_bad_frame(self):
        # Cut behind the transport header: the announced bytes are missing.
        self.arrives("red", self.ack(self.fresh(), "red", 0)[:54])

    def cowbird_unknown_pair(self):
        self.send(self.stranger, self.ack(self.fresh(), "red", 0))

    def cowbird_no_instance(self):
        self.remove([self.turns(1)])
        self.write([self.turns(2)])
        served = self.fresh()
        self.turn()
        self.expect_probe(served, 0)
        # There is no second one. After a reply, the turn is over.
        self.turn()
        self.manage_cowbird("read", 0, 0)
        self.remove([self.turns(2)])
        self.write([self.turns(1)])

    def cowbird_bad_opcode(self):
        self.arrives("probe", self.ack(self.fresh(), "probe", 0))

    def cowbird_bad_data(self):
        served = self.fresh()
        self.offer(served, 1)
        self.take(served, 0, self.entry(READ, 1, 100))
        self.expect_pool_read(served, 0, 100)
        self.arrives("pool_read", self.answer(served, "pool_read", 0, bytes(96)))

    def cowbird_stale(self):
        self.arrives("entry", self.answer(self.fresh(), "entry", 7, self.entry(READ, 1, 8)))

    def cowbird_gap(self):
        self.arrives("response", self.ack(self.fresh(), "response", 0, syndrome=GAP))

    def cowbird_waits(self):
        served = self.fresh()
        self.offer(served, 2)
        self.take(served, 0, self.entry(WRITE, 1, 8))
        self.expect_payload_read(served, 0, 8)
        self.turn()
        self.expect_entry_read(served, 1)
        self.take(served, 1, self.entry(READ, 1, 8))

    def cowbird_corrupt(self):
        served = self.fresh()
        self.offer(served, 1)
        self.take(served, 0, self.entry(READ, 1, 0))

    def cowbird_nothing_to_do(self):
        self.arrives("red", self.ack(self.fresh(), "red", 1, done=1))

    def cowbird_management_from_host(self):
        self.send(self.compute, self.management_frame("set", 0, 0))

    def cowbird_bad_index(self):
        self.packet_out(self.management_frame("read", self.cowbird["instances"], 0))


class EveryReasonIsCountedAsItself(CowbirdDrops, EdmTest):
    """A reason that the program has and this test does not provoke is a failure too."""

    def runTest(self):
        if self.cowbird:
            self.served = Set()
            self.serve(self.served)
        for reason in self.constants["drop_reasons"]:
            if reason in ELSEWHERE:
                continue
            provoke = getattr(self, reason, None)
            assert provoke, f"no way is known to provoke a drop for {reason}"
            provoke()
            self.expect_drops(**{reason: 1})
        self.expect_nothing()

    def malformed(self):
        # Kernels don't carry frames shorter than an Ethernet header: the controller does.
        self.packet_out(self.frame(0, 1)[:13])

    def spoofed(self):
        self.send(0, self.frame(1, 2))

    def unknown_destination(self):
        self.send(0, self.frame(0, STRANGER))

    def same_port(self):
        self.send(0, self.frame(0, 0))

    def best_effort_meter(self):
        self.exhaust("best_effort", self.of_a_kilobit(self.frame(0, 1)), KILOBIT_BYTES)

    def control_meter(self):
        self.exhaust("control", self.rsv(0, 1), 1)

    def of_a_kilobit(self, frame):
        """The frame, padded until meters count this many bytes."""
        return frame.ljust(KILOBIT_BYTES - self.counted(b""), b"\0")

    def exhaust(self, meter, frame, cost):
        """Lets exactly one frame of a port pass, then takes the limit away."""
        update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY)
        entry = update.entity.meter_entry
        entry.meter_id = self.artefacts.id("meters", self.constants["meters"][meter])
        sender, receiver = {"best_effort": (0, 1), "control": (0, 0), "edm_control": (2, 2)}[meter]
        entry.index.index = self.port(sender)
        entry.config.cir = entry.config.pir = 1
        entry.config.cburst = entry.config.pburst = cost
        self.write([update])
        self.send(sender, frame)
        assert self.receive(receiver) is not None, "the first frame is within the burst"
        self.send(sender, frame)
        assert self.receive(receiver, timeout_s=0.2) is None
        back = self.undo.pop()
        self.session.write([back])
        if self.pl2:
            self.manage("PL2_MGMT_RESET", "in", self.port(0))

    def bad_version(self):
        self.send(0, self.rsv(0, 1, version=self.pl2["version"] + 1))

    def bad_kind(self):
        self.send(0, self.rsv(0, 1, kind=self.pl2["kinds"]["PL2_GRT"]))

    def bad_demand(self):
        self.send(0, self.rsv(0, 1, demand=self.pl2["k"] + 1))

    def bad_lane(self):
        self.send(0, self.rsv(0, 1, cell=2 * self.pl2["lanes"]))

    def unsolicited_over_threshold(self):
        self.reserve(0, 1, unsolicited=1)

        def refused():
            self.send(0, self.data(0, 1, unsolicited=True))
            if self.receive(1, timeout_s=0.2) is None:
                return True
            # The rest of those reservations might be long enough for slots.
            self.manage("PL2_MGMT_RESET", "out", self.port(1))
            self.forget(0, 1, 0)
            self.reserve(0, 1, unsolicited=1)
            return False

        self.while_beyond_threshold(1, refused)

    def unsolicited_has_slots(self):
        self.forget(0, 1, 0)
        self.while_beyond_threshold(1, lambda: self.reserves_beyond_threshold(0, 1))
        self.send(0, self.data(0, 1, unsolicited=True))

    def management_from_host(self):
        frame = self.management("PL2_MGMT_RESET", "in", self.port(0))
        header = self.frame(0, 1)[:12]
        self.send(0, header + frame[12:])

    def bad_target(self):
        self.packet_out(self.management("PL2_MGMT_READ", 2, self.port(0)))

    def bad_index(self):
        self.packet_out(self.management("PL2_MGMT_READ", "in", 0xFFFF))

    def edm_control_meter(self):
        self.exhaust("edm_control", self.of_a_kilobit(self.notification(2, 0, 64)), KILOBIT_BYTES)

    def edm_bad_version(self):
        self.send(2, self.notification(2, 0, 64, version=self.edm["version"] + 1))

    def edm_bad_kind(self):
        self.send(2, self.notification(2, 0, 64, kind=self.edm["kinds"]["EDM_GRANT"]))

    def edm_bad_demand(self):
        self.send(2, self.notification(2, 0, self.edm["message_bytes_max"] + 1))

    def edm_bad_lane(self):
        self.send(2, self.notification(2, 0, 64, message=self.edm["demands"]))

    def edm_no_memory(self):
        self.send(0, self.notification(0, 2, 64))

    def edm_lane_taken(self):
        self.granted(2, 0, 64, message=1)
        self.send(2, self.notification(2, 0, 64, message=1))

    def edm_management_from_host(self):
        frame = self.edm_management("EDM_MGMT_RESET", "rights", 0)
        self.send(0, self.frame(0, 1)[:12] + frame[12:])

    def edm_bad_target(self):
        self.packet_out(self.edm_management("EDM_MGMT_READ", 9, self.port(0)))

    def edm_bad_index(self):
        self.packet_out(self.edm_management("EDM_MGMT_READ", "destination", 0xFFFF))


class NothingIsDroppedUncounted(RackTest):
    """As many frames come out or are counted as went in."""

    def runTest(self):
        sent, passed = 60, 0
        for number in range(sent):
            source, destination = number % 3, [1, STRANGER, 0][number % 3]
            self.send(source, self.frame(source, destination))
        for host in (0, 1):
            while self.receive(host, timeout_s=0.3) is not None:
                passed += 1
        assert passed == 40
        self.expect_drops(unknown_destination=20)


@group("pl2")
class ReservationsCutShortAreMalformed(RackTest):
    def runTest(self):
        reservation = self.rsv(0, 1)
        for length in (20, 33):
            self.send(0, reservation[:length])
            self.expect_drops(malformed=1)
        self.expect_nothing()
