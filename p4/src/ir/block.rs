//! Blocks and their roles, and what a program and the switch tell each other.

use super::{Parser, Stmt, VarId};

/// Side of the traffic manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// Before it: what has come in.
    Ingress,
    /// Behind it: what is to leave.
    Egress,
}

/// What a block is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Extracts headers: the only task of a parser, all others are controls.
    Parse,
    /// Verifies checksums after parsing, where the architecture has a block of its own for it.
    Verify,
    /// Decides and changes: match-action tables.
    Process,
    /// Computes checksums before deparsing, where the architecture has a block of its own for it.
    Compute,
    /// Emits headers.
    Deparse,
}

/// Where a block stands in its pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Role {
    /// Which half.
    pub half: Half,
    /// What it does there.
    pub task: Task,
}

impl Role {
    /// Of the half before the traffic manager.
    pub const fn ingress(task: Task) -> Role {
        Role { half: Half::Ingress, task }
    }

    /// Of the half behind it.
    pub const fn egress(task: Task) -> Role {
        Role { half: Half::Egress, task }
    }
}

/// A parser or control that the architecture runs, with all that it calls in place.
#[derive(Clone, Debug)]
pub struct Block {
    /// Number of its pipeline.
    pub pipeline: u32,
    /// Where it stands.
    pub role: Role,
    /// Full name of the instance.
    pub name: String,
    /// What it does.
    pub body: Body,
}

/// What a block does.
#[derive(Clone, Debug)]
pub enum Body {
    /// Of [`Task::Parse`].
    Parser(Parser),
    /// Of any other.
    Control(Vec<Stmt>),
}

impl Block {
    /// The statements of a control; none of a parser.
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

    /// All lists of statements: a control's one, a parser's states'.
    pub fn lists(&self) -> Vec<&[Stmt]> {
        match &self.body {
            Body::Parser(parser) => parser.states.iter().map(|state| &state.stmts[..]).collect(),
            Body::Control(stmts) => vec![stmts],
        }
    }

    /// Likewise, to change them.
    pub fn lists_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        match &mut self.body {
            Body::Parser(parser) => parser.states.iter_mut().map(|state| &mut state.stmts).collect(),
            Body::Control(stmts) => vec![stmts],
        }
    }
}

/// A variable by which a program and the switch tell each other something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntrinsicVar {
    /// Number of the pipeline.
    pub pipeline: u32,
    /// What.
    pub role: Intrinsic,
    /// Where.
    pub var: VarId,
}

/// What a field of intrinsic metadata stands for, whatever an architecture calls it. Depths are in frames, times in the
/// units of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intrinsic {
    /// Port at which the packet came in.
    IngressPort,
    /// Port to which ingress sends it.
    Destination,
    /// Port at whose queue it waited.
    EgressPort,
    /// How it came to be where it is: a new packet, a copy, another pass. The numbers are the architecture's.
    Origin,
    /// Bytes of the whole packet.
    PacketLength,
    /// When it entered its queue.
    EnqueueTime,
    /// How many waited there then.
    EnqueueDepth,
    /// How long it waited.
    QueueingTime,
    /// How many wait there as it leaves.
    DequeueDepth,
    /// When it came in.
    IngressTime,
    /// When egress began.
    EgressTime,
    /// Multicast group to which ingress sends it; 0: none.
    MulticastGroup,
    /// Which copy of a group or clone session it is.
    Replica,
    /// Set once a checksum has been found wrong.
    ChecksumError,
    /// How the parser ended.
    ParserError,
    /// Queue: 0 is served last.
    Priority,
}

impl Intrinsic {
    /// All, by number.
    pub const ALL: [Intrinsic; 16] = [
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
    ];

    /// How many there are.
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
