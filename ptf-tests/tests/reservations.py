"""PL2's reservations: RSV in, GRT out, registers between."""

import time

from p4rack_ptf.base import RackTest
from ptf.testutils import group
from scapy.layers.l2 import Dot1Q, Ether


@group("pl2")
class AGrantIsTheReservationTurnedAround(RackTest):
    def runTest(self):
        sent = Ether(self.rsv(0, 1, 2, id=0xDEADBEEF))
        grant, _ = self.reserve(0, 1, 2, id=0xDEADBEEF)
        assert (grant.src, grant.dst) == (sent.dst, sent.src)
        assert grant[Dot1Q].prio == self.constants["priorities"]["control"]
        expected = sent[self.layers.Control].copy()
        expected.kind = self.pl2["kinds"]["PL2_GRT"]
        assert bytes(grant[self.layers.Control]) == bytes(expected)
        self.expect_nothing()
        self.expect_drops()


@group("pl2")
class AnUntaggedReservationIsAsGood(RackTest):
    def runTest(self):
        grant, _ = self.reserve(0, 1, tagged=False)
        assert grant[self.layers.Control].kind == self.pl2["kinds"]["PL2_GRT"]
        assert Dot1Q not in grant


@group("counter_mode")
class ReservedSlotsAddUpAtBothPorts(RackTest):
    def runTest(self):
        assert self.waits(0, 2, 4) == (0, 0)
        assert self.waits(0, 3, 2) == (4, 0)
        assert self.waits(1, 2, 3) == (0, 4)
        assert self.manage("PL2_MGMT_READ", "in", self.port(0)) == 6
        assert self.manage("PL2_MGMT_READ", "out", self.port(2)) == 7


@group("counter_mode")
class CoveredFramesUseUpSlots(RackTest):
    def runTest(self):
        self.waits(1, 2, 3)
        self.waits(0, 2, 2)
        frame = self.data(0, 2)
        for _ in range(3):
            self.send(0, frame)
            assert self.receive(2) == frame
        # The third had no reservation: best effort, and the other host's slots stay.
        self.expect_demoted(uncovered=1)
        assert self.waits(0, 2, 1) == (0, 3)
        self.expect_drops()


@group("counter_mode")
class UnsolicitedFramesUseUpNothing(RackTest):
    def runTest(self):
        self.reserve(0, 2, 2, unsolicited=1)
        frame = self.data(0, 2, unsolicited=True)
        self.send(0, frame)
        self.expect(frame, 2)
        assert self.waits(0, 2, 1, cell=2) == (2, 2)


@group("counter_mode")
class WhatACellStillHoldsComesOffFirst(RackTest):
    def runTest(self):
        self.waits(1, 2, 3)
        self.waits(0, 2, 4)
        frame = self.data(0, 2)
        self.send(0, frame)
        assert self.receive(2) == frame
        assert self.waits(0, 2, 1) == (0, 3)
        # Demand 0 is a bare return.
        self.send(0, frame)
        assert self.receive(2) == frame
        assert self.waits(0, 2, 0) == (0, 3)
        assert self.manage("PL2_MGMT_READ", "in", self.port(0)) == 0
        self.expect_drops()


class ClockTest(RackTest):
    """Waits shrink while the tests run, so bounds follow the times at which frames were sent and received."""

    def assert_left(self, wait, reserved, first, second):
        """`wait` is the rest of `reserved` units between two exchanges."""
        least = reserved - self.units(second[1] - first[0])
        most = reserved - self.units(second[0] - first[1])
        assert max(least, 0) - 1 <= wait <= max(most, 0) + 1, f"{wait} not in {least} … {most}"


@group("clock_mode")
class ReservedTimeAddsUpAtBothPorts(ClockTest):
    def runTest(self):
        grant, first = self.reserve(0, 2, 4)
        assert grant[self.layers.Control].send_wait == 0
        assert grant[self.layers.Control].recv_wait == 0
        grant, second = self.reserve(1, 2, 4)
        assert grant[self.layers.Control].send_wait == 0
        self.assert_left(grant[self.layers.Control].recv_wait, 4 * self.slot_units(2), first, second)
        grant, third = self.reserve(0, 3, 1)
        self.assert_left(grant[self.layers.Control].send_wait, 4 * self.slot_units(0), first, third)
        assert grant[self.layers.Control].recv_wait == 0


@group("clock_mode")
class ReservationsEndByThemselves(ClockTest):
    def runTest(self):
        self.reserve(0, 2, 2)
        time.sleep(2 * self.hosts[2]["slot_ns"] / 1e9)
        grant, _ = self.reserve(0, 2, 1)
        assert grant[self.layers.Control].send_wait == 0
        assert grant[self.layers.Control].recv_wait == 0


@group("clock_mode")
class DataMovesNoClock(ClockTest):
    def runTest(self):
        _, first = self.reserve(0, 2, 4)
        frame = self.data(0, 2)
        for _ in range(3):
            self.send(0, frame)
            assert self.receive(2) == frame
        grant, second = self.reserve(0, 2, 1)
        self.assert_left(grant[self.layers.Control].recv_wait, 4 * self.slot_units(2), first, second)
        self.expect_drops()


@group("slot_parts")
@group("clock_mode")
class PartsOfASlotAddUp(ClockTest):
    def runTest(self):
        grant, first = self.reserve(0, 2, 2, parts=3)
        assert grant[self.layers.Control].recv_wait == 0
        reserved = (2 * self.pl2["slot_parts"] + 3) * self.part_units(2)
        grant, second = self.reserve(1, 2, 0, parts=1)
        self.assert_left(grant[self.layers.Control].recv_wait, reserved, first, second)
        grant, third = self.reserve(3, 2, 1)
        self.assert_left(grant[self.layers.Control].recv_wait, reserved + self.part_units(2), first, third)
        assert grant[self.layers.Control].send_wait == 0


@group("slot_parts")
@group("clock_mode")
class AReservationHasNoMorePartsThanKSlots(ClockTest):
    def runTest(self):
        grant, _ = self.reserve(0, 2, self.pl2["k"])
        assert grant[self.layers.Control].demand == self.pl2["k"] * self.pl2["slot_parts"]
        self.expect_drops()
        self.send(1, self.rsv(1, 2, self.pl2["k"], parts=1))
        self.expect_nothing()
        self.expect_drops(bad_demand=1)
