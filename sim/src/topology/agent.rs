//! A host's agent: the machine of its rack's protocol, between senders and receivers and the link.
//!
//! ```text
//!  senders ── give ──▶ ┌──────────┐ ── next ──▶ queue of the link
//!  receivers ◀─ take ─ │ Endpoint │ ◀─ take ─── link
//!                      └──────────┘ ◀─ work, at due
//! ```

use super::plan::Planted;
use crate::frames::{Frame, Frames};
use p4rack_codegen::endpoint_config;
use p4rack_codegen::topology::Topology;
use p4rack_fabric::{Config, Endpoint, HostMachine as _, Machine as _};
use p4rack_wire::ethernet::{Ethernet, overhead};
use p4rack_wire::{MacAddr, Nanos};

/// Frames for one destination that may wait in the machine before TCP gives it no further ones.
const WAITING: usize = 8;

/// A host's agent in virtual time.
#[derive(Debug)]
pub(super) struct Agent {
    pub machine: Endpoint,
    /// Time of a full frame on the link.
    frame: Nanos,
    pub passed: Passed,
    planted: Option<Planted>,
}

/// Frames that have passed between an agent and its host, as the host has counted them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    /// From senders to the agent, and from the agent to the link.
    pub given: u64,
    pub left: u64,
    /// From the link to the agent, and from the agent to receivers.
    pub came: u64,
    pub handed: u64,
}

impl Agent {
    /// The agent of a host; `None` if its frames go to the link as they are.
    pub fn of(
        topology: &Topology,
        host: usize,
        seed: u64,
        planted: Option<Planted>,
    ) -> Result<Option<Box<Agent>>, String> {
        let Some((rack, own)) = topology.in_rack(host).filter(|_| topology.has_agent(host)) else {
            return Ok(None);
        };
        let name = &topology.hosts[host].name;
        let config = endpoint_config(rack, own, rack.scheme()).map_err(|error| format!("{name}: {error}"))?;
        let machine = Endpoint::new(simulated(config), seed, Nanos::ZERO);
        let frame =
            Nanos::on_wire(overhead::wire_bytes(overhead::MTU + Ethernet::BYTES as u64), own.rate_bps);
        Ok(Some(Box::new(Agent { machine, frame, passed: Passed::default(), planted })))
    }

    /// Takes a frame of a sender.
    #[inline]
    pub fn give(&mut self, frame: &[u8], now: Nanos) {
        self.passed.given += 1;
        if Planted::Forgetful.is(self.planted) && self.passed.given.is_multiple_of(50) {
            return;
        }
        self.machine.handle_app(frame, now);
    }

    /// Takes a frame from the link. Writes the one that it carries for applications over `app`; false if there is none.
    #[inline]
    pub fn take(&mut self, frame: &[u8], received_at: Nanos, now: Nanos, app: &mut Vec<u8>) -> bool {
        self.passed.came += 1;
        let Some(found) = self.machine.forward_link(frame, received_at, now) else { return false };
        if Planted::Greedy.is(self.planted) && self.passed.came.is_multiple_of(50) {
            return false;
        }
        self.passed.handed += 1;
        let (addresses, ether_type, rest) = found.parts(frame);
        app.clear();
        app.extend_from_slice(addresses);
        app.extend_from_slice(&ether_type);
        app.extend_from_slice(rest);
        true
    }

    /// The next frame for the link.
    #[inline]
    pub fn next(&mut self, now: Nanos, frames: &mut Frames) -> Option<Frame> {
        let mut frame = frames.take(self.machine.next_is_control());
        while self.machine.poll_link(now, &mut frame).is_some() {
            if Planted::Leaky.is(self.planted) && self.machine.ledger().data_out.is_multiple_of(50) {
                continue;
            }
            self.passed.left += 1;
            return Some(frame);
        }
        frames.release(frame);
        None
    }

    /// Frames missing from its, or its host's, account.
    pub fn unaccounted(&self) -> u64 {
        let (ledger, passed) = (self.machine.ledger(), self.passed);
        ledger.unaccounted()
            + passed.given.abs_diff(ledger.app_in)
            + passed.left.abs_diff(ledger.data_out + ledger.control_out)
            + passed.came.abs_diff(ledger.link_in)
            + passed.handed.abs_diff(ledger.app_out)
    }

    /// Handles timeouts.
    #[inline]
    pub fn wake(&mut self, now: Nanos) {
        self.machine.handle_timeout(now);
    }

    /// When it has work to do. Valid once [`Agent::next`] has given nothing.
    #[inline]
    pub fn due(&mut self, now: Nanos) -> Nanos {
        // No controller is simulated, and no host falls silent.
        while self.machine.poll_event(now).is_some() {}
        self.machine.next_timeout().unwrap_or(Nanos::MAX)
    }

    /// How long TCP waits before it looks again whether it may send to a peer: while enough waits for it, until a frame may have left.
    #[inline]
    pub fn busy_for(&self, peer: MacAddr) -> Nanos {
        // Frames to no peer share a queue.
        let at = self.machine.position_of(peer);
        let waiting = at.map_or_else(|| self.machine.backlog_frames(), |at| self.machine.backlog_at(at));
        if waiting < WAITING { Nanos::ZERO } else { self.frame.max(Nanos(1)) }
    }
}

/// The parameters of an agent on a real host, except that it is never late in virtual time.
fn simulated(mut config: Config) -> Config {
    config.station_mut().catch_up = Nanos::ZERO;
    config.report_no_silence();
    config
}
