"""EDM: a host that demands time for memory messages gets it, chunk by chunk, and no host gets more."""

import time

from p4rack_ptf.edm import EdmTest
from ptf.testutils import group
from scapy.layers.l2 import Ether

#: Hosts with memory, and requesting hosts, by their index.
MEMORY, OTHER_MEMORY, ASKS, ALSO_ASKS = 0, 1, 2, 3


class Message:
    """A message whose chunks a test sends."""

    def send_chunk(self, kind, source, destination, total, offset, size, message=0):
        """Sends a chunk; it arrives as it was."""
        frame = self.message(kind, source, destination, total, message, offset, size)
        self.send(source, frame)
        found = self.receive(destination)
        assert found == frame, f"the chunk at {offset} did not arrive"

    def windows(self):
        """Bytes that a chunk grants: the next one in two modes, a whole window in the others."""
        whole = self.edm["mode"] in ("calendar", "matched")
        return self.edm["window_bytes"] if whole else self.edm["chunk_bytes"]


@group("edm")
class AShortWriteIsGrantedAsAWhole(Message, EdmTest):
    def runTest(self):
        total = self.edm["window_bytes"] - 10
        port, to = self.port(ASKS), self.port(MEMORY)
        demands = self.counter(self.edm["demands_counter"], port)[port][0]
        data = self.counter(self.edm["data_counter"], to)[to][0]
        grant, _ = self.granted(ASKS, MEMORY, total, message=5)
        assert (grant.answer, grant.offset, grant.bytes) == (0, 0, total)
        assert self.edm_manage("EDM_MGMT_READ", "rights", self.cell(ASKS, MEMORY, 5)) == total
        for offset, size in self.chunks(total):
            self.send_chunk("EDM_WREQ", ASKS, MEMORY, total, offset, size, message=5)
        self.expect_nothing()
        assert self.edm_manage("EDM_MGMT_READ", "rights", self.cell(ASKS, MEMORY, 5)) == 0
        assert self.counter(self.edm["demands_counter"], port)[port][0] == demands + 1
        assert self.counter(self.edm["data_counter"], to)[to][0] == data + len(self.chunks(total))
        self.expect_edm_demoted()
        # All of it is used up: once more is best effort, which carries it.
        self.send_chunk("EDM_WREQ", ASKS, MEMORY, total, 0, 64, message=5)
        self.expect_edm_demoted(uncovered=1)


@group("edm")
class ALongWriteIsGrantedWhileItPasses(Message, EdmTest):
    def runTest(self):
        window, chunk = self.edm["window_bytes"], self.edm["chunk_bytes"]
        total, granted = 2 * window + chunk // 2, window
        grant, _ = self.granted(ASKS, MEMORY, total)
        assert (grant.offset, grant.bytes) == (0, window)
        waits = {0: grant.wait}
        for offset, size in self.chunks(total):
            # As hosts do: under `matched`, a host that sends too early has to wait for others to pass.
            time.sleep(waits.get(offset, 0) * self.constants["time_unit_ns"] / 1e9)
            self.send_chunk("EDM_WREQ", ASKS, MEMORY, total, offset, size)
            if granted < total and (self.windows() == chunk or offset % window == 0):
                header = self.edm_header(Ether(self.receive(ASKS)))
                expected = min(self.windows(), total - granted)
                assert (header.kind, header.answer) == (self.edm["kinds"]["EDM_GRANT"], 0)
                assert (header.offset, header.bytes) == (granted, expected), f"behind {offset}: {header!r}"
                waits[granted] = header.wait
                granted += expected
        assert granted == total
        self.expect_nothing()
        self.expect_edm_demoted()


@group("edm")
class AReadIsAskedForAndGrantedByOneFrame(Message, EdmTest):
    def runTest(self):
        total = self.edm["chunk_bytes"] + 10
        request = self.message("EDM_RREQ", ASKS, MEMORY, total, message=1, key=7, address=1 << 40)
        passed, _ = self.asked(ASKS, request, answered_at=MEMORY)
        assert (passed.kind, passed.total, passed.key) == (self.edm["kinds"]["EDM_RREQ"], total, 7)
        assert passed.address == 1 << 40
        for offset, size in self.chunks(total):
            self.send_chunk("EDM_RRES", MEMORY, ASKS, total, offset, size, message=1)
        self.expect_nothing()
        self.expect_edm_demoted()


@group("edm")
class ANullResponseEndsAMessage(Message, EdmTest):
    def runTest(self):
        self.asked(ASKS, self.message("EDM_RREQ", ASKS, MEMORY, 100), answered_at=MEMORY)
        self.send_chunk("EDM_RRES", MEMORY, ASKS, 0, 0, 0)
        self.expect_edm_demoted()
        assert self.edm_manage("EDM_MGMT_READ", "rights", self.cell(ASKS, MEMORY, 0, answer=True)) == 0
        self.send_chunk("EDM_RRES", MEMORY, ASKS, 100, 0, 100)
        self.expect_edm_demoted(uncovered=1)


