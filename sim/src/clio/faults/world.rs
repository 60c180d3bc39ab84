//! A run: packets, failures and their reports by time.

use super::board::{BoardNode, KEEP, Mail};
use super::history::Histories;
use super::locks::Holds;
use super::network::{DELAY_MAX, Network};
use super::plant::ClioPlant;
use super::session::{Ended, IssuedOperation, OwnRange, Session, THREADS, THREADS_PLANTED};
use crate::kernel::Agenda;
use crate::memory::FaultsOutcome;
use crate::random::Random;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::Space;
use p4rack_fabric::clio::lib::Credentials;
use p4rack_wire::Nanos;

pub(super) const NODES: usize = 3;
pub(super) const BOARDS: usize = 2;
/// Duration of the faults, until when failures have been reported and got over, and until when operations are asked for.
const FAULTS: Nanos = Nanos::from_micros(600);
const QUIET: Nanos = Nanos::from_micros(1_200);
const ASKING: Nanos = Nanos::from_micros(1_600);
/// Rounds of that time, and fewer operations than this of each node at each board in a round. Nodes ask together, so that they meet.
const ROUNDS: u64 = 24;
const ROUND_OPERATIONS: u64 = 6;
/// Limit of a run.
const END: Nanos = Nanos::from_millis(200);
/// How late a crash or a restart is reported at most.
const REPORT_NS: u64 = 100_000;
/// Pause before a board is asked for a process again.
const AGAIN: Nanos = Nanos::from_micros(20);

/// A failure.
#[derive(Clone, Copy, Debug)]
enum Break {
    /// All sessions of a node are lost.
    Crash(usize),
    /// A board loses its memory.
    Reset(usize),
    /// A node's client of a board starts again, in the same process and with the same number, as numbers are used again.
    Renew(usize, usize),
}

enum Event {
    /// Nodes may ask for more operations.
    Round,
    ToBoard(usize, Vec<u8>),
    ToSession(usize, Vec<u8>),
    Break(Break),
    /// A board, in this start, learns that a process has ended.
    End(usize, u64, Space),
    /// A session learns that its board has restarted.
    Told(usize),
    /// A node opens a session.
    Start(usize, usize),
    /// A client goes on in the process of this session.
    Renewed(usize),
}

/// A run.
pub(super) struct ClioFaultsWorld {
    pub seed: u64,
    pub plant: Option<ClioPlant>,
    pub random: Random,
    pub now: Nanos,
    pub network: Network,
    pub boards: Vec<BoardNode>,
    pub sessions: Vec<Session>,
    /// Operations that a node may still ask of a board.
    pub left: [[u64; BOARDS]; NODES],
    pub asked: Vec<IssuedOperation>,
    pub ranges: Vec<OwnRange>,
    pub holds: Holds,
    pub histories: Histories,
    /// Operations after this time have known outcomes.
    pub quiet_from: Nanos,
    /// The last value that was written.
    pub value: u64,
    pub outcome: FaultsOutcome,
    agenda: Agenda<Event>,
}

/// Runs a seed, with a planted mistake if one is given. The same seed gives the same outcome.
pub fn run_clio_faults(seed: u64, plant: Option<ClioPlant>) -> FaultsOutcome {
    match ClioFaultsWorld::new(seed, plant).and_then(ClioFaultsWorld::run) {
        Ok(outcome) => outcome,
        Err(problem) => FaultsOutcome { problems: vec![problem], ..FaultsOutcome::default() },
    }
}

