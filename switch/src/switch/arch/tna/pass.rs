//! A packet's passes through the two halves.

use crate::arch::tna::{EGRESS, ENTRIES, INGRESS, LOCAL_BITS};
use crate::code::ops::Vars;
use crate::code::plans::{Code, Intrinsics};
use crate::compile::Pipeline;
use crate::exec::{Cx, Exit};
use crate::objects::ReplicationSpread;
use crate::state::State;
use crate::stats::DropReason;
use crate::switch::packets::clear;
use p4rack_p4::ir::Intrinsic;

/// Bytes of the frame check sequence, which counters include.
const FCS: u64 = 4;
/// A field that knows whether it is written holds this or more until it is: ports have 9 bits.
const UNWRITTEN: u64 = 1 << 9;

/// Ingress's decision for a packet.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    pub exit: Exit,
    /// A port, unless [`Verdict::is_unicast`] says that there is none.
    pub destination: u64,
    pub bypass: bool,
    pub dropped: bool,
    pub groups: [u64; 2],
    /// Inputs of the choice of the groups' copies.
    pub spread: ReplicationSpread,
    pub to_controller: bool,
    /// Whether clones are dropped.
    pub no_clones: bool,
    pub priority: u8,
}

impl Verdict {
    /// Whether the packet goes to a port.
    #[inline(always)]
    pub fn is_unicast(&self) -> bool {
        self.destination < UNWRITTEN
    }

    /// Whether the packet goes to a port and nowhere else.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        !self.dropped && self.groups == [0, 0] && !self.to_controller && self.is_unicast()
    }
}

/// Drop reason of a packet whose block ended in this way.
pub(super) fn reason(exit: Exit) -> DropReason {
    match exit {
        Exit::LoopLimit => DropReason::LoopLimit,
        Exit::Rejected => DropReason::ParserReject,
        Exit::AssertFailed | Exit::Done => DropReason::AssertFailed,
    }
}

/// A packet, the program and the variables.
pub(super) struct Pass<'a> {
    pub pipeline: &'a Pipeline,
    pub state: &'a mut State,
    pub vars: &'a mut Vars,
    /// Nanoseconds per unit of the program's times.
    pub unit_ns: u64,
    /// Number of the pipeline.
    number: usize,
}

impl<'a> Pass<'a> {
    /// A pass of the pipe that has this port.
    #[inline(always)]
    pub fn new(
        pipeline: &'a Pipeline,
        state: &'a mut State,
        vars: &'a mut Vars,
        unit_ns: u64,
        port: u16,
    ) -> Pass<'a> {
        let pipe = usize::from(port >> LOCAL_BITS);
        state.enter(pipe);
        let number = match pipeline.code.pipelines.len() {
            1 => 0,
            count => pipe % count.max(1),
        };
        Pass { pipeline, state, vars, unit_ns, number }
    }

    #[inline(always)]
    fn code(&self) -> &'a Code {
        &self.pipeline.code
    }

    #[inline(always)]
    fn intrinsics(&self) -> &'a Intrinsics {
        &self.code().pipelines[self.number]
    }

    #[inline(always)]
    fn field(&self, role: Intrinsic) -> u64 {
        self.vars[self.intrinsics()[role] as usize]
    }

    #[inline(always)]
    fn run(&mut self, cx: &mut Cx<'_>, entry: usize) -> Exit {
        self.pipeline.run(self.state, self.vars, cx, ENTRIES * self.number + entry)
    }

    /// Clears the variables, unless machine code does, and sets the time that the program reads.
    #[inline(always)]
    fn begin(&mut self, cx: &mut Cx<'_>, prefix: usize, time: Intrinsic) {
        cx.counted = (cx.len - prefix) as u64 + FCS;
        cx.cleared = !self.pipeline.clears();
        if cx.cleared {
            clear(self.code(), self.vars);
        }
        let now = if self.unit_ns <= 1 { cx.now.0 } else { cx.now.0 / self.unit_ns };
        self.vars[self.intrinsics()[time] as usize] = now & 0xffff_ffff_ffff;
    }

    /// Runs ingress with its parser and deparser. The packet begins with `prefix` bytes of the device.
    #[inline(always)]
    pub fn ingress(&mut self, cx: &mut Cx<'_>, prefix: usize) -> Verdict {
        self.begin(cx, prefix, Intrinsic::ParserTime);
        let exit = self.run(cx, INGRESS);
        let drops = self.field(Intrinsic::DropControl);
        let groups = [self.field(Intrinsic::MulticastGroup), self.field(Intrinsic::SecondGroup)];
        let spread = if groups == [0, 0] { ReplicationSpread::default() } else { self.spread() };
        Verdict {
            exit,
            destination: self.field(Intrinsic::Destination),
            bypass: self.field(Intrinsic::BypassEgress) != 0,
            dropped: drops & 1 != 0,
            groups,
            spread,
            to_controller: self.field(Intrinsic::CopyToController) != 0 && drops & 2 == 0,
            no_clones: drops & 4 != 0,
            priority: self.field(Intrinsic::Priority).min(7) as u8,
        }
    }

    fn spread(&self) -> ReplicationSpread {
        ReplicationSpread {
            rid: self.field(Intrinsic::CopyId) as u16,
            exclusion: self.field(Intrinsic::MemberExclusion) as u16,
            prune: self.field(Intrinsic::PortExclusion) as u16,
            set_hash: self.field(Intrinsic::MemberHash) as u16,
            lag_hash: self.field(Intrinsic::PortHash) as u16,
        }
    }

    /// Runs egress with its parser and deparser. Returns whether the packet is dropped, and whether clones are.
    #[inline(always)]
    pub fn egress(&mut self, cx: &mut Cx<'_>, prefix: usize) -> Result<(bool, bool), Exit> {
        self.begin(cx, prefix, Intrinsic::EgressTime);
        match self.run(cx, EGRESS) {
            Exit::Done => {
                let drops = self.field(Intrinsic::EgressDropControl);
                Ok((drops & 1 != 0, drops & 4 != 0))
            }
            exit => Err(exit),
        }
    }
}
