//! A machine of any scheme, without dynamic dispatch.

use crate::common::{AppFrame, ConfigError, Delay, Ledger, Station, Stats};
use crate::machine::{Event, HostMachine, Machine};
use crate::{ethernet, pl2};
use p4rack_wire::{MacAddr, Nanos};

/// Configuration of an [`Endpoint`], by scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Config {
    /// Plain Ethernet.
    Ethernet(ethernet::Config),
    /// PL2.
    Pl2(pl2::Config),
}

impl Config {
    /// Configuration of the host.
    pub fn station(&self) -> &Station {
        match self {
            Config::Ethernet(config) => &config.station,
            Config::Pl2(config) => &config.station,
        }
    }

    /// Mutable configuration of the host.
    pub fn station_mut(&mut self) -> &mut Station {
        match self {
            Config::Ethernet(config) => &mut config.station,
            Config::Pl2(config) => &mut config.station,
        }
    }

    /// Reports no sender that falls silent: where no controller takes back its reservations.
    pub fn report_no_silence(&mut self) {
        match self {
            Config::Ethernet(_) => {}
            Config::Pl2(config) => config.notify_patience = None,
        }
    }

    /// Checks what types cannot express. [`Endpoint::new`] also accepts an invalid configuration and uses the
    /// nearest value that works.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            Config::Ethernet(config) => config.check(),
            Config::Pl2(config) => config.check(),
        }
    }
}

/// The machine of a host, whatever its scheme. Drivers hold this.
#[derive(Clone, Debug)]
// One per host, used for every frame: boxing would add an indirection.
#[allow(clippy::large_enum_variant)]
pub enum Endpoint {
    /// Plain Ethernet.
    Ethernet(ethernet::Endpoint),
    /// PL2.
    Pl2(pl2::Endpoint),
}

impl Endpoint {
    /// A new machine at `now`. `seed` determines everything random, such as the first sequence numbers.
    pub fn new(config: Config, seed: u64, now: Nanos) -> Endpoint {
        match config {
            Config::Ethernet(config) => Endpoint::Ethernet(ethernet::Endpoint::new(config, now)),
            Config::Pl2(config) => Endpoint::Pl2(pl2::Endpoint::new(config, seed, now)),
        }
    }

    /// Name of its scheme in reports.
    pub fn scheme(&self) -> &'static str {
        match self {
            Endpoint::Ethernet(_) => "l2",
            Endpoint::Pl2(machine) if machine.config().mode == pl2::Mode::Counter => "pl2-counter",
            Endpoint::Pl2(_) => "pl2-clock",
        }
    }
}

/// Calls the scheme's own implementation.
macro_rules! each {
    ($self:ident, $machine:ident => $call:expr) => {
        match $self {
            Endpoint::Ethernet($machine) => $call,
            Endpoint::Pl2($machine) => $call,
        }
    };
}

impl Endpoint {
    /// Where its frames have gone.
    pub fn ledger(&self) -> Ledger {
        each!(self, machine => machine.ledger())
    }

    /// Whether there is room for a frame to a host, whatever its flow.
    #[inline]
    pub(crate) fn has_room(&self, to: MacAddr) -> bool {
        each!(self, machine => machine.has_room(to))
    }
}

impl Machine for Endpoint {
    type Received<'a> = &'a [u8];
    type Sent = ();
    type Buffer = Vec<u8>;

    #[inline]
    fn handle_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) {
        each!(self, machine => machine.handle_link(frame, received_at, now))
    }

    #[inline]
    fn handle_timeout(&mut self, now: Nanos) {
        each!(self, machine => machine.handle_timeout(now))
    }

    #[inline]
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<()> {
        each!(self, machine => machine.poll_link(now, out))
    }

    #[inline]
    fn next_timeout(&self) -> Option<Nanos> {
        each!(self, machine => machine.next_timeout())
    }
}

impl HostMachine for Endpoint {
    #[inline]
    fn handle_app(&mut self, frame: &[u8], now: Nanos) {
        each!(self, machine => machine.handle_app(frame, now))
    }

    #[inline]
    fn forward_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) -> Option<AppFrame> {
        each!(self, machine => machine.forward_link(frame, received_at, now))
    }

    #[inline]
    fn poll_app(&mut self, out: &mut Vec<u8>) -> bool {
        each!(self, machine => machine.poll_app(out))
    }

    #[inline]
    fn poll_event(&mut self, now: Nanos) -> Option<Event> {
        each!(self, machine => machine.poll_event(now))
    }

    #[inline]
    fn next_is_control(&self) -> bool {
        each!(self, machine => machine.next_is_control())
    }

    #[inline]
    fn backlog_frames(&self) -> usize {
        each!(self, machine => machine.backlog_frames())
    }

    #[inline]
    fn position_of(&self, peer: MacAddr) -> Option<usize> {
        each!(self, machine => machine.position_of(peer))
    }

    #[inline]
    fn backlog_at(&self, position: usize) -> usize {
        each!(self, machine => machine.backlog_at(position))
    }

    #[inline]
    fn station(&self) -> &Station {
        each!(self, machine => machine.station())
    }

    fn stats(&self) -> &Stats {
        each!(self, machine => machine.stats())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        each!(self, machine => machine.counters())
    }

    fn delays(&self) -> Vec<(&'static str, &Delay)> {
        each!(self, machine => machine.delays())
    }
}
