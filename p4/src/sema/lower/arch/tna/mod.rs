//! TNA, the native architecture of Tofino, and T2NA, that of its second generation.
//!
//! Bodies of abstract methods are put where they are called. Calls of externs that are not executed stay calls by
//! name, which the switch refuses.

mod bf_rt;
mod checksum;
mod functions;
mod hash;
mod math;
mod methods;
mod minmax;
mod objects;
mod registers;

use super::{Architecture, BlockSlot, Function, Package, Param};
use crate::Compiled;
use crate::ast::Span;
use crate::ir::{Intrinsic, MatchKind, Role, Storage, Task, Ty};
use crate::sema::lower::{Lower, Made, Object, Val};
use crate::sema::tree::{FnDef, InstDecl, TCall, TExpr, TableDef};
use crate::sema::types::{ExternTy, Type};
use crate::sema::value;
use serde_json::Value;

/// One of the generations.
pub(super) struct Tna {
    name: &'static str,
    usage: &'static str,
    packages: &'static [Package],
}

pub(super) const FIRST: Tna = Tna {
    name: "tna",
    usage: "`#include <tna.p4>` and a `main` of `Switch`",
    packages: &[
        SWITCH,
        Package {
            name: "Pipeline",
            blocks: &[PARSE, INGRESS, DEPARSE, EGRESS_PARSE, EGRESS, EGRESS_DEPARSE],
        },
    ],
};

pub(super) const SECOND: Tna = Tna {
    name: "t2na",
    usage: "`#include <t2na.p4>` and a `main` of `Switch`",
    packages: &[
        SWITCH,
        Package {
            name: "Pipeline",
            blocks: &[PARSE, INGRESS_WITH_GHOST, DEPARSE, EGRESS_PARSE, EGRESS, EGRESS_DEPARSE, GHOST],
        },
    ],
};

const SWITCH: Package = Package { name: "Switch", blocks: &[] };

/// Ingress and egress have headers and metadata of their own.
const HEADERS: [Param; 2] = [Param::Headers(0), Param::Headers(1)];
const METADATA: [Param; 2] = [Param::Metadata(0), Param::Metadata(1)];
const IN: Param = Param::Intrinsic("ingress_intrinsic_metadata_t");
const IN_FOR_TM: Param = Param::Intrinsic("ingress_intrinsic_metadata_for_tm_t");
const IN_FROM_PARSER: Param = Param::Intrinsic("ingress_intrinsic_metadata_from_parser_t");
const IN_FOR_DEPARSER: Param = Param::Intrinsic("ingress_intrinsic_metadata_for_deparser_t");
const GHOST_METADATA: Param = Param::Intrinsic("ghost_intrinsic_metadata_t");
const OUT: Param = Param::Intrinsic("egress_intrinsic_metadata_t");
const OUT_FROM_PARSER: Param = Param::Intrinsic("egress_intrinsic_metadata_from_parser_t");
const OUT_FOR_DEPARSER: Param = Param::Intrinsic("egress_intrinsic_metadata_for_deparser_t");
const OUT_FOR_PORT: Param = Param::Intrinsic("egress_intrinsic_metadata_for_output_port_t");

const PARSE: BlockSlot = BlockSlot {
    role: Role::ingress(Task::Parse),
    params: &[Param::Packet, HEADERS[0], METADATA[0], IN, IN_FOR_TM, IN_FROM_PARSER],
};
const INGRESS: BlockSlot = BlockSlot {
    role: Role::ingress(Task::Process),
    params: &[HEADERS[0], METADATA[0], IN, IN_FROM_PARSER, IN_FOR_DEPARSER, IN_FOR_TM],
};
const INGRESS_WITH_GHOST: BlockSlot = BlockSlot {
    role: Role::ingress(Task::Process),
    params: &[HEADERS[0], METADATA[0], IN, IN_FROM_PARSER, IN_FOR_DEPARSER, IN_FOR_TM, GHOST_METADATA],
};
const DEPARSE: BlockSlot = BlockSlot {
    role: Role::ingress(Task::Deparse),
    params: &[Param::Packet, HEADERS[0], METADATA[0], IN_FOR_DEPARSER, IN],
};
const EGRESS_PARSE: BlockSlot = BlockSlot {
    role: Role::egress(Task::Parse),
    params: &[Param::Packet, HEADERS[1], METADATA[1], OUT, OUT_FROM_PARSER, OUT_FOR_DEPARSER],
};
const EGRESS: BlockSlot = BlockSlot {
    role: Role::egress(Task::Process),
    params: &[HEADERS[1], METADATA[1], OUT, OUT_FROM_PARSER, OUT_FOR_DEPARSER, OUT_FOR_PORT],
};
const EGRESS_DEPARSE: BlockSlot = BlockSlot {
    role: Role::egress(Task::Deparse),
    params: &[Param::Packet, HEADERS[1], METADATA[1], OUT_FOR_DEPARSER, OUT, OUT_FROM_PARSER],
};
const GHOST: BlockSlot = BlockSlot { role: Role::ingress(Task::Watch), params: &[GHOST_METADATA] };

