//! Actions that a policy requests from its driver.

use crate::Block;

/// Actions that one access may cause at most.
///
/// The most is the promotion of a page of 64 blocks: its missing blocks are fetched one by one in the worst case, 64 blocks
/// of the page that it replaces return to the device, and each drops another block there. Where the host's share shrinks, a second page
/// returns.
pub const MAX_ACTIONS: usize = 64 * 5 + 64;

/// One step of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// One request for adjacent blocks, none of which is local.
    Fetch {
        /// The first block.
        first: Block,
        /// How many.
        count: u32,
        /// Whether the access does not wait for it.
        ahead: bool,
    },
    /// A block leaves local memory.
    Evict {
        /// Which one.
        block: Block,
        /// Whether it has to be written back first.
        dirty: bool,
    },
    /// All blocks of a page, each of which is local, move to host memory.
    Promote {
        /// The page's number: its first block divided by the blocks of a page.
        page: u32,
    },
    /// A block moves from host memory to the device.
    Demote {
        /// Which one.
        block: Block,
    },
}

/// A buffer for the actions of one access.
#[derive(Clone, Debug)]
pub struct Actions {
    list: [Action; MAX_ACTIONS],
    len: usize,
}

impl Default for Actions {
    fn default() -> Actions {
        Actions { list: [Action::Promote { page: 0 }; MAX_ACTIONS], len: 0 }
    }
}

impl Actions {
    /// The actions, in the order in which they are to be carried out.
    pub fn as_slice(&self) -> &[Action] {
        &self.list[..self.len]
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline]
    pub(crate) fn push(&mut self, action: Action) {
        self.list[self.len] = action;
        self.len += 1;
    }

    #[inline]
    pub(crate) fn fetch(&mut self, block: Block) {
        self.push(Action::Fetch { first: block, count: 1, ahead: false });
    }

    #[inline]
    pub(crate) fn evict(&mut self, block: Block, dirty: bool) {
        self.push(Action::Evict { block, dirty });
    }
}
