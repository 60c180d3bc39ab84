"""Shared by the tests of Cowbird: served sets, and the other ends of the engine's queue pairs, which tests play."""

import struct
import time

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from p4rack_ptf.base import RackTest

ACK, GAP, REMOTE_ACCESS = 0x00, 0x60, 0x62  # syndromes: acknowledged, a gap before, no right to the memory
READ, WRITE = 1, 2
PROTOCOL_UDP, DONT_FRAGMENT, TTL, PARTITION = 17, 2, 64, 0xFFFF
TURNS_QPN = 0xC0B1D
#: An engine that begins again sooner may do so between two frames of a test.
TIMEOUT_MIN_NS = 300_000_000
PSN_MASK = 0xFFFFFF


class Set:
    """A thread's rings, their remote memory, and the queue pairs that the engine has for them."""

    ENTRIES, REQUEST_BYTES, RESPONSE_BYTES = 8, 4096, 8192
    ADDRESS, KEY = 0x7F00_0000_1000, 0x5E7
    REGION_ADDRESS, REGION_KEY, REGION_BYTES = 0x10_0000, 0xB0B, 1 << 16
    #: Sequence numbers go round during a test.
    PSN = 0xFFFFFE

    def __init__(self, number=0, reads=0, writes=0):
        self.number, self.reads, self.writes = number, reads, writes
        self.udp_port = 50_000 + number

    def own(self, code):
        """The engine's queue pair for a phase."""
        return 0x1000 + 16 * self.number + code

    def peer(self, code):
        """The other end's."""
        return 0x2000 + 16 * self.number + code


