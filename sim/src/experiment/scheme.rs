//! `[scheme]`: the scheme and its parameters.

use p4rack_codegen::scheme::pl2::{Clocks, FLOW_LANES, K_MAX, Mode, Pl2};
use p4rack_wire::pl2::LANES_MAX;
use serde::{Deserialize, Serialize};

/// `[scheme]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SchemeSpec {
    /// The scheme.
    pub kind: SchemeKind,
    /// K: maximum slots per reservation, or "backlog".
    #[serde(default)]
    pub k: K,
    /// With `k = "backlog"`: maximum slots per reservation.
    pub k_max: Option<u8>,
    /// In clock mode: number of parts of a slot; reservations count in parts.
    #[serde(default = "one_u8")]
    pub slot_parts: u8,
    /// t in slots: bursts go unsolicited if the last wait was shorter; 0: never.
    #[serde(default = "t")]
    pub t: u32,
    /// T in slots: the switch drops unsolicited frames if more is reserved. Default: 8 t.
    pub drop_threshold: Option<u32>,
    /// In clock mode: which clocks a reservation moves.
    #[serde(default)]
    pub clocks: Clocks,
    /// Whether grants are copied to their destinations, which then report silent senders.
    #[serde(default)]
    pub notify_receiver: bool,
    /// With `notify_receiver`: how late a sender must be to count as silent.
    #[serde(default = "silent_after")]
    pub silent_after_us: u64,
    /// With `notify_receiver`: time between a report and the controller's action at the switch.
    #[serde(default = "controller")]
    pub controller_us: u64,
    /// Whether a burst goes unsolicited only once the slots of the previous one have passed and the NIC holds at most one
    /// frame; false: the paper's rule.
    #[serde(default = "yes")]
    pub pace_unsolicited: bool,
    /// Waiting reservations of a host per destination. Default: 1; 2 with `k = "backlog"`.
    pub in_flight: Option<usize>,
    /// Waiting reservations per destination that the switch allows a host. Default: `in_flight`; with `by_thread` 64, or at
    /// least 4 with `k = "backlog"`.
    pub lanes: Option<u8>,
    /// Whether each thread may have a waiting reservation of its own, as in the paper. Default: only with `k = "backlog"`.
    pub by_thread: Option<bool>,
    /// In clock mode: whether short frames share slots.
    #[serde(default = "yes")]
    pub pack: bool,
    /// How much longer a slot is than a full frame.
    #[serde(default)]
    pub slot_headroom_percent: f64,
    /// RSVs that a host may send per slot time, on average; 0: not metered.
    #[serde(default)]
    pub control_per_slot: u32,
    /// Whether data carries sequence numbers, so that receivers can remove duplicates.
    #[serde(default = "yes")]
    pub shim: bool,
    /// How long the waits of a grant count as current. Default: twice RSV→GRT.
    pub fresh_ns: Option<u64>,
    /// Time after which an RSV without grant is repeated.
    #[serde(default = "grt_timeout")]
    pub grt_timeout_us: u64,
}

/// `k` in `[scheme]`: the maximum length of reservations.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(untagged, expecting = "is no K; write a number of slots from 1 to 255, or \"backlog\"")]
pub enum K {
    /// A number of slots.
    Slots(u8),
    /// A word.
    Word(KWord),
}

/// Values of `k` that are not numbers.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum KWord {
    /// A reservation covers the whole backlog, up to `k_max`.
    Backlog,
}

impl Default for K {
    fn default() -> K {
        K::Slots(4)
    }
}

impl SchemeSpec {
    /// Whether `k = "backlog"`.
    pub fn backlog(&self) -> bool {
        self.k == K::Word(KWord::Backlog)
    }

    /// Maximum slots per reservation.
    pub fn k_slots(&self) -> u8 {
        match self.k {
            K::Slots(k) => k,
            K::Word(KWord::Backlog) => self.k_max.unwrap_or(K_MAX),
        }
    }

    /// Waiting reservations of a host per destination.
    pub fn in_flight(&self) -> usize {
        self.in_flight.unwrap_or(if self.backlog() { 2 } else { 1 })
    }

    /// Whether each thread may have a reservation of its own.
    pub fn by_thread(&self) -> bool {
        self.kind != SchemeKind::L2 && self.by_thread.unwrap_or(self.backlog())
    }

    /// Lanes per pair of source and destination.
    pub fn lanes(&self) -> u8 {
        self.lanes.unwrap_or(match (self.by_thread(), self.backlog()) {
            (true, true) => FLOW_LANES.max(self.in_flight() as u8),
            (true, false) => LANES_MAX,
            (false, _) => self.in_flight() as u8,
        })
    }
}

/// `kind` in `[scheme]`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SchemeKind {
    /// Plain switching with tail drop; hosts send as fast as they can.
    L2,
    /// PL2 with counters, the paper's Algorithm 1.
    Pl2Counter,
    /// PL2 with clocks.
    Pl2Clock,
}

/// PL2's parameters in the experiment.
pub(super) fn pl2(scheme: &SchemeSpec) -> Pl2 {
    let mode = if scheme.kind == SchemeKind::Pl2Counter { Mode::Counter } else { Mode::Clock };
    let base = if scheme.backlog() { Pl2::with_backlog(mode) } else { Pl2::new(mode) };
    let threshold_of = if scheme.backlog() { scheme.t.max(scheme.k_slots().into()) } else { scheme.t };
    Pl2 {
        clocks: scheme.clocks,
        k: scheme.k_slots(),
        by_flow: scheme.by_thread(),
        pace_unsolicited: scheme.pace_unsolicited,
        slot_parts: scheme.slot_parts,
        t_slots: scheme.t,
        drop_threshold_slots: scheme
            .drop_threshold
            .unwrap_or_else(|| Pl2::drop_threshold_slots(threshold_of))
            .max(1),
        shim: scheme.shim,
        reservations_in_flight: scheme.in_flight() as u32,
        lanes: scheme.lanes(),
        slot_headroom_percent: scheme.slot_headroom_percent,
        notify_receiver: scheme.notify_receiver,
        control_per_slot: scheme.control_per_slot,
        ..base
    }
}

fn one_u8() -> u8 {
    1
}

fn t() -> u32 {
    15
}

fn grt_timeout() -> u64 {
    50
}

fn silent_after() -> u64 {
    200
}

fn controller() -> u64 {
    100
}

fn yes() -> bool {
    true
}
