"""The binding guard: a port speaks for its own host only."""

from p4rack_ptf.base import BROADCAST, STRANGER, RackTest
from ptf.testutils import group


class AnothersAddressIsRefused(RackTest):
    def runTest(self):
        for source in (1, STRANGER):
            for destination in (2, BROADCAST):
                self.send(0, self.frame(source, destination))
        self.expect_nothing()
        self.expect_drops(spoofed=4)


class AHostWithoutEntryIsRefused(RackTest):
    wants = ("forward", "group")

    def runTest(self):
        entries = self.artefacts.table_updates("guard")
        self.write(entries[:1])
        passes, refused = self.frame(0, 1), self.frame(1, 0)
        self.send(0, passes)
        self.send(1, refused)
        self.expect(passes, 1)
        self.expect_drops(spoofed=1)
        self.remove(entries[:1])
        self.send(0, passes)
        self.expect_nothing()
        self.expect_drops(spoofed=1)


@group("pl2")
class NobodyReservesInAnothersName(RackTest):
    def runTest(self):
        self.send(1, self.rsv(0, 2, self.pl2["k"]))
        self.expect_nothing()
        self.expect_drops(spoofed=1)
        assert self.manage("PL2_MGMT_READ", "in", self.port(0)) == 0
        assert self.manage("PL2_MGMT_READ", "out", self.port(2)) == 0