class CowbirdTest(RackTest):
    """A rack's switch with Cowbird's engine; without it, an ordinary test.

    Turns come by packet-out, as not every target has a packet generator.
    """

    #: Whether it gives a turn while something is under way, which must not be late then.
    needs_time = False

    def setUp(self):
        super().setUp()
        self.cowbird = self.constants.get("cowbird")
        self.icrc = 0
        if not self.cowbird:
            return
        if self.needs_time and self.cowbird["timeout_ns"] < TIMEOUT_MIN_NS:
            self.skip(f"needs cowbird.timeout_us of at least {TIMEOUT_MIN_NS // 1000}, get it by changing the description")
        index = [host["name"] for host in self.hosts].index
        self.compute, self.pool = index(self.cowbird["compute"][0]), index(self.cowbird["pool"][0])
        self.stranger = next(n for n in range(len(self.hosts)) if n not in (self.compute, self.pool))
        #: There egress drops frames of another length than they announce, as ingress doesn't know it.
        self.on_tofino = "bad_length_counter" in self.cowbird
        self.bad_lengths_before = self.bad_lengths()
        entries_at = self.cowbird["entries_at"]
        self.request_at = entries_at + Set.ENTRIES * len(self.layers.CowbirdEntry())
        self.response_at = self.request_at + Set.REQUEST_BYTES

    # Places.

    def code(self, phase):
        return self.cowbird["phases"][phase]

    def host_of(self, phase):
        """The host at the other end of a phase's queue pair."""
        return self.pool if phase.startswith("pool") else self.compute

    def ip(self, host):
        return self.hosts[host]["ip"].partition("/")[0]

    def first(self, served, phase):
        """Sequence number that a phase counts from. Entries are numbered since the set was made."""
        before = served.reads + served.writes if phase == "entry" else 0
        return (served.PSN - before) & PSN_MASK

    def psn(self, served, phase, count):
        """Sequence number of a phase's packet, with `count` before it."""
        return (self.first(served, phase) + count) & PSN_MASK

    # What a controller installs.

    def serve(self, *sets):
        """Has sets served, numbered from 0 on. The first one has the next turn."""
        # Whichever instance had the last turn: with one instance, the next one is its.
        turns = self.turns(1)
        self.write([turns])
        self.turn()
        self.expect_drops(cowbird_no_instance=1)
        self.remove([turns])
        for served in sets:
            # Last, as it counts time from then on. Tofino's program sets registers only of instances whose rings it knows.
            self.write(self.entries(served))
            self.begin(served)
        self.write([self.turns(len(sets))])

    def begin(self, served):
        """Sets an instance's registers."""
        head = served.reads + served.writes
        for side, done in enumerate((served.reads, served.writes)):
            self.manage_cowbird("set", served.number, side, done=done, head=head)

    def turns(self, instances):
        """Gives the first instances turns, by packet-out."""
        key = self.pair_key(self.constants["cpu_port"], self.cowbird["mac"], self.cowbird["ip"], TURNS_QPN)
        return self.insert("pairs", key, "tick", {"begin": 0, "end": instances})

    def entries(self, served):
        """Entries with which a set is served."""
        return self.rings(served) + self.ways(served)

    def rings(self, served):
        """Where a set's rings are. Ingress and egress of Tofino's program know that each for itself."""
        number = {"instance": served.number}
        rings = {
            "key": served.KEY,
            "address": served.ADDRESS,
            "entries": served.ENTRIES,
            "request_at": self.request_at,
            "request_bytes": served.REQUEST_BYTES,
            "response_at": self.response_at,
            "response_bytes": served.RESPONSE_BYTES,
            "reads": served.reads,
            "writes": served.writes,
            "ring": served.ADDRESS + self.cowbird["entries_at"],
            "mask": (served.ENTRIES - 1) * len(self.layers.CowbirdEntry()),
        }
        updates = [self.insert("instances", number, "serve", rings)]
        if "sets" in self.cowbird["tables"]:
            updates.append(self.insert("sets", number, "set", rings))
        if "rings" in self.cowbird["tables"]:
            reads = (self.response_at, served.RESPONSE_BYTES)
            writes = (self.request_at, served.REQUEST_BYTES)
            for kind, (at, size) in enumerate((reads, writes)):
                ring = {"at": at, "bytes": size, "half": size // 2, "mask": size - 8}
                updates.append(self.insert("rings", {**number, "kind": kind}, "ring", ring))
        return updates

    def ways(self, served):
        """A set's region, and where its packets go and come from."""
        number = {"instance": served.number}
        region = {"key": served.REGION_KEY, "address": served.REGION_ADDRESS, "length": served.REGION_BYTES}
        updates = [self.insert("regions", {**number, "region": 0}, "region", region)]
        for phase, code in self.cowbird["phases"].items():
            host, first = self.host_of(phase), self.first(served, phase)
            peer = {
                "port": self.port(host),
                "mac": self.mac(host),
                "ip": self.ip(host),
                "udp_port": served.udp_port,
                "qpn": served.peer(code),
                "first": first,
                "checksum": self.sum_of_ip(host),
            }
            of_phase = {**number, "phase": code}
            updates.append(self.insert("peers", of_phase, "peer", peer))
            if "ports" in self.cowbird["tables"]:
                updates.append(self.insert("ports", of_phase, "leave_by", peer))
            key = self.pair_key(self.port(host), self.mac(host), self.ip(host), served.own(code))
            pair = {**of_phase, "first": first}
            updates.append(self.insert("pairs", key, "pair", pair))
        return updates

    def pair_key(self, port, mac, ip, qpn):
        fields = ("port", "hdr.ethernet.srcAddr", "hdr.cowbird_ipv4.srcAddr", "hdr.cowbird_bth.destQp")
        return dict(zip(fields, (port, mac, ip, qpn)))

    def insert(self, table, key, action, params):
        return self.artefacts.insert(self.cowbird["tables"][table], key, action, params)

    def sum_of_ip(self, host):
        """Sum of the words of the IPv4 header towards a host that are the same in every packet."""
        header = bytes(self.ip_header(self.cowbird["ip"], self.ip(host), proto=PROTOCOL_UDP, len=0, chksum=0))
        total = sum(struct.unpack("!10H", header))
        return (total & 0xFFFF) + (total >> 16)

    def manage_cowbird(self, code, number, side, **fields):
        """Sends a management frame by packet-out; its reply."""
        self.packet_out(self.management_frame(code, number, side, **fields))
        packet = self.session.packet_in()
        assert packet is not None, f"no reply about instance {number}"
        # Scapy may have other layers for RoCE's port.
        reply = self.layers.RoceBth(bytes(Ether(packet.payload)[UDP].payload))
        assert reply.opcode == self.cowbird["opcodes"]["reply"]
        reply = reply[self.layers.CowbirdManagement]
        assert (reply.instance, reply.side) == (number, side)
        return reply

    def management_frame(self, code, number, side, **fields):
        header = self.layers.CowbirdManagement(instance=number, side=side, **fields)
        return self.of_the_controller(self.cowbird["opcodes"][code], header)

    def turn(self):
        """Gives the next instance its turn."""
        self.packet_out(self.of_the_controller(self.cowbird["opcodes"]["tick"], qpn=TURNS_QPN))

    # Frames.

    def ip_header(self, src, dst, **fields):
        return IP(src=src, dst=dst, flags=DONT_FRAGMENT, id=0, ttl=TTL, **fields)

    def roce(self, src, dst, src_port, bth, *headers, data=b"", icrc):
        """A RoCEv2 frame between two (MAC, IP), as its bytes. The engine neither checks an iCRC nor makes one."""
        bth = {"migrated": 1, "partition": PARTITION, "pad": -len(data) % 4, **bth}
        frame = Ether(src=src[0], dst=dst[0]) / self.ip_header(src[1], dst[1])
        frame = frame / UDP(sport=src_port, chksum=0) / self.layers.RoceBth(**bth)
        for header in headers:
            frame /= header
        return bytes(frame / Raw(data + bytes(-len(data) % 4) + icrc))

    def engine(self):
        return self.cowbird["mac"], self.cowbird["ip"]

    def next_icrc(self):
        """Four bytes that no frame had before: the engine's answer to a frame has them too."""
        self.icrc += 1
        return self.icrc.to_bytes(4, "big")

    def of_the_controller(self, opcode, *headers, **bth):
        bth = {"opcode": opcode, **bth}
        return self.roce(self.engine(), self.engine(), 0, bth, *headers, icrc=self.next_icrc())

    def from_peer(self, served, phase, opcode, count, *headers, data=b"", host=None, **bth):
        """A frame of the other end of a phase's queue pair to the engine, or of a host that claims to be it."""
        host = self.host_of(phase) if host is None else host
        bth = {
            "opcode": self.layers.ROCE_OPCODES[opcode],
            "qpn": served.own(self.code(phase)),
            "psn": self.psn(served, phase, count),
            **bth,
        }
        station = self.mac(host), self.ip(host)
        return self.roce(station, self.engine(), 49_152, bth, *headers, data=data, icrc=self.next_icrc())

    def answer(self, served, phase, count, data, part="Only", **bth):
        """The answer to a READ, or a part of it, as its frame."""
        headers = [] if part == "Middle" else [self.layers.RoceAeth(syndrome=ACK)]
        return self.from_peer(served, phase, f"ReadResponse{part}", count, *headers, data=data, **bth)

    def ack(self, served, phase, count, done=0, syndrome=ACK, **bth):
        """An acknowledgement that counts messages, as its frame."""
        header = self.layers.RoceAeth(syndrome=syndrome, msn=done)
        return self.from_peer(served, phase, "Acknowledge", count, header, **bth)

    # The way of a request: what comes to the switch, and what has to leave.

    def arrives(self, phase, frame):
        """A frame of a phase's other end."""
        self.send(self.host_of(phase), frame)

    def expect_sent(self, served, phase, opcode, count, *headers, data=b"", last=True, icrc=None):
        """The engine sends just this, and nothing else to this host before."""
        writes = opcode != "ReadRequest"
        bth = {
            "opcode": self.layers.ROCE_OPCODES[opcode],
            "qpn": served.peer(self.code(phase)),
            "psn": self.psn(served, phase, count),
            "ack_request": int(writes and last),
        }
        host = self.host_of(phase)
        station, icrc = (self.mac(host), self.ip(host)), icrc or self.icrc.to_bytes(4, "big")
        expected = self.roce(self.engine(), station, served.udp_port, bth, *headers, data=data, icrc=icrc)
        found = self.receive(host)
        assert found == expected, f"{phase}: {shown(found)} instead of {shown(expected)}"

    def reth(self, address, key, size):
        return self.layers.RoceReth(address=address, key=key, bytes=size)

    def expect_probe(self, served, count):
        tail = self.reth(served.ADDRESS, served.KEY, 8)
        self.expect_sent(served, "probe", "ReadRequest", count, tail)

    def tail(self, served, count, entries):
        """The answer to a probe: the thread has written `entries` entries."""
        self.arrives("probe", self.answer(served, "probe", count, entries.to_bytes(8, "big")))

    def expect_entry_read(self, served, position, more=0):
        size = len(self.layers.CowbirdEntry())
        at = served.ADDRESS + self.cowbird["entries_at"] + position % served.ENTRIES * size
        self.expect_sent(served, "entry", "ReadRequest", position, self.reth(at, served.KEY, size + more))

    def expect_guess(self, served, position):
        """A READ of an entry that may be missing. It reads a word more, so that its answer is distinct."""
        self.expect_entry_read(served, position, more=8)

    def take_guess(self, served, position, entry):
        """The content of a position arrives."""
        self.take(served, position, entry + bytes(8))

    def offer(self, served, tail, probes=0):
        """The thread has `tail` entries: the engine finds that out, and reads the next one."""
        self.turn()
        self.expect_probe(served, probes)
        self.tail(served, probes, tail)
        self.expect_entry_read(served, served.reads + served.writes)

    def entry(self, kind, number, size, local=0, remote=0, **fields):
        """An entry, the `number`-th of its kind; `local` is in its ring, `remote` in its region."""
        ring = self.response_at if kind == READ else self.request_at
        places = {"req_addr": remote, "resp_addr": ring + local}
        if kind == WRITE:
            places = {"req_addr": ring + local, "resp_addr": remote}
        request_id = (kind == WRITE) << 63 | number
        entry = {"rw_type": kind, "length": size, "request_id": request_id, **places, **fields}
        return bytes(self.layers.CowbirdEntry(**entry))

    def take(self, served, position, entry):
        """The entry at a position arrives."""
        self.arrives("entry", self.answer(served, "entry", position, entry))

    def expect_pool_read(self, served, count, size, remote=0):
        memory = self.reth(served.REGION_ADDRESS + remote, served.REGION_KEY, size)
        self.expect_sent(served, "pool_read", "ReadRequest", count, memory)

    def expect_payload_read(self, served, count, size, local=0):
        memory = self.reth(served.ADDRESS + self.request_at + local, served.KEY, size)
        self.expect_sent(served, "payload", "ReadRequest", count, memory)

    def expect_red(self, served, count, reads=0, writes=0, response_end=0, request_end=0, refusal=0):
        """A red block, the `count`-th since the set was served."""
        red = self.layers.CowbirdRed(
            request_head=reads + writes,
            request_data_head=request_end,
            response_data_tail=response_end,
            write_progress=writes,
            read_progress=reads,
            refusal=refusal,
        )
        memory = self.reth(served.ADDRESS + self.cowbird["red_at"], served.KEY, len(red))
        self.expect_sent(served, "red", "WriteOnly", count, memory, data=bytes(red))

    # Counters.

    def sent(self, served, phase):
        """Frames that a set's phase has sent since the program was installed; of `again`, how often it started again."""
        cell = self.sent_cells(served)[phase]
        return self.counter(self.cowbird["sent_counter"], cell)[cell][0]

    def sent_by_phase(self, served):
        """The same of all phases, in one read, during which time passes for the set."""
        cells = self.counter(self.cowbird["sent_counter"])
        return {phase: cells[cell][0] for phase, cell in self.sent_cells(served).items()}

    def sent_cells(self, served):
        """Phase → its cell of the counter."""
        phases = {**self.cowbird["phases"], "again": 0}
        return {phase: served.number << 3 | code for phase, code in phases.items()}

    def expect_drops_among(self, count, *reasons):
        """Expects `count` new drops since the test's start or the last call, each for one of these reasons."""
        deadline = time.monotonic() + 2
        while True:
            now = self.drops()
            new = {reason: now[reason] - self.drops_before[reason] for reason in now}
            new = {reason: dropped for reason, dropped in new.items() if dropped}
            if sum(new.values()) >= count or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        assert sum(new.values()) == count and new.keys() <= set(reasons), f"dropped {new}, expected {count} of {reasons}"
        self.drops_before = now

    def bad_lengths(self):
        """Frames that egress has dropped because of their lengths; 0 where ingress does that."""
        return self.counter(self.cowbird["bad_length_counter"], 0)[0][0] if self.on_tofino else 0

    def expect_bad_length(self):
        """A frame that is not as long as it says was dropped, and nothing else."""
        self.expect_drops(**({} if self.on_tofino else {"cowbird_bad_frame": 1}))
        self.bad_lengths_before += self.on_tofino
        assert self.bad_lengths() == self.bad_lengths_before


def shown(frame):
    return "nothing" if frame is None else f"{Ether(frame)!r}"
