//! Types that the control plane passes in and gets back.

use crate::replicas::Replicas;
use num_bigint::BigUint;
use p4rack_p4::ir::{ActionCall, Matcher, TableId};
use p4rack_wire::Nanos;

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// One matcher per key: `Exact` for exact and optional; `Mask` for LPM and ternary; `Range` for range;
    /// `Any` for don't care.
    pub keys: Vec<Matcher>,
    /// Priority; the larger one wins. Positive if the table has a ternary, range or optional key, else 0.
    pub priority: i32,
    /// The action; unused if `indirect` is given.
    pub call: ActionCall,
    /// Member, group or set of the entry, in a table with an action profile.
    pub indirect: Option<Indirect>,
    /// Whether it comes from `const entries` and so can be neither modified nor deleted.
    pub is_const: bool,
    /// The controller's metadata, stored and returned unchanged.
    pub metadata: Vec<u8>,
    /// Idle timeout in nanoseconds; 0 is none.
    pub idle_timeout_ns: u64,
}

/// A set of pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipes(u8);

impl Pipes {
    /// All pipes of a switch.
    pub const ALL: Pipes = Pipes(u8::MAX);

    /// These pipes; a switch has at most four, 0 to 3.
    pub fn of(pipes: impl IntoIterator<Item = usize>) -> Pipes {
        Pipes(pipes.into_iter().filter(|pipe| *pipe < 8).fold(0, |bits, pipe| bits | 1 << pipe))
    }

    /// Whether a pipe is among them.
    pub fn has(self, pipe: usize) -> bool {
        pipe < 8 && self.0 >> pipe & 1 != 0
    }

    /// Its members below `count`, the number of a switch's pipes.
    pub(crate) fn below(self, count: usize) -> impl Iterator<Item = usize> {
        (0..count.min(8)).filter(move |pipe| self.0 >> pipe & 1 != 0)
    }
}

/// An entry that no packet has hit for the time of its timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleEntry {
    /// Its table.
    pub table: TableId,
    /// The pipe that has it; the first one if several do.
    pub pipe: usize,
    /// All pipes that it was written to.
    pub pipes: Pipes,
    /// When it was last hit in any of them, or its timeout began.
    pub last_hit: Nanos,
    /// The entry.
    pub entry: TableEntry,
}

impl TableEntry {
    /// An entry without priority and metadata.
    pub fn new(keys: Vec<Matcher>, call: ActionCall) -> TableEntry {
        TableEntry {
            keys,
            priority: 0,
            call,
            indirect: None,
            is_const: false,
            metadata: Vec::new(),
            idle_timeout_ns: 0,
        }
    }

    /// An entry of a table with an action profile.
    pub fn indirect(keys: Vec<Matcher>, indirect: Indirect) -> TableEntry {
        let nothing = ActionCall { action: 0, args: Vec::new() };
        TableEntry { indirect: Some(indirect), ..TableEntry::new(keys, nothing) }
    }
}

/// Reference of an entry of a table with an action profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indirect {
    /// A member of the profile.
    Member(u32),
    /// A group of the selector.
    Group(u32),
    /// Actions and weights of the entry's own; the selector picks one.
    Set(ActionSet),
}

/// The actions of a one-shot action selector entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionSet {
    /// The actions and their shares.
    pub actions: Vec<(ActionCall, Share)>,
    /// How one of them is picked.
    pub pick: Pick,
    /// Meaning of its size. Irrelevant for packets; stored and returned unchanged.
    pub size: SizeOf,
}

impl From<Vec<(ActionCall, Share)>> for ActionSet {
    fn from(actions: Vec<(ActionCall, Share)>) -> ActionSet {
        ActionSet { actions, ..ActionSet::default() }
    }
}

/// How an action of a one-shot set is picked for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// As the selector defines.
    #[default]
    Selector,
    /// By the selector's hash, or CRC-32 if that is random.
    Hash,
    /// At random for each packet.
    Random,
}

/// Definition of the size of a one-shot set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeOf {
    /// As the selector defines.
    #[default]
    Selector,
    /// The sum of the weights.
    Weights,
    /// The number of actions.
    Members,
}

/// The share of packets that a member of a group gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Weight relative to the other members.
    pub weight: u32,
    /// The member gets no packets while this port is down.
    pub watch: Option<u16>,
    /// Whether the member gets packets at all.
    pub is_active: bool,
}

impl From<u32> for Share {
    fn from(weight: u32) -> Share {
        Share { weight, watch: None, is_active: true }
    }
}

impl std::fmt::Display for Indirect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Indirect::Member(member) => write!(f, "member {member}"),
            Indirect::Group(group) => write!(f, "group {group}"),
            Indirect::Set(set) => write!(f, "set of {} actions", set.actions.len()),
        }
    }
}

/// The action of a table on a miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultEntry {
    /// The action. `None` for a table that does nothing on a miss, or that refers to an action profile then.
    pub call: Option<ActionCall>,
    /// Its reference, in a table with an action profile.
    pub indirect: Option<Indirect>,
    /// Whether it is the program's own.
    pub is_initial: bool,
}

/// Identifies the entry of a direct counter or meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryRef<'a> {
    /// The default entry.
    Default,
    /// The entry with these keys and this priority.
    Keys(&'a [Matcher], i32),
}

/// The counts of a counter cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterData {
    /// Packets counted.
    pub packets: u64,
    /// Bytes counted.
    pub bytes: u64,
}

impl std::ops::AddAssign for CounterData {
    fn add_assign(&mut self, other: CounterData) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }
}

/// Configuration of a two-rate three-colour meter (RFC 2698), in bytes or packets as the program declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed rate per second.
    pub cir: u64,
    /// Committed burst size.
    pub cburst: u64,
    /// Peak rate per second.
    pub pir: u64,
    /// Peak burst size.
    pub pburst: u64,
}

/// Inputs of the choice of a packet's copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicationSpread {
    /// Nodes with this replication id are pruned.
    pub rid: u16,
    /// Members of groups that are excluded by this number.
    pub exclusion: u16,
    /// Names the ports that get no copies.
    pub prune: u16,
    /// Chooses a node of each set.
    pub set_hash: u16,
    /// Chooses a port of each link group.
    pub lag_hash: u16,
}

/// A clone session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloneSession {
    /// Copies to make.
    pub replicas: Replicas,
    /// Their priority in the traffic manager, 0 to 7.
    pub class_of_service: u8,
    /// Length to which copies are truncated, in bytes; 0 is not at all.
    pub packet_length_bytes: u16,
    /// Groups of the replication engine that get copies too; 0 is none.
    pub groups: [u16; 2],
    /// Inputs of the choice of these groups' copies.
    pub spread: ReplicationSpread,
    /// Whether the controller gets one too.
    pub to_controller: bool,
    /// Whether it makes none for ingress, and none for egress.
    pub ignores: [bool; 2],
}

/// A digest that the program sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestMessage {
    /// Index into [`p4rack_p4::ir::Program::digests`].
    pub digest: u32,
    /// One value per field.
    pub values: Vec<BigUint>,
    /// Time at which it was sent.
    pub time: Nanos,
    /// The pipe that sent it.
    pub pipe: usize,
}
