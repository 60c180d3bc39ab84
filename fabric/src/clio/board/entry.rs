//! Page table entries.
//!
//! ```text
//!  127   124 123        92 91     60 59    44 43             4 3      2 1     0
//! ├─────────┼─────────────┼─────────┼────────┼────────────────┼────────┼───────┤
//! │  class  │ page number │   PID   │ epoch  │     frame      │ rights │ state │
//! └─────────┴─────────────┴─────────┴────────┴────────────────┴────────┴───────┘
//!  └──────────────── tag ──────────────────┘
//! ```
//!
//! The frame's 40 bits are its number (32), whether there is one, and whether another process shares it with this one.
//! An empty slot is all zeros. The epoch in the tag keeps a process from the pages of an earlier one with the same PID.

#[cfg(test)]
use super::plant::tags_have_no_epoch;
use p4rack_wire::clio::{PageSize, Rights};

/// Whether a test has planted this bug; never outside of tests.
#[cfg(not(test))]
const fn tags_have_no_epoch() -> bool {
    false
}

/// A process's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space {
    /// PID, never 0.
    pub pid: u32,
    /// Which of the processes that had this PID.
    pub epoch: u16,
}

/// A virtual page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Page {
    /// Its address space.
    pub space: Space,
    /// Its size.
    pub size: PageSize,
    /// Its number within the space's pages of this size.
    pub number: u32,
}

impl Page {
    /// The tag that identifies it in slots and in the TLB: 84 bits.
    #[inline]
    pub fn tag(&self) -> u128 {
        let Page { space, size, number } = *self;
        let epoch = if tags_have_no_epoch() { 0 } else { space.epoch };
        (size as u128) << 80 | (number as u128) << 48 | (space.pid as u128) << 16 | epoch as u128
    }
}

/// State of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// It belongs to an allocated range, and has no frame: the first access is a page fault.
    Allocated = 1,
    /// It has a frame.
    Valid = 2,
    /// It is being freed: no access begins.
    Closing = 3,
}

/// A slot's contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry(pub(super) u128);

const TAG_SHIFT: u32 = 44;

impl Entry {
    /// An empty slot.
    pub const EMPTY: Entry = Entry(0);

    /// The entry of an allocated page without a frame.
    pub fn allocated(page: &Page, rights: Rights) -> Entry {
        Entry(page.tag() << TAG_SHIFT | (rights.code() as u128) << 2 | State::Allocated as u128)
    }

    /// Whether it is of the page with this tag. No tag is 0, so no empty slot is of a page.
    #[inline]
    pub fn is_of(self, tag: u128) -> bool {
        self.0 >> TAG_SHIFT == tag
    }

    /// The tag of its page.
    #[inline]
    pub fn tag(self) -> u128 {
        self.0 >> TAG_SHIFT
    }

    /// The state of its page; `None` if the slot is empty.
    #[inline]
    pub fn state(self) -> Option<State> {
        [None, Some(State::Allocated), Some(State::Valid), Some(State::Closing)][(self.0 & 3) as usize]
    }

    /// The page's frame, a number among the frames of its size. Meaningless before the page is valid.
    #[inline]
    pub fn frame(self) -> u32 {
        (self.0 >> 4) as u32
    }

    /// Whether the page has a frame. A closing one has if it was valid.
    #[inline]
    pub fn has_frame(self) -> bool {
        self.0 >> 4 & HAS_FRAME != 0
    }

    /// Rights to the page.
    #[inline]
    pub fn rights(self) -> Rights {
        Rights { read: self.0 & 4 != 0, write: self.0 & 8 != 0 }
    }

    /// The same page with a frame, valid.
    #[inline]
    pub fn with_frame(self, frame: u32) -> Entry {
        let without = self.0 & !(((1 << 40) - 1) << 4 | 3);
        Entry(without | (frame as u128 | HAS_FRAME) << 4 | State::Valid as u128)
    }

    /// The same page, marked as shared with this process by another one.
    pub fn received(self) -> Entry {
        Entry(self.0 | RECEIVED << 4)
    }

    /// Whether another process has shared the page with this one.
    pub fn is_received(self) -> bool {
        self.0 >> 4 & RECEIVED != 0
    }

    /// The same page, being freed.
    pub fn closing(self) -> Entry {
        Entry(self.0 | State::Closing as u128)
    }
}

/// Bit of the frame's field, above its number: there is a frame.
const HAS_FRAME: u128 = 1 << 32;
/// The bit above: the page was received from another process.
const RECEIVED: u128 = 1 << 33;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_do_not_touch_each_other(
            pid in 1u32.., epoch: u16, class in 0u8..7, number: u32, frame: u32, rights in 1u8..4, other: u32,
        ) {
            let page = Page { space: Space { pid, epoch }, size: PageSize::of(class).unwrap(), number };
            let rights = Rights::of(rights).unwrap();
            let entry = Entry::allocated(&page, rights);
            prop_assert_eq!((entry.state(), entry.has_frame(), entry.rights()), (Some(State::Allocated), false, rights));
            let valid = entry.with_frame(other).with_frame(frame);
            prop_assert_eq!((valid.state(), valid.frame(), valid.rights()), (Some(State::Valid), frame, rights));
            for (entry, has_frame) in [(entry.closing(), false), (valid.closing(), true)] {
                prop_assert_eq!((entry.state(), entry.has_frame()), (Some(State::Closing), has_frame));
                prop_assert_eq!((entry.rights(), entry.tag()), (rights, page.tag()));
            }
            let received = valid.received();
            prop_assert!(received.is_received() && received.closing().is_received() && !valid.is_received());
            prop_assert_eq!((received.frame(), received.rights(), received.tag()), (frame, rights, page.tag()));
            let next = Page { number: number ^ 1, ..page };
            prop_assert!(valid.is_of(page.tag()) && !valid.is_of(next.tag()) && !Entry::EMPTY.is_of(page.tag()));
            let successor = Page { space: Space { pid, epoch: epoch.wrapping_add(1) }, ..page };
            prop_assert!(!valid.is_of(successor.tag()), "the next process with the same PID");
        }
    }
}
