//! Counters of machines. Every drop has a named reason.

macro_rules! counters {
    ($(#[doc = $doc:literal])* $name:ident { $( #[doc = $fdoc:literal] $field:ident, )* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name { $( #[doc = $fdoc] pub $field: u64, )* }

        impl $name {
            /// Names and values, in order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [ $( (stringify!($field), self.$field), )* ].into_iter()
            }

            /// Adds another one's counts.
            pub fn add_up(&mut self, other: &Self) {
                $( self.$field += other.$field; )*
            }
        }
    };
}
pub(crate) use counters;

counters! {
    /// Events that every scheme has.
    Counters {
        /// Frames from the application.
        app_in,
        /// Frames delivered to the application.
        app_out,
        /// Frames received from the link.
        link_in,
        /// Frames sent to the link, including control frames.
        link_out,
        /// Bytes sent to the link, without FCS.
        link_out_bytes,
        /// Frames sent as best effort.
        best_effort_out,
        /// Frames received for the application without a reservation.
        best_effort_in,
        /// Frames of peers that never came, by sequence number.
        losses_seen,
        /// Peers that started a new sequence.
        peer_restarts,
    }
}

/// Reason of a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Reason {
    /// From the application: shorter than an Ethernet header.
    AppTooShort,
    /// From the application: longer than MTU and header.
    AppTooLong,
    /// From the application: the source address is not this host's.
    AppForeignSource,
    /// From the application: uses the scheme's own EtherType or VLAN.
    AppReserved,
    /// The destination's queue is full.
    QueueFull,
    /// All queues together are full.
    TotalFull,
    /// The best-effort queue is full.
    BestEffortFull,
    /// Received, but the application does not fetch frames.
    AppQueueFull,
    /// From the link: truncated.
    LinkTooShort,
    /// From the link: longer than any frame of this rack.
    LinkTooLong,
    /// From the link: addressed to another host.
    NotForUs,
    /// From the link: our own address is the source.
    OwnSource,
    /// A scheme's frame with another version.
    BadVersion,
    /// A scheme's frame of a kind that no host receives, or untagged.
    BadKind,
    /// Tagged data without a shim although the rack uses shims, or from an unknown host.
    BadShim,
    /// Control frame from an unknown host.
    UnknownPeer,
    /// Grant for a reservation that this host did not request.
    GrtUnasked,
    /// Grant seen before.
    GrtDuplicate,
    /// Grant for another demand than requested.
    GrtMismatch,
    /// Grant with an implausibly long wait.
    GrtImplausible,
    /// Data frame delivered before.
    Duplicate,
}

impl Reason {
    /// All reasons with their names in reports.
    pub const ALL: [(Reason, &'static str); 21] = [
        (Reason::AppTooShort, "app_too_short"),
        (Reason::AppTooLong, "app_too_long"),
        (Reason::AppForeignSource, "app_foreign_source"),
        (Reason::AppReserved, "app_reserved"),
        (Reason::QueueFull, "queue_full"),
        (Reason::TotalFull, "total_full"),
        (Reason::BestEffortFull, "best_effort_full"),
        (Reason::AppQueueFull, "app_queue_full"),
        (Reason::LinkTooShort, "link_too_short"),
        (Reason::LinkTooLong, "link_too_long"),
        (Reason::NotForUs, "not_for_us"),
        (Reason::OwnSource, "own_source"),
        (Reason::BadVersion, "bad_version"),
        (Reason::BadKind, "bad_kind"),
        (Reason::BadShim, "bad_shim"),
        (Reason::UnknownPeer, "unknown_peer"),
        (Reason::GrtUnasked, "grt_unasked"),
        (Reason::GrtDuplicate, "grt_duplicate"),
        (Reason::GrtMismatch, "grt_mismatch"),
        (Reason::GrtImplausible, "grt_implausible"),
        (Reason::Duplicate, "duplicate"),
    ];
}

/// Counters that every machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Events.
    pub counters: Counters,
    /// Maximum frames waiting for one destination.
    pub queue_max_frames: u64,
    drops: [u64; Reason::ALL.len()],
}

impl Default for Stats {
    fn default() -> Stats {
        Stats { counters: Counters::default(), queue_max_frames: 0, drops: [0; Reason::ALL.len()] }
    }
}

impl Stats {
    pub(crate) fn drop_frame(&mut self, reason: Reason) {
        self.drops[reason as usize] += 1;
    }

    /// Number of frames dropped for `reason`.
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.drops[reason as usize]
    }

    /// Names and counts of all reasons, including zeros.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Reason::ALL.into_iter().map(|(reason, name)| (name, self.dropped(reason)))
    }

    /// Application frames that this host dropped before they reached the link.
    pub fn app_frames_dropped(&self) -> u64 {
        self.drops[..Reason::AppQueueFull as usize].iter().sum()
    }

    /// Frames from the link that this host dropped because its applications fetch none, or because they were not what it takes.
    pub(crate) fn received_frames_dropped(&self) -> u64 {
        self.dropped(Reason::AppQueueFull) + self.link_frames_dropped()
    }

    /// Frames from the link that were not what this host takes.
    pub(crate) fn link_frames_dropped(&self) -> u64 {
        self.drops[Reason::LinkTooShort as usize..].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stand_at_their_own_index() {
        for (index, (reason, name)) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index, "{name}");
        }
    }
}
