"""The scheduled class is a right: frames without a reservation, or at a wrong time, are best effort, and counted."""

import time

from p4rack_ptf.base import ATTEMPTS, RackTest
from ptf.testutils import group


class LaneTest(RackTest):
    def arrives(self, frame, source, destination, **demoted):
        """The frame reaches its destination, demoted for this reason if one is given."""
        self.send(source, frame)
        self.expect(frame, destination)
        self.expect_demoted(**demoted)

    def busy(self, destination, *sources):
        """Reserves enough at a destination that later reservations begin long after a burst may be early."""
        for source in sources:
            for lane in range(self.pl2["lanes"]):
                assert self.waits(source, destination, self.pl2["k"], cell=2 * lane)

    def ns(self, wait):
        """A grant's wait in nanoseconds. Those of counter mode are slots."""
        if self.pl2["mode"] == "clock":
            return wait * self.constants["time_unit_ns"]
        return self.ns_of_slots(wait)

    def ns_of_slots(self, slots):
        """Duration of slots of the first host."""
        return slots * self.hosts[0]["slot_units"] * self.constants["time_unit_ns"]


@group("pl2")
class WhatNobodyReservedIsBestEffort(LaneTest):
    def runTest(self):
        self.arrives(self.data(0, 2), 0, 2, uncovered=1)
        self.arrives(self.data(0, 2, unsolicited=True), 0, 2, uncovered_unsolicited=1)
        self.waits(0, 2)
        self.arrives(self.data(0, 3), 0, 3, uncovered=1)
        self.arrives(self.data(1, 2), 1, 2, uncovered=1)
        self.arrives(self.data(0, 2, cell=1), 0, 2, uncovered=1)
        self.arrives(self.data(0, 2), 0, 2)
        self.expect_drops()


@group("pl2")
class AHalfSendsWhatItReservedAndNoMore(LaneTest):
    def runTest(self):
        for source, unsolicited, reason in ((0, True, "uncovered_unsolicited"), (1, False, "uncovered")):
            self.reserve(source, 2, 2, unsolicited=int(unsolicited))
            frame = self.data(source, 2, unsolicited, payload=1500)
            self.arrives(frame, source, 2)
            self.arrives(frame, source, 2)
            self.arrives(frame, source, 2, **{reason: 1})


@group("pl2")
class ALaneHoldsOneReservationThatHasNotBegun(LaneTest):
    def runTest(self):
        self.busy(2, 1, 3)
        start = self.waits(0, 2)
        assert start
        assert self.waits(0, 2, cell=1) is None
        assert self.waits(0, 2) is None
        assert self.waits(0, 2, cell=2), "the pair's other lane"
        refused = self.by_reason(self.pl2["refused_counter"], self.pl2["refused_reasons"])
        assert refused["lane"] >= 2
        assert self.waits(0, 3), "another pair's"
        time.sleep(self.ns(max(start)) / 1e9)
        assert self.waits(0, 2, cell=1), "its start has passed"


@group("pl2")
class WhatComesTooEarlyIsBestEffort(LaneTest):
    def runTest(self):
        frame = self.data(0, 2)
        early_ns = self.ns_of_slots(self.pl2["early_slots"])
        for _ in range(ATTEMPTS):
            self.busy(2, 1, 3)
            before = time.monotonic_ns()
            start = self.waits(0, 2, 2)
            self.send(0, frame)
            other = self.waits(0, 2, cell=1)
            took_ns = time.monotonic_ns() - before
            assert start, "no grant"
            assert self.receive(2) == frame
            if took_ns < self.ns(max(start)) - early_ns:
                break
            # Tofino's slots are so short that on a busy machine the frame may have come in time.
            self.forget_all()
            self.demoted_before = self.demoted()
        else:
            raise AssertionError(f"{ATTEMPTS} times this machine needed longer than until the burst may come")
        self.expect_demoted(early=1)
        assert other is None, "the lane is not free for that"


@group("pl2")
class WhatComesTooLateIsBestEffort(LaneTest):
    def runTest(self):
        self.waits(0, 2, 2)
        self.arrives(self.data(0, 2), 0, 2)
        slot = max(self.hosts[host]["slot_units"] for host in (0, 2))
        time.sleep((self.pl2["late_slots"] + 1) * slot * self.constants["time_unit_ns"] / 1e9)
        self.arrives(self.data(0, 2), 0, 2, late=1)
