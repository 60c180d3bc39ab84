"""Cowbird's engine: each answer becomes the next request, in order, once, and only for its own set."""

import time

from p4rack_ptf.cowbird import ACK, GAP, READ, REMOTE_ACCESS, WRITE, CowbirdTest, Set
from ptf.testutils import group
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether


def filled(size, seed=0):
    """Bytes that all differ from their neighbours."""
    return bytes((seed + 7 * n) & 0xFF for n in range(size))


class Requests:
    """A request's whole way, step by step."""

    def asked(self, served, kind, size, position=0, number=1, packets=0, **places):
        """Takes the entry at a position: the engine requests its data. `packets` of its kind were requested before."""
        self.take(served, position, self.entry(kind, number, size, **places))
        if kind == READ:
            self.expect_pool_read(served, packets, size, places.get("remote", 0))
        else:
            self.expect_payload_read(served, packets, size, places.get("local", 0))

    def data_passes(self, served, kind, data, packets=0, local=0, remote=0):
        """The read data become a WRITE, packet by packet. Returns the number of packets."""
        read, written = ("pool_read", "response") if kind == READ else ("payload", "pool_write")
        memory = self.reth(served.ADDRESS + self.response_at + local, served.KEY, len(data))
        if kind == WRITE:
            memory = self.reth(served.REGION_ADDRESS + remote, served.REGION_KEY, len(data))
        mtu = self.cowbird["mtu"]
        parts = [data[at : at + mtu] for at in range(0, len(data), mtu)]
        names = ["Only"] if len(parts) == 1 else ["First", *["Middle"] * (len(parts) - 2), "Last"]
        for nth, (name, part) in enumerate(zip(names, parts)):
            self.arrives(read, self.answer(served, read, packets + nth, part, name))
            headers = [memory] if nth == 0 else []
            is_last = nth == len(parts) - 1
            self.expect_sent(served, written, f"Write{name}", packets + nth, *headers, data=part, last=is_last)
        return len(parts)


@group("cowbird")
class ATurnProbesATailThatMayHaveMoved(CowbirdTest):
    needs_time = True

    def runTest(self):
        served = Set()
        self.serve(served)
        for probes in range(2):
            self.turn()
            self.expect_probe(served, probes)
            # Every other turn looks at the next entry itself.
            self.turn()
            self.expect_guess(served, 0)
            self.tail(served, probes, 0)
            self.expect_nothing()
            self.expect_drops(cowbird_nothing_to_do=1)
        self.begin(served)
        self.turn()
        self.expect_probe(served, 0)
        # One probe is under way at a time.
        for _ in range(2):
            self.turn()
            self.expect_guess(served, 0)
        self.tail(served, 0, 1)
        self.expect_entry_read(served, 0)
        self.expect_nothing()
        self.expect_drops()


@group("cowbird")
class AnEntryIsTakenBeforeTheTailTellsOfIt(Requests, CowbirdTest):
    needs_time = True

    def runTest(self):
        served = Set()
        self.serve(served)
        self.turn()
        self.expect_probe(served, 0)
        self.turn()
        self.expect_guess(served, 0)
        # Content of the entry before the thread has filled it: nothing, an entry of an earlier lap, the rest without
        # the id.
        entry = self.entry(READ, 1, 40)
        for before in (bytes(32), self.entry(READ, 2, 40), self.entry(WRITE, 2, 40), bytes(8) + entry[8:]):
            self.take_guess(served, 0, before)
            self.expect_nothing()
            self.expect_drops(cowbird_nothing_to_do=1)
        self.take_guess(served, 0, entry)
        self.expect_pool_read(served, 0, 40)
        # The same once more, and the one behind it, whose turn has not come yet if it is there.
        for position in (0, 2):
            self.take_guess(served, position, self.entry(READ, position + 1, 40, local=40 * position))
            self.expect_nothing()
            self.expect_drops(cowbird_nothing_to_do=1)
        self.data_passes(served, READ, filled(40))
        self.arrives("response", self.ack(served, "response", 0, done=1))
        self.expect_red(served, 0, reads=1, response_end=40)
        self.arrives("red", self.ack(served, "red", 0, done=1))
        # The probe was answered before: it is older than the finished requests.
        self.tail(served, 0, 0)
        self.expect_nothing()
        self.expect_drops(cowbird_nothing_to_do=2)
        self.turn()
        self.expect_probe(served, 1)
        self.turn()
        self.expect_guess(served, 1)
        # The one entry is known; a second one is requested.
        self.tail(served, 1, 1)
        self.expect_nothing()
        self.turn()
        self.expect_probe(served, 2)
        self.tail(served, 2, 2)
        self.expect_entry_read(served, 1)
        self.expect_drops(cowbird_nothing_to_do=1)


