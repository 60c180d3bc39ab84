//! The seam between the data-plane thread, which owns the switch, and the asynchronous servers.
//!
//! ```text
//!   servers (tokio)                             data-plane thread
//!   Handle::call ──── jobs (bounded) ─────────▶ Jobs::run_pending, between packets
//!   Handle::short ─── short jobs (bounded) ───▶   between the turns of long jobs that are open
//!   Handle::in_turns ─ long jobs (bounded) ───▶   one after the other, some turns each
//!          ◀───────── each job's result ───────
//!   Events::recv ◀─── events (bounded) ──────── EventSender::send, drops and counts when full
//! ```
//!
//! Neither side ever waits for the other inside the data plane. While it sleeps, and only where no packet has come for
//! a while, a server may do a job of a few updates itself: `Handle::here`, without waking another thread.

use crate::wire::WireCounts;
use p4rack_netdev::clock;
use p4rack_netdev::wait::Waker;
use p4rack_switch::{DigestMessage, IdleEntry, Switch};
use p4rack_wire::Nanos;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

/// Maximum jobs waiting for the data-plane thread; further callers wait for room.
const JOBS: usize = 256;
/// Maximum events waiting for the servers; further ones are dropped and counted.
const EVENTS: usize = 1024;
/// How long new jobs are started before packets get a turn.
const TURN: Nanos = Nanos(20_000);

type Job = Box<dyn FnOnce(&mut Switch, Nanos) + Send>;
type Turns = Box<dyn FnMut(&mut Switch, Nanos) -> ControlFlow<()> + Send>;

/// Jobs that may run between the turns of a long job, besides packets and [`Handle::call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Nothing else: the job sees, or creates, a single state.
    Whole,
    /// Jobs of [`Handle::short`].
    Open,
}

/// A job of several turns, counted until it is dropped.
struct TurnsJob {
    work: Turns,
    isolation: Isolation,
    count: Arc<AtomicU64>,
}

impl TurnsJob {
    fn new(work: Turns, isolation: Isolation, count: &Arc<AtomicU64>) -> TurnsJob {
        count.fetch_add(1, Ordering::SeqCst);
        TurnsJob { work, isolation, count: count.clone() }
    }
}

impl Drop for TurnsJob {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The data-plane thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the switch is shutting down")]
pub struct Gone;

/// A message from the data plane to the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The CPU port sent a frame.
    PacketIn {
        /// The frame with the program's packet_in header, without FCS.
        frame: Vec<u8>,
    },
    /// The program sent a digest.
    Digest(DigestMessage),
    /// Entries whose idle timeout has expired.
    Idle(Vec<IdleEntry>),
    /// Links of ports went up or down.
    Links,
}

/// Maximum idle entries per event.
const IDLE_AN_EVENT: usize = 256;

/// For this long after a packet, only the data plane uses the switch.
const QUIET: Nanos = Nanos::from_millis(10);
/// Larger than any time.
const NEVER: u64 = u64::MAX;

/// The switch, shared by the data plane and the servers' shortest jobs.
#[derive(Debug)]
pub struct Shared {
    switch: Mutex<Switch>,
    /// Time of the data plane's next timer.
    wakes_at: AtomicU64,
    /// Time of the last packet.
    packet_at: AtomicU64,
}

impl Shared {
    /// The state shared with the thread that runs the data plane.
    pub fn new(switch: Switch) -> Arc<Shared> {
        let (wakes_at, packet_at) = (AtomicU64::new(NEVER), AtomicU64::new(0));
        Arc::new(Shared { switch: Mutex::new(switch), wakes_at, packet_at })
    }

    /// The switch, for the data plane.
    pub fn lock(&self) -> MutexGuard<'_, Switch> {
        // A panic within the switch ends the process. A panic within a server's job at worst leaves an update
        // half done.
        self.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the switch before the data plane sleeps until `wakes_at`.
    pub fn sleep(&self, switch: MutexGuard<'_, Switch>, until: Option<Nanos>) {
        self.wakes_at.store(until.map_or(NEVER, |until| until.0), Ordering::Relaxed);
        drop(switch);
    }

    /// Records the arrival of a packet.
    pub fn note_packet(&self, now: Nanos) {
        self.packet_at.store(now.0, Ordering::Relaxed);
    }
}

