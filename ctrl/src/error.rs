//! What can go wrong between a controller and a switch.

use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use thiserror::Error;
use tonic::Status;

/// Refused updates that one message lists.
const SHOWN: usize = 20;

/// Why a controller could not do what it was told.
#[derive(Debug, Error)]
pub enum CtrlError {
    /// Nobody answers.
    #[error(
        "no P4Runtime server answers at {addr}: {reason}; start one with `p4rack switch run`, or give --grpc-addr"
    )]
    Connect {
        /// Where.
        addr: String,
        /// The transport's reason.
        reason: String,
    },
    /// Another controller is in charge.
    #[error(
        "device {device_id} at {addr} has another primary, with election id {highest}; end it, or give a higher --election-id"
    )]
    NotPrimary {
        /// Where.
        addr: String,
        /// Which device.
        device_id: u64,
        /// `HI,LO`
        highest: String,
    },
    /// Nobody is in charge, and this controller's id is too low to be.
    #[error(
        "device {device_id} at {addr} has no primary now, but had one with election id {highest}; give at least that as --election-id"
    )]
    NoPrimary {
        /// Where.
        addr: String,
        /// Which device.
        device_id: u64,
        /// `HI,LO`
        highest: String,
    },
    /// The switch refused a call.
    #[error("{call}: {}: {}", .status.code(), .status.message())]
    Refused {
        /// What was asked for.
        call: &'static str,
        /// The answer.
        status: Box<Status>,
    },
    /// Updates were refused.
    #[error("{}", show(.failures))]
    Updates {
        /// Those refused, in order.
        failures: Vec<UpdateFailure>,
    },
    /// The stream to the switch has ended.
    #[error("the switch ended the session: {0}")]
    Ended(String),
    /// The switch did not say something in time.
    #[error("{0} did not come within {1} ms")]
    Timeout(String, u128),
    /// A packet-out was refused.
    #[error("the switch refused a packet: {0}")]
    PacketOut(String),
    /// What was read back is not what was written.
    #[error("read back, {} of {total} differ from what was written:\n  {}", .differences.len(), .differences.join("\n  "))]
    Differs {
        /// One sentence each.
        differences: Vec<String>,
        /// Updates written.
        total: usize,
    },
    /// The program on the switch is not one that this can be done with.
    #[error("{0}")]
    Program(String),
    /// A certificate or key was not usable.
    #[error("{0}; give PEM files with --cacert, --cert and --private-key")]
    Certificate(String),
    /// A role's config was not usable.
    #[error(
        "{path}: {reason}; --role-config takes a stratum.P4RoleConfig as text, such as `exclusive_p4_ids: 33574068`"
    )]
    RoleConfig {
        /// Which file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The requests could not be logged.
    #[error("{0}; give another file with --log-requests")]
    Log(String),
    /// etcd could not be used.
    #[error("{0}")]
    Etcd(String),
    /// A name or value that the program does not have.
    #[error("{0}")]
    Input(String),
    /// The artefacts could not be generated.
    #[error(transparent)]
    Generate(#[from] p4rack_codegen::GenerateError),
}

impl CtrlError {
    /// Whether this is something that the switch can't do at all.
    pub fn is_unimplemented(&self) -> bool {
        matches!(self, CtrlError::Refused { status, .. } if status.code() == tonic::Code::Unimplemented)
    }

    /// Whether the switch says that what was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, CtrlError::Refused { status, .. } if status.code() == tonic::Code::NotFound)
    }
}

/// An update that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateFailure {
    /// From 1.
    pub number: usize,
    /// How many there were.
    pub total: usize,
    /// Table and key, or what else was to be changed.
    pub what: String,
    /// Why.
    pub error: UpdateError,
}

impl std::fmt::Display for UpdateFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "entry {} of {}: {}: {}", self.number, self.total, self.what, self.error)?;
        let hint = match self.error.code {
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

/// Attaches what was asked for to the switch's refusal.
pub(crate) fn refused(call: &'static str) -> impl FnOnce(Status) -> CtrlError {
    move |status| CtrlError::Refused { call, status: Box::new(status) }
}