@group("cowbird")
class AnEntryThatWasGuessedMayHaveToWait(Requests, CowbirdTest):
    needs_time = True

    def runTest(self):
        served = Set()
        self.serve(served)
        self.offer(served, 1)
        self.asked(served, READ, 8)
        self.data_passes(served, READ, filled(8))
        self.arrives("response", self.ack(served, "response", 0, done=1))
        self.expect_red(served, 0, reads=1, response_end=8)
        self.turn()
        self.expect_probe(served, 1)
        self.turn()
        self.expect_guess(served, 1)
        write = self.entry(WRITE, 1, 8)
        self.take_guess(served, 1, write)
        self.expect_nothing()
        self.expect_drops(cowbird_waits=1)
        # Now it is known to be there, with any tail.
        self.arrives("red", self.ack(served, "red", 0, done=1))
        self.expect_entry_read(served, 1)
        self.take(served, 1, write)
        self.expect_payload_read(served, 0, 8)
        self.expect_nothing()
        self.expect_drops()


@group("cowbird")
class AReadGoesFromThePoolToTheRings(Requests, CowbirdTest):
    #: One packet; its length is no multiple of 4, nor of 8. First and last packet. And with one between.
    def runTest(self):
        mtu = self.cowbird["mtu"]
        self.serve(Set())
        for size in (33, 2 * mtu, 2 * mtu + 10):
            served = Set()
            self.begin(served)
            self.offer(served, 1)
            self.asked(served, READ, size, remote=64)
            packets = self.data_passes(served, READ, filled(size), remote=64)
            self.arrives("response", self.ack(served, "response", packets - 1, done=1))
            self.expect_red(served, 0, reads=1, response_end=size + -size % 8)
            self.arrives("red", self.ack(served, "red", 0, done=1))
            self.expect_nothing()
            self.expect_drops(cowbird_nothing_to_do=1)
            told = self.manage_cowbird("read", served.number, 0)
            assert (told.done, told.head, told.end) == (1, 1, 0)


@group("cowbird")
class AWriteGoesFromTheRingsToThePool(Requests, CowbirdTest):
    def runTest(self):
        mtu = self.cowbird["mtu"]
        self.serve(Set())
        for size in (8, mtu + 1):
            served = Set()
            self.begin(served)
            self.offer(served, 1)
            self.asked(served, WRITE, size, remote=1000)
            packets = self.data_passes(served, WRITE, filled(size), remote=1000)
            self.arrives("pool_write", self.ack(served, "pool_write", packets - 1, done=1))
            self.expect_red(served, 0, writes=1, request_end=size + -size % 8)
            self.arrives("red", self.ack(served, "red", 0, done=1))
            self.expect_nothing()
            self.expect_drops(cowbird_nothing_to_do=1)
            assert self.manage_cowbird("read", served.number, 1).done == 1


@group("cowbird")
class ReadsAreUnderWayTogetherAndToldTogether(Requests, CowbirdTest):
    needs_time = True

    def runTest(self):
        served = Set()
        self.serve(served)
        self.offer(served, 2)
        self.asked(served, READ, 16)
        self.turn()
        self.expect_entry_read(served, 1)
        self.asked(served, READ, 24, position=1, number=2, packets=1, local=16, remote=256)
        # The second one's data may not pass before the first one's.
        self.arrives("pool_read", self.answer(served, "pool_read", 1, filled(24)))
        self.expect_nothing()
        self.expect_drops(cowbird_stale=1)
        self.data_passes(served, READ, filled(16))
        self.data_passes(served, READ, filled(24), packets=1, local=16)
        # One acknowledgement for both.
        self.arrives("response", self.ack(served, "response", 1, done=2))
        self.expect_red(served, 0, reads=2, response_end=40)
        self.expect_nothing()
        self.expect_drops()


