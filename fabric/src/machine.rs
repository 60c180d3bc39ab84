//! The interface of every host's machine.

use crate::common::{AppFrame, Delay, Station, Stats};
use p4rack_wire::{MacAddr, Nanos};

/// A host's protocol, without input or output of its own: between applications and the link, NIC included.
///
/// ```text
///   applications ── handle_app ─▶ ┌─────────┐ ── poll_link ──▶ link
///                ◀── poll_app ─── │ Machine │ ◀─ handle_link ──
///                ◀── poll_event ─ └─────────┘ ◀─ handle_timeout, at next_timeout: a clock
/// ```
///
/// A driver (a real agent, a simulator, a test) owns sockets and clock, and calls in this order:
///
/// 1. `handle_*` with all that has come, any number of calls in any order; frames that are handed over together share what the
///    scheme asks for. [`handle_timeout`](Self::handle_timeout) is one of them, needed when
///    [`next_timeout`](Self::next_timeout) has come, harmless at any other time.
/// 2. `poll_*`, each until it says false or `None`.
/// 3. [`next_timeout`](Self::next_timeout), and sleep until then, or until something comes.
///
/// What holds of each machine:
///
/// - **Time** is what it is told, nanoseconds of a clock that the driver has chosen. A time before the last one counts as the last
///   one; a late call is made up for as far as [`Station::catch_up`] says.
/// - **A call is bounded**: it handles one frame, or writes one. [`Station`] limits what waits; what finds no room is dropped and
///   counted by its [`Reason`](crate::common::Reason). In a steady state nothing is allocated.
/// - **No input panics**, whoever sent it.
/// - **The same calls give the same bytes**: randomness comes from a seed. A machine is [`Send`] and shares nothing.
///
/// ```
/// use p4rack_fabric::{Config, Endpoint, HostMachine, ethernet};
/// use p4rack_wire::{MacAddr, Nanos};
///
/// let macs = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
/// let config = |mac| ethernet::Config { peers: macs.to_vec(), ..ethernet::Config::new(mac, 100_000_000) };
/// let mut hosts = macs.map(|mac| Endpoint::new(Config::Ethernet(config(mac)), 1, Nanos::ZERO));
/// let frame = [&macs[1].0[..], &macs[0].0, &[0x08, 0x00], b"hello"].concat();
/// hosts[0].handle_app(&frame, Nanos::ZERO);
/// hosts[0].handle_app(&frame, Nanos::ZERO);
///
/// // A perfect switch: what leaves one host is at the other one at once.
/// let (mut now, mut out, mut came) = (Nanos::ZERO, Vec::new(), Vec::new());
/// loop {
///     for host in 0..2 {
///         hosts[host].handle_timeout(now);
///         while hosts[host].poll_link(now, &mut out) {
///             hosts[1 - host].handle_link(&out, now, now);
///         }
///         while hosts[host].poll_app(&mut out) {
///             came.push((host, now, out.clone()));
///         }
///     }
///     let Some(due) = hosts.iter().filter_map(HostMachine::next_timeout).min() else { break };
///     now = now.max(due);
/// }
/// // The second frame had to wait until 84 bytes had passed at 100 Mb/s.
/// assert_eq!(came, [(1, Nanos(0), frame.clone()), (1, Nanos(6_720), frame)]);
/// ```
pub trait HostMachine: Send {
    /// Accepts an Ethernet frame (no FCS) from the application. Its source is this host.
    fn handle_app(&mut self, frame: &[u8], now: Nanos);

    /// Accepts an Ethernet frame (no FCS, VLAN tag in place) from the link. `received_at` is the time at
    /// which the kernel or the NIC saw it.
    fn handle_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos);

    /// Like [`handle_link`](Self::handle_link), but returns the position of the application's frame, if there
    /// is one in it: nothing waits for [`poll_app`](Self::poll_app) and nothing is copied.
    fn forward_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) -> Option<AppFrame>;

    /// Does what is due, such as repeating unanswered requests. Frames that become ready are returned by the
    /// following polls.
    fn handle_timeout(&mut self, now: Nanos);

    /// Writes the next frame for the link over `out`. Call until it returns false: then the wire is busy, or
    /// nothing is ready.
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool;

    /// Writes the next frame for the application over `out`. Call until it returns false.
    fn poll_app(&mut self, out: &mut Vec<u8>) -> bool;

    /// The next event for the driver. Call until it returns `None`.
    fn poll_event(&mut self, _now: Nanos) -> Option<Event> {
        None
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and the polls next; `None` if not before
    /// something arrives. The time may be in the past. It is only valid directly after the polls, because
    /// every other call may bring it forward.
    fn next_timeout(&self) -> Option<Nanos>;

    /// Whether the next frame from [`poll_link`](Self::poll_link) is probably a control frame, and so a short
    /// one.
    #[inline]
    fn next_is_control(&self) -> bool {
        false
    }

    /// Application frames waiting to be sent, over all queues.
    fn backlog_frames(&self) -> usize;

    /// Position of a peer for [`backlog_at`](Self::backlog_at), which never changes. `None` if it is not a
    /// peer.
    fn position_of(&self, peer: MacAddr) -> Option<usize>;

    /// Application frames waiting for the peer at a position; 0 if there is none.
    fn backlog_at(&self, position: usize) -> usize;

    /// Configuration of its host.
    fn station(&self) -> &Station;

    /// Counters that every machine has.
    fn stats(&self) -> &Stats;

    /// All counters by name: the common ones, then the scheme's own.
    fn counters(&self) -> Vec<(&'static str, u64)>;

    /// Measured delays, by name.
    fn delays(&self) -> Vec<(&'static str, &Delay)>;
}

/// An event for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A sender with unused grants to send to us fell silent. The controller may take back its reservations.
    SenderSilent(MacAddr),
}