/// Creates both ends.
pub fn channel() -> io::Result<(Handle, Jobs, EventSender, Events)> {
    let (job_sender, jobs) = mpsc::channel(JOBS);
    let (short_sender, short) = mpsc::channel(JOBS);
    let (long_sender, long) = mpsc::channel(JOBS);
    let (event_sender, events) = mpsc::channel(EVENTS);
    let waker = Waker::new()?;
    let lost = Arc::new(AtomicU64::new(0));
    let under_way = Arc::new(AtomicU64::new(0));
    let bell = Arc::new(Bell { waker: waker.try_clone()?, rung: AtomicBool::new(false) });
    Ok((
        Handle {
            jobs: job_sender,
            short: short_sender,
            long: long_sender,
            under_way,
            shared: None,
            bell: bell.clone(),
            events_lost: lost.clone(),
            turned_away: Arc::default(),
            calls_refused: Arc::default(),
            wires: Arc::default(),
        },
        Jobs {
            jobs,
            short,
            long,
            unfinished_short: None,
            unfinished_long: None,
            is_longs_turn: false,
            waker,
            bell,
        },
        EventSender { events: event_sender, lost },
        Events { events },
    ))
}

/// Wakes the data plane; skips the system call if it has been woken already.
#[derive(Debug)]
struct Bell {
    waker: Waker,
    rung: AtomicBool,
}

impl Bell {
    fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            self.waker.wake();
        }
    }
}

/// The servers' access to the switch.
#[derive(Clone, Debug)]
pub struct Handle {
    jobs: mpsc::Sender<Job>,
    short: mpsc::Sender<TurnsJob>,
    long: mpsc::Sender<TurnsJob>,
    /// Number of jobs of several turns that are requested or running.
    under_way: Arc<AtomicU64>,
    shared: Option<Arc<Shared>>,
    bell: Arc<Bell>,
    events_lost: Arc<AtomicU64>,
    turned_away: Arc<AtomicU64>,
    calls_refused: Arc<AtomicU64>,
    wires: Arc<WireCounts>,
}

impl Handle {
    /// With these counts of the ports' links.
    pub fn counting(self, wires: Arc<WireCounts>) -> Handle {
        Handle { wires, ..self }
    }

    /// What the ports' links have dropped.
    pub fn wires(&self) -> &WireCounts {
        &self.wires
    }

    /// Lets this handle run short jobs in the calling thread.
    pub fn sharing(self, shared: Arc<Shared>) -> Handle {
        Handle { shared: Some(shared), ..self }
    }

    /// Runs a job of one turn in the calling thread. Returns `None` without running it if the data plane is
    /// awake, packets are arriving, or jobs of several turns are in progress.
    pub fn here<R>(&self, work: &mut impl FnMut(&mut Switch, Nanos) -> R) -> Option<R> {
        let shared = self.shared.as_ref()?;
        let now = clock::now();
        if now.0.saturating_sub(shared.packet_at.load(Ordering::Relaxed)) < QUIET.0 || self.jobs.is_closed() {
            return None;
        }
        let mut switch = shared.switch.try_lock().ok()?;
        // A job is counted here before it starts, and it needs the switch to start.
        if self.under_way.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let result = work(&mut switch, now);
        let due = switch.next_timeout().map_or(NEVER, |due| due.0);
        if due < shared.wakes_at.load(Ordering::Relaxed) {
            self.bell.ring();
        }
        Some(result)
    }

