//! A host at several switches: a machine for each, and the first copy of each frame counts.
//!
//! ```text
//!                            ┌─▶ machine ─▶ link to the first switch
//!   applications ─ Numbers ──┤
//!                  ▲         └─▶ machine ─▶ link to the second one
//!                  └── first copies ◀── both machines
//! ```
//!
//! Each frame goes over all switches, each of which schedules its own copy, so nothing has to be noticed or repeated when one of
//! them dies. Each machine has a link of its own, so copies don't share a rate.
//!
//! A frame is taken by all machines or by none, whichever queue is full: so a switch that dies takes no frame with it that the
//! others don't carry. Only a machine whose switch has brought nothing from the other hosts, for as long as half of its queue takes
//! to leave, may fall behind the others.
//!
//! With one machine, frames have no numbers, and nothing is added to what the machine does.

mod numbers;

pub use numbers::Counters;

use crate::common::Station;
use crate::endpoint::{Config, Endpoint};
use crate::machine::{Event, HostMachine as _, Machine as _};
use numbers::Numbers;
use p4rack_wire::ethernet::{Ethernet, overhead};
use p4rack_wire::pl2::Shim;
use p4rack_wire::{EtherType, MacAddr, Nanos, WireRate};

/// The machines of a host, one for each of its links to the rack.
#[derive(Clone, Debug)]
pub struct Paths {
    machines: Vec<Endpoint>,
    /// Of several machines.
    numbers: Option<Numbers>,
    /// When each machine got its last frame of another host from its link.
    heard: Vec<Nanos>,
    /// How long a machine may be silent and still keep the others from taking frames.
    silence: Nanos,
    /// A frame with its number. Kept to reuse its allocation.
    frame: Vec<u8>,
}

impl Paths {
    /// The machines of a host at `switches` switches, at `now`. With several, `peers` are the other hosts, and sequence numbers
    /// have this EtherType, which has to be PL2's under PL2. `seed` determines everything random.
    pub fn new(
        config: &Config,
        (switches, ether_type): (usize, EtherType),
        peers: &[MacAddr],
        seed: u64,
        now: Nanos,
    ) -> Paths {
        let switches = switches.max(1);
        let mut config = config.clone();
        let station = config.station().clone();
        let numbers = (switches > 1).then(|| Numbers::new(ether_type, station.mac, peers, seed));
        if numbers.is_some() {
            config.station_mut().mtu += Shim::BYTES;
            if let Config::Pl2(config) = &mut config {
                (config.shim, config.numbered) = (false, true);
            }
        }
        let queue_bytes =
            station.queue_limit_frames as u64 * overhead::wire_bytes((Ethernet::BYTES + station.mtu) as u64);
        let machine = |nth: usize| Endpoint::new(config.clone(), seed.wrapping_add(nth as u64), now);
        Paths {
            machines: (0..switches).map(machine).collect(),
            numbers,
            heard: vec![now; switches],
            silence: WireRate::new(Station::timing_bps(station.rate_bps)).time(queue_bytes / 2),
            frame: Vec::new(),
        }
    }

    /// The machines, by their link.
    pub fn machines(&self) -> &[Endpoint] {
        &self.machines
    }

    /// Counts of frames and their copies, with several machines.
    pub fn counters(&self) -> Option<&Counters> {
        self.numbers.as_ref().map(|numbers| &numbers.counters)
    }

    /// Accepts a frame of the application.
    #[inline]
    pub fn handle_app(&mut self, frame: &[u8], now: Nanos) {
        match &self.numbers {
            None => self.machines[0].handle_app(frame, now),
            Some(_) => self.share(frame, now),
        }
    }

    /// Gives a frame with its number to all machines, or to none.
    fn share(&mut self, frame: &[u8], now: Nanos) {
        let Some(numbers) = &mut self.numbers else { return };
        let Some(sequence) = numbers.number(frame, &mut self.frame) else {
            // It counts the frame as too short.
            return self.machines[0].handle_app(frame, now);
        };
        let to = Ethernet::parse(frame).map_or(MacAddr::BROADCAST, |ethernet| ethernet.dst);
        let all = self.machines.len();
        let refuses = |nth: &usize| {
            now.saturating_sub(self.heard[*nth]) <= self.silence && !self.machines[*nth].has_room(to)
        };
        // One without room gets the frame alone, and counts why it refuses it.
        let asked = (0..all).find(refuses).map_or(0..all, |nth| nth..nth + 1);
        let mut taken = 0;
        for machine in &mut self.machines[asked] {
            let before = machine.stats().app_frames_dropped();
            machine.handle_app(&self.frame, now);
            taken += usize::from(machine.stats().app_frames_dropped() == before);
        }
        numbers.taken(sequence, taken, all);
    }

    /// Handles a frame from the link of a machine. A switch is heard by what it brings from the other hosts, not by whatever comes.
    #[inline]
    pub fn handle_link(&mut self, nth: usize, frame: &[u8], received_at: Nanos, now: Nanos) {
        let machine = &mut self.machines[nth];
        let Some(numbers) = &self.numbers else { return machine.handle_link(frame, received_at, now) };
        let before = machine.stats().link_frames_dropped();
        machine.handle_link(frame, received_at, now);
        if machine.stats().link_frames_dropped() == before && numbers.knows_sender(frame) {
            self.heard[nth] = self.heard[nth].max(now);
        }
    }

    /// Does due work.
    #[inline]
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.machines.iter_mut().for_each(|machine| machine.handle_timeout(now));
    }

    /// Writes the next frame for the link of a machine over `out`, if there is one.
    #[inline]
    pub fn poll_link(&mut self, nth: usize, now: Nanos, out: &mut Vec<u8>) -> bool {
        self.machines[nth].poll_link(now, out).is_some()
    }

    /// Writes the next frame for the application over `out`, if there is one: the first copy of each.
    #[inline]
    pub fn poll_app(&mut self, out: &mut Vec<u8>) -> bool {
        for machine in &mut self.machines {
            while machine.poll_app(out) {
                if self.numbers.as_mut().is_none_or(|numbers| numbers.is_first(out)) {
                    return true;
                }
            }
        }
        false
    }

    /// The next event for the driver.
    pub fn poll_event(&mut self, now: Nanos) -> Option<Event> {
        self.machines.iter_mut().find_map(|machine| machine.poll_event(now))
    }

    /// When to call again, if not before something arrives.
    #[inline]
    pub fn next_timeout(&self) -> Option<Nanos> {
        self.machines.iter().filter_map(|machine| machine.next_timeout()).min()
    }
}

#[cfg(test)]
mod tests;
