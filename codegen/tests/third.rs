//! A protocol that only this file defines runs beside PL2 in one pipeline.
//!
//! Probes: frames of an EtherType of their own, with a kind, which has to be in a table, and a number of hops, which each host's
//! entry limits.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;
use crate::programs;

use common::{Built, Rig, mac, plain, tagged};
use p4rack_codegen::rack::{At, Rack, Section, Sink};
use p4rack_codegen::scheme::cowbird;
use p4rack_codegen::scheme::pl2::{self, Pl2};
use p4rack_codegen::scheme::{Carried, Claim, Definition, DropReason, EtherTypeState, Header, Protocol};
use p4rack_codegen::{Arch, Scheme, generate, render_p4};
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::Schema;
use p4rack_wire::EtherType;
use p4rack_wire::ethernet::Vlan;
use serde_json::{Value, json};
use std::sync::Arc;

p4rack_wire::header! {
    /// What a probe asks for.
    Probe = "probe_t" {
        /// which probe
        kind / "kind": u8 = 8;
        /// how far it may go
        hops / "hops": u8 = 8;
    }
}

/// The kind that is known.
const KIND: u8 = 7;
const PROBE: Scheme = Scheme::one("probe");

#[derive(Clone, Debug)]
struct Probes {
    ether_type: u16,
    hops_max: u8,
    vid: u16,
    /// Whether its frames carry a header to egress, have a checksum there, and take a second pass: features that only
    /// one protocol can have.
    carries: bool,
    sums: bool,
    passes: bool,
}

#[derive(Debug)]
struct ProbesDefinition;

impl Definition for ProbesDefinition {
    fn section(&self) -> &'static str {
        "probe"
    }

    fn variants(&self) -> &'static [&'static str] {
        &["probe"]
    }

    fn add(&self) -> &'static str {
        "add a [probe] table"
    }

    fn read(&self, mut section: Section<'_, '_>, sink: &mut Sink<'_>) -> Option<Arc<dyn Protocol>> {
        let mut number = |key, most, default| {
            section.integer(sink, key, (1, most)).map_or(default, |at: At<u64>| at.value)
        };
        let ether_type = number("ether_type", 0xffff, 0x88b6) as u16;
        let (hops_max, vid) = (number("hops_max", 255, 3) as u8, number("vid", 4094, 4000) as u16);
        let mut flag = |key| section.boolean(sink, key).is_some_and(|at: At<bool>| at.value);
        let (carries, sums, passes) = (flag("carries"), flag("sums"), flag("passes"));
        section.finish(sink);
        Some(Arc::new(Probes { ether_type, hops_max, vid, carries, sums, passes }))
    }

    fn templates(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("probe/constants", "\nconst bit<8> PROBE_HOPS = {{hops_max}};\n"),
            ("probe/objects", "    Probe() probe;\n"),
            ("probe/admit", ADMIT),
            ("probe/sum_header", "{{#if sums}}hdr.probe{{/if}}"),
            ("probe/pass_named", "{{#if passes}}next_pass.hops{{/if}}"),
            ("probe/metadata", "    bit<8> hops; // what the source may ask for\n"),
            ("probe/states", STATES),
            ("probe/accept_parameters", "bit<8> hops"),
            ("probe/accept", "        meta.probe.hops = hops;\n"),
            ("probe/controls", CONTROLS),
            ("probe/schedule", "        probe.apply({{> control_arguments}});\n"),
        ]
    }

    fn terms(&self) -> &'static str {
        "here = \"{{> ingress_port}}\""
    }
}

const STATES: &str = "
    state parse_probe {
        packet.extract(hdr.probe);
        transition accept;
    }
