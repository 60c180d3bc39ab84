//! Clients as threads, one of which runs at a time, in the order of virtual time.
//!
//! ```text
//!   thread of a client                conductor                        rack
//!     ask, ask, poll ── wish ──▶ until when it waits
//!                                the client that waits least ── ask, next ─▶ what happens first
//!     goes on        ◀─ wake ──  the time, and what has ended
//! ```

use crate::error::LabError;
use crate::ycsb;
use p4rack_wire::Nanos;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A rack in virtual time.
pub(super) trait Network {
    /// A client's request.
    type Request: Send;
    /// How that ends.
    type Ended: Send;

    /// The time.
    fn now(&self) -> Nanos;

    /// A client asks for something under a tag, by which its end is known. Errors: how it has ended already.
    fn ask(&mut self, client: usize, tag: u64, request: Self::Request) -> Result<(), Self::Ended>;

    /// Goes on until something has ended: for which client, its tag, and how. `None` at time `until`, if nothing has.
    fn next(&mut self, until: Nanos) -> Option<(usize, u64, Self::Ended)>;
}

/// Requests with their tags, and until when their client waits for an end.
struct Wish<R> {
    asks: Vec<(u64, R)>,
    until_ns: u64,
}

/// The time, and ends by their tags.
type Told<E> = (u64, Vec<(u64, E)>);

/// The run was given up, by an error that its caller has.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the run in virtual time was given up")]
pub(super) struct GivenUp;

/// A client's line to the rack.
pub(super) struct Line<R, E> {
    now_ns: u64,
    /// Requests that leave with the next poll.
    asks: Vec<(u64, R)>,
    wishes: Sender<Wish<R>>,
    told: Receiver<Told<E>>,
}

impl<R, E> Line<R, E> {
    /// The time.
    pub fn now(&self) -> Nanos {
        Nanos(self.now_ns)
    }

    /// Asks for something, under a tag.
    pub fn ask(&mut self, tag: u64, request: R) {
        self.asks.push((tag, request));
    }

    /// Requests that have ended. If nothing has, waits, at most until `until`.
    pub fn poll(&mut self, until: Nanos) -> Result<Vec<(u64, E)>, GivenUp> {
        let wish = Wish { asks: std::mem::take(&mut self.asks), until_ns: until.0.max(self.now_ns) };
        self.wishes.send(wish).map_err(|_| GivenUp)?;
        let (now_ns, ended) = self.told.recv().map_err(|_| GivenUp)?;
        self.now_ns = now_ns;
        Ok(ended)
    }
}

/// The conductor's end of a line.
struct Waiting<R, E> {
    wishes: Receiver<Wish<R>>,
    told: Sender<Told<E>>,
    /// Until when its client waits; `None` once that has ended.
    until_ns: Option<u64>,
}

/// Runs a program for each client, to its end. Returns their results.
pub(super) fn together<N: Network, T: Send>(
    network: &mut N,
    clients: usize,
    program: impl Fn(usize, Line<N::Request, N::Ended>) -> Result<T, ycsb::Error> + Sync,
) -> Result<Vec<T>, LabError> {
    let (now_ns, program) = (network.now().0, &program);
    std::thread::scope(|scope| {
        let (mut waiting, mut threads) = (Vec::new(), Vec::new());
        for nth in 0..clients {
            let (wishes, wished) = channel();
            let (told, from_us) = channel();
            let line = Line { now_ns, asks: Vec::new(), wishes, told: from_us };
            threads.push(scope.spawn(move || program(nth, line)));
            waiting.push(Waiting { wishes: wished, told, until_ns: Some(now_ns) });
        }
        let conducted = conduct(network, &mut waiting);
        // Dropping the channels ends clients that still wait.
        drop(waiting);
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done.map_err(|error| LabError::measurement("using the store in virtual time", error)),
            Err(_) => Err(LabError::Unfit("a client of the store in virtual time panicked".to_owned())),
        });
        let ended: Result<Vec<T>, LabError> = ended.collect();
        conducted.and(ended)
    })
}

/// Resumes clients, one at a time, until all have ended.
fn conduct<N: Network>(
    network: &mut N,
    clients: &mut [Waiting<N::Request, N::Ended>],
) -> Result<(), LabError> {
    for (nth, client) in clients.iter_mut().enumerate() {
        listen(network, nth, client);
    }
    loop {
        let waits = |nth: usize| Some((clients[nth].until_ns?, nth));
        let Some((until_ns, first)) = (0..clients.len()).filter_map(waits).min() else { return Ok(()) };
        let (nth, ended) = match network.next(Nanos(until_ns)) {
            Some((nth, tag, ended)) => (nth, vec![(tag, ended)]),
            None if until_ns == u64::MAX => {
                let why = "clients wait, and nothing happens any more in virtual time";
                return Err(LabError::Unfit(why.to_owned()));
            }
            None => (first, Vec::new()),
        };
        let Some(client) = clients.get_mut(nth).filter(|client| client.until_ns.is_some()) else { continue };
        tell(network, client, ended);
        listen(network, nth, client);
    }
}

fn tell<N: Network>(network: &N, client: &Waiting<N::Request, N::Ended>, ended: Vec<(u64, N::Ended)>) {
    // The next receive reveals that a client has ended.
    let _ = client.told.send((network.now().0, ended));
}

/// Blocks until a client waits for an event.
fn listen<N: Network>(network: &mut N, nth: usize, client: &mut Waiting<N::Request, N::Ended>) {
    client.until_ns = loop {
        let Ok(wish) = client.wishes.recv() else { break None };
        let mut refused = Vec::new();
        for (tag, request) in wish.asks {
            if let Err(ended) = network.ask(nth, tag, request) {
                refused.push((tag, ended));
            }
        }
        if refused.is_empty() {
            break Some(wish.until_ns);
        }
        tell(network, client, refused);
    };
}
