"""Unsolicited frames: accepted, in the requested number, until more than T is reserved at their destination."""

from p4rack_ptf.base import RackTest
from ptf.testutils import group


class ThresholdTest(RackTest):
    def set_reserved(self, host, slots):
        self.manage("PL2_MGMT_WRITE", "out", self.port(host), int(slots * self.slot_units(host)))

    def assert_passes(self, source, destination):
        frame = self.data(source, destination, unsolicited=True)
        self.send(source, frame)
        self.expect(frame, destination)
        self.expect_drops()

    def assert_refused(self, source, destination):
        self.send(source, self.data(source, destination, unsolicited=True))
        self.expect_nothing()
        self.expect_drops(unsolicited_over_threshold=1)


@group("pl2")
class UnsolicitedFramesPassWhileNothingIsReserved(ThresholdTest):
    def runTest(self):
        self.reserve(0, 1, unsolicited=1)
        self.assert_passes(0, 1)


@group("pl2")
class UnsolicitedFramesPassUpToTheThreshold(ThresholdTest):
    def runTest(self):
        self.reserve(0, 1, unsolicited=1)
        self.set_reserved(1, self.pl2["drop_threshold_slots"])
        self.assert_passes(0, 1)


@group("pl2")
class BeyondTheThresholdTheyAreDropped(ThresholdTest):
    def runTest(self):
        self.reserve(0, 1, unsolicited=1)
        self.reserve(0, 2, unsolicited=1)
        self.reserve(3, 1)
        self.manage("PL2_MGMT_WRITE", "out", self.port(1), self.beyond_threshold(1))
        self.assert_refused(0, 1)
        # Only that port's; and frames in its slots pass.
        self.assert_passes(0, 2)
        frame = self.data(3, 1)
        self.send(3, frame)
        self.expect(frame, 1)
        self.expect_demoted()


@group("pl2")
class ReservationsAloneReachTheThreshold(ThresholdTest):
    def runTest(self):
        self.reserve(0, 1, unsolicited=1)
        # In all lanes of all others, so that the frame comes within less than their own length.
        for source in (2, 3):
            for lane in range(self.pl2["lanes"]):
                self.reserve(source, 1, self.pl2["k"], cell=2 * lane)
        for lane in range(1, self.pl2["lanes"]):
            self.reserve(0, 1, self.pl2["k"], cell=2 * lane)
        self.send(0, self.data(0, 1, unsolicited=True))
        self.expect_nothing()
        self.expect_drops(unsolicited_over_threshold=1)


@group("pl2")
class WhatWaitsLongerHasItsSlots(ThresholdTest):
    def runTest(self):
        self.while_beyond_threshold(1, lambda: self.reserves_beyond_threshold(0, 1))
        self.send(0, self.data(0, 1, unsolicited=True))
        self.expect_nothing()
        self.expect_drops(unsolicited_has_slots=1)


@group("pl2")
class WhatWentUnsolicitedHasNoSlots(ThresholdTest):
    def runTest(self):
        self.reserve(0, 1, unsolicited=1)
        self.assert_passes(0, 1)
        frame = self.data(0, 1)
        self.send(0, frame)
        assert self.receive(1) == frame
        self.expect_demoted(uncovered=1)