macro_rules! include_files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../../include/tna/", $name)))),*]
    };
}

/// Include files: `tna.p4` and `t2na.p4` are for programs, which may also name the others.
const INCLUDES: &[(&str, &str)] = include_files![
    "tna.p4",
    "t2na.p4",
    "tofino1_arch.p4",
    "tofino1_base.p4",
    "tofino1_specs.p4",
    "tofino2_arch.p4",
    "tofino2_base.p4",
    "tofino2_register_actions.p4",
    "tofino2_specs.p4",
    "tofino_externs.p4",
    "tofino_ids.p4",
    "tofino_metadata.p4",
    "tofino_values.p4",
];

/// Property of a table whose entries age.
const IDLE_TIMEOUT: &str = "idle_timeout";

/// Objects, and properties or annotations, of tables whose masked keys are kept in SRAM.
const ALGORITHMS: [(&str, &str, Storage); 2] =
    [("Alpm", "alpm", Storage::Searched), ("Atcam", "atcam", Storage::Partitioned)];

/// Property of a table with a register of its entries.
const REGISTERS: &str = "registers";

/// Property of a table with a filter of its entries.
const FILTERS: &str = "filters";

/// Properties of tables: their storage, and the objects of their entries.
const PROPERTIES: &[&str] =
    &["alpm", "atcam", FILTERS, IDLE_TIMEOUT, "proxy_hash", REGISTERS, "requires_versioning"];

/// Fields of intrinsic metadata that any architecture has, by their structs.
const FIELDS: &[(Param, &str, Intrinsic)] = &[
    (IN, "ingress_port", Intrinsic::IngressPort),
    (IN, "ingress_mac_tstamp", Intrinsic::IngressTime),
    (IN_FOR_TM, "ucast_egress_port", Intrinsic::Destination),
    (IN_FOR_TM, "bypass_egress", Intrinsic::BypassEgress),
    (IN_FOR_TM, "copy_to_cpu", Intrinsic::CopyToController),
    (IN_FOR_TM, "mcast_grp_a", Intrinsic::MulticastGroup),
    (IN_FOR_TM, "mcast_grp_b", Intrinsic::SecondGroup),
    (IN_FOR_TM, "rid", Intrinsic::CopyId),
    (IN_FOR_TM, "level1_exclusion_id", Intrinsic::MemberExclusion),
    (IN_FOR_TM, "level2_exclusion_id", Intrinsic::PortExclusion),
    (IN_FOR_TM, "level1_mcast_hash", Intrinsic::MemberHash),
    (IN_FOR_TM, "level2_mcast_hash", Intrinsic::PortHash),
    (IN_FOR_TM, "qid", Intrinsic::Priority),
    (IN_FROM_PARSER, "global_tstamp", Intrinsic::ParserTime),
    (IN_FROM_PARSER, "parser_err", Intrinsic::ParserError),
    (IN_FOR_DEPARSER, "drop_ctl", Intrinsic::DropControl),
    (OUT, "egress_port", Intrinsic::EgressPort),
    (OUT, "enq_qdepth", Intrinsic::EnqueueDepth),
    (OUT, "enq_tstamp", Intrinsic::EnqueueTime),
    (OUT, "deq_qdepth", Intrinsic::DequeueDepth),
    (OUT, "deq_timedelta", Intrinsic::QueueingTime),
    (OUT, "egress_rid", Intrinsic::Replica),
    (OUT, "pkt_length", Intrinsic::PacketLength),
    (OUT_FROM_PARSER, "global_tstamp", Intrinsic::EgressTime),
    (OUT_FROM_PARSER, "parser_err", Intrinsic::EgressParserError),
    (OUT_FOR_DEPARSER, "drop_ctl", Intrinsic::EgressDropControl),
];

/// Fields that record whether they are written.
const MARKED: &[(Param, &str)] = &[
    (IN_FOR_TM, "ucast_egress_port"),
    (IN_FOR_DEPARSER, "digest_type"),
    (IN_FOR_DEPARSER, "resubmit_type"),
    (IN_FOR_DEPARSER, "mirror_type"),
    (OUT_FOR_DEPARSER, "mirror_type"),
];

