//! How large the memory is that a policy serves.

use thiserror::Error;

/// Sizes, in blocks of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks of remote memory.
    pub footprint: u32,
    /// Blocks that fit into local memory, host and device together.
    pub capacity: u32,
    /// Blocks of a page of 4 KB: a power of two up to 64. 1 if blocks are pages.
    pub blocks_per_page: u32,
    /// Share of local memory that is the host's, for policies with two tiers.
    pub host_percent: u32,
    /// Whether host and device are one memory. A policy that can choose the host's share does so then, from `host_percent` on.
    pub one_memory: bool,
    /// Lists that work side by side, for UniMem's filter.
    pub pairs: u32,
}

impl Shape {
    /// One pair of lists, 30 % of local memory in the host.
    pub fn new(footprint: u32, capacity: u32, blocks_per_page: u32) -> Shape {
        Shape { footprint, capacity, blocks_per_page, host_percent: 30, one_memory: false, pairs: 1 }
    }

    /// Whole pages of the host's share.
    pub(crate) fn host_pages(&self) -> u32 {
        let blocks = u64::from(self.capacity) * u64::from(self.host_percent) / 100;
        (blocks / u64::from(self.blocks_per_page)) as u32
    }

    /// Blocks that remain for the device.
    pub(crate) fn device_blocks(&self) -> u32 {
        self.capacity - self.host_pages() * self.blocks_per_page
    }

    /// Whether no block ever has to go: all of remote memory fits, and no part of local memory is set apart.
    pub(crate) fn holds_all(&self) -> bool {
        self.one_memory && self.host_percent == 0 && self.pairs == 1 && self.capacity >= self.footprint
    }

    /// Pages that the remote memory touches.
    pub(crate) fn pages(&self) -> u32 {
        self.footprint.div_ceil(self.blocks_per_page)
    }

    /// Refuses shapes that no policy can serve.
    pub(crate) fn check(&self, needs: u32) -> Result<(), Refused> {
        if self.footprint == 0 || self.footprint > FOOTPRINT_MAX {
            return Err(Refused::Footprint { footprint: self.footprint });
        }
        if !self.blocks_per_page.is_power_of_two() || self.blocks_per_page > 64 {
            return Err(Refused::Page { blocks: self.blocks_per_page });
        }
        if self.host_percent > HOST_PERCENT_MAX {
            return Err(Refused::Host { percent: self.host_percent });
        }
        let pairs = self.pairs;
        if !pairs.is_power_of_two() || pairs > 64 {
            return Err(Refused::Pairs { pairs });
        }
        if self.device_blocks() < needs || self.capacity > FOOTPRINT_MAX {
            return Err(Refused::Capacity { capacity: self.capacity, needs, device: self.device_blocks() });
        }
        Ok(())
    }
}

/// The device keeps a part, because fetched blocks need room there.
const HOST_PERCENT_MAX: u32 = 90;
/// Maximum blocks of remote memory: a block and two flags fit into a word, and the highest number is a mark.
pub const FOOTPRINT_MAX: u32 = (1 << 30) - 1;

/// Why a policy can't serve a shape.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// No blocks, or too many.
    #[error(
        "footprint: {footprint} blocks of remote memory; expected 1 to {FOOTPRINT_MAX}: use larger blocks or less memory"
    )]
    Footprint {
        /// As given.
        footprint: u32,
    },
    /// Nothing to take a mean of.
    #[error("load: no access that a CPU waits for; expected at least one: use a longer trace")]
    Load,
    /// Its memory is counted in another way.
    #[error(
        "policy: is a variant of UniMem's authors, whose memory and time are counted as their programs do; expected another policy: see `p4rack cache policies`"
    )]
    Counting,
    /// Only a simulation can run it.
    #[error(
        "policy: {name} knows the future; expected one that decides without: see `p4rack cache policies`"
    )]
    Future {
        /// The policy.
        name: &'static str,
    },
    /// Local memory is too small.
    #[error(
        "capacity: {capacity} blocks of local memory leave {device} beside the host's share; expected at least {needs}, at most {FOOTPRINT_MAX}: raise the local memory, or lower the host's share"
    )]
    Capacity {
        /// As given.
        capacity: u32,
        /// Blocks that the policy needs beside the host's share.
        needs: u32,
        /// Blocks that remain beside it.
        device: u32,
    },
    /// Blocks do not divide a page.
    #[error("blocks_per_page: {blocks}; expected 1, 2, 4, … 64, so that blocks have 64 bytes to 4 KB")]
    Page {
        /// As given.
        blocks: u32,
    },
    /// The host's share.
    #[error("host_percent: {percent}; expected 0 to 90, because fetched blocks need room in the device")]
    Host {
        /// As given.
        percent: u32,
    },
    /// The number of pairs of lists.
    #[error("pairs: {pairs}; expected 1, 2, 4, … 64")]
    Pairs {
        /// As given.
        pairs: u32,
    },
}
