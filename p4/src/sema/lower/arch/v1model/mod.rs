//! v1model with BMv2's semantics.

mod functions;
mod objects;

use super::{Architecture, BlockSlot, Function, Package, Param};
use crate::ast::Span;
use crate::ir::{HashAlgorithm, Intrinsic, Role, Task};
use crate::sema::lower::{Lower, Made, Object, Val};
use crate::sema::tree::{FnDef, InstDecl, TCall};
use crate::sema::types::ExternTy;

pub(super) struct V1model;

const PARSER: Role = Role::ingress(Task::Parse);
const VERIFY: Role = Role::ingress(Task::Verify);
const INGRESS: Role = Role::ingress(Task::Process);
const EGRESS: Role = Role::egress(Task::Process);
const COMPUTE: Role = Role::egress(Task::Compute);
const DEPARSER: Role = Role::egress(Task::Deparse);

/// The set of headers and metadata that passes through all blocks.
const HEADERS: Param = Param::Headers(0);
const METADATA: Param = Param::Metadata(0);
const STANDARD: Param = Param::Intrinsic(STANDARD_METADATA);
/// The only struct of intrinsic metadata.
const STANDARD_METADATA: &str = "standard_metadata_t";

const PACKAGES: &[Package] = &[Package {
    name: "V1Switch",
    blocks: &[
        BlockSlot { role: PARSER, params: &[Param::Packet, HEADERS, METADATA, STANDARD] },
        BlockSlot { role: VERIFY, params: &[HEADERS, METADATA] },
        BlockSlot { role: INGRESS, params: &[HEADERS, METADATA, STANDARD] },
        BlockSlot { role: EGRESS, params: &[HEADERS, METADATA, STANDARD] },
        BlockSlot { role: COMPUTE, params: &[HEADERS, METADATA] },
        BlockSlot { role: DEPARSER, params: &[Param::Packet, HEADERS] },
    ],
}];

const INCLUDES: &[(&str, &str)] = &[("v1model.p4", include_str!("../../../../../include/v1model.p4"))];

/// Meaning of the fields of `standard_metadata_t`.
const FIELDS: &[(&str, Intrinsic)] = &[
    ("ingress_port", Intrinsic::IngressPort),
    ("egress_spec", Intrinsic::Destination),
    ("egress_port", Intrinsic::EgressPort),
    ("instance_type", Intrinsic::Origin),
    ("packet_length", Intrinsic::PacketLength),
    ("enq_timestamp", Intrinsic::EnqueueTime),
    ("enq_qdepth", Intrinsic::EnqueueDepth),
    ("deq_timedelta", Intrinsic::QueueingTime),
    ("deq_qdepth", Intrinsic::DequeueDepth),
    ("ingress_global_timestamp", Intrinsic::IngressTime),
    ("egress_global_timestamp", Intrinsic::EgressTime),
    ("mcast_grp", Intrinsic::MulticastGroup),
    ("egress_rid", Intrinsic::Replica),
    ("checksum_error", Intrinsic::ChecksumError),
    ("parser_error", Intrinsic::ParserError),
    ("priority", Intrinsic::Priority),
];

const fn anywhere(name: &'static str) -> Function {
    Function { name, callers: &[], place: "" }
}

const fn in_controls(name: &'static str) -> Function {
    Function { name, callers: &[INGRESS, EGRESS], place: "ingress and egress" }
}

const fn in_ingress(name: &'static str) -> Function {
    Function { name, callers: &[INGRESS], place: "ingress" }
}

const fn in_egress(name: &'static str) -> Function {
    Function { name, callers: &[EGRESS], place: "egress" }
}

const fn in_verification(name: &'static str) -> Function {
    Function { name, callers: &[VERIFY], place: "the checksum verification" }
}

const fn in_computation(name: &'static str) -> Function {
    Function { name, callers: &[COMPUTE], place: "the checksum computation" }
}

const FUNCTIONS: &[Function] = &[
    in_controls("mark_to_drop"),
    anywhere("random"),
    anywhere("hash"),
    in_controls("digest"),
    in_controls("clone"),
    in_controls("clone3"),
    in_controls("clone_preserving_field_list"),
    in_ingress("resubmit"),
    in_ingress("resubmit_preserving_field_list"),
    in_egress("recirculate"),
    in_egress("recirculate_preserving_field_list"),
    in_controls("truncate"),
    in_verification("verify_checksum"),
    in_verification("verify_checksum_with_payload"),
    in_computation("update_checksum"),
    in_computation("update_checksum_with_payload"),
    anywhere("log_msg"),
    anywhere("assert"),
    anywhere("assume"),
];

impl Architecture for V1model {
    fn name(&self) -> &'static str {
        "v1model"
    }

    fn includes(&self) -> &'static [(&'static str, &'static str)] {
        INCLUDES
    }

    fn usage(&self) -> &'static str {
        "`#include <v1model.p4>` and a `main` of `V1Switch`"
    }

    fn porting(&self) -> Option<&'static str> {
        Some(
            "give the program v1model's six blocks: parser, checksum verification, ingress, egress, checksum computation, deparser",
        )
    }

    fn packages(&self) -> &'static [Package] {
        PACKAGES
    }

    fn intrinsic(&self, of: &str, field: &str) -> Option<Intrinsic> {
        let mut fields = FIELDS.iter().filter(|_| of == STANDARD_METADATA);
        fields.find(|(name, _)| *name == field).map(|(_, role)| *role)
    }

    fn properties(&self) -> &'static [&'static str] {
        &[]
    }

    fn functions(&self) -> &'static [Function] {
        FUNCTIONS
    }

    fn function(&self, lower: &mut Lower<'_>, def: &FnDef, call: &TCall, at: Span) -> Option<Val> {
        functions::lower_call(lower, &def.name, call, at);
        None
    }

    fn object(&self, lower: &mut Lower<'_>, inst: &InstDecl, ext: &ExternTy) -> Option<Made> {
        let kind = objects::lower_object(lower, inst, ext)?;
        Some(lower.add_instance(inst, kind))
    }

    fn method(
        &self,
        lower: &mut Lower<'_>,
        object: &Object,
        def: &FnDef,
        call: &TCall,
        at: Span,
    ) -> Option<Val> {
        objects::lower_method(lower, &object.ext.def.name, object.instance()?, &def.name, call, at);
        None
    }
}

/// The algorithm, by its position in `HashAlgorithm`.
fn algorithm(member: u64) -> Option<HashAlgorithm> {
    use HashAlgorithm::*;
    let all = [Crc32, Crc32Custom, Crc16, Crc16Custom, Random, Identity, Csum16, Xor16];
    all.get(usize::try_from(member).ok()?).copied()
}
