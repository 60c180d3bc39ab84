//! Errors between a controller and a switch.

use crate::protocol::Protocol;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::transport::tls::{self, TlsError};
use thiserror::Error;
use tonic::Status;

/// Maximum rejected updates listed in a message.
const SHOWN: usize = 20;

/// Why an operation of a controller failed.
#[derive(Debug, Error)]
pub enum CtrlError {
    /// No server responds.
    #[error(
        "no {} server answers at {addr}: {reason}; start one with `p4rack switch run{}`, or give {}",
        .protocol.name(),
        if *.protocol == Protocol::BfRuntime { " --bfrt-addr" } else { "" },
        if *.protocol == Protocol::BfRuntime { "its address with --bfrt-addr" } else { "its address with --grpc-addr, or in the topology" }
    )]
    Connect {
        /// Protocol of the connection.
        protocol: Protocol,
        /// Address of the server.
        addr: String,
        /// Error of the transport.
        reason: String,
    },
    /// Another controller is primary.
    #[error(
        "device {device_id} at {addr} has another primary, with election id {highest}; end it, or give a higher --election-id"
    )]
    NotPrimary {
        /// Address of the server.
        addr: String,
        /// Id of the device.
        device_id: u64,
        /// `HI,LO`
        highest: String,
    },
    /// There is no primary, and this controller's election id is too low.
    #[error(
        "device {device_id} at {addr} has no primary now, but had one with election id {highest}; give at least that as --election-id"
    )]
    NoPrimary {
        /// Address of the server.
        addr: String,
        /// Id of the device.
        device_id: u64,
        /// `HI,LO`
        highest: String,
    },
    /// The switch rejected a call.
    #[error("{call}: {}: {}", .status.code(), .status.message())]
    Refused {
        /// Name of the call.
        call: &'static str,
        /// The status it returned.
        status: Box<Status>,
    },
    /// The switch rejected updates.
    #[error("{}", show(.failures))]
    Updates {
        /// Rejected updates, in order.
        failures: Vec<UpdateFailure>,
    },
    /// The stream to the switch has ended.
    #[error("the switch ended the session: {0}")]
    Ended(String),
    /// The switch did not respond in time.
    #[error("{0} did not come within {1} ms")]
    Timeout(String, u128),
    /// A packet-out was rejected.
    #[error("the switch refused a packet: {0}")]
    PacketOut(String),
    /// Entities read back differ from those written.
    #[error("read back, {} of {total} differ from what was written:\n  {}", .differences.len(), .differences.join("\n  "))]
    Differs {
        /// Differences, one sentence each.
        differences: Vec<String>,
        /// Number of updates written.
        total: usize,
    },
    /// The installed program does not support the operation.
    #[error("{0}")]
    Program(String),
    /// A certificate or key is unusable.
    #[error("{0}; give PEM files with --cacert, --cert and --private-key")]
    Certificate(String),
    /// Encryption was refused at the other end.
    #[error("{call}: {objection}")]
    Encryption {
        /// Name of the call.
        call: &'static str,
        /// The objection, and what to do.
        objection: &'static str,
    },
    /// A role configuration is unusable.
    #[error(
        "{path}: {reason}; --role-config takes a stratum.P4RoleConfig as text, such as `exclusive_p4_ids: 33574068`"
    )]
    RoleConfig {
        /// Path of the file.
        path: String,
        /// The problem.
        reason: String,
    },
    /// The request log could not be written.
    #[error("{0}; give another file with --log-requests")]
    Log(String),
    /// An operation on etcd failed.
    #[error("{0}")]
    Etcd(String),
    /// A name or value that does not fit the program.
    #[error("{0}")]
    Input(String),
    /// A program was not installed.
    #[error("{error}\n  {state}")]
    NotInstalled {
        /// The reason.
        error: Box<CtrlError>,
        /// What the switch runs and holds now.
        state: String,
    },
    /// The artefacts could not be generated.
    #[error(transparent)]
    Generate(#[from] p4rack_codegen::GenerateError),
}

impl From<TlsError> for CtrlError {
    fn from(error: TlsError) -> CtrlError {
        CtrlError::Certificate(error.to_string())
    }
}

impl CtrlError {
    /// Whether the switch does not support the operation.
    pub fn is_unimplemented(&self) -> bool {
        matches!(self, CtrlError::Refused { status, .. } if status.code() == tonic::Code::Unimplemented)
    }

    /// Whether the switch says that something exists already.
    pub fn is_taken(&self) -> bool {
        matches!(self, CtrlError::Refused { status, .. } if status.code() == tonic::Code::AlreadyExists)
    }

    /// Whether the same may succeed later: the switch doesn't answer, or has another primary.
    pub fn may_pass(&self) -> bool {
        match self {
            CtrlError::Connect { .. }
            | CtrlError::NotPrimary { .. }
            | CtrlError::NoPrimary { .. }
            | CtrlError::Ended(_)
            | CtrlError::Timeout(..) => true,
            // How a switch answers if another controller has become primary.
            CtrlError::Refused { status, .. } if status.code() == tonic::Code::PermissionDenied => true,
            CtrlError::Refused { .. } => self.is_cut_off(),
            CtrlError::NotInstalled { error, .. } => error.may_pass(),
            _ => false,
        }
    }

    /// Whether the connection was lost during a call, so that it is not known if the switch has carried it out.
    pub fn is_cut_off(&self) -> bool {
        use std::error::Error;
        match self {
            CtrlError::Ended(_) | CtrlError::Timeout(..) => true,
            // The statuses of the client itself have a source.
            CtrlError::Refused { status, .. } => {
                let code = status.code();
                matches!(code, tonic::Code::Unavailable | tonic::Code::Cancelled) || status.source().is_some()
            }
            _ => false,
        }
    }

    /// Whether the switch does not say what has failed, as BMv2 where it has failed half-way.
    pub fn is_unknown(&self) -> bool {
        matches!(self, CtrlError::Refused { status, .. } if status.code() == tonic::Code::Unknown)
    }

    /// Whether the switch says that something does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, CtrlError::Refused { status, .. } if status.code() == tonic::Code::NotFound)
    }
}

/// A rejected update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateFailure {
    /// Position in the write, from 1.
    pub number: usize,
    /// Number of updates in the write.
    pub total: usize,
    /// Table and key, or another entity, in words.
    pub what: String,
    /// The switch's error.
    pub error: UpdateError,
}

impl std::fmt::Display for UpdateFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "entry {} of {}: {}: {}", self.number, self.total, self.what, self.error)?;
        let hint = match self.error.code {
            // The switch itself says what to do.
            _ if self.error.message.contains("; ") => "",
            Code::AlreadyExists => "; modify it, or delete it first",
            Code::NotFound => "; insert it first, or list what is there",
            Code::ResourceExhausted => "; delete what is not needed, or give it a larger size in the program",
            Code::PermissionDenied => {
                "; is this controller primary, the object its role's, and not constant?"
            }
            _ => "",
        };
        f.write_str(hint)
    }
}

fn show(failures: &[UpdateFailure]) -> String {
    let mut lines: Vec<String> = failures.iter().take(SHOWN).map(UpdateFailure::to_string).collect();
    if failures.len() > SHOWN {
        lines.push(format!("and {} more", failures.len() - SHOWN));
    }
    lines.join("\n")
}

/// Adds the name of the call to the switch's error.
pub(crate) fn refused(call: &'static str) -> impl FnOnce(Status) -> CtrlError {
    move |status| match tls::objection(&status) {
        Some(objection) => CtrlError::Encryption { call, objection },
        None => CtrlError::Refused { call, status: Box::new(status) },
    }
}
