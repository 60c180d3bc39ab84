//! The start of a process: its resources, or why it is refused.

use super::entry::Space;
use p4rack_wire::clio::PageSize;
use std::fmt;

/// Resources of a process that begins. Its holder may use the process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its address space.
    pub space: Space,
    /// Its token, for each packet.
    pub token: u64,
}

/// Why no process begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The board has as many processes as it may have.
    Full,
    /// More is reserved than the limit permits.
    BadQuota(PageSize),
    /// The board has no frames of this size, or all are taken or reserved.
    NoMemory(PageSize),
    /// The page table has no slots for the pages that would be reserved: others have allocated too many.
    NoSlots,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Full => write!(f, "the board has as many processes as it may have (processes_max)"),
            Refused::BadQuota(size) => {
                write!(
                    f,
                    "more pages of {} bytes are reserved than the limit permits: raise the limit",
                    size.bytes()
                )
            }
            Refused::NoMemory(size) => {
                write!(f, "the board has not as many free frames of {} bytes: reserve fewer", size.bytes())
            }
            Refused::NoSlots => write!(
                f,
                "the page table has not as many free slots: reserve fewer pages, or give the board more slots (spare_percent)"
            ),
        }
    }
}

impl std::error::Error for Refused {}