";
const ADMIT: &str = "
        // What no host may ask for.
        if (hdr.probe.isValid() && hdr.probe.hops > PROBE_HOPS) {
            {{> refuse reason=\"DROP_PROBE_FAR\"}};
        }
";
const CONTROLS: &str = "
control Probe({{> control_parameters}}) {
    action pass_by() { }

    table kinds {
        key = {
            hdr.probe.kind : exact;
        }
        actions = {
            pass_by;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 16;
    }

    apply {
        if (hdr.probe.isValid() && {{> probe/here}} != CPU_PORT) {
            if (kinds.apply().miss) {
                meta.drop = DROP_PROBE_KIND;
            } else if (hdr.probe.hops > meta.probe.hops) {
                meta.drop = DROP_PROBE_HOPS;
            }
        }
    }
}
";

impl Protocol for Probes {
    fn definition(&self) -> &'static dyn Definition {
        &ProbesDefinition
    }

    fn variant(&self) -> &'static str {
        "probe"
    }

    fn as_variant(&self, variant: &str) -> Option<Arc<dyn Protocol>> {
        (variant == "probe").then(|| Arc::new(self.clone()) as Arc<dyn Protocol>)
    }

    fn parameters(&self) -> Value {
        json!({ "ether_type": self.ether_type, "hops_max": self.hops_max, "vid": self.vid })
    }

    fn check(&self, rack: &Rack, sink: &mut Sink<'_>) {
        if usize::from(self.hops_max) > 10 * rack.hosts.len() {
            sink.refuse(&["probe.hops_max"], format!("{} is too far", self.hops_max), "write less");
        }
    }

    fn claims(&self) -> Vec<(&'static str, Claim)> {
        let vlans = Claim::Vlans(self.vid, self.vid);
        vec![("probe.ether_type", Claim::EtherType(self.ether_type)), ("probe.vid", vlans)]
    }

    fn describe(&self, _rack: &Rack) -> String {
        format!("hops {}", self.hops_max)
    }

    fn tag_bytes(&self) -> u64 {
        Probe::BYTES as u64
    }

    fn drop_reasons(&self) -> &'static [DropReason] {
        const REASONS: [DropReason; 3] = [
            DropReason::new("probe_kind", "no such probe"),
            DropReason::new("probe_hops", "a probe that wants to go farther than its host may ask for"),
            DropReason::new("probe_far", "a probe that wants to go farther than any host may ask for"),
        ];
        &REASONS
    }

    fn headers(&self) -> Vec<Header> {
        vec![Header { desc: Probe::DESC, instance: Some("probe") }]
    }

    fn ether_types(&self) -> Vec<EtherTypeState> {
        vec![EtherTypeState { constant: "ETHERTYPE_PROBE", value: self.ether_type, state: "parse_probe" }]
    }

    fn carried(&self, _arch: Arch) -> &'static [Carried] {
        const MARK: Carried = Carried {
            instance: "probe_mark",
            ingress: Some("probe_t"),
            egress: Some("probe_t"),
            leaves: false,
            doc: "",
        };
        if self.carries { &[MARK] } else { &[] }
    }

    fn pass_bits(&self, _rack: &Rack) -> Option<u32> {
        self.passes.then_some(8)
    }

    fn context(&self, _rack: &Rack) -> Value {
        json!({ "hops_max": self.hops_max, "sums": self.sums, "passes": self.passes })
    }

    fn source(&self, _rack: &Rack, host: usize, entry: Entry) -> Entry {
        entry.param("hops", self.hops_max - host as u8)
    }

    fn updates(&self, _rack: &Rack, schema: &Schema) -> Result<Vec<(String, Update)>, EntityError> {
        let entry = Entry::of("RackIngress.probe.kinds").exact("hdr.probe.kind", KIND);
        let known = entry.action("RackIngress.probe.pass_by").update(schema)?;
        Ok(vec![("The probe that is known".to_owned(), known)])
    }

    fn constants(&self, _rack: &Rack, constants: &mut Value) {
        constants["probe"] = self.parameters();
    }
}

fn described(pl2: &str, probe: &str) -> Result<Rack, String> {
    let hosts: String = (1..=4)
        .map(|n| {
            format!(
                "[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.0.{n}/24\"\n"
            )
        })
        .collect();
    let text = format!("name = \"test\"\n[switch]\nport_rate = \"100 Mb/s\"\n{hosts}{pl2}{probe}");
    Rack::parse_with(&text, "third.toml", &[&pl2::Definition, &cowbird::Definition, &ProbesDefinition])
        .map_err(|error| error.to_string())
}

const PL2: &str = "[pl2]\nmode = \"clock\"\n";

#[test]
fn a_third_protocol_runs_beside_pl2_in_one_pipeline() {
    let rack = described(PL2, "[probe]\n").unwrap();
    assert_eq!(rack.scheme(), Scheme::of(["probe", "pl2-clock"]));
    assert_eq!(rack.scheme().name(), "pl2-clock+probe");
    assert!(rack.protocol::<Pl2>().is_some() && rack.protocol::<Probes>().is_some());
    let built = Built::new(rack, Scheme::of(["probe", "pl2-clock"]));
    let mut rig = Rig::new(&built);

    let probe = |rig: &mut Rig, from: u16, kind, hops| {
        let mut bytes = [0; Probe::BYTES];
        Probe { kind, hops }.emit(&mut bytes);
        let (src, dst) = (mac(&built.rack, from), mac(&built.rack, 3));
        let tag = Vlan { pcp: 0, dei: false, vid: 9, ether_type: EtherType(0x88b6) };
        let frames = [plain(src, dst, EtherType(0x88b6), &bytes), tagged(src, dst, tag, &bytes)];
        frames.map(|frame| rig.send(from, &frame) == [(3, frame)])
    };
    assert_eq!(probe(&mut rig, 1, KIND, 3), [true; 2]);
    assert_eq!(probe(&mut rig, 2, KIND, 3), [false; 2], "the second host may ask for 2");
    assert_eq!(probe(&mut rig, 1, KIND + 1, 0), [false; 2]);
    // Frames that ingress itself refuses reach no table of the protocol's.
    assert_eq!(probe(&mut rig, 1, KIND + 1, 4), [false; 2]);
    assert_eq!(rig.all_drops(), [("probe_kind", 2), ("probe_hops", 2), ("probe_far", 2)]);

    // PL2 works as it does alone.
    let mut alone = Rig::new(&Built::new(described(PL2, "").unwrap(), Scheme::PL2_CLOCK));
    for rig in [&mut rig, &mut alone] {
        assert_eq!(rig.reserve(1, 3, 4), Some((0, 0)));
        assert!(rig.data(1, 3, false));
    }
    for register in [pl2::IN_RESERVATION, pl2::OUT_RESERVATION] {
        for port in 1..=4 {
            let reserved = [&rig, &alone].map(|rig| rig.register(register, port));
            assert_eq!(reserved[0], reserved[1], "{register} of port {port}");
        }
    }
}

