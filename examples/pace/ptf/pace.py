"""Pace: the switch answers requests with the wait until the destination's link is free."""

import time

from p4rack_ptf.base import BROADCAST, RackTest
from scapy.layers.l2 import Ether

ASK, GRANT = 1, 2


class PaceTest(RackTest):
    def ask(self, source, destination, frames, kind=ASK):
        """A request as its bytes."""
        header = self.layers.Pace(kind=kind, frames=frames, id=7)
        ether = Ether(src=self.mac(source), dst=self.mac(destination))
        return bytes(ether / header).ljust(60, b"\0")

    def wait_ns(self, source, destination, frames):
        """Sends a request; the wait in its grant."""
        self.send(source, self.ask(source, destination, frames))
        frame = self.receive(source)
        assert frame is not None, "no grant"
        grant = Ether(frame)
        assert (grant.src, grant.dst) == (self.mac(destination), self.mac(source))
        grant = grant[self.layers.Pace]
        assert (grant.kind, grant.frames, grant.id) == (GRANT, frames, 7)
        return grant.wait_ns


class RequestsOfAllHostsWaitForEachOther(PaceTest):
    def runTest(self):
        frames, slot_ns = self.constants["pace"]["frames"], self.hosts[0]["pace_slot_ns"]
        began_ns = time.monotonic_ns()
        waits = [self.wait_ns(source, 0, frames) for source in (1, 2, 3)]
        took_ns = time.monotonic_ns() - began_ns
        for before, wait in enumerate(waits):
            reserved = before * frames * slot_ns
            assert max(0, reserved - took_ns) <= wait <= reserved, (waits, took_ns)
        # Another destination's link is free.
        assert self.wait_ns(1, 4, frames) == 0
        time.sleep((len(waits) * frames * slot_ns) / 1e9)
        assert self.wait_ns(1, 0, 0) == 0


class WhatIsNoRequestIsDropped(PaceTest):
    def runTest(self):
        frames = self.constants["pace"]["frames"]
        self.send(1, self.ask(1, 0, frames + 1))
        self.send(1, self.ask(1, 0, frames, kind=GRANT))
        self.send(1, self.ask(1, BROADCAST, frames))
        self.expect_nothing()
        self.expect_drops(pace_request=3)
