//! The data-plane thread: runs packets, timers and the servers' jobs in turn.

use crate::core::{EventSender, Jobs, Shared};
use crate::driver::{CaptureError, Driver, PortReport};
use crate::rest::Rest;
use crate::wire::{LINK_FULL, LINK_LOSS, Wires};
use p4rack_netdev::sched::{self, Granted};
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_netdev::{Poller, clock};
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use thiserror::Error;

/// Statistics of the data plane.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Scheduling that the kernel granted.
    pub scheduling: Granted,
    /// Time since the start, in ns.
    pub running_ns: u64,
    /// Processor time used, in ns.
    pub cpu_ns: u64,
    /// Number of times the thread woke up.
    pub wakeups: u64,
    /// Number of wake-ups by a timer alone.
    pub timer_wakeups: u64,
    /// Sum of their lateness, in ns.
    pub timer_late_sum_ns: u64,
    /// Maximum lateness, in ns.
    pub timer_late_max_ns: u64,
    /// Frames dropped inside the switch, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Statistics of the ports.
    pub ports: Vec<PortReport>,
}

/// Why a data plane ended, or which file it did not write.
#[derive(Debug, Error)]
pub enum PlaneError {
    /// Waiting for events failed.
    #[error("waiting for packets: {0}")]
    Wait(#[from] io::Error),
    /// A capture lacks frames.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// A switch with its ports.
#[derive(Debug)]
pub struct Plane {
    shared: Arc<Shared>,
    driver: Driver,
    wires: Wires,
    /// Waits for the driver's ports first, in its order, then for jobs and signals.
    poller: Poller,
    frame: Vec<u8>,
    rest: Rest,
    started: Nanos,
    granted: Option<Granted>,
    wakeups: u64,
    timer_wakeups: u64,
    timer_late: Nanos,
    timer_late_max: Nanos,
}

impl Plane {
    /// Combines both. The switch must be configured with the driver's port numbers.
    pub fn new(switch: Switch, driver: Driver) -> io::Result<Plane> {
        Plane::with_wires(switch, driver, Wires::new(&[], 0))
    }

    /// The same with links that have delay or loss.
    pub fn with_wires(switch: Switch, driver: Driver, wires: Wires) -> io::Result<Plane> {
        let mut poller = Poller::new();
        for position in 0..driver.len() {
            poller.add(driver.descriptor(position))?;
        }
        Ok(Plane {
            shared: Shared::new(switch),
            driver,
            wires,
            poller,
            frame: Vec::with_capacity(2048),
            rest: Rest::default(),
            started: clock::now(),
            granted: None,
            wakeups: 0,
            timer_wakeups: 0,
            timer_late: Nanos::ZERO,
            timer_late_max: Nanos::ZERO,
        })
    }

    /// The switch, for the servers' end.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Requests prompt scheduling for the calling thread, which runs this data plane from now on.
    pub fn take_thread(&mut self) -> Granted {
        *self.granted.insert(sched::prompt(sched::SWITCH_PRIORITY))
    }

    /// Runs until SIGTERM or SIGINT. Calls `report` with the statistics on SIGUSR1 and at the end. A capture that
    /// can't be written doesn't stop the switch, but is an error at the end.
    pub fn run(
        mut self,
        mut jobs: Jobs,
        events: &EventSender,
        signals: &Signals,
        mut report: impl FnMut(Report),
    ) -> Result<(), PlaneError> {
        self.take_thread();
        let job_number = self.poller.add(&jobs)?;
        let signal_number = self.poller.add(signals)?;
        let news_number = self.driver.news().map(|news| self.poller.add(news)).transpose()?;
        let shared = self.shared.clone();
        self.driver.look(|port, up| shared.lock().set_port_up(port, up));
        loop {
            self.turn(None)?;
            let mut switch = shared.lock();
            if self.poller.ready(job_number) {
                jobs.run_pending(&mut switch, clock::now());
                self.drain(&mut switch);
            }
            if news_number.is_some_and(|number| self.poller.ready(number)) {
                self.driver.read_news(|port, up| switch.set_port_up(port, up));
            }
            events.send_pending(&mut switch, &mut self.frame);
            if self.poller.ready(signal_number) {
                match signals.next() {
                    Some(Signal::Report) => report(self.report(&mut switch)),
                    Some(Signal::End) => {
                        // A Write in progress is not left half done.
                        jobs.finish(&mut switch, clock::now());
                        report(self.report(&mut switch));
                        return Ok(self.driver.finish_captures()?);
                    }
                    None => {}
                }
            }
        }
    }

    /// Sleeps until there is work, at most until `at_latest`. Reads one batch from each port that has one and
    /// sends due frames.
    pub fn turn(&mut self, at_latest: Option<Nanos>) -> io::Result<()> {
        let shared = self.shared.clone();
        let switch = shared.lock();
        let due = earlier(switch.next_timeout(), self.driver.next_timeout());
        let due = earlier(due, self.wires.next_timeout());
        shared.sleep(switch, due);
        self.poller.wait(earlier(due, at_latest))?;
        let mut switch = shared.lock();
        let now = clock::now();
        self.wakeups += 1;
        let mut packets = false;
        for position in 0..self.driver.len() {
            if self.poller.ready(position) {
                packets = true;
                let Plane { driver, frame: out, wires, .. } = self;
                let switch = &mut *switch;
                driver.receive(position, |port, frame, arrived, outputs| {
                    if wires.arrive(port, frame, arrived) {
                        return;
                    }
                    let now = clock::now();
                    // Most ports are usually idle, and the frame passes straight through.
                    if let Some(to) = switch.forward_late(port, frame, arrived, now, out)
                        && !wires.depart(to, out, now)
                    {
                        outputs.send(to, out, now);
                    }
                });
                // Between the batches of two ports, so that no queue waits for eight batches to be read.
                self.drain(switch);
            }
        }
        if packets {
            shared.note_packet(now);
        }
        if let Some(due) = due.filter(|due| *due <= now && !packets) {
            self.timer_wakeups += 1;
            self.timer_late += now - due;
            self.timer_late_max = self.timer_late_max.max(now - due);
        }
        self.drain(&mut switch);
        // Most switches have no generator.
        if let Some(runs) = switch.generator_runs() {
            switch.rest_generators(self.rest.after(runs, now, clock::thread_cpu()));
        }
        Ok(())
    }

    /// Sends due frames.
    fn drain(&mut self, switch: &mut Switch) {
        let now = clock::now();
        while let Some((port, due, frame)) = self.wires.poll_arrival(now) {
            if let Some(to) = switch.forward_late(port, &frame, due, now, &mut self.frame) {
                self.send(to, now);
            }
            self.wires.recycle(frame);
        }
        while let Some(port) = switch.poll_transmit(now, &mut self.frame) {
            self.send(port, now);
        }
        while let Some((port, mut frame)) = self.wires.poll_departure(now) {
            self.driver.send(port, &mut frame, now);
            self.wires.recycle(frame);
        }
        self.driver.flush(now);
    }

    /// Sends the frame in `frame` by a port's link, if that has delay or loss, or by its interface.
    fn send(&mut self, port: u16, now: Nanos) {
        if !self.wires.depart(port, &mut self.frame, now) {
            self.driver.send(port, &mut self.frame, now);
        }
    }

    /// Statistics so far.
    fn report(&mut self, switch: &mut Switch) -> Report {
        let drops = switch.stats(clock::now()).drops;
        let (lost, full) = self.wires.counts().sum();
        let of_links = [(LINK_LOSS, lost), (LINK_FULL, full)];
        Report {
            drops: drops.into_iter().map(|(reason, count)| (reason.name(), count)).chain(of_links).collect(),
            scheduling: self.granted.unwrap_or(Granted { fifo_priority: None, memory_locked: false }),
            running_ns: clock::now().saturating_sub(self.started).0,
            cpu_ns: clock::thread_cpu().0,
            wakeups: self.wakeups,
            timer_wakeups: self.timer_wakeups,
            timer_late_sum_ns: self.timer_late.0,
            timer_late_max_ns: self.timer_late_max.0,
            ports: self.driver.report(),
        }
    }
}

fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