fn is_named(param: &Param, struct_name: &str) -> bool {
    matches!(param, Param::Intrinsic(name) if *name == struct_name)
}

impl Architecture for Tna {
    fn name(&self) -> &'static str {
        self.name
    }

    fn includes(&self) -> &'static [(&'static str, &'static str)] {
        // Once for both generations.
        if self.name == FIRST.name { INCLUDES } else { &[] }
    }

    fn usage(&self) -> &'static str {
        self.usage
    }

    fn porting(&self) -> Option<&'static str> {
        // Once for both generations.
        let help = "give the program TNA's six blocks: a parser, a control and a deparser each for ingress and egress";
        (self.name == FIRST.name).then_some(help)
    }

    fn packages(&self) -> &'static [Package] {
        self.packages
    }

    fn intrinsic(&self, of: &str, field: &str) -> Option<Intrinsic> {
        let found = FIELDS.iter().find(|(param, name, _)| is_named(param, of) && *name == field);
        found.map(|(_, _, role)| *role)
    }

    fn is_marked(&self, of: &str, field: &str) -> bool {
        MARKED.iter().any(|(param, name)| is_named(param, of) && *name == field)
    }

    fn match_kind(&self, name: &str) -> Option<MatchKind> {
        matches!(name, "atcam_partition_index" | "dleft_hash").then_some(MatchKind::Exact)
    }

    fn has_idle_timeout(&self, table: &TableDef) -> bool {
        let given = table.others.iter().find(|(name, _)| name.name == IDLE_TIMEOUT);
        given.is_some_and(|(_, value)| !matches!(value.value(), Some(value::Value::Bool(false))))
    }

    fn has_key_mask(&self, table: &TableDef) -> bool {
        let is_it = |body: &str| body.trim() == "1";
        table.annos.rest.iter().any(|found| found.name == "dynamic_table_key_masks" && is_it(&found.body))
    }

    fn storage(&self, table: &TableDef) -> Storage {
        let object = table.implementation.as_ref().map(|object| &object.ty);
        let asks = |(object_name, name, _): &&(&str, &str, Storage)| {
            matches!(object, Some(Type::Extern(ext)) if ext.def.name == *object_name)
                || table.others.iter().any(|(property, _)| property.name == *name)
                || table.annos.rest.iter().any(|annotation| annotation.name == *name)
        };
        ALGORITHMS.iter().find(asks).map_or(Storage::Any, |(.., storage)| *storage)
    }

    fn registers<'t>(&self, table: &'t TableDef) -> Option<&'t TExpr> {
        table.others.iter().find(|(name, _)| name.name == REGISTERS).map(|(_, value)| value)
    }

    fn smoother<'t>(&self, table: &'t TableDef) -> Option<&'t TExpr> {
        table.others.iter().find(|(name, _)| name.name == FILTERS).map(|(_, value)| value)
    }

    fn bf_rt(&self, compiled: &Compiled) -> Option<Value> {
        Some(bf_rt::schema(compiled))
    }

    fn properties(&self) -> &'static [&'static str] {
        PROPERTIES
    }

    fn verifies(&self) -> bool {
        false
    }

    fn functions(&self) -> &'static [Function] {
        functions::FUNCTIONS
    }

    fn function(&self, lower: &mut Lower<'_>, def: &FnDef, call: &TCall, at: Span) -> Option<Val> {
        functions::lower_call(lower, def, call, at)
    }

    fn object(&self, lower: &mut Lower<'_>, inst: &InstDecl, ext: &ExternTy) -> Option<Made> {
        objects::lower_object(lower, inst, ext)
    }

    fn method(
        &self,
        lower: &mut Lower<'_>,
        object: &Object,
        def: &FnDef,
        call: &TCall,
        at: Span,
    ) -> Option<Val> {
        methods::lower_method(lower, object, def, call, at)
    }
}

/// Whether the device is of the second generation, with any include file: its queues have wider numbers.
fn is_second(lower: &Lower<'_>) -> bool {
    lower.intrinsic_ty(Intrinsic::Priority) == Some(Ty::Bit(7))
}

/// A call that is not executed.
fn foreign(lower: &mut Lower<'_>, object: &Object, def: &FnDef, call: &TCall, at: Span) -> Option<Val> {
    let name = lower.name_of(object);
    Some(lower.foreign_method(&object.ext, name, def, call, at))
}
