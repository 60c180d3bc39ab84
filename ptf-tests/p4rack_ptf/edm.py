"""Shared by the tests of EDM: its frames, its registers, and the lanes of pairs."""

import time

from scapy.layers.l2 import Dot1Q, Ether

from p4rack_ptf.base import RackTest


class EdmTest(RackTest):
    """A rack's switch with EDM; without it, an ordinary test. `tearDown` frees all lanes and links."""

    def setUp(self):
        super().setUp()
        if self.edm:
            # A link that was idle for 2^32 units may look taken once, and no grant follows then.
            self.free_links()
        self.demoted_before = self.edm_demoted() if self.edm else self.demoted_before

    def take_back(self):
        if self.edm:
            self.free()
        super().take_back()

    def free(self):
        """Ends all messages, and frees all links."""
        for source in range(len(self.hosts)):
            for memory in self.memory_nodes():
                for cell in range(2 * self.edm["lanes"]):
                    self.edm_manage("EDM_MGMT_RESET", "rights", self.pair(source, memory) + cell)
        self.free_links()

    def free_links(self):
        """From now on, no link is granted to anybody."""
        for host in self.hosts:
            for target in self.edm["registers"]:
                if target != "rights":
                    self.edm_manage("EDM_MGMT_RESET", target, host["port"])

    # Places.

    def memory_nodes(self):
        """Hosts with memory, by their index."""
        return [index for index, host in enumerate(self.hosts) if host["name"] in self.edm["memory"]]

    def pair(self, source, memory):
        """The first lane of a pair of a requester and a memory node."""
        return self.hosts[source]["edm_asks_cells"] + self.hosts[memory]["edm_asked_cells"]

    def cell(self, source, memory, message, answer=False):
        """The lane of a message."""
        return self.pair(source, memory) + message % self.edm["lanes"] + answer * self.edm["lanes"]

    def least_ns(self, host, size):
        """Least time of `size` bytes of a message on a host's link: without headers and gaps."""
        return size * 8 * 1_000_000_000 // self.hosts[host]["rate_bps"]

    # Frames.

    def edm_frame(self, source, destination, header, data=b"", priority="edm_control"):
        """An EDM frame of a host, tagged, as its bytes."""
        frame = Ether(src=self.mac(source), dst=self.mac(destination))
        frame /= Dot1Q(prio=self.constants["priorities"][priority], vlan=0)
        return (bytes(frame / header) + data).ljust(60, b"\0")

    def notification(self, source, destination, total, message=0, **fields):
        """A demand to write `total` bytes."""
        control = {"version": self.edm["version"], "kind": self.edm["kinds"]["EDM_NOTIFY"]}
        header = self.layers.EdmControl(**{**control, "id": message, "bytes": total, **fields})
        return self.edm_frame(source, destination, header)

    def message(self, kind, source, destination, total, message=0, offset=0, size=0, **fields):
        """A request, or a chunk of a message with its bytes."""
        start = {"version": self.edm["version"], "kind": self.edm["kinds"][kind]}
        numbers = {"id": message, "total": total, "offset": offset, "bytes": size}
        header = self.layers.EdmMessage(**{**start, **numbers, **fields})
        priority = "edm_data" if kind in ("EDM_WREQ", "EDM_RRES") else "edm_control"
        return self.edm_frame(source, destination, header, bytes(size), priority)

    def asked(self, source, frame, answered_at=None):
        """Sends a demand. Returns the answer at a host, as its EDM header, and the times around the exchange."""
        before = time.monotonic_ns()
        self.send(source, frame)
        answer = self.receive(source if answered_at is None else answered_at)
        assert answer is not None, "the demand was not granted"
        header = Ether(answer)
        return self.edm_header(header), (before, time.monotonic_ns())

    def edm_header(self, frame):
        """The EDM header of a frame."""
        found = [layer for layer in (self.layers.EdmControl, self.layers.EdmMessage) if layer in frame]
        assert len(found) == 1, f"no EDM frame: {frame!r}"
        return frame[found[0]]

    def granted(self, source, destination, total, message=0):
        """Demands time for a write; the grant, and when it was on its way."""
        grant, when = self.asked(source, self.notification(source, destination, total, message))
        assert (grant.kind, grant.id) == (self.edm["kinds"]["EDM_GRANT"], message)
        return grant, when

    def chunks(self, total):
        """Offset and bytes of each chunk of a message."""
        step = self.edm["chunk_bytes"]
        return [(offset, min(step, total - offset)) for offset in range(0, total, step)]

    # Registers and counters.

    def edm_management(self, kind, target, index, value=0):
        """A management frame, as its bytes."""
        self.token += 1
        header = self.layers.EdmManagement(
            version=self.edm["version"],
            kind=self.edm["kinds"][kind],
            target=self.edm["targets"].get(target, target),
            index=index,
            token=self.token,
            value=value,
        )
        return bytes(Ether(src="00:00:00:00:00:00", dst="00:00:00:00:00:00") / header).ljust(60, b"\0")

    def edm_manage(self, kind, target, index, value=0):
        """Sends a management frame by packet-out; the value in its reply."""
        self.packet_out(self.edm_management(kind, target, index, value))
        packet = self.session.packet_in()
        assert packet is not None, f"no reply about {target} {index}"
        reply = Ether(packet.payload)[self.layers.EdmManagement]
        assert reply.kind == self.edm["kinds"]["EDM_MGMT_REPLY"]
        assert (reply.token, reply.index) == (self.token, index)
        return reply.value

    def edm_demoted(self):
        """Reason → data that lost its class for it since the program was installed."""
        return self.by_reason(self.edm["demoted_counter"], self.edm["demoted_reasons"])

    def expect_edm_demoted(self, **expected):
        """Expects these new demotions since the test's start or the last call, and no others."""
        self.demoted_before = self.expect_new("demoted", self.edm_demoted, self.demoted_before, expected)
