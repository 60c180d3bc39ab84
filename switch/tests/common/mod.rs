//! Shared by the tests: programs from text, a switch to throw frames at.

#![allow(dead_code)]

use num_bigint::BigUint;
use p4rack_p4::ir::{ActionCall, InstanceId, Matcher, Program, TableId};
use p4rack_switch::{Config, Pipeline, PortConfig, Switch, TableEntry};
use p4rack_wire::Nanos;

/// Parts of a v1model program around an Ethernet header `hdr.eth`; empty parts do the least.
#[derive(Clone, Copy, Default)]
pub struct Parts<'a> {
    /// Types, constants.
    pub types: &'a str,
    /// Members of `headers_t` after `eth`.
    pub headers: &'a str,
    /// Members of `meta_t`.
    pub meta: &'a str,
    /// Declarations of the parser.
    pub parser_locals: &'a str,
    /// States of the parser; `parse` follows `start`, which extracts `eth`.
    pub parser: &'a str,
    pub verify: &'a str,
    pub ingress_locals: &'a str,
    pub ingress: &'a str,
    pub egress_locals: &'a str,
    pub egress: &'a str,
    pub compute: &'a str,
    /// After `eth`.
    pub deparser: &'a str,
}

impl Parts<'_> {
    /// The program's text.
    pub fn text(&self) -> String {
        let parser = if self.parser.is_empty() { "state parse { transition accept; }" } else { self.parser };
        format!(
            "#include <core.p4>\n#include <v1model.p4>\n\
             header eth_t {{ bit<48> dst; bit<48> src; bit<16> kind; }}\n{}\n\
             struct headers_t {{ eth_t eth; {} }}\n\
             struct meta_t {{ {} }}\n\
             parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{\n{}\n\
               state start {{ pkt.extract(hdr.eth); transition parse; }}\n{parser}\n}}\n\
             control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ {} }} }}\n\
             control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{\n{}\n apply {{ {} }} }}\n\
             control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{\n{}\n apply {{ {} }} }}\n\
             control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ {} }} }}\n\
             control D(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr.eth); {} }} }}\n\
             V1Switch(P(), V(), I(), E(), C(), D()) main;\n",
            self.types,
            self.headers,
            self.meta,
            self.parser_locals,
            self.verify,
            self.ingress_locals,
            self.ingress,
            self.egress_locals,
            self.egress,
            self.compute,
            self.deparser,
        )
    }

    /// A switch with ports 1 to 4 without limit that runs it.
    pub fn run(&self) -> Bench {
        self.run_on(config())
    }

    pub fn run_on(&self, config: Config) -> Bench {
        let program = compile(&self.text());
        let mut switch = Switch::new(config);
        match Pipeline::compile(&program) {
            Ok(pipeline) => switch.load(pipeline),
            Err(error) => panic!("{error}"),
        }
        Bench { switch, program, now: Nanos(1_000) }
    }
}

/// Ports 1 to 4 without limit.
pub fn config() -> Config {
    Config { ports: (1..=4).map(|port| PortConfig::new(port, 0)).collect(), ..Config::default() }
}

/// A program from text.
pub fn compile(text: &str) -> Program {
    match p4rack_p4::compile(text, "test.p4", &p4rack_p4::Options::default()) {
        Ok(compiled) => compiled.program,
        Err(diagnostics) => panic!("{}", diagnostics.render(false)),
    }
}

/// A switch under test.
pub struct Bench {
    pub switch: Switch,
    pub program: Program,
    pub now: Nanos,
}

impl Bench {
    /// A table by the end of its name.
    pub fn table(&self, name: &str) -> TableId {
        let at = self.program.tables.iter().position(|table| table.named.name.ends_with(name));
        TableId(at.unwrap_or_else(|| panic!("no table {name}")) as u32)
    }

    /// An extern object by the end of its name.
    pub fn instance(&self, name: &str) -> InstanceId {
        let at = self.program.instances.iter().position(|found| found.named.name.ends_with(name));
        InstanceId(at.unwrap_or_else(|| panic!("no extern object {name}")) as u32)
    }

    /// An action call by names.
    pub fn call(&self, table: &str, action: &str, args: &[u64]) -> ActionCall {
        let listed = &self.program.tables[self.table(table).0 as usize].actions;
        let is = |name: &str| name == action || name.ends_with(&format!(".{action}"));
        let at =
            listed.iter().position(|listed| is(&self.program.actions[listed.action.0 as usize].named.name));
        let action = at.unwrap_or_else(|| panic!("no action {action}")) as u32;
        ActionCall { action, args: args.iter().map(|&arg| BigUint::from(arg)).collect() }
    }

