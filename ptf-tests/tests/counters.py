"""The counter of drops: by index, whole, with bytes, written."""

from p4.v1 import p4runtime_pb2
from p4rack_ptf.base import STRANGER, RackTest


class CountersCountPacketsAndBytes(RackTest):
    def runTest(self):
        name, index = self.constants["drop_counter"], self.index("unknown_destination")
        before = self.counter(name, index)[index]
        frames = [self.frame(0, STRANGER, bytes(length)) for length in (46, 100, 1000)]
        for frame in frames:
            self.send(0, frame)
        self.expect_drops(unknown_destination=3)
        after = self.counter(name, index)[index]
        assert after[0] - before[0] == 3
        assert after[1] - before[1] == sum(self.counted(frame) for frame in frames)

    def index(self, reason):
        return self.constants["drop_reasons"].index(reason)


class AWildcardReadsEveryCell(RackTest):
    def runTest(self):
        name = self.constants["drop_counter"]
        cells = self.counter(name)
        assert sorted(cells) == list(range(self.artefacts.size("counters", name)))
        assert len(cells) == len(self.constants["drop_reasons"])
        for index, value in cells.items():
            assert self.counter(name, index) == {index: value}


class AWrittenCellCountsOnFromThere(RackTest):
    def runTest(self):
        name = self.constants["drop_counter"]
        index = self.constants["drop_reasons"].index("same_port")
        (before,) = self.counter(name, index).values()
        frame = self.frame(0, 0)
        try:
            self.set(name, index, (1000, 1_000_000))
            self.send(0, frame)
            self.expect_nothing()
            assert self.counter(name, index)[index] == (1001, 1_000_000 + self.counted(frame))
        finally:
            self.set(name, index, before)
        self.expect_drops()

    def set(self, name, index, value):
        update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY)
        entry = update.entity.counter_entry
        entry.counter_id = self.artefacts.id("counters", name)
        entry.index.index = index
        entry.data.packet_count, entry.data.byte_count = value
        self.session.write([update])
