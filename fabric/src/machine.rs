//! The interfaces of hosts' machines.

use crate::common::{AppFrame, Delay, Station, Stats};
use p4rack_wire::{MacAddr, Nanos};

/// A state machine of a host, above a link, without input or output of its own. Every host machine of this crate implements it.
///
/// ```text
///             ┌─────────┐ ── poll_link ──▶ link, when it is free and next_link has come
///   … ◀─────▶ │ Machine │ ◀─ handle_link ──
///             └─────────┘ ◀─ handle_timeout, at next_timeout: a clock
/// ```
///
/// | machine | what the link brings | what it sends | other side |
/// |---|---|---|---|
/// | `ethernet`, `pl2`: [`Endpoint`](crate::Endpoint) | frames | frames | [`HostMachine`]: applications' frames |
/// | `edm::host::compute`, `edm::host::memory` | a node's number and its message | a message and the node it is for | requests and outcomes; memory |
/// | `roce`: `Adapter` | frames | frames | requests, receives and completions |
/// | `clio::board`: `Board` | where the answer goes, and a packet | a packet and where it goes | processes; memory |
/// | `clio::lib`: `Client` | a board's number and its packet | a packet and the board it is for | operations and outcomes |
/// | `balloon`: `Balloon` | requests and answers | replies and commands | none |
/// | `cowbird`: `Engine`, above an adapter | a queue pair and an outcome | a queue pair and a request | sets of rings |
/// | `hostile`: machines that break the rules | frames | frames | none |
///
/// A driver (a real agent, a simulator, a test) owns the link and the clock, and calls in this order:
///
/// 1. `handle_*` with all input, any number of calls in any order; frames handed over together share the scheme's
///    requests. [`handle_timeout`](Self::handle_timeout) is one of them, needed when
///    [`next_timeout`](Self::next_timeout) has come, harmless at any other time.
/// 2. `poll_*`, each until it yields nothing; [`poll_link`](Self::poll_link) only while the link is free.
/// 3. [`next_call`](Self::next_call), and sleep until then, or until something comes.
///
/// Every machine keeps these rules:
///
/// - **Time** comes from the driver: nanoseconds of a clock that the driver has chosen. A time before the last one
///   counts as the last one.
/// - **A call is bounded**, and so are its effects: after finitely many polls there is nothing more to send at this
///   time, and the next call is later.
/// - **Polling changes nothing** when there is nothing to send: drivers may poll as often as they like.
/// - **Queues are limited**; overflow is dropped and counted, or refused.
/// - **No input panics**, from whatever host.
/// - **The same calls give the same bytes**: randomness comes from a seed. A machine is [`Send`] and shares nothing.
///
/// `fabric/tests/machines` holds every machine to it.
pub trait Machine: Send {
    /// A message from the link.
    type Received<'a>;
    /// Facts about a sent message beside its bytes.
    type Sent;
    /// Where its bytes are written: `()` if it has none.
    type Buffer;

    /// Handles a message from the link. `received_at` is the time at which the kernel or the NIC saw it.
    fn handle_link(&mut self, received: Self::Received<'_>, received_at: Nanos, now: Nanos);

    /// Does due work, such as repeating unanswered requests. The following polls return what became ready.
    fn handle_timeout(&mut self, _now: Nanos) {}

    /// Writes the next thing for the link over `out`. Call it when the link is free, until it returns `None`: then nothing is
    /// ready.
    fn poll_link(&mut self, now: Nanos, out: &mut Self::Buffer) -> Option<Self::Sent>;

    /// When [`poll_link`](Self::poll_link) has something, if the link is free; the time may be in the past. It is only valid
    /// directly after the polls, because every other call may bring it forward. Machines with a NIC of their own, which says when
    /// the wire is free, include this time in [`next_timeout`](Self::next_timeout).
    #[inline]
    fn next_link(&self) -> Option<Nanos> {
        None
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and the polls next; `None` if not before something arrives. The time
    /// may be in the past. It is only valid directly after the polls.
    #[inline]
    fn next_timeout(&self) -> Option<Nanos> {
        None
    }

    /// When a driver whose link is free at `free_at` calls next.
    #[inline]
    fn next_call(&self, free_at: Nanos) -> Option<Nanos> {
        let link = self.next_link().map(|at| at.max(free_at));
        self.next_timeout().into_iter().chain(link).min()
    }
}

/// A [`Machine`] between applications and the link, whose NIC it models: both have Ethernet's frames.
///
/// ```text
///   applications ── handle_app ─▶ ┌─────────────┐ ── poll_link ──▶ link
///                ◀── poll_app ─── │ HostMachine │ ◀─ handle_link ──
///      driver    ◀── poll_event ─ └─────────────┘ ◀─ handle_timeout, at next_timeout
/// ```
///
/// [`Station`] limits what waits, by [`Reason`](crate::common::Reason), and says how far a late call is made up for. In a steady
/// state nothing is allocated.
///
/// ```
/// use p4rack_fabric::{Config, Endpoint, HostMachine, Machine, ethernet};
/// use p4rack_wire::{MacAddr, Nanos};
///
/// let macs = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
/// let config = |mac| ethernet::Config { peers: macs.to_vec(), ..ethernet::Config::new(mac, 100_000_000) };
/// let mut hosts = macs.map(|mac| Endpoint::new(Config::Ethernet(config(mac)), 1, Nanos::ZERO));
/// let frame = [&macs[1].0[..], &macs[0].0, &[0x08, 0x00], b"hello"].concat();
/// hosts[0].handle_app(&frame, Nanos::ZERO);
/// hosts[0].handle_app(&frame, Nanos::ZERO);
///
/// // A perfect switch: what leaves one host arrives at the other one immediately.
/// let (mut now, mut out, mut came) = (Nanos::ZERO, Vec::new(), Vec::new());
/// loop {
///     for host in 0..2 {
///         hosts[host].handle_timeout(now);
///         while hosts[host].poll_link(now, &mut out).is_some() {
///             hosts[1 - host].handle_link(&out, now, now);
///         }
///         while hosts[host].poll_app(&mut out) {
///             came.push((host, now, out.clone()));
///         }
///     }
///     let Some(due) = hosts.iter().filter_map(Machine::next_timeout).min() else { break };
///     now = now.max(due);
/// }
/// // The second frame had to wait until 84 bytes had passed at 100 Mb/s.
/// assert_eq!(came, [(1, Nanos(0), frame.clone()), (1, Nanos(6_720), frame)]);
/// ```
pub trait HostMachine: for<'a> Machine<Received<'a> = &'a [u8], Sent = (), Buffer = Vec<u8>> {
    /// Accepts an Ethernet frame (no FCS) from the application. Its source is this host.
    fn handle_app(&mut self, frame: &[u8], now: Nanos);

    /// Like [`handle_link`](Machine::handle_link) of a frame (no FCS, VLAN tag in place), but returns the position of the
    /// application's frame, if there is one in it: nothing waits for [`poll_app`](Self::poll_app) and nothing is copied.
    fn forward_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) -> Option<AppFrame>;

    /// Writes the next frame for the application over `out`. Call until it returns false.
    fn poll_app(&mut self, out: &mut Vec<u8>) -> bool;

    /// The next event for the driver. Call until it returns `None`.
    fn poll_event(&mut self, _now: Nanos) -> Option<Event> {
        None
    }

    /// Whether the next frame from [`poll_link`](Machine::poll_link) is probably a control frame, and so a short
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
