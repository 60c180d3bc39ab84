//! Names that BMv2's `simple_switch` gives to what the IR knows by meaning.

use p4rack_p4::ir::{HashAlgorithm, Intrinsic};

/// Instance of the header that has all scalars which are not in a header.
pub(crate) const SCALARS: &str = "scalars";
/// Instance of the header with the intrinsic fields.
pub(crate) const STANDARD: &str = "standard_metadata";
/// Suffix of the field that is a header's validity.
pub(crate) const VALID: &str = "$valid$";
/// Start of the names of fields that only fill bytes.
pub(crate) const PADDING: &str = "_padding";
/// Start of the names of tables that stand for a call of an action.
pub(crate) const HIDDEN_TABLE: &str = "tbl_";

/// An intrinsic field.
pub(crate) struct Field {
    /// Its meaning.
    pub role: Intrinsic,
    /// Its name in `standard_metadata`.
    pub name: &'static str,
    /// Width in bits.
    pub width: u32,
    /// Another instance in which the switch looks for it; an alias leads it here.
    pub alias: Option<&'static str>,
}

/// The intrinsic fields, in the order of v1model's struct.
pub(crate) const FIELDS: [Field; 16] = {
    const fn field(role: Intrinsic, name: &'static str, width: u32, alias: Option<&'static str>) -> Field {
        Field { role, name, width, alias }
    }
    const QUEUE: Option<&str> = Some("queueing_metadata");
    const INTRINSIC: Option<&str> = Some("intrinsic_metadata");
    [
        field(Intrinsic::IngressPort, "ingress_port", 9, None),
        field(Intrinsic::Destination, "egress_spec", 9, None),
        field(Intrinsic::EgressPort, "egress_port", 9, None),
        field(Intrinsic::Origin, "instance_type", 32, None),
        field(Intrinsic::PacketLength, "packet_length", 32, None),
        field(Intrinsic::EnqueueTime, "enq_timestamp", 32, QUEUE),
        field(Intrinsic::EnqueueDepth, "enq_qdepth", 19, QUEUE),
        field(Intrinsic::QueueingTime, "deq_timedelta", 32, QUEUE),
        field(Intrinsic::DequeueDepth, "deq_qdepth", 19, QUEUE),
        field(Intrinsic::IngressTime, "ingress_global_timestamp", 48, INTRINSIC),
        field(Intrinsic::EgressTime, "egress_global_timestamp", 48, INTRINSIC),
        field(Intrinsic::MulticastGroup, "mcast_grp", 16, INTRINSIC),
        field(Intrinsic::Replica, "egress_rid", 16, INTRINSIC),
        field(Intrinsic::ChecksumError, "checksum_error", 1, None),
        field(Intrinsic::ParserError, "parser_error", 32, None),
        field(Intrinsic::Priority, "priority", 3, INTRINSIC),
    ]
};

/// Hash and checksum algorithms by the names that the switch registers.
pub(crate) const ALGORITHMS: [(HashAlgorithm, &str); 8] = [
    (HashAlgorithm::Crc32, "crc32"),
    (HashAlgorithm::Crc32Custom, "crc32_custom"),
    (HashAlgorithm::Crc16, "crc16"),
    (HashAlgorithm::Crc16Custom, "crc16_custom"),
    (HashAlgorithm::Random, "random"),
    (HashAlgorithm::Identity, "identity"),
    (HashAlgorithm::Csum16, "csum16"),
    (HashAlgorithm::Xor16, "xor16"),
];