@group("cowbird")
class AReadWaitsForTheWriteBeforeIt(Requests, CowbirdTest):
    needs_time = True

    def runTest(self):
        served = Set()
        self.serve(served)
        self.offer(served, 2)
        self.asked(served, WRITE, 8)
        self.turn()
        self.expect_entry_read(served, 1)
        read = self.entry(READ, 1, 8)
        self.take(served, 1, read)
        self.expect_nothing()
        self.expect_drops(cowbird_waits=1)
        # It is not requested again before the write is done.
        self.turn()
        self.expect_probe(served, 1)
        self.tail(served, 1, 2)
        self.expect_nothing()
        self.expect_drops(cowbird_nothing_to_do=1)
        self.data_passes(served, WRITE, filled(8))
        self.arrives("pool_write", self.ack(served, "pool_write", 0, done=1))
        self.expect_red(served, 0, writes=1, request_end=8)
        self.turn()
        self.expect_entry_read(served, 1)
        self.take(served, 1, read)
        self.expect_pool_read(served, 0, 8)
        self.expect_nothing()
        self.expect_drops()


@group("cowbird")
class AWriteWaitsUntilTheThreadKnowsOfTheReadBeforeIt(Requests, CowbirdTest):
    needs_time = True

    def runTest(self):
        served = Set()
        self.serve(served)
        self.offer(served, 2)
        self.asked(served, READ, 8)
        self.data_passes(served, READ, filled(8))
        self.arrives("response", self.ack(served, "response", 0, done=1))
        self.expect_red(served, 0, reads=1, response_end=8)
        self.turn()
        self.expect_entry_read(served, 1)
        write = self.entry(WRITE, 1, 8)
        self.take(served, 1, write)
        self.expect_nothing()
        self.expect_drops(cowbird_waits=1)
        self.arrives("red", self.ack(served, "red", 0, done=1))
        self.expect_entry_read(served, 1)
        self.take(served, 1, write)
        self.expect_payload_read(served, 0, 8)
        self.expect_nothing()
        self.expect_drops()


@group("cowbird")
class WhatComesTwiceOrTooLateIsDropped(Requests, CowbirdTest):
    def runTest(self):
        served = Set()
        self.serve(served)
        self.turn()
        self.expect_probe(served, 0)
        for count in (1, 0):
            self.tail(served, count, 1)
            if count:
                # Of a probe that was not sent yet.
                self.expect_nothing()
                self.expect_drops(cowbird_stale=1)
        self.expect_entry_read(served, 0)
        self.stale(served, "probe", 0, (1).to_bytes(8, "big"))
        entry = self.entry(READ, 1, 40)
        self.stale(served, "entry", 1, entry)
        self.asked(served, READ, 40)
        self.stale(served, "entry", 0, entry)
        self.stale(served, "pool_read", 1, filled(40))
        self.data_passes(served, READ, filled(40))
        self.stale(served, "pool_read", 0, filled(40))
        for again in range(2):
            self.arrives("response", self.ack(served, "response", 0, done=1))
            if not again:
                self.expect_red(served, 0, reads=1, response_end=40)
        self.expect_nothing()
        self.expect_drops(cowbird_nothing_to_do=1)
        # More messages than may be under way are from another time; so is a red block that was not sent.
        for phase, count, done in (("response", 0, 2 + self.cowbird["in_flight"]), ("red", 1, 2)):
            self.arrives(phase, self.ack(served, phase, count, done))
            self.expect_nothing()
            self.expect_drops(cowbird_nothing_to_do=1)
        assert self.manage_cowbird("read", 0, 0).done == 1

    def stale(self, served, phase, count, data):
        self.arrives(phase, self.answer(served, phase, count, data))
        self.expect_nothing()
        self.expect_drops(cowbird_stale=1)


