//! Blocks and their roles, and the intrinsic fields that a program and the switch exchange.

use super::{Parser, Stmt, VarId};

/// A side of the traffic manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// Before the traffic manager: packets that have just arrived.
    Ingress,
    /// Behind the traffic manager: packets that are about to leave.
    Egress,
}

/// Purpose of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Follows the queues' lengths beside the packets. Optional.
    Watch,
    /// Extracts headers. Only parsers have this task; all other blocks are controls.
    Parse,
    /// Verifies checksums after parsing, if the architecture has a separate block for it.
    Verify,
    /// Processes the packet with match-action tables.
    Process,
    /// Computes checksums before deparsing, if the architecture has a separate block for it.
    Compute,
    /// Emits the headers.
    Deparse,
}

/// A block's role in its pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Role {
    /// The half it belongs to.
    pub half: Half,
    /// Its task in that half.
    pub task: Task,
}

impl Role {
    /// A role in the half before the traffic manager.
    pub const fn ingress(task: Task) -> Role {
        Role { half: Half::Ingress, task }
    }

    /// A role in the half behind it.
    pub const fn egress(task: Task) -> Role {
        Role { half: Half::Egress, task }
    }
}

/// A parser or control that the architecture runs. Everything it calls is inlined.
#[derive(Clone, Debug)]
pub struct Block {
    /// Number of its pipeline, from 0.
    pub pipeline: u32,
    /// Its role in the pipeline.
    pub role: Role,
    /// Full name of the instance.
    pub name: String,
    /// Its states or statements.
    pub body: Body,
}

/// Code of a block.
#[derive(Clone, Debug)]
pub enum Body {
    /// The states of a block with [`Task::Parse`].
    Parser(Parser),
    /// The statements of any other block.
    Control(Vec<Stmt>),
}

impl Block {
    /// The statements of a control; empty for a parser.
    pub fn stmts(&self) -> &[Stmt] {
        match &self.body {
            Body::Parser(_) => &[],
            Body::Control(stmts) => stmts,
        }
    }

    /// The states, if it is a parser.
    pub fn parser(&self) -> Option<&Parser> {
        match &self.body {
            Body::Parser(parser) => Some(parser),
            Body::Control(_) => None,
        }
    }

    /// All statement lists: the one of a control, or those of a parser's states.
    pub fn lists(&self) -> Vec<&[Stmt]> {
        match &self.body {
            Body::Parser(parser) => parser.states.iter().map(|state| &state.stmts[..]).collect(),
            Body::Control(stmts) => vec![stmts],
        }
    }

    /// Mutable version of [`Body::lists`].
    pub fn lists_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        match &mut self.body {
            Body::Parser(parser) => parser.states.iter_mut().map(|state| &mut state.stmts).collect(),
            Body::Control(stmts) => vec![stmts],
        }
    }
}

/// A variable through which a program and the switch exchange an intrinsic field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntrinsicVar {
    /// Number of its pipeline, from 0.
    pub pipeline: u32,
    /// Meaning of the field.
    pub role: Intrinsic,
    /// The variable that holds it.
    pub var: VarId,
}

/// Meaning of a field of intrinsic metadata, independent of its name in an architecture. Depths are in
/// frames; times are in the switch's time unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intrinsic {
    /// Port on which the packet arrived.
    IngressPort,
    /// Port to which ingress sends the packet.
    Destination,
    /// Port whose queue held the packet.
    EgressPort,
    /// How the packet got here: newly received, a copy, or another pass. The values are the architecture's.
    Origin,
    /// Length of the whole packet in bytes.
    PacketLength,
    /// Time at which it entered its queue.
    EnqueueTime,
    /// Depth of the queue when the packet entered.
    EnqueueDepth,
    /// Time it waited in the queue.
    QueueingTime,
    /// Depth of the queue when the packet leaves.
    DequeueDepth,
    /// Time of arrival.
    IngressTime,
    /// Time at which egress began.
    EgressTime,
    /// Multicast group to which ingress sends the packet; 0 is none.
    MulticastGroup,
    /// Which copy of a multicast group or clone session this is.
    Replica,
    /// Set if a checksum is wrong.
    ChecksumError,
    /// Error with which the parser ended.
    ParserError,
    /// Queue priority; 0 is served last.
    Priority,
    /// Whether the packet leaves without egress.
    BypassEgress,
    /// Drops of ingress: bit 0 the packet, bit 1 the copy for the controller, bit 2 clones.
    DropControl,
    /// Another multicast group to which ingress sends the packet; 0 is none.
    SecondGroup,
    /// Whether the controller gets a copy.
    CopyToController,
    /// Time at which ingress began.
    ParserTime,
    /// Error with which the parser of egress ended.
    EgressParserError,
    /// Drops of egress, like [`Intrinsic::DropControl`].
    EgressDropControl,
    /// Copies of a multicast group with this replication id may be pruned.
    CopyId,
    /// Members of a multicast group with this number get no copy.
    MemberExclusion,
    /// Names a set of ports that get no copies.
    PortExclusion,
    /// Chooses among members of a multicast group.
    MemberHash,
    /// Chooses among ports of a link group.
    PortHash,
}

impl Intrinsic {
    /// All fields, in the order of their numbers.
    pub const ALL: [Intrinsic; 28] = [
        Intrinsic::IngressPort,
        Intrinsic::Destination,
        Intrinsic::EgressPort,
        Intrinsic::Origin,
        Intrinsic::PacketLength,
        Intrinsic::EnqueueTime,
        Intrinsic::EnqueueDepth,
        Intrinsic::QueueingTime,
        Intrinsic::DequeueDepth,
        Intrinsic::IngressTime,
        Intrinsic::EgressTime,
        Intrinsic::MulticastGroup,
        Intrinsic::Replica,
        Intrinsic::ChecksumError,
        Intrinsic::ParserError,
        Intrinsic::Priority,
        Intrinsic::BypassEgress,
        Intrinsic::DropControl,
        Intrinsic::SecondGroup,
        Intrinsic::CopyToController,
        Intrinsic::ParserTime,
        Intrinsic::EgressParserError,
        Intrinsic::EgressDropControl,
        Intrinsic::CopyId,
        Intrinsic::MemberExclusion,
        Intrinsic::PortExclusion,
        Intrinsic::MemberHash,
        Intrinsic::PortHash,
    ];

    /// Number of fields.
    pub const COUNT: usize = Intrinsic::ALL.len();
}

#[cfg(test)]
mod tests {
    use super::Intrinsic;

    #[test]
    fn all_stand_at_their_numbers() {
        assert!(Intrinsic::ALL.iter().enumerate().all(|(number, role)| *role as usize == number));
    }
}
