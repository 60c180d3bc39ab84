//! Clio: memory nodes with virtual memory, which hosts reach by UDP. The switch forwards its packets like all others.

mod board;
mod check;
mod constants;
mod layers;
mod read;

pub use read::page_size;

use super::{Claim, Protocol, Scheme};
use crate::rack::units::show_size;
use crate::rack::{Host, Rack, Section, Sink};
use p4rack_fabric::clio::board::Index;
use p4rack_fabric::clio::lib::Patience;
use p4rack_wire::Nanos;
use p4rack_wire::clio::{PageSize, UDP_PORT};
use p4rack_wire::dissector::Dissector;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::sync::Arc;

const CLIO: &str = "clio";
/// Maximum bytes of a store.
const STORE_BYTES_MAX: u64 = 1 << 40;

impl Scheme {
    /// Clio over plain switching.
    pub const CLIO: Scheme = Scheme::one(CLIO);
}

/// Parameters of a rack's boards and of their clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clio {
    /// Names of the hosts that have boards.
    pub boards: Vec<String>,
    /// Memory of each board, in bytes. Page sizes have equal shares of it.
    pub memory_bytes: u64,
    /// Memory of each board's key-value store, in bytes, beside the other; 0 for none.
    pub store_bytes: u64,
    /// Page sizes, the one of the memory that is offered to all first.
    #[serde(serialize_with = "as_sizes")]
    pub page_sizes: Vec<PageSize>,
    /// Slots of a bucket of the page table.
    pub slots: u32,
    /// Slots beyond one for each frame, in percent.
    pub spare_percent: u32,
    /// How a page's bucket is chosen.
    #[serde(serialize_with = "as_index")]
    pub index: Index,
    /// Entries of the TLB.
    pub tlb_entries: u32,
    /// Frames of each page size that are zeroed ahead.
    pub free_pages: u32,
    /// Maximum processes of clients.
    pub processes_max: u32,
    /// UDP port of the boards.
    pub udp_port: u16,
    /// Time without an answer after which a client sends a packet again.
    #[serde(rename = "timeout_ns", serialize_with = "as_nanos")]
    pub timeout: Nanos,
    /// Retries, after which an operation is unknown.
    pub retries: u32,
    /// Delay in queues up to which a client's congestion window grows.
    #[serde(rename = "target_delay_ns", serialize_with = "as_nanos")]
    pub target_delay: Nanos,
}

impl Clio {
    /// The defaults for a description that gives only the boards and their memory.
    pub fn new(boards: Vec<String>, memory_bytes: u64) -> Clio {
        Clio {
            boards,
            memory_bytes,
            store_bytes: (memory_bytes / 2).min(STORE_BYTES_MAX),
            page_sizes: vec![PageSize::suiting(memory_bytes)],
            slots: 16,
            spare_percent: 100,
            index: Index::Salted,
            tlb_entries: 64,
            free_pages: 64,
            processes_max: 256,
            udp_port: UDP_PORT,
            timeout: Nanos::from_millis(20),
            retries: 12,
            target_delay: Nanos::from_millis(20),
        }
    }

    /// Timeouts and retries of clients.
    pub fn patience(&self) -> Patience {
        let retries = self.retries.try_into().unwrap_or(u8::MAX);
        Patience { timeout: self.timeout, retries, target_delay: self.target_delay }
    }

    /// Whether a host has a board.
    pub fn is_board(&self, host: &Host) -> bool {
        self.boards.contains(&host.name)
    }
}

/// Clio in descriptions.
#[derive(Debug)]
pub struct Definition;

impl super::Definition for Definition {
    fn section(&self) -> &'static str {
        CLIO
    }

    fn variants(&self) -> &'static [&'static str] {
        &[CLIO]
    }

    fn add(&self) -> &'static str {
        "add a [clio] table with boards = [\"…\"], names of hosts, and memory = \"64 MiB\", the memory of each"
    }

    fn read(&self, section: Section<'_, '_>, sink: &mut Sink<'_>) -> Option<Arc<dyn Protocol>> {
        Some(Arc::new(read::read(section, sink)?))
    }

    fn templates(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn schedules(&self) -> bool {
        false
    }
}

impl Protocol for Clio {
    fn definition(&self) -> &'static dyn super::Definition {
        &Definition
    }

    fn variant(&self) -> &'static str {
        CLIO
    }

    fn as_variant(&self, variant: &str) -> Option<Arc<dyn Protocol>> {
        (variant == CLIO).then(|| Arc::new(self.clone()) as Arc<dyn Protocol>)
    }

    fn parameters(&self) -> Value {
        json!(self)
    }

    fn check(&self, rack: &Rack, sink: &mut Sink<'_>) {
        check::check(self, rack, sink);
    }

    fn refuses_ends(&self, servers: &[String], _clients: &[String]) -> Option<String> {
        let other = servers.iter().find(|server| !self.boards.contains(server))?;
        Some(format!("needs {other} among the hosts of clio.boards"))
    }

    fn claims(&self) -> Vec<(&'static str, Claim)> {
        vec![("clio.udp_port", Claim::UdpPort(self.udp_port))]
    }

    fn wants_turns(&self) -> bool {
        true
    }

    fn needs_agents(&self) -> bool {
        false
    }

    fn describe(&self, _rack: &Rack) -> String {
        let config = self.board(self.memory_bytes).with_store(self.store_bytes);
        let sizes: Vec<String> = self.page_sizes.iter().map(|size| show_size(size.bytes())).collect();
        format!(
            "boards {} with {} each in pages of {}, a store of {}, page table of {} slots in buckets of {} ({}, {} index), TLB {}, {} frames ready, \
             {} processes, UDP port {}, again after {} up to {} times, target delay {}",
            self.boards.join(" "),
            show_size(self.memory_bytes),
            sizes.join(" and "),
            show_size(self.store_bytes),
            config.slots(),
            self.slots,
            board::table_share(&config),
            self.index_name(),
            self.tlb_entries,
            self.free_pages,
            self.processes_max,
            self.udp_port,
            self.timeout,
            self.retries,
            self.target_delay
        )
    }

    fn constants(&self, rack: &Rack, constants: &mut Value) {
        constants::add(self, rack, constants);
    }

    fn layers(&self) -> Option<String> {
        Some(layers::layers(self))
    }

    fn dissector(&self) -> Option<Dissector> {
        Some(p4rack_wire::clio::dissector(self.udp_port))
    }
}

impl Clio {
    fn index_name(&self) -> &'static str {
        name_of(self.index)
    }
}

fn as_sizes<S: Serializer>(sizes: &[PageSize], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(sizes.iter().map(|size| size.bytes()))
}

fn as_index<S: Serializer>(index: &Index, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name_of(*index))
}

fn name_of(index: Index) -> &'static str {
    let known = Index::ALL.iter().find(|(one, _)| *one == index);
    known.map_or("", |(_, name)| name)
}

fn as_nanos<S: Serializer>(value: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    value.0.serialize(serializer)
}
