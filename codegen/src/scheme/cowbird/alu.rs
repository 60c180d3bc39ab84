//! Context of the engine's templates for stateful ALUs.

use super::{BUSY_TURNS, Cowbird, HEADERS};
use crate::arch::Arch;
use crate::rack::{Carried, Rack};
use p4rack_wire::cowbird::Red;
use p4rack_wire::ethernet::{Ethernet, overhead};
use p4rack_wire::ipv4::Ipv4;
use p4rack_wire::roce::{Aeth, Reth};
use serde_json::{Value, json};

/// Bits that a frame carries to its second pass, beside a byte.
pub(super) const PASS_BITS: u32 = 24 + 32;
/// Maximum instances: a byte names them.
const INSTANCES_MAX: u32 = 64;
/// Lowest bit of a number in its word.
const NUMBER_LOW: u32 = 8;
/// Bytes before a frame that egress completes: its mark, phase, instance and form, a number, and the ingress port.
const CARRIED_BYTES: usize = 4 + 4 + 2;
/// Extra header bytes of a frame that becomes a red block.
const TOLD_BYTES: usize = 6 * 4 + 1;

/// Headers from ingress to egress. A frame has one of the numbers, or none.
pub(super) const CARRIED: &[Carried] = &[
    both("sent", "sent_t", ""),
    both(
        "cowbird_count",
        NUMBER,
        "packets of the queue pair before; later, up to where entries may be asked for",
    ),
    from_ingress("cowbird_fetched", ""),
    from_ingress("cowbird_taken", ""),
    from_ingress("cowbird_probes", ""),
    from_ingress("cowbird_reds", "red blocks before"),
    from_ingress("cowbird_number", ""),
    from_ingress("cowbird_packets", ""),
    Carried { egress: Some("cowbird_telling_parts_t"), ..both("cowbird_telling", "cowbird_telling_t", "") },
    composed("cowbird_answer", "cowbird_answer_t"),
    composed("cowbird_block", "cowbird_block_t"),
];
const NUMBER: &str = "cowbird_number_t";

const fn both(instance: &'static str, kind: &'static str, doc: &'static str) -> Carried {
    Carried { instance, ingress: Some(kind), egress: Some(kind), leaves: false, doc }
}

/// A number that egress finds as `cowbird_count`.
const fn from_ingress(instance: &'static str, doc: &'static str) -> Carried {
    Carried { instance, ingress: Some(NUMBER), egress: None, leaves: false, doc }
}

/// A header that egress composes.
const fn composed(instance: &'static str, kind: &'static str) -> Carried {
    Carried { instance, ingress: None, egress: Some(kind), leaves: true, doc: "" }
}

/// Why there is no program.
pub(super) fn refuses(cowbird: &Cowbird, rack: &Rack) -> Option<String> {
    if cowbird.instances > INSTANCES_MAX {
        let asked = cowbird.instances;
        return Some(format!(
            "serves {INSTANCES_MAX} instances there at most, not {asked}: lower cowbird.instances"
        ));
    }
    // The first generation's stages are all taken.
    (rack.protocols.len() > 1 && rack.switch.arch == Arch::Tna).then(|| {
        format!("shares the stages with no other protocol there: use scheme cowbird, or arch {}", Arch::T2na)
    })
}

/// Adds the context that only these templates see.
pub(super) fn add(cowbird: &Cowbird, context: &mut Value) {
    let bits = |cells: u32| cells.next_power_of_two().ilog2().max(1);
    let (instance_bits, slot_bits) = (bits(cowbird.instances), bits(cowbird.slots()));
    let mtu = cowbird.mtu.bytes();
    let mac = cowbird.mac.0.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (read, red) = (HEADERS + Reth::BYTES, HEADERS + Reth::BYTES + Red::BYTES);
    let carried = Ethernet::BYTES + CARRIED_BYTES;
    let red_carried = carried + TOLD_BYTES - Red::BYTES;
    let instance = format!("meta.cowbird.instance[{}:0]", instance_bits - 1);
    let number = |name: &str| format!("{name}[{}:{NUMBER_LOW}]", NUMBER_LOW + slot_bits - 1);
    let side = |name: &str| format!("{instance} ++ meta.cowbird.{name}[0:0]");
    let high = |name: &str, doc: &str, answer: &str, looked: bool, side: &str| {
        json!({
            "name": name,
            "doc": doc,
            "answer": answer,
            "looked": looked,
            "side": side,
            "follow": format!("follow_{name}"),
            "put": format!("put_{name}"),
        })
    };
    let (of_reads, of_writes) = ("0 &&& 1", "1 &&& 1");
    let own = json!({
        "highs": [
            high("head", "the head", "head_high", true, "_"),
            high("reads", "reads that are done", "done_high", true, of_reads),
            high("writes", "writes that are done", "done_high", true, of_writes),
            high("response", "the end of their responses", "end_high", false, of_reads),
            high("request", "the end of their requests' data", "end_high", false, of_writes),
        ],
        "instance_index": instance,
        "side_index": side("kind"),
        "acks_index": side("acks"),
        // Too long for one line.
        "slot_index": format!("\n            {} ++ {}", side("kind"), number("meta.cowbird.id")),
        "response_index": format!("\n            {instance} ++ {}", number("hdr.cowbird_telling.reads")),
        "request_index": format!("\n            {instance} ++ {}", number("hdr.cowbird_telling.writes")),
        "sent_index": format!("hdr.sent.instance[{}:0]", instance_bits - 1),
        "instance_bits": instance_bits,
        "instance_high": instance_bits - 1,
        "last_instance": cowbird.instances - 1,
        "side_bits": instance_bits + 1,
        "end_bits": instance_bits + slot_bits,
        "all_slot_bits": instance_bits + 1 + slot_bits,
        "sent_bits": instance_bits + 3,
        "packet_shift": mtu.ilog2() - NUMBER_LOW,
        "ragged": format!("0x{:04X}", !(mtu - 4) & 0xffff),
        "busy_mask": format!("0x{:04X}", !(BUSY_TURNS - 1) & 0xffff),
        "odd_busy_mask": format!("0x{:04X}", !(BUSY_TURNS - 1) & 0xffff | 1),
        // The bit of a number of entries that is set once the limit of requests in flight is reached.
        "window_bit": NUMBER_LOW + cowbird.in_flight.ilog2(),
        "longer": Reth::BYTES - Aeth::BYTES,
        "shorter": format!("0x{:04X}", (Aeth::BYTES as u16).wrapping_neg()),
        "answer_length": HEADERS + Aeth::BYTES,
        "read_length": read,
        "read_total": read + Ipv4::BYTES,
        "red_length": red,
        "red_total": red + Ipv4::BYTES,
        "carried": carried,
        "carried_with_fcs": carried + overhead::FCS as usize,
        "red_carried": red_carried,
        "red_carried_with_fcs": red_carried + overhead::FCS as usize,
        "mac_high": format!("0x{:08X}", mac >> 16),
        "mac_low": format!("0x{:04X}", mac & 0xffff),
    });
    for (key, value) in own.as_object().into_iter().flatten() {
        context[key] = value.clone();
    }
}