@group("edm")
class ADestinationIsGrantedOneMessageAfterTheOther(EdmTest):
    #: How often it is tried: on a machine that is busy for longer than the windows last, a try proves
    #: nothing.
    TRIES = 20

    def runTest(self):
        # Under `matched`, more of them would wait for others to pass.
        messages = [0] if self.edm["mode"] == "matched" else range(self.edm["demands"])
        total = self.edm["window_bytes"]
        demands = [(host, message) for host in (ASKS, ALSO_ASKS) for message in messages]
        for _ in range(self.TRIES):
            sent = time.monotonic_ns()
            for host, message in demands:
                self.send(host, self.notification(host, MEMORY, total, message))
            grants = [self.edm_header(Ether(self.receive(host))) for host, _ in demands]
            # Grants expire: at most the time of the whole exchange was used up.
            least = self.least_ns(MEMORY, total) * (len(demands) - 1) - (time.monotonic_ns() - sent)
            wait_ns = max(grant.wait for grant in grants) * self.constants["time_unit_ns"]
            assert wait_ns >= least, f"{wait_ns} ns, expected at least {least}"
            if least > 0:
                break
            self.free()
        else:
            raise AssertionError("this machine is too slow to tell: no exchange was over while windows lasted")
        elsewhere, _ = self.granted(ALSO_ASKS, OTHER_MEMORY, 64, message=1)
        if self.edm["mode"] in ("timed-dst", "matched"):
            assert elsewhere.wait == 0, "another destination is free"


@group("edm")
class MessagesOfAPairHaveLanesOfTheirOwn(Message, EdmTest):
    def runTest(self):
        for message in range(self.edm["demands"]):
            self.granted(ASKS, MEMORY, 64, message)
        # As many answers; each frees its lane with its last byte.
        for message in range(self.edm["demands"]):
            request = self.message("EDM_RREQ", ASKS, MEMORY, 64, message)
            self.asked(ASKS, request, answered_at=MEMORY)
            self.send_chunk("EDM_RRES", MEMORY, ASKS, 64, 0, 64, message)
            self.asked(ASKS, request, answered_at=MEMORY)
        self.send(ASKS, self.notification(ASKS, MEMORY, 64, message=0))
        self.expect_nothing()
        self.expect_drops(edm_lane_taken=1)


@group("edm")
class WhatIsLongerThanItSaysHasNoRight(Message, EdmTest):
    def runTest(self):
        self.granted(ASKS, MEMORY, 100)
        frame = self.message("EDM_WREQ", ASKS, MEMORY, 100, size=100) + bytes(200)
        self.send(ASKS, frame)
        if counter := self.edm.get("too_long_counter"):
            # Tofino knows a frame's length in egress only: it is dropped there.
            self.expect_nothing()
            assert sum(packets for packets, _ in self.counter(counter).values()) == 1
            return
        self.expect(frame, MEMORY)
        self.expect_edm_demoted(too_long=1)


@group("edm")
class RegistersAreWrittenReadAndReset(EdmTest):
    def runTest(self):
        rights = self.cell(ASKS, MEMORY, 1)
        assert self.edm_manage("EDM_MGMT_WRITE", "rights", rights, 77) == 0
        assert self.edm_manage("EDM_MGMT_READ", "rights", rights) == 77
        assert self.edm_manage("EDM_MGMT_RESET", "rights", rights) == 77
        assert self.edm_manage("EDM_MGMT_READ", "rights", rights) == 0
        ahead = self.edm["horizon_units"] // 2
        for target in self.edm["registers"]:
            if target == "rights":
                continue
            port = self.port(MEMORY)
            assert self.edm_manage("EDM_MGMT_WRITE", target, port, ahead) == 0
            if self.edm["mode"] != "calendar":
                # A calendar's cells are longer than its units.
                assert 0 < self.edm_manage("EDM_MGMT_READ", target, port) <= ahead
            assert self.edm_manage("EDM_MGMT_RESET", target, port) > 0
            assert self.edm_manage("EDM_MGMT_READ", target, port) == 0


@group("edm_matched")
class DemandsWaitAndTheShortestIsGrantedFirst(EdmTest):
    def runTest(self):
        ahead = self.edm["horizon_units"] // 2
        self.edm_manage("EDM_MGMT_WRITE", "destination", self.port(MEMORY), ahead)
        self.send(ASKS, self.notification(ASKS, MEMORY, 4 * self.edm["window_bytes"]))
        self.send(ALSO_ASKS, self.notification(ALSO_ASKS, MEMORY, 64))
        self.expect_nothing()
        self.expect_drops(edm_waits=2)
        self.edm_manage("EDM_MGMT_RESET", "destination", self.port(MEMORY))
        # A reset grants nothing: the next frame towards the destination searches for waiting demands.
        self.expect_nothing()
        self.send(OTHER_MEMORY, self.notification(OTHER_MEMORY, MEMORY, 64, message=1))
        grants = {host: self.edm_header(Ether(self.receive(host))) for host in (ASKS, ALSO_ASKS, OTHER_MEMORY)}
        assert grants[ASKS].bytes == self.edm["window_bytes"] and grants[ALSO_ASKS].bytes == 64
        assert grants[ALSO_ASKS].wait < grants[OTHER_MEMORY].wait < grants[ASKS].wait, f"{grants}"
        # On v1model copies look for demands, and the last one finds none; on Tofino the frames themselves do.
        looked = {"edm_looked": 1} if self.constants.get("arch", "v1model") == "v1model" else {}
        self.expect_drops(edm_waits=1, **looked)
