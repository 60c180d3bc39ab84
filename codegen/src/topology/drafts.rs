//! What a file says of a topology, before it is checked.

use super::{Target, Workload};
use p4rack_wire::{MacAddr, Nanos};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// What to do about a command with a character that no argument of a process can have.
pub(super) const NO_NUL: &str = "take it out; printf '\\0' makes one";

/// What a file says, as far as it could be read.
#[derive(Debug)]
pub(super) struct Drafts {
    pub(super) name: Option<String>,
    pub(super) switches: Vec<SwitchDraft>,
    pub(super) hosts: Vec<HostDraft>,
    pub(super) links: Vec<LinkDraft>,
    pub(super) workload: Option<Workload>,
    /// P4Runtime's port of the first switch; the others' count up.
    pub(super) first_grpc_port: u16,
    /// Whether it is a `topology.json`, in whose words advice is given.
    pub(super) is_json: bool,
}

#[derive(Debug)]
pub(super) struct SwitchDraft {
    /// Name of its table.
    pub(super) field: String,
    pub(super) name: Option<String>,
    pub(super) program: Option<PathBuf>,
    pub(super) rack: Option<PathBuf>,
    pub(super) entries: Option<PathBuf>,
    pub(super) target: Option<Target>,
    pub(super) grpc_addr: Option<SocketAddr>,
    pub(super) device_id: u64,
    pub(super) cpu_port: Option<u16>,
    pub(super) buffer_bytes: Option<u64>,
    pub(super) time_unit_ns: Option<u64>,
}

#[derive(Debug)]
pub(super) struct HostDraft {
    /// Name of its table.
    pub(super) field: String,
    pub(super) name: Option<String>,
    pub(super) mac: Option<MacAddr>,
    pub(super) ip: Option<(Ipv4Addr, u8)>,
    pub(super) gateway: Option<Ipv4Addr>,
    pub(super) gateway_mac: Option<MacAddr>,
    pub(super) commands: Vec<String>,
}

#[derive(Debug)]
pub(super) struct LinkDraft {
    /// Name of its table.
    pub(super) field: String,
    /// `None`: they could not be read, which has been reported.
    pub(super) ends: Option<[EndDraft; 2]>,
    pub(super) rate_bps: Option<u64>,
    pub(super) delay: Nanos,
    pub(super) loss_ppm: u32,
}

#[derive(Debug)]
pub(super) struct EndDraft {
    /// Name of its field.
    pub(super) field: String,
    pub(super) node: String,
    /// `None` is a host's interface.
    pub(super) port: Option<u16>,
}