@group("cowbird")
class WhatIsLostIsAskedForAgainByTheSameNumbers(Requests, CowbirdTest):
    needs_time = True

    def runTest(self):
        served = Set()
        self.serve(served)
        before = self.sent(served, "again")
        self.offer(served, 2)
        self.asked(served, READ, 40)
        self.turn()
        self.expect_entry_read(served, 1)
        self.asked(served, READ, 40, position=1, number=2, packets=1, local=40)
        # Nothing comes from the pool.
        time.sleep(1.2 * self.cowbird["timeout_ns"] / 1e9)
        self.again(served)
        self.turn()
        self.expect_entry_read(served, 1)
        self.asked(served, READ, 40, position=1, number=2, packets=1, local=40)
        # Data passes, and its WRITE is lost: the second one's arrives with a gap.
        self.data_passes(served, READ, filled(40))
        self.data_passes(served, READ, filled(40, seed=1), packets=1, local=40)
        self.arrives("response", self.ack(served, "response", 1, syndrome=GAP))
        self.expect_nothing()
        self.expect_drops(cowbird_gap=1)
        self.again(served)
        self.data_passes(served, READ, filled(40))
        assert self.sent(served, "again") == before + 2
        self.expect_drops()

    def again(self, served):
        """From the first entry that is not done."""
        self.turn()
        self.expect_entry_read(served, 0)
        self.asked(served, READ, 40)


@group("cowbird")
class ASetGoesOnWhereItsRedBlockSays(Requests, CowbirdTest):
    def runTest(self):
        served = Set(reads=5, writes=2)
        self.serve(served)
        self.offer(served, 8)
        self.take(served, 7, self.entry(READ, 6, 8))
        self.expect_pool_read(served, 0, 8)
        self.data_passes(served, READ, filled(8))
        self.arrives("response", self.ack(served, "response", 0, done=1))
        self.expect_red(served, 0, reads=6, writes=2, response_end=8)
        assert [self.manage_cowbird("read", 0, side).done for side in (0, 1)] == [6, 2]


