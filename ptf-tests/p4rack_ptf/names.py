"""Names and numbers of a generated program: all from its NAME.json, P4Info and entries."""

import functools
import importlib.util
import ipaddress
import json
import pathlib

from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2


class Artefacts:
    """The folder that `p4rack generate` wrote."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.program = only(folder, "*.p4")
        self.constants = json.loads(self.program.with_suffix(".json").read_text())
        self.info = text_format.Parse(only(folder, "*.p4info.txtpb").read_text(), p4info_pb2.P4Info())
        self.entries = text_format.Parse(
            only(folder, "*.entries.txtpb").read_text(), p4runtime_pb2.WriteRequest()
        )
        self.hosts = self.constants["hosts"]
        self.pl2 = self.constants.get("pl2")
        self.edm = self.constants.get("edm")
        # Plain switching has none.
        has_layers = any(folder.glob("*_layers.py"))
        self.layers = load(only(folder, "*_layers.py")) if has_layers else None

    def id(self, kind, name):
        """Id of a table, counter, meter … by its full name."""
        for found in getattr(self.info, kind):
            if found.preamble.name == name:
                return found.preamble.id
        raise KeyError(f"P4Info has no {name} among its {kind}")

    def size(self, kind, name):
        """Cells of a counter or meter."""
        return next(found.size for found in getattr(self.info, kind) if found.preamble.name == name)

    def header(self, name):
        """Metadata fields of packet_in or packet_out."""
        return next(
            found.metadata for found in self.info.controller_packet_metadata if found.preamble.name == name
        )

    def table_updates(self, table):
        """The rack's entries of a table of NAME.json's `tables`, as updates."""
        number = self.id("tables", self.constants["tables"][table])
        return [u for u in self.entries.updates if u.entity.table_entry.table_id == number]

    def insert(self, table, key, action, params):
        """An insert into a table of exact matches, by the names of fields, action and parameters. Values are numbers, or
        addresses as text."""
        table = next(found for found in self.info.tables if found.preamble.name == table)
        own = {ref.id for ref in table.action_refs}
        action = next(a for a in self.info.actions if a.preamble.id in own and a.preamble.alias == action)
        update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.INSERT)
        entry = update.entity.table_entry
        entry.table_id, entry.action.action.action_id = table.preamble.id, action.preamble.id
        for field in table.match_fields:
            entry.match.add(field_id=field.id).exact.value = canonical(key[field.name])
        for param in action.params:
            entry.action.action.params.add(param_id=param.id, value=canonical(params[param.name]))
        return update

    def rate_updates(self):
        """The rack's entries of all other tables: rates that a program looks up, independent of the hosts."""
        known = {self.id("tables", name) for name in self.constants["tables"].values()}
        entries = [u for u in self.entries.updates if u.entity.HasField("table_entry")]
        return [u for u in entries if u.entity.table_entry.table_id not in known]

    def group_updates(self):
        """The rack's multicast group."""
        return [u for u in self.entries.updates if u.entity.HasField("packet_replication_engine_entry")]


def canonical(value):
    """A number, a MAC or an IPv4 address as P4Runtime has it: without leading zeros."""
    if isinstance(value, str):
        parts = value.split(":")
        value = int("".join(parts), 16) if len(parts) > 1 else int(ipaddress.IPv4Address(value))
    return value.to_bytes((max(value.bit_length(), 1) + 7) // 8, "big")


def only(folder, pattern):
    """The one file of this pattern."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{folder}: {len(found)} files {pattern}, expected one; write them with `p4rack generate`")
    return found[0]


@functools.cache
def load(path):
    """A module from its file, once: Scapy knows layers by their class."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