    /// Runs `work` in the data-plane thread, between packets, and returns its result. It runs to the end even
    /// if the caller stops waiting. Keep it short: packets wait for it.
    pub async fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Switch, Nanos) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        let (sender, receiver) = oneshot::channel();
        let job: Job = Box::new(move |switch, now| {
            // A dropped receiver discards the result.
            let _ = sender.send(work(switch, now));
        });
        self.jobs.send(job).await.map_err(|_| Gone)?;
        self.bell.ring();
        receiver.await.map_err(|_| Gone)
    }

    /// Calls `work` in the data-plane thread repeatedly, with packets in between, until it breaks with a
    /// result. Such jobs run one after the other, in the order of the requests.
    pub async fn in_turns<R: Send + 'static>(
        &self,
        isolation: Isolation,
        work: impl FnMut(&mut Switch, Nanos) -> ControlFlow<R> + Send + 'static,
    ) -> Result<R, Gone> {
        self.queue(&self.long, isolation, work).await
    }

    /// Like [`Handle::in_turns`], for work of few turns. It runs between the turns of long jobs, except those
    /// that must be whole; after each short job, a long one has a turn. Short jobs run one after the other.
    pub async fn short<R: Send + 'static>(
        &self,
        work: impl FnMut(&mut Switch, Nanos) -> ControlFlow<R> + Send + 'static,
    ) -> Result<R, Gone> {
        self.queue(&self.short, Isolation::Whole, work).await
    }

    async fn queue<R: Send + 'static>(
        &self,
        lane: &mpsc::Sender<TurnsJob>,
        isolation: Isolation,
        mut work: impl FnMut(&mut Switch, Nanos) -> ControlFlow<R> + Send + 'static,
    ) -> Result<R, Gone> {
        let (sender, receiver) = oneshot::channel();
        let mut sender = Some(sender);
        let job: Turns = Box::new(move |switch, now| {
            let result = match work(switch, now) {
                ControlFlow::Continue(()) => return ControlFlow::Continue(()),
                ControlFlow::Break(result) => result,
            };
            if let Some(sender) = sender.take() {
                // A dropped receiver discards the result.
                let _ = sender.send(result);
            }
            ControlFlow::Break(())
        });
        lane.send(TurnsJob::new(job, isolation, &self.under_way)).await.map_err(|_| Gone)?;
        self.bell.ring();
        receiver.await.map_err(|_| Gone)
    }

    /// Waits until the data plane has ended.
    pub async fn gone(&self) {
        self.jobs.closed().await;
    }

    /// Counts an event that the servers could not deliver.
    pub fn count_lost(&self) {
        self.events_lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of connections that were closed before they were let in: without a handshake in time, or too many.
    pub fn turned_away(&self) -> &Arc<AtomicU64> {
        &self.turned_away
    }

    /// Number of calls rejected because of limits per client.
    pub fn calls_refused(&self) -> &Arc<AtomicU64> {
        &self.calls_refused
    }

    /// Number of events that were not delivered: the servers or the controller were too slow, or there was no
    /// controller.
    pub fn events_lost(&self) -> u64 {
        self.events_lost.load(Ordering::Relaxed)
    }
}

/// The data-plane thread's end: jobs for its switch.
pub struct Jobs {
    jobs: mpsc::Receiver<Job>,
    short: mpsc::Receiver<TurnsJob>,
    long: mpsc::Receiver<TurnsJob>,
    unfinished_short: Option<TurnsJob>,
    unfinished_long: Option<TurnsJob>,
    /// Whether a short job has run since a long one had a turn.
    is_longs_turn: bool,
    waker: Waker,
    bell: Arc<Bell>,
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("unfinished", &self.unfinished_long.is_some()).finish_non_exhaustive()
    }
}

impl Jobs {
    /// Runs pending jobs. Call this when the descriptor is readable, or before sleeping. Returns the number
    /// of jobs, or turns of jobs, that ran. If there are too many for one turn, the descriptor stays
    /// readable.
    pub fn run_pending(&mut self, switch: &mut Switch, now: Nanos) -> usize {
        self.waker.clear();
        self.bell.rung.store(false, Ordering::SeqCst);
        let end = clock::now() + TURN;
        let mut count = 0;
        loop {
            if let Ok(job) = self.jobs.try_recv() {
                job(switch, now);
            } else if let Some(mut job) = self.next_short() {
                match (job.work)(switch, now) {
                    ControlFlow::Continue(()) => self.unfinished_short = Some(job),
                    ControlFlow::Break(()) => self.is_longs_turn = true,
                }
            } else if let Some(mut job) = self.next_long() {
                self.is_longs_turn = false;
                if (job.work)(switch, now).is_continue() {
                    self.unfinished_long = Some(job);
                }
            } else if self.is_longs_turn {
                // No long job is running, so short ones need not alternate.
                self.is_longs_turn = false;
                continue;
            } else {
                return count;
            }
            count += 1;
            if clock::now() >= end {
                self.bell.ring();
                return count;
            }
        }
    }
}