impl ClioFaultsWorld {
    fn new(seed: u64, plant: Option<ClioPlant>) -> Result<ClioFaultsWorld, String> {
        let (mut now, mut mail) = (Nanos::ZERO, Mail::new());
        let start = |nth| BoardNode::start(seed ^ nth << 32, 0, plant, &mut now, &mut mail);
        let boards = (0..BOARDS as u64).map(start).collect::<Result<Vec<_>, _>>()?;
        let mut world = ClioFaultsWorld {
            seed,
            plant,
            random: Random::stream(seed, 2),
            now,
            network: Network::new(seed, now + FAULTS, plant),
            boards,
            sessions: Vec::new(),
            left: [[0; BOARDS]; NODES],
            asked: Vec::new(),
            ranges: Vec::new(),
            holds: Holds::default(),
            histories: Histories::default(),
            quiet_from: now + QUIET,
            value: 0,
            outcome: FaultsOutcome::default(),
            agenda: Agenda::default(),
        };
        for (node, board) in (0..NODES).flat_map(|node| (0..BOARDS).map(move |board| (node, board))) {
            world.start(node, board)?;
        }
        let round = ASKING.0 / ROUNDS;
        for nth in 0..ROUNDS {
            let at = now + Nanos(nth * round + world.random.below(round));
            world.plan(at, Event::Round);
        }
        for _ in 0..world.random.below(5) {
            let (node, board) = (world.random.below(NODES as u64), world.random.below(BOARDS as u64));
            let (node, board) = (node as usize, board as usize);
            let what = match world.random.below(3) {
                0 => Break::Crash(node),
                1 => Break::Reset(board),
                _ => Break::Renew(node, board),
            };
            let at = now + Nanos(world.random.below(FAULTS.0));
            world.plan(at, Event::Break(what));
        }
        Ok(world)
    }

    pub fn count(&mut self, name: &'static str, more: u64) {
        *self.outcome.counters.entry(name).or_default() += more;
    }

    fn plan(&mut self, at: Nanos, event: Event) {
        self.agenda.add(at.0, event);
    }

    fn plan_report(&mut self, event: Event) {
        let late = Nanos(self.random.below(REPORT_NS));
        self.plan(self.now + late, event);
    }

    fn run(mut self) -> Result<FaultsOutcome, String> {
        loop {
            let has_issued = self.issue(false);
            if !self.step()? && !has_issued && !self.issue(true) {
                break;
            }
            if self.now > END {
                self.outcome.problems.push("it never comes to an end".into());
                return Ok(self.outcome);
            }
        }
        self.finish()
    }

    /// Runs until nothing is left to do, or this is false.
    pub fn run_while(&mut self, goes_on: impl Fn(&ClioFaultsWorld) -> bool) -> Result<(), String> {
        while goes_on(self) && self.step()? {
            if self.now > END {
                return Err("it never comes to an end".into());
            }
        }
        Ok(())
    }

    /// Goes on to the next event. Returns whether there was one.
    fn step(&mut self) -> Result<bool, String> {
        self.turn();
        let boards = self.boards.iter().filter_map(|node| node.board.next_call(Nanos::ZERO));
        let sessions = self.sessions.iter().filter(|session| session.is_open);
        let clients = sessions.filter_map(|session| session.client.next_call(Nanos::ZERO));
        let due = boards.chain(clients).min();
        match (self.agenda.next_until(due.map_or(u64::MAX, |at| at.max(self.now).0)), due) {
            (Some((at, event)), _) => {
                self.now = self.now.max(Nanos(at));
                self.handle(event)?;
                while let Some((_, event)) = self.agenda.next_until(self.now.0) {
                    self.handle(event)?;
                }
            }
            (None, Some(at)) => self.now = self.now.max(at),
            (None, None) => return Ok(false),
        }
        self.turn();
        Ok(true)
    }

    /// Runs due work of boards and clients, and takes outcomes.
    fn turn(&mut self) {
        let mut mail = Mail::new();
        self.boards.iter_mut().for_each(|node| node.turn(self.now, &mut mail));
        self.deliver(mail);
        let (mut out, mut ended) = (Vec::new(), Vec::new());
        for session in 0..self.sessions.len() {
            let one = &mut self.sessions[session];
            if !one.is_open {
                continue;
            }
            one.client.handle_timeout(self.now);
            while one.client.poll_link(self.now, &mut out).is_some() {
                for (at, bytes) in self.network.send(true, out.clone(), self.now) {
                    self.agenda.add(at.0, Event::ToBoard(session, bytes));
                }
            }
            while let Some((tag, outcome)) = one.client.poll_completion() {
                ended.push((tag as usize, ClioFaultsWorld::own(outcome)));
            }
        }
        ended.into_iter().for_each(|(tag, end)| self.ended(tag, end));
    }