#[test]
fn each_part_of_a_third_protocol_arrives() {
    let rack = described(PL2, "[probe]\nhops_max = 9\n").unwrap();
    let both = generate(&rack, rack.scheme(), Arch::V1model).unwrap();
    for part in [
        "header probe_t {",
        "probe_t          probe;",
        "PROBE_HOPS = 9",
        "hdr.pl2_control",
        "DROP_PROBE_HOPS",
    ] {
        assert!(both.p4.contains(part), "{part}");
    }
    // Each protocol's parameters have a line of their own.
    let words: Vec<&str> = both.p4.split_whitespace().collect();
    let accepts = "accept_source(bit<32> slot, bit<32> cells, bit<8> hops) {";
    assert!(words.join(" ").contains(accepts), "{}", both.p4);
    assert!(both.entries.contains("# The probe that is known"));
    assert_eq!(both.constants["probe"]["hops_max"], 9);
    assert_eq!(
        (&both.constants["scheme"], &both.constants["program"]),
        (&json!("pl2-clock+probe"), &json!("pl2_clock_probe"))
    );
    let reasons = both.constants["drop_reasons"].as_array().unwrap();
    assert_eq!(reasons[reasons.len() - 3..], [json!("probe_kind"), json!("probe_hops"), json!("probe_far")]);
    assert_eq!(programs::faults(&both.p4), Vec::<String>::new());
    assert!(rack.summary().rack.contains("\nprobe: hops 9\n") && rack.to_json()["probe"]["hops_max"] == 9);
    assert_eq!(rack.wire_bytes(), described(PL2, "").unwrap().wire_bytes() + 2);

    // A protocol that does not run leaves nothing behind.
    let without = described(PL2, "").unwrap();
    for scheme in [Scheme::PL2_CLOCK, Scheme::L2] {
        let [one, other] =
            [&rack, &without].map(|rack| generate(rack, scheme, Arch::V1model).unwrap().files());
        assert_eq!(one, other, "{scheme}");
    }
    let alone = generate(&rack, PROBE, Arch::V1model).unwrap();
    assert!(alone.p4.contains("kinds.apply()") && !alone.p4.contains("pl2"), "{}", alone.p4);
    assert_eq!(
        alone.files(),
        generate(&described("", "[probe]\nhops_max = 9\n").unwrap(), PROBE, Arch::V1model).unwrap().files()
    );
    let error = generate(&without, PROBE, Arch::V1model).unwrap_err().to_string();
    assert_eq!(error, "rack test: probe is no protocol of the description's: add its table");
}

#[test]
fn what_two_protocols_claim_names_both_fields() {
    for (probe, wanted) in [
        (
            "ether_type = 0x88b5",
            "third.toml:27: probe.ether_type: EtherType 0x88b5 belongs to pl2.ether_type",
        ),
        (
            "vid = 101",
            "third.toml:27: probe.vid: VLAN 101 belongs to pl2.vid (VLANs 100 to 101) already; give",
        ),
        ("hops_max = 41", "third.toml:27: probe.hops_max: 41 is too far; write less"),
        (
            "hops = 4",
            "third.toml:27: probe.hops: is unknown; known here: ether_type, hops_max, vid, carries, sums, passes",
        ),
    ] {
        let error = described(PL2, &format!("[probe]\n{probe}\n")).unwrap_err();
        assert!(error.starts_with(wanted), "wanted: {wanted}\n   got: {error}");
    }
    assert!(described(PL2, "[probe]\nvid = 102\nether_type = 0x88b7\n").is_ok());
}

/// A program has one header that egress looks for first, one checksum, one place for the number of a frame's pass.
#[test]
fn what_a_program_has_once_two_protocols_can_not_have() {
    const COWBIRD: &str = "[cowbird]\nip = \"10.0.0.254\"\ncompute = [\"h1\"]\npool = [\"h2\"]\n";
    for (probe, wanted) in [
        ("carries", "headers that a frame carries to egress (`Protocol::carried`, slot `head_fields`)"),
        ("sums", "a part for the slot `sum_header`"),
        ("passes", "another pass, whose number is in the slot `pass_named`"),
    ] {
        let rack = described(COWBIRD, &format!("[probe]\n{probe} = true\n")).unwrap();
        let error = render_p4(&rack, rack.scheme(), Arch::Tna).unwrap_err().to_string();
        let wanted = format!(
            "is not generated for tna: cowbird and probe have {wanted}, and a program has room for one"
        );
        assert!(error.contains(&wanted), "wanted: {wanted}\n   got: {error}");
    }
    let rack = described(COWBIRD, "[probe]\n").unwrap();
    assert!(render_p4(&rack, rack.scheme(), Arch::Tna).is_ok());
}
