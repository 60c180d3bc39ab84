"""Plain switching, which every program does."""

from ptf.testutils import group
from p4rack_ptf.base import BROADCAST, STRANGER, RackTest
from scapy.layers.l2 import Dot1Q


class FramesReachTheirHostUnchanged(RackTest):
    def runTest(self):
        hosts = range(len(self.hosts))
        for source in hosts:
            for destination in hosts:
                if source != destination:
                    frame = self.frame(source, destination, bytes([source, destination]) * 40)
                    self.send(source, frame)
                    assert self.receive(destination) == frame, f"{source} to {destination}"
        self.expect_nothing()
        self.expect_drops()


class LongAndShortFramesPass(RackTest):
    def runTest(self):
        for length in (0, 1, 46, 1500):
            frame = self.frame(0, 1, bytes(length))
            self.send(0, frame)
            assert self.receive(1) == frame, f"{length} bytes of payload"
        self.expect_drops()


class TagsOfOthersPassUnchanged(RackTest):
    def runTest(self):
        frame = self.frame(1, 2, tag=Dot1Q(prio=3, dei=1, vlan=7))
        self.send(1, frame)
        self.expect(frame, 2)
        self.expect_drops()


class GroupsReachEverybodyElse(RackTest):
    def runTest(self):
        hosts = range(len(self.hosts))
        for destination in (BROADCAST, "33:33:00:00:00:01", "01:00:5e:00:00:fb"):
            frame = self.frame(1, destination)
            self.send(1, frame)
            self.expect(frame, *(host for host in hosts if host != 1))
        self.expect_drops()


class UnknownDestinationsAreNotFlooded(RackTest):
    def runTest(self):
        self.send(0, self.frame(0, STRANGER))
        self.expect_nothing()
        self.expect_drops(unknown_destination=1)


class EntriesDecideAndNothingElse(RackTest):
    wants = ("guard", "group")

    def runTest(self):
        frame = self.frame(0, 1)
        self.send(0, frame)
        self.expect_nothing()
        self.expect_drops(unknown_destination=1)
        entries = self.artefacts.table_updates("forward")
        self.write(entries)
        self.send(0, frame)
        self.expect(frame, 1)
        self.remove(entries)
        self.send(0, frame)
        self.expect_nothing()
        self.expect_drops(unknown_destination=1)


@group("l2_only")
class WithoutPl2ItsFramesAreOrdinary(RackTest):
    def runTest(self):
        frame = self.frame(0, 1, tag=Dot1Q(prio=7, vlan=100))
        self.send(0, frame)
        self.expect(frame, 1)
        self.expect_drops()
