//! Switches that are spoken to over BFRuntime: Tofino's, and the embedded one with a program of its architecture.
//!
//! A [`Link`] has the functions of a P4Runtime client, on P4Runtime's entities: they are translated by name, so
//! reconciliation and commands are the same for both.
//!
//! ```text
//!  connect ─ Subscribe ─ [ install ] ─ BIND ─▶ read, write ─ [ start ]
//!
//!  bind      connections, and the program: its names, installation and start
//!  read      what P4Runtime's entities name
//!  write     updates of P4Runtime's entities
//!  groups    a multicast group is one entry and a node for each replication id
//!  sessions  a clone session is a mirror session
//!  digests   what a program learns
//!  queues    what ports do with their queues
//!  ports     the device's ports, which are added before they work; their statistics
//!  generator packet generators of the pipes
//!  device    tables of the device, which these use
//!  rates     of meters, which chips round
//!  patience  repeats calls while the switch is busy
//!  back      rollback of an installation that fails
//! ```

mod back;
mod bind;
mod device;
mod digests;
mod generator;
mod groups;
mod patience;
mod ports;
mod queues;
mod rates;
mod read;
mod sessions;
mod write;

pub use generator::{GeneratedFrames, HEADER, Timing};
pub use ports::PortStat;
pub use queues::{Queue, QueueChange, Rate};

use crate::connect::ConnectOptions;
use crate::error::{CtrlError, refused};
use back::Before;
use p4rack_bfrt::Schema;
use p4rack_bfrt::p4runtime::Translation;
use p4rack_p4rt::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use p4rack_p4rt::bfrt_proto::subscribe::Notifications;
use p4rack_p4rt::bfrt_proto::{
    self as bfrt, ForwardingPipelineConfig, StreamMessageRequest, StreamMessageResponse, TargetDevice,
};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::{self, Code};
use prost::Message;
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

/// Number of the device at the server.
const DEVICE: u32 = 0;
/// All pipes, both directions, all parsers.
const EVERYWHERE: TargetDevice =
    TargetDevice { device_id: DEVICE, pipe_id: 0xffff, direction: 0xff, prsr_id: 0xff };

/// The program that a switch runs, with its names.
#[derive(Debug)]
struct Bound {
    p4_name: String,
    /// Tables of the program and of the device.
    schema: Schema,
    translation: Translation,
    /// Whether the device is of the second generation.
    second: bool,
    /// Whether a chip runs it: then it came with the compiler's description.
    is_compiled: bool,
}

/// The stream of a client that may bind to a program.
#[derive(Debug)]
struct Stream {
    /// Keeps it open.
    _outgoing: mpsc::Sender<StreamMessageRequest>,
    incoming: Streaming<StreamMessageResponse>,
    /// Name of the program that its client is bound to. A driver refuses to bind it again, and keeps it bound when a program
    /// of this name is installed.
    bound_to: Option<String>,
}

/// A session with a switch; it ends when dropped.
#[derive(Debug)]
pub struct Link {
    target: ConnectOptions,
    client_id: u32,
    grpc: BfRuntimeClient<Channel>,
    /// Notifications that it wants on its stream.
    wanted: Notifications,
    /// None of a client that only reads: such a one names the program, and another one may be bound to it.
    stream: Option<Stream>,
    /// A second client's stream, for such a client to hear of installations.
    news: Option<Stream>,
    bound: Option<Bound>,
    /// Whether the program is prepared and does not run yet.
    prepared: bool,
    /// That program, once it can be filled.
    filling: Option<ForwardingPipelineConfig>,
    /// What ran before the installation, for a rollback.
    before: Option<Before>,
}

fn program_error(error: impl ToString) -> CtrlError {
    CtrlError::Program(error.to_string())
}

impl Link {
    fn bound(&self) -> Result<&Bound, CtrlError> {
        self.bound.as_ref().ok_or_else(|| CtrlError::Program("the client is not bound to a program".into()))
    }

    /// Whether the device is of the second generation; `false` before a program is bound.
    pub(crate) fn is_second(&self) -> bool {
        self.bound.as_ref().is_some_and(|bound| bound.second)
    }
}

/// An error of one entity as one of the call.
fn update_error(error: UpdateError) -> CtrlError {
    let status = Status::new(tonic::Code::from(error.code as i32), error.message);
    refused("translating an entry")(status)
}

/// The errors in a status, one for each update or entity up to the last that failed; `None` if it has none.
fn unpack(status: &Status) -> Option<Vec<Option<UpdateError>>> {
    let details = rpc::Status::decode(status.details()).ok()?.details;
    if details.is_empty() {
        return None;
    }
    let one = |any: &prost_types::Any| {
        let error = bfrt::Error::decode(any.value.as_slice()).ok()?;
        Some(match Code::try_from(error.canonical_code).unwrap_or(Code::Unknown) {
            Code::Ok => None,
            code => Some(UpdateError::new(code, error.message)),
        })
    };
    details.iter().map(one).collect()
}
