//! Action profiles and selectors: actions that entries share, and groups from which a hash picks a member.

use crate::objects::{Indirect, Share};
use p4rack_p4::ir::ActionCall;
use std::collections::{BTreeMap, BTreeSet};

/// A member: its action and the words of the arguments.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub call: ActionCall,
    pub args: Vec<u64>,
}

/// A group: each member as often as its weight, if its port is up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub shares: Vec<(u32, Share)>,
    slots: Vec<u32>,
}

impl Group {
    pub fn new(shares: Vec<(u32, Share)>, down: &BTreeSet<u16>) -> Group {
        let mut group = Group { shares, slots: Vec::new() };
        group.share(down);
        group
    }

    /// Spreads the slots over the members whose ports are up.
    pub fn share(&mut self, down: &BTreeSet<u16>) {
        let live = self.shares.iter().filter(|(_, share)| is_live(share, down));
        self.slots = live.flat_map(|(member, share)| (0..share.weight).map(|_| *member)).collect();
    }
}

fn is_live(share: &Share, down: &BTreeSet<u16>) -> bool {
    share.is_active && share.watch.is_none_or(|port| !down.contains(&port))
}

/// State of an action profile or selector.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub members: BTreeMap<u32, Member>,
    pub groups: BTreeMap<u32, Group>,
    /// Maximum number of members.
    pub size: u64,
}

impl Profile {
    pub fn new(size: u64) -> Profile {
        Profile { members: BTreeMap::new(), groups: BTreeMap::new(), size }
    }

    /// The member that an entry refers to, if it exists; `hash` selects one of a group.
    pub fn find(&self, indirect: &Indirect, hash: impl FnOnce() -> u64) -> Option<&Member> {
        match indirect {
            Indirect::Member(member) => self.members.get(member),
            Indirect::Group(group) => self.members.get(&self.selected(*group, hash())?),
            Indirect::Set(_) => None,
        }
    }

    /// The member of a group that a hash selects, if the group has one.
    pub fn selected(&self, group: u32, hash: u64) -> Option<u32> {
        let slots = &self.groups.get(&group)?.slots;
        slots.get(hash.checked_rem(slots.len() as u64)? as usize).copied()
    }

    /// Whether an entry's reference exists.
    pub fn has(&self, indirect: &Indirect) -> bool {
        match indirect {
            Indirect::Member(member) => self.members.contains_key(member),
            Indirect::Group(group) => self.groups.contains_key(group),
            Indirect::Set(_) => true,
        }
    }
}

/// The action of a one-shot set that the hash selects, among those whose ports are up.
pub(crate) fn pick<'a>(
    set: &'a [(ActionCall, Share)],
    down: &BTreeSet<u16>,
    hash: u64,
) -> Option<&'a ActionCall> {
    let live = || set.iter().filter(|(_, share)| is_live(share, down));
    let total = live().map(|(_, share)| u64::from(share.weight)).sum::<u64>();
    let mut at = hash.checked_rem(total)?;
    for (call, share) in live() {
        match at.checked_sub(u64::from(share.weight)) {
            Some(rest) => at = rest,
            None => return Some(call),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(action: u32) -> ActionCall {
        ActionCall { action, args: Vec::new() }
    }

    #[test]
    fn weights_share_the_hashes() {
        let set =
            [(call(0), Share::from(1)), (call(1), Share { weight: 3, watch: Some(4), is_active: true })];
        let (up, down) = (BTreeSet::new(), BTreeSet::from([4]));
        let picked = |down| {
            (0..8).filter_map(|hash| pick(&set, down, hash)).map(|call| call.action).collect::<Vec<_>>()
        };
        assert_eq!(picked(&up), [0, 1, 1, 1, 0, 1, 1, 1]);
        assert_eq!(picked(&down), [0; 8]);
        assert_eq!(pick(&[], &up, 0), None);
    }
}