    /// Adds an entry.
    pub fn add(&mut self, table: &str, keys: Vec<Matcher>, priority: i32, action: &str, args: &[u64]) {
        let entry = TableEntry { priority, ..TableEntry::new(keys, self.call(table, action, args)) };
        self.switch.insert(self.table(table), entry).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Entries of a generated rack program `text` for hosts at ports 1 to 4: the arguments of its actions, by
    /// name.
    pub fn add_hosts(&mut self, text: &str) {
        let parameters = |action: &str| -> Vec<&str> {
            let list = text.split_once(&format!("action {action}(")).expect("a rack's program").1;
            let list = list.split_once(')').expect("a list of parameters").0;
            list.split(',').filter_map(|parameter| parameter.split_whitespace().nth(1)).collect()
        };
        for port in 1..=4u16 {
            // One lane a pair, so two cells.
            let args = |action: &str, cells: u64| -> Vec<u64> {
                // By the last word of its name: protocols prefix theirs.
                let value = |name: &&str| match name.rsplit('_').next().unwrap_or_default() {
                    "port" | "link" | "session" => port.into(),
                    "source" | "destination" => u64::from(port - 1),
                    "rate" | "memory" => 1,
                    "slot" => 100,
                    "threshold" => 1_000_000,
                    "cells" => cells * u64::from(port - 1),
                    "asks" | "asked" => 8 * u64::from(port - 1),
                    _ => 0,
                };
                parameters(action).iter().map(value).collect()
            };
            let keys = vec![exact(port.into()), exact(mac(port))];
            self.add("source_guard", keys, 0, "accept_source", &args("accept_source", 8));
            self.add("l2_forward", vec![exact(mac(port))], 0, "forward", &args("forward", 2));
        }
    }

    /// One frame in; all frames that leave immediately, a microsecond later.
    pub fn send(&mut self, port: u16, frame: &[u8]) -> Vec<(u16, Vec<u8>)> {
        self.now += Nanos(1_000);
        self.switch.handle_frame(port, frame, self.now);
        self.collect()
    }

    pub fn collect(&mut self) -> Vec<(u16, Vec<u8>)> {
        let (mut all, mut out) = (Vec::new(), Vec::new());
        while let Some(port) = self.switch.poll_transmit(self.now, &mut out) {
            all.push((port, out.clone()));
        }
        all
    }

    /// One frame in, one out.
    pub fn pass(&mut self, port: u16, frame: &[u8]) -> (u16, Vec<u8>) {
        let mut all = self.send(port, frame);
        assert_eq!(all.len(), 1, "one frame is expected, drops: {:?}", self.drops());
        all.remove(0)
    }

    /// Drops by name.
    pub fn drops(&self) -> Vec<(&'static str, u64)> {
        let stats = self.switch.stats(self.now);
        stats.drops.iter().map(|(reason, count)| (reason.name(), *count)).collect()
    }

    pub fn register(&self, name: &str, index: u64) -> u64 {
        let value = self.switch.register_read(self.instance(name), index).expect("a register's cell");
        u64::try_from(value).expect("fits")
    }
}

pub fn exact(value: u64) -> Matcher {
    Matcher::Exact(BigUint::from(value))
}

pub fn mask(value: u64, mask: u64) -> Matcher {
    Matcher::Mask { value: BigUint::from(value), mask: BigUint::from(mask) }
}

/// An Ethernet frame.
pub fn eth(dst: u64, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = dst.to_be_bytes()[2..].to_vec();
    frame.extend([2, 0, 0, 0, 0, 9]);
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An exact table on the destination with `forward(port)` and `drop()`.
pub const L2: Parts<'static> = Parts {
    types: "",
    headers: "",
    meta: "",
    parser_locals: "",
    parser: "",
    verify: "",
    ingress_locals: "
        action forward(bit<9> port) { sm.egress_spec = port; }
        action drop() { mark_to_drop(sm); }
        table dmac {
            key = { hdr.eth.dst: exact; }
            actions = { forward; drop; }
            default_action = drop();
            size = 1024;
        }",
    ingress: "dmac.apply();",
    egress_locals: "",
    egress: "",
    compute: "",
    deparser: "",
};

/// Address behind port `p`.
pub fn mac(port: u16) -> u64 {
    0x0200_0000_0000 + u64::from(port)
}

/// [`L2`] with an entry a port.
pub fn l2_switch() -> Bench {
    let mut bench = L2.run();
    for port in 1..=4 {
        bench.add("dmac", vec![exact(mac(port))], 0, "forward", &[port.into()]);
    }
    bench
}
