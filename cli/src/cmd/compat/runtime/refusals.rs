//! BMv2's names of what a switch refuses: `Invalid table operation (DUPLICATE_ENTRY): …`.

use super::Failure;
use p4rack_ctrl::CtrlError;
use p4rack_p4rt::google::rpc::Code;

/// What a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Entry,
    Default,
    Member,
    Group,
    Counter,
    Meter,
    Register,
    Multicast,
    Mirroring,
    ValueSet,
}

impl Of {
    /// BMv2's word for operations of this kind.
    pub fn kind(self) -> &'static str {
        match self {
            Of::Entry | Of::Default | Of::Member | Of::Group => "table",
            Of::Counter => "counter",
            Of::Meter => "meter",
            Of::Register => "register",
            Of::Multicast => "PRE",
            Of::Mirroring => "mirroring",
            Of::ValueSet => "parser value set",
        }
    }

    /// BMv2's name of a refusal. Commands look up objects before they write, so an object that is missing here was deleted in
    /// between.
    fn name(self, code: Code) -> &'static str {
        match (self, code) {
            (Of::Entry, Code::AlreadyExists) => "DUPLICATE_ENTRY",
            (Of::Entry, Code::NotFound) => "INVALID_HANDLE",
            (Of::Entry, Code::PermissionDenied) => "IMMUTABLE_TABLE_ENTRIES",
            (Of::Entry, Code::OutOfRange) => "BAD_MATCH_KEY",
            (Of::Default, Code::PermissionDenied) => "DEFAULT_ENTRY_IS_CONST",
            (Of::Member, Code::NotFound) => "INVALID_MBR_HANDLE",
            (Of::Member, Code::FailedPrecondition) => "MBR_STILL_USED",
            (Of::Group, Code::NotFound) => "INVALID_GRP_HANDLE",
            (Of::Group, Code::FailedPrecondition) => "GRP_STILL_USED",
            (Of::Entry | Of::Member | Of::Group | Of::Multicast, Code::ResourceExhausted) => "TABLE_FULL",
            (Of::Counter | Of::Meter | Of::Register, Code::OutOfRange) => "INVALID_INDEX",
            (Of::Meter, Code::InvalidArgument) => "INVALID_INFO_RATE_VALUE",
            (Of::Multicast, Code::NotFound) => "INVALID_MGRP_HANDLE",
            (Of::Multicast, Code::InvalidArgument | Code::OutOfRange) => "INVALID_MGID",
            (Of::Mirroring, Code::NotFound) => "SESSION_NOT_FOUND",
            _ => "ERROR",
        }
    }

    /// A refusal with a name of BMv2's, and the reason.
    pub fn refusal(self, name: &str, why: impl std::fmt::Display) -> Failure {
        Failure(format!("Invalid {} operation ({name}): {why}", self.kind()))
    }
}

/// Updates of a write that the switch refuses.
pub(super) fn refused(of: Of) -> impl FnOnce(CtrlError) -> Failure {
    move |error| {
        let first = match &error {
            CtrlError::Updates { failures } => failures.first(),
            _ => None,
        };
        match first {
            Some(failure) => {
                let code = failure.error.code;
                let why = match (of, code) {
                    // The switch's own words have P4Runtime's ids, not handles.
                    (Of::Member, Code::FailedPrecondition) => {
                        "it is in a group, or an entry uses it: change that first"
                    }
                    (Of::Group, Code::FailedPrecondition) => "an entry uses it: change that first",
                    _ => &failure.error.message,
                };
                of.refusal(of.name(code), why)
            }
            None => of.refusal("ERROR", error),
        }
    }
}