@group("cowbird")
class ASetThatIsRuinedIsServedNoMore(Requests, CowbirdTest):
    needs_time = True

    def runTest(self):
        served = Set()
        self.serve(served)
        ways = {
            "type": {"rw_type": 3},
            "region": {"region_id": 1},
            "bounds": {"req_addr": served.REGION_BYTES - 7},
            "length": {"length": served.RESPONSE_BYTES // 2 + 1},
            "place": {"resp_addr": self.response_at + 8},
            "id": {"request_id": 2},
            "tail": None,
        }
        assert set(ways) == set(self.cowbird["refusals"]), "a refusal that no test provokes"
        for refusal, fields in ways.items():
            self.begin(served)
            if fields is None:
                self.turn()
                self.expect_probe(served, 0)
                self.tail(served, 0, served.ENTRIES + 1)
            else:
                self.offer(served, 2)
                self.take(served, 0, self.entry(READ, 1, 8, **fields))
            self.expect_nothing()
            self.expect_drops(cowbird_corrupt=1)
            # The thread gets the reason, and no request of it is started any more.
            code = self.cowbird["refusals"][refusal]
            self.turn()
            self.expect_red(served, 0, refusal=code)
            assert self.manage_cowbird("read", 0, 0).end == code
            for position in (0, 1):
                self.take(served, position, self.entry(READ, position + 1, 8, local=8 * position))
            self.expect_nothing()
            # A tail contains no entries, and a thread with a wrong place of its data ends its turn.
            not_next = {"tail": 0, "place": 1}.get(refusal, 2)
            reasons = {"cowbird_stale": not_next, "cowbird_corrupt": 2 - not_next}
            if self.on_tofino:
                # Which of these it is depends on how far the first entry came there.
                self.expect_drops_among(2, "cowbird_stale", "cowbird_waits", "cowbird_corrupt")
            else:
                self.expect_drops(**{reason: count for reason, count in reasons.items() if count})


@group("cowbird")
class SetsHaveTurnsNumbersAndCountersOfTheirOwn(Requests, CowbirdTest):
    needs_time = True

    def runTest(self):
        sets = [Set(0), Set(1, reads=3)]
        self.serve(*sets)
        before = [self.sent_by_phase(served) for served in sets]
        for served in sets:
            self.offer(served, served.reads + 1)
        for served in sets:
            self.asked(served, READ, 8, position=served.reads, number=served.reads + 1)
            self.data_passes(served, READ, filled(8, seed=served.number))
        # The first one is ruined; all requests of the second one are done.
        self.turn()
        self.expect_probe(sets[0], 1)
        self.tail(sets[0], 1, 100)
        self.expect_nothing()
        self.expect_drops(cowbird_corrupt=1)
        self.arrives("response", self.ack(sets[1], "response", 0, done=1))
        self.expect_red(sets[1], 0, reads=4, response_end=8)
        after = [self.sent_by_phase(served) for served in sets]
        sent = [{phase: now[phase] - then[phase] for phase in now} for now, then in zip(after, before)]
        none = dict.fromkeys(before[0], 0)
        assert sent == [
            {**none, "probe": 2, "entry": 1, "pool_read": 1, "response": 1},
            {**none, "probe": 1, "entry": 1, "pool_read": 1, "response": 1, "red": 1},
        ], sent
        # No longer served, its frames match no set.
        self.remove(self.entries(sets[1]))
        self.arrives("response", self.ack(sets[1], "response", 0, done=1))
        self.turn()
        self.expect_nothing()
        self.expect_drops(cowbird_unknown_pair=1, cowbird_no_instance=1)


@group("cowbird")
class OnlyTheOtherEndOfAQueuePairIsHeard(CowbirdTest):
    def runTest(self):
        served = Set()
        self.serve(served)
        self.turn()
        self.expect_probe(served, 0)
        tail = (1).to_bytes(8, "big")
        right = self.answer(served, "probe", 0, tail)
        wrong = {
            "port": (self.pool, right),
            "queue pair": (self.compute, self.answer(served, "probe", 0, tail, qpn=served.own(15))),
            "another phase's": (self.compute, self.answer(served, "pool_read", 0, tail, host=self.compute)),
            "MAC": (self.compute, right[:6] + bytes.fromhex(self.mac(self.pool).replace(":", "")) + right[12:]),
        }
        spoofed = Ether(right)
        spoofed[IP].src, spoofed[IP].chksum = self.ip(self.pool), None
        wrong["IP"] = (self.compute, bytes(spoofed))
        stranger = self.answer(served, "probe", 0, tail, host=self.stranger)
        wrong["host"] = (self.stranger, stranger)
        for what, (host, frame) in wrong.items():
            self.send(host, frame)
            self.expect_nothing()
            self.expect_drops(cowbird_unknown_pair=1)
            assert frame != right or host != self.compute, what
        # A turn from a host is none.
        turn = self.of_the_controller(self.cowbird["opcodes"]["tick"], qpn=0xC0B1D)
        self.send(self.compute, turn)
        self.expect_nothing()
        self.expect_drops(cowbird_unknown_pair=1)
        self.send(self.compute, right)
        self.expect_entry_read_of(served, right)
        self.expect_drops()

    def expect_entry_read_of(self, served, frame):
        """The entry's READ behind the right answer, which was made before the others."""
        self.icrc = int.from_bytes(frame[-4:], "big")
        self.expect_entry_read(served, 0)


@group("cowbird")
class WhatIsNotWholeOrNotForItsQueuePairIsDropped(CowbirdTest):
    def runTest(self):
        served = Set()
        self.serve(served)
        self.turn()
        self.expect_probe(served, 0)
        right = self.answer(served, "probe", 0, bytes(8))
        cut = (right[:54], self.answer(served, "probe", 0, b""))
        # Tofino's ingress doesn't know how long a frame really is.
        not_so_long = () if self.on_tofino else (right[:-1], right + bytes(4))
        for frame in (*not_so_long, *cut):
            self.send(self.compute, frame)
            self.expect_nothing()
            self.expect_drops(cowbird_bad_frame=1)
        for frame in (
            self.ack(served, "probe", 0),
            self.answer(served, "probe", 0, bytes(32)),
            self.answer(served, "entry", 0, bytes(8)),
            self.answer(served, "red", 0, bytes(8)),
            self.ack(served, "payload", 0),
        ):
            self.send(self.compute, frame)
            self.expect_nothing()
            self.expect_drops(cowbird_bad_opcode=1)


@group("cowbird")
class DataThatIsNotAsLongAsItSaysGoesNowhere(Requests, CowbirdTest):
    def runTest(self):
        self.serve(Set())
        # Four more could be the FCS, which devices count.
        for more in (-1, 8):
            served = Set()
            self.begin(served)
            self.offer(served, 1)
            self.asked(served, READ, 100)
            frame = self.answer(served, "pool_read", 0, filled(100))
            self.arrives("pool_read", frame[:more] if more < 0 else frame + bytes(more))
            self.expect_nothing()
            self.expect_bad_length()


@group("cowbird")
class DataMustBeWhatWasAskedFor(Requests, CowbirdTest):
    def runTest(self):
        mtu = self.cowbird["mtu"]
        self.serve(Set())
        for size, part, name in ((100, 96, "Only"), (100, 100, "First"), (mtu + 8, mtu, "Only")):
            served = Set()
            self.begin(served)
            self.offer(served, 1)
            self.asked(served, READ, size)
            self.arrives("pool_read", self.answer(served, "pool_read", 0, filled(part), name))
            self.expect_nothing()
            self.expect_drops(cowbird_bad_data=1)


@group("cowbird")
class ARefusalIsTheControllersToKnow(CowbirdTest):
    def runTest(self):
        served = Set()
        self.serve(served)
        frame = self.ack(served, "pool_write", 0, syndrome=REMOTE_ACCESS)
        self.send(self.pool, frame)
        packet = self.session.packet_in()
        assert packet is not None and packet.payload == frame
        self.expect_nothing()
        self.expect_drops()


@group("cowbird")
class FramesOfHostsPassAsBefore(CowbirdTest):
    def runTest(self):
        served = Set()
        self.serve(served)
        # RoCE between hosts is theirs, whichever queue pair it names.
        for phase, other in (("response", self.pool), ("pool_read", self.compute)):
            frame = self.ack(served, phase, 0, syndrome=ACK)
            mac = bytes.fromhex(self.mac(other).replace(":", ""))
            frame = mac + frame[6:]
            self.send(self.host_of(phase), frame)
            self.expect(frame, other)
        # Frames to the engine's address that are no RoCE have no receiver.
        self.send(self.compute, self.frame(self.compute, self.cowbird["mac"]))
        self.expect_nothing()
        self.expect_drops(unknown_destination=1)


@group("cowbird")
class InstancesAreWrittenReadAndReset(CowbirdTest):
    def runTest(self):
        last = self.cowbird["instances"] - 1
        for number in (0, last):
            self.write(self.rings(Set(number)))
            for side in (0, 1):
                said = self.manage_cowbird("set", number, side, done=10 + side, end=64, head=21)
                assert said.done == 10 + side
                assert (said.instance, said.side) == (number, side)
            for side in (0, 1):
                told = self.manage_cowbird("read", number, side)
                assert (told.done, told.head, told.end) == (10 + side, 21, 0)
        for number in (0, last):
            for side in (0, 1):
                self.manage_cowbird("set", number, side)
                told = self.manage_cowbird("read", number, side)
                assert (told.done, told.head, told.end) == (0, 0, 0)
        self.packet_out(self.management_frame("read", last + 1, 0))
        assert self.session.packet_in(0.2) is None
        self.expect_drops(cowbird_bad_index=1)
        self.send(self.compute, self.management_frame("set", 0, 0, done=5))
        assert self.session.packet_in(0.2) is None
        self.expect_drops(cowbird_management_from_host=1)
        assert self.manage_cowbird("read", 0, 0).done == 0