impl Jobs {
    fn next_short(&mut self) -> Option<TurnsJob> {
        let is_whole = self.unfinished_long.as_ref().is_some_and(|job| job.isolation == Isolation::Whole);
        // A job in progress ends before another one starts.
        self.unfinished_short.take().or_else(|| {
            let may_begin = !is_whole && !self.is_longs_turn;
            if may_begin { self.short.try_recv().ok() } else { None }
        })
    }

    fn next_long(&mut self) -> Option<TurnsJob> {
        self.unfinished_long.take().or_else(|| self.long.try_recv().ok())
    }

    /// Accepts no more jobs and runs the pending ones to their ends.
    pub fn finish(&mut self, switch: &mut Switch, now: Nanos) {
        self.jobs.close();
        self.short.close();
        self.long.close();
        while self.run_pending(switch, now) > 0 {}
    }
}

impl AsFd for Jobs {
    /// Readable when jobs are pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// The data-plane thread's end: messages to the servers.
#[derive(Clone, Debug)]
pub struct EventSender {
    events: mpsc::Sender<Event>,
    lost: Arc<AtomicU64>,
}

impl EventSender {
    /// Sends the switch's frames for the controller. `frame` is a scratch buffer.
    pub fn send_pending(&self, switch: &mut Switch, frame: &mut Vec<u8>) {
        while switch.poll_cpu(frame) {
            // If the servers are behind, dropped and counted below.
            self.send(Event::PacketIn { frame: std::mem::take(frame) });
        }
        while let Some(message) = switch.poll_digest() {
            self.send(Event::Digest(message));
        }
        while let Some(first) = switch.poll_idle() {
            let more = std::iter::from_fn(|| switch.poll_idle());
            self.send(Event::Idle(std::iter::once(first).chain(more).take(IDLE_AN_EVENT).collect()));
        }
        // Not lost: if the servers are behind, it is sent with the next event.
        switch.poll_links(|| self.events.try_send(Event::Links).is_ok());
    }

