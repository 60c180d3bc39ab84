//! The `[pace]` table of descriptions, and its parts of the switch's program, entries and constants.

use crate::{ETHER_TYPE, Frame, host};
use p4rack_codegen::rack::{Host, Rack, Section, Sink};
use p4rack_codegen::scheme::{self, Claim, DropReason, EtherTypeState, Header, Protocol};
use p4rack_fabric::common::Station;
use p4rack_p4rt::entity::Entry;
use p4rack_wire::render::scapy_layer;
use p4rack_wire::{HeaderDesc, Nanos};
use serde_json::{Value, json};
use std::sync::Arc;

/// Name of the table, and of the only variant.
const NAME: &str = "pace";
/// Slots that a request and its grant may take beyond the frames in front of them.
const SPARE_SLOTS: u64 = 8;

/// Pace in descriptions.
#[derive(Debug)]
pub struct Definition;

impl scheme::Definition for Definition {
    fn section(&self) -> &'static str {
        NAME
    }

    fn variants(&self) -> &'static [&'static str] {
        &[NAME]
    }

    fn add(&self) -> &'static str {
        "add a [pace] table"
    }

    fn read(&self, mut section: Section<'_, '_>, sink: &mut Sink<'_>) -> Option<Arc<dyn Protocol>> {
        let frames = section.integer(sink, "frames", (1, 255)).map_or(16, |frames| frames.value);
        section.finish(sink);
        Some(Arc::new(Pace { frames: frames as u8 }))
    }

    fn templates(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("pace/classes", "const {{> class_type}} PACE_CLASS = 7;\n"),
            ("pace/constants", include_str!("../p4/constants.p4.hbs")),
            ("pace/metadata", "    time_t slot; // what a full frame takes on the destination's link\n"),
            (
                "pace/states",
                "\n    state parse_pace {\n        packet.extract(hdr.pace);\n        transition accept;\n    }\n",
            ),
            ("pace/forward_parameters", "bit<32> pace_slot"),
            ("pace/forward", "        meta.pace.slot = (time_t) pace_slot;\n"),
            ("pace/controls", include_str!("../p4/control.p4.hbs")),
            ("pace/objects", "    Pace() pace;\n"),
            (
                "pace/schedule",
                "        if (hdr.pace.isValid()) {\n            pace.apply({{> control_arguments}});\n        }\n",
            ),
        ]
    }
}

/// Pace on a rack.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Maximum frames of a request.
    pub frames: u8,
}

impl Pace {
    /// Time of a full frame on the link to a host.
    fn slot(&self, rack: &Rack, host: &Host) -> Nanos {
        Nanos::on_wire(rack.wire_bytes(), host.port_rate_bps)
    }

    /// Configuration of a host's machine.
    pub fn host(&self, rack: &Rack, host: &Host) -> host::Config {
        let slowest = rack.hosts.iter().map(|peer| self.slot(rack, peer)).max().unwrap_or_default();
        host::Config {
            station: Station::new(host.mac, host.rate_bps),
            peers: rack.hosts.iter().map(|peer| peer.mac).collect(),
            frames: self.frames,
            // In the NIC a request may wait behind granted frames to all other hosts.
            patience: Nanos(slowest.0 * (u64::from(self.frames) * rack.hosts.len() as u64 + SPARE_SLOTS)),
        }
    }
}

impl Protocol for Pace {
    fn definition(&self) -> &'static dyn scheme::Definition {
        &Definition
    }

    fn variant(&self) -> &'static str {
        NAME
    }

    fn as_variant(&self, variant: &str) -> Option<Arc<dyn Protocol>> {
        (variant == NAME).then(|| Arc::new(self.clone()) as Arc<dyn Protocol>)
    }

    fn parameters(&self) -> Value {
        json!({ "frames": self.frames })
    }

    fn describe(&self, _rack: &Rack) -> String {
        format!("{} frames a request", self.frames)
    }

    /// All hosts' requests together stay within the 32 bits of a grant's wait.
    fn check(&self, rack: &Rack, sink: &mut Sink<'_>) {
        for host in &rack.hosts {
            let ns = self.slot(rack, host).0 * u64::from(self.frames) * rack.hosts.len() as u64;
            if ns > u64::from(u32::MAX) {
                let problem = format!(
                    "{} frames of {} hosts take {ns} ns to {}",
                    self.frames,
                    rack.hosts.len(),
                    host.name
                );
                return sink.refuse(&["pace.frames"], problem, "write less: grants count to 2^32 ns");
            }
        }
    }

    fn claims(&self) -> Vec<(&'static str, Claim)> {
        vec![("pace", Claim::EtherType(ETHER_TYPE.0))]
    }

    fn exchanges_times(&self) -> bool {
        true
    }

    fn refuses_arch(&self, rack: &Rack) -> Option<String> {
        let arch = rack.switch.arch;
        arch.is_tofino().then(|| format!("has no program for {}; write arch = \"v1model\"", arch.name()))
    }

    fn drop_reasons(&self) -> &'static [DropReason] {
        const REASONS: [DropReason; 1] =
            [DropReason::new("pace_request", "Pace: not a request, for a group, or for too many frames")];
        &REASONS
    }

    fn headers(&self) -> Vec<Header> {
        vec![Header { desc: Frame::DESC, instance: Some(NAME) }]
    }

    fn ether_types(&self) -> Vec<EtherTypeState> {
        vec![EtherTypeState { constant: "ETHERTYPE_PACE", value: ETHER_TYPE.0, state: "parse_pace" }]
    }

    fn context(&self, _rack: &Rack) -> Value {
        json!({ "frames": self.frames })
    }

    fn destination(&self, rack: &Rack, host: usize, entry: Entry) -> Entry {
        entry.param("pace_slot", self.slot(rack, &rack.hosts[host]).0)
    }

    fn constants(&self, _rack: &Rack, constants: &mut Value) {
        constants[NAME] = self.parameters();
    }

    fn host_constants(&self, rack: &Rack, host: usize, constants: &mut Value) {
        constants["pace_slot_ns"] = json!(self.slot(rack, &rack.hosts[host]).0);
    }

    fn layers(&self) -> Option<String> {
        let layer = scapy_layer(&HeaderDesc { name: "Pace", ..Frame::DESC });
        Some(format!("{layer}\n\nbind_layers(Ether, Pace, type=0x{:04X})\n", ETHER_TYPE.0))
    }
}
