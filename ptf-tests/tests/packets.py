"""Packet-out: by port, and as if a host had sent it."""

import queue

from p4rack_ptf.base import BROADCAST, STRANGER, RackTest


class PacketsLeaveByThePortTheyName(RackTest):
    def runTest(self):
        for host in range(len(self.hosts)):
            # Addresses don't matter: the controller says where to.
            frame = self.frame(STRANGER, STRANGER, bytes([host]) * 60)
            self.packet_out(frame, self.port(host))
            self.expect(frame, host)
        self.expect_drops()


class PortZeroForwardsAsForAHost(RackTest):
    def runTest(self):
        frame = self.frame(STRANGER, 2)
        self.packet_out(frame)
        self.expect(frame, 2)
        frame = self.frame(STRANGER, BROADCAST)
        self.packet_out(frame)
        self.expect(frame, *range(len(self.hosts)))
        self.packet_out(self.frame(0, STRANGER))
        self.expect_nothing()
        self.expect_drops(unknown_destination=1)


class PortsThatDoNotExistAreRefused(RackTest):
    def runTest(self):
        self.packet_out(self.frame(0, 1), 0xFFFF)
        self.expect_nothing()
        self.expect_drops(unknown_destination=1)


class MetadataMustBeTheProgramsOwn(RackTest):
    def runTest(self):
        (field,) = self.artefacts.header("packet_out")
        for metadata in ([], [(field.id + 1, 1)], [(field.id, 1), (field.id + 1, 1)]):
            self.session.packet_out(self.frame(0, 1), metadata)
        self.expect_nothing()
        self.expect_drops()
        if self.reports_stream_errors():
            for _ in range(3):
                assert self.session.others.get(timeout=2).HasField("error")

    def reports_stream_errors(self):
        """Whether the switch names a refused packet; the standard allows it not to."""
        try:
            message = self.session.others.get(timeout=0.5)
        except queue.Empty:
            return False
        self.session.others.put(message)
        return True