    /// Sends without waiting. If too many events are waiting, drops and counts this one.
    pub fn send(&self, event: Event) -> bool {
        let sent = self.events.try_send(event).is_ok();
        if !sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }
}

/// The servers' end: messages from the data plane.
#[derive(Debug)]
pub struct Events {
    events: mpsc::Receiver<Event>,
}

impl Events {
    /// The next event; `None` when the data plane has ended.
    pub async fn recv(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_netdev::wait::Poller;
    use p4rack_switch::Config;

    #[test]
    fn jobs_run_in_order_in_the_thread_that_owns_the_switch() {
        let (handle, mut jobs, _sender, _events) = channel().unwrap();
        let mut switch = Switch::new(Config::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let thread = std::thread::spawn(move || {
            let mut poller = Poller::new();
            poller.add(&jobs).unwrap();
            let mut ran = 0;
            while ran < 100 {
                poller.wait(None).unwrap();
                ran += jobs.run_pending(&mut switch, Nanos(ran as u64));
            }
        });
        let answers = runtime.block_on(async {
            let mut answers = Vec::new();
            for number in 0..100 {
                answers.push(handle.call(move |switch, _| (number, switch.is_loaded())).await.unwrap());
            }
            answers
        });
        thread.join().unwrap();
        assert!(answers.into_iter().enumerate().all(|(n, answer)| answer == (n, false)));
        runtime.block_on(handle.gone());
        assert_eq!(runtime.block_on(handle.call(|_, _| ())), Err(Gone));
    }

    #[test]
    fn short_jobs_are_done_at_once_unless_the_switch_is_needed_elsewhere() {
        let (handle, mut jobs, _sender, _events) = channel().unwrap();
        let shared = Shared::new(Switch::new(Config::default()));
        let mut work = |switch: &mut Switch, _: Nanos| switch.is_loaded();
        assert_eq!(handle.here(&mut work), None, "the switch is not shared");
        let handle = handle.sharing(shared.clone());
        assert_eq!(handle.here(&mut work), Some(false));
        let at_work = shared.lock();
        assert_eq!(handle.here(&mut work), None, "the data plane is at work");
        drop(at_work);
        shared.note_packet(clock::now());
        assert_eq!(handle.here(&mut work), None, "a packet has come");
        shared.note_packet(Nanos(0));
        let job = TurnsJob::new(Box::new(|_, _| ControlFlow::Break(())), Isolation::Open, &handle.under_way);
        handle.long.try_send(job).unwrap();
        assert_eq!(handle.here(&mut work), None, "a long job comes first");
        jobs.run_pending(&mut shared.lock(), Nanos(0));
        assert_eq!(handle.here(&mut work), Some(false));
        jobs.finish(&mut shared.lock(), Nanos(0));
        assert_eq!(handle.here(&mut work), None, "the data plane has ended");
    }

    #[test]
    fn too_many_jobs_leave_the_descriptor_readable() {
        let (handle, mut jobs, _sender, _events) = channel().unwrap();
        let mut switch = Switch::new(Config::default());
        for _ in 0..3 {
            let slow = move |_: &mut Switch, _| {
                let end = clock::now() + TURN;
                while clock::now() < end {}
            };
            handle.jobs.try_send(Box::new(slow)).unwrap();
        }
        handle.bell.ring();
        let mut poller = Poller::new();
        let number = poller.add(&jobs).unwrap();
        for _ in 0..3 {
            poller.wait(Some(Nanos(0))).unwrap();
            assert!(poller.ready(number));
            assert_eq!(jobs.run_pending(&mut switch, Nanos(0)), 1);
        }
        assert_eq!(jobs.run_pending(&mut switch, Nanos(0)), 0);
        poller.wait(Some(Nanos(0))).unwrap();
        assert!(!poller.ready(number));
    }

    #[test]
    fn short_jobs_come_between_the_turns_of_long_ones_unless_those_are_to_be_whole() {
        let (handle, mut jobs, _sender, _events) = channel().unwrap();
        let mut switch = Switch::new(Config::default());
        let log = Arc::new(std::sync::Mutex::new(Vec::new()));
        let turns = |name: &'static str| {
            let (log, mut left) = (log.clone(), 3);
            move |_: &mut Switch, _: Nanos| {
                log.lock().unwrap().push(name);
                // Each turn takes the maximum time.
                let end = clock::now() + TURN;
                while clock::now() < end {}
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
        };
        for (name, isolation) in [("whole", Isolation::Whole), ("open", Isolation::Open)] {
            let job = TurnsJob::new(Box::new(turns(name)), isolation, &handle.under_way);
            handle.long.try_send(job).unwrap();
        }
        handle.bell.ring();
        jobs.run_pending(&mut switch, Nanos(0));
        for name in ["short", "second"] {
            let job = TurnsJob::new(Box::new(turns(name)), Isolation::Whole, &handle.under_way);
            handle.short.try_send(job).unwrap();
        }
        let call = log.clone();
        handle.jobs.try_send(Box::new(move |_, _| call.lock().unwrap().push("call"))).unwrap();
        let mut poller = Poller::new();
        let number = poller.add(&jobs).unwrap();
        loop {
            poller.wait(Some(Nanos(0))).unwrap();
            if !poller.ready(number) {
                break;
            }
            jobs.run_pending(&mut switch, Nanos(0));
        }
        let log = log.lock().unwrap().clone();
        let expected = "whole call whole whole short short short open second second second open open";
        assert_eq!(log.join(" "), expected);
    }

    #[test]
    fn at_the_end_what_has_begun_is_finished_and_nothing_begins() {
        let (handle, mut jobs, _sender, _events) = channel().unwrap();
        let mut switch = Switch::new(Config::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut left = 1000;
        let long = handle.in_turns(Isolation::Whole, move |_: &mut Switch, _| {
            left -= 1;
            if left == 0 { ControlFlow::Break("all of it") } else { ControlFlow::Continue(()) }
        });
        let ended = runtime.block_on(async {
            let finish = async {
                // After the job has been requested.
                tokio::task::yield_now().await;
                jobs.finish(&mut switch, Nanos(0));
            };
            tokio::join!(long, finish).0
        });
        assert_eq!(ended, Ok("all of it"));
        assert_eq!(runtime.block_on(handle.call(|_, _| ())), Err(Gone));
    }

    #[test]
    fn events_beyond_the_limit_are_dropped_and_counted() {
        let (handle, _jobs, sender, _events) = channel().unwrap();
        for _ in 0..EVENTS {
            assert!(sender.send(Event::PacketIn { frame: Vec::new() }));
        }
        assert!(!sender.send(Event::PacketIn { frame: Vec::new() }));
        assert_eq!(handle.events_lost(), 1);
    }
}
