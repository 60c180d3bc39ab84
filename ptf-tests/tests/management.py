"""Management frames: PL2's registers through the controller's port."""

from p4rack_ptf.base import RackTest
from ptf.testutils import group
from scapy.layers.l2 import Ether


@group("counter_mode")
class EveryRegisterIsWrittenReadAndReset(RackTest):
    def runTest(self):
        registers = [(target, host["port"]) for target in self.pl2["targets"] for host in self.hosts]
        for value, (target, port) in enumerate(registers, start=1):
            assert self.manage("PL2_MGMT_WRITE", target, port, value) == 0
        for value, (target, port) in enumerate(registers, start=1):
            assert self.manage("PL2_MGMT_READ", target, port) == value
            assert self.manage("PL2_MGMT_RESET", target, port) == value, "reading changes nothing"
            assert self.manage("PL2_MGMT_READ", target, port) == 0


@group("clock_mode")
class EveryRegisterIsWrittenReadAndResetInTime(RackTest):
    def runTest(self):
        second = int(self.units(1e9))
        for target in self.pl2["targets"]:
            for host in self.hosts:
                assert self.manage("PL2_MGMT_WRITE", target, host["port"], second) == 0
                assert 0 < self.manage("PL2_MGMT_READ", target, host["port"]) < second
                assert 0 < self.manage("PL2_MGMT_RESET", target, host["port"]) < second
                assert self.manage("PL2_MGMT_READ", target, host["port"]) == 0


@group("pl2")
class RegistersBeyondTheHostsPortsExist(RackTest):
    def runTest(self):
        last = self.artefacts.size("meters", self.constants["meters"]["control"]) - 1
        if self.pl2["mode"] == "clock":
            # A port that was idle for 2^32 units may look reserved.
            self.manage("PL2_MGMT_RESET", "out", last)
        assert self.manage("PL2_MGMT_READ", "out", last) == 0
        self.packet_out(self.management("PL2_MGMT_READ", "out", last + 1))
        assert self.session.packet_in(0.2) is None
        self.expect_drops(bad_index=1)


@group("counter_mode")
class WhatADeadSourceLeftIsTakenBack(RackTest):
    def runTest(self):
        self.waits(0, 2, 4)
        self.waits(0, 3, 2)
        self.waits(1, 2, 3)
        assert self.forget(0, 2, 1) == 0, "the other half holds nothing"
        for held in (4, 0):
            # Once more does no harm.
            assert self.forget(0, 2, 0) == held
            assert self.manage("PL2_MGMT_READ", "in", self.port(0)) == 2, "what it reserved elsewhere stays"
            assert self.manage("PL2_MGMT_READ", "out", self.port(2)) == 3, "the living host's stays"
        self.send(0, self.data(0, 2))
        assert self.receive(2) is not None
        self.expect_demoted(uncovered=1)


@group("pl2")
class NoCellIsForgottenThatDoesNotExist(RackTest):
    def runTest(self):
        for fields in ({"cell": 0xFFFFFFFF}, {"cell": 0, "destination": 0xFFFF}):
            self.packet_out(self.management("PL2_MGMT_FORGET", "in", self.port(0), **fields))
            assert self.session.packet_in(0.2) is None
            self.expect_drops(bad_index=1)


@group("pl2")
class HostsDoNotManage(RackTest):
    def runTest(self):
        frame = self.management("PL2_MGMT_WRITE", "in", self.port(1), 7)
        self.send(0, self.frame(0, 1)[:12] + frame[12:])
        self.expect_nothing()
        assert self.session.packet_in(0.1) is None
        self.expect_drops(management_from_host=1)
        assert self.manage("PL2_MGMT_READ", "in", self.port(1)) == 0


@group("pl2")
class RepliesGoToTheControllerAlone(RackTest):
    def runTest(self):
        frame = self.management("PL2_MGMT_READ", "in", self.port(0))
        self.packet_out(frame)
        packet = self.session.packet_in()
        (field,) = self.artefacts.header("packet_in")
        (metadata,) = packet.metadata
        assert metadata.metadata_id == field.id
        assert int.from_bytes(metadata.value, "big") == self.constants["cpu_port"]
        assert len(packet.payload) == len(frame)
        assert Ether(packet.payload)[self.layers.Management].token == self.token
        self.expect_nothing()