    /// Sends a board's answers.
    pub fn deliver(&mut self, mail: Mail) {
        for (session, bytes) in mail {
            for (at, bytes) in self.network.send(false, bytes, self.now) {
                self.plan(at, Event::ToSession(session, bytes));
            }
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        let now = self.now;
        match event {
            Event::Round => {
                for left in self.left.as_flattened_mut() {
                    *left += self.random.below(ROUND_OPERATIONS);
                }
            }
            Event::ToBoard(session, bytes) => {
                let board = self.sessions[session].board;
                self.boards[board].board.handle_link((session, &bytes), now, now);
            }
            Event::ToSession(session, bytes) => {
                let one = &mut self.sessions[session];
                if one.is_open {
                    one.client.handle_link((0, &bytes), now, now);
                }
            }
            Event::Break(Break::Crash(node)) => {
                self.count("crashes", 1);
                for session in self.open_sessions(|one| one.node == node) {
                    self.close(session);
                    let Session { board, life, .. } = self.sessions[session];
                    let space = self.sessions[session].space();
                    self.plan_report(Event::End(board, life, space));
                    self.plan_report(Event::Start(node, board));
                }
            }
            Event::Break(Break::Reset(board)) => {
                self.count("restarts", 1);
                self.count_board(board);
                let life = self.boards[board].life + 1;
                let seed = self.seed ^ (board as u64) << 32;
                let mut mail = Mail::new();
                self.boards[board] = BoardNode::start(seed, life, self.plant, &mut self.now, &mut mail)?;
                self.open_sessions(|one| one.board == board)
                    .into_iter()
                    .for_each(|session| self.plan_report(Event::Told(session)));
            }
            Event::Break(Break::Renew(node, board)) => {
                for session in self.open_sessions(|one| (one.node, one.board) == (node, board)) {
                    self.count("renewed_clients", 1);
                    self.close(session);
                    let is_early = self.plant == Some(ClioPlant::ReusedEarly);
                    let pause = if is_early { Nanos(1_000) } else { KEEP + DELAY_MAX };
                    self.plan(now + pause, Event::Renewed(session));
                }
            }
            Event::End(board, life, space) => {
                if self.boards[board].life == life {
                    self.boards[board].end(space, now);
                }
            }
            Event::Told(session) => {
                if self.sessions[session].is_open {
                    self.close(session);
                    let Session { node, board, .. } = self.sessions[session];
                    self.start(node, board)?;
                }
            }
            Event::Start(node, board) => self.start(node, board)?,
            Event::Renewed(session) => {
                let Session { node, board, life, credentials, shared, number, .. } = self.sessions[session];
                if self.boards[board].life != life {
                    return self.start(node, board);
                }
                self.open((node, board, life), (credentials, shared), number);
            }
        }
        Ok(())
    }

    pub fn open_sessions(&self, is_meant: impl Fn(&Session) -> bool) -> Vec<usize> {
        let is_one = |nth: &usize| self.sessions[*nth].is_open && is_meant(&self.sessions[*nth]);
        (0..self.sessions.len()).filter(is_one).collect()
    }

    /// Opens a session in a new process; later, if the board has no place for it.
    fn start(&mut self, node: usize, board: usize) -> Result<(), String> {
        if !self.open_sessions(|one| (one.node, one.board) == (node, board)).is_empty() {
            return Ok(());
        }
        let mut mail = Mail::new();
        let begun = self.boards[board].begin(&mut self.now, &mut mail)?;
        self.deliver(mail);
        match begun {
            None => {
                self.count("no_place_for_a_process", 1);
                self.plan(self.now + AGAIN, Event::Start(node, board));
            }
            Some(process) => {
                self.boards[board].clients += 1;
                let number = self.boards[board].clients;
                self.open((node, board, self.boards[board].life), process, number);
            }
        }
        Ok(())
    }

    fn open(&mut self, place: (usize, usize, u64), process: (Credentials, u64), number: u32) {
        let is_planted = self.plant == Some(ClioPlant::MissedDependency);
        let threads = if is_planted { THREADS_PLANTED } else { THREADS };
        self.sessions.push(Session::new(place, process, number, threads));
    }

    /// A session is lost: its operations under way have no known outcome.
    pub fn close(&mut self, session: usize) {
        self.sessions[session].is_open = false;
        let open = self.sessions[session].asked.iter().filter(|nth| self.asked[**nth].end.is_none());
        let open: Vec<usize> = open.copied().collect();
        self.count("broken_amid_operations", u64::from(!open.is_empty()));
        for tag in open {
            self.asked[tag].end = Some((self.now, Ended::Unknown));
        }
        self.holds.close(session, self.now);
    }
}
