//! Writes and Reads, whole or in turns: some updates or entries, then packets get a turn.

use super::Checked;
use super::plain::{Plain, Request, Step};
use super::program::Program;
use super::work::{self, Change, Query, ReadResults, Snapshot, Undo};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::{Entity, ReadRequest, Update, WriteRequest};
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Maximum updates applied between packets.
pub const UPDATES_A_TURN: usize = 16;

/// The result of each update.
pub type Outcomes = Vec<Checked<()>>;

/// Rejects entities that the sender of a Read may not ask for.
pub type Allowed = Box<dyn Fn(&Entity) -> Checked<()> + Send>;

/// Applies the updates of a request with its atomicity. Returns the result of each.
pub fn write(program: &Arc<Program>, request: &WriteRequest, switch: &mut Switch, now: Nanos) -> Outcomes {
    let updates = &request.updates;
    match Atomicity::try_from(request.atomicity) {
        Ok(Atomicity::ContinueOnError) => {
            let make = |update| work::change(program, update).and_then(|change| change(switch, now));
            updates.iter().map(make).collect()
        }
        Ok(Atomicity::RollbackOnError | Atomicity::DataplaneAtomic) => {
            let mut job = all(program, updates, |_| Ok(()), usize::MAX);
            loop {
                if let ControlFlow::Break(outcomes) = job(switch, now) {
                    return outcomes;
                }
            }
        }
        Err(_) => {
            let error = UpdateError::new(Code::InvalidArgument, "there is no such atomicity");
            vec![Err(error); updates.len()]
        }
    }
}

/// The first rejected update as an error, with its number.
pub fn accepted(outcomes: Outcomes) -> Result<(), String> {
    let number = |(index, outcome): (usize, Checked<()>)| {
        outcome.map_err(|error| format!("update {}: {}", index + 1, error.message))
    };
    outcomes.into_iter().enumerate().try_for_each(number)
}

/// Reads the entities of a request. Returns the entities found, and the result for each requested one.
pub fn read(
    program: &Arc<Program>,
    request: ReadRequest,
    switch: &Switch,
    now: Nanos,
) -> (Vec<Entity>, Outcomes) {
    let mut reading = Reading::new(program.clone(), request, Box::new(|_| Ok(())));
    let mut found = Vec::new();
    while reading.outcomes().is_none() {
        reading.prepare(1);
        reading.turn(switch, now, &mut found);
    }
    (found.into_iter().flat_map(ReadResults::messages).collect(), reading.outcomes)
}

/// Applies updates one by one, whether or not others fail.
pub fn each(
    program: &Arc<Program>,
    request: Request,
) -> impl FnMut(&mut Switch, Nanos) -> ControlFlow<Outcomes> + Send + 'static {
    let prepare = |step: &Step| match step {
        Step::Message(update) => Some(work::change(program, update)),
        Step::Plain(_) | Step::Refused(_) => None,
    };
    let changes: Vec<Checked<Change>> = request.steps.iter().filter_map(prepare).collect();
    let (mut changes, mut at) = (changes.into_iter(), 0);
    let mut outcomes = Vec::with_capacity(request.steps.len());
    let program = program.clone();
    move |switch, now| {
        for step in request.steps[at..].iter().take(UPDATES_A_TURN) {
            at += 1;
            let (quick, outcome) = match step {
                Step::Plain(plain) => apply(&request, plain, &program, switch, now),
                Step::Refused(error) => (true, Err(error.clone())),
                // As many as there are messages.
                Step::Message(_) => (
                    true,
                    changes.next().map_or(Ok(()), |change| change.and_then(|change| change(switch, now))),
                ),
            };
            outcomes.push(outcome);
            if !quick {
                break;
            }
        }
        match at == request.steps.len() {
            true => ControlFlow::Break(std::mem::take(&mut outcomes)),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Applies a plain update. Returns whether this took the fast path, and the result.
fn apply(
    request: &Request,
    plain: &Plain,
    program: &Arc<Program>,
    switch: &mut Switch,
    now: Nanos,
) -> (bool, Checked<()>) {
    if request.apply(plain, &program.plans, switch) {
        return (true, Ok(()));
    }
    let change = work::change(program, &request.message(plain));
    (false, change.and_then(|change| change(switch, now)))
}

/// Applies all updates, or none if one is rejected or not allowed: the earlier ones are undone in reverse
/// order.
pub fn all(
    program: &Arc<Program>,
    updates: &[Update],
    allowed: impl Fn(&Update) -> Checked<()>,
    updates_a_turn: usize,
) -> impl FnMut(&mut Switch, Nanos) -> ControlFlow<Outcomes> + Send + 'static {
    type Step = Checked<(Snapshot, Change)>;
    let step = |update| {
        allowed(update)?;
        let change = work::change(program, update)?;
        Ok((work::snapshot(program, update)?, change))
    };
    let steps: Vec<Step> = updates.iter().map(step).collect();
    let (mut steps, total) = (steps.into_iter(), updates.len());
    let mut done: Vec<Undo> = Vec::with_capacity(total);
    move |switch, now| {
        for step in steps.by_ref().take(updates_a_turn) {
            let applied = step.and_then(|(snapshot, change)| {
                let undo = snapshot(switch);
                change(switch, now).map(|()| undo)
            });
            match applied {
                Ok(undo) => done.push(undo),
                Err(error) => {
                    let position = done.len();
                    done.drain(..).rev().for_each(|undo| undo(switch));
                    // All results travel in the trailers of the call, so only the one that matters gets a
                    // text.
                    let mut outcomes = vec![Err(UpdateError::new(Code::Aborted, "")); total];
                    outcomes[position] = Err(error);
                    return ControlFlow::Break(outcomes);
                }
            }
        }
        match steps.len() {
            0 => ControlFlow::Break(vec![Ok(()); total]),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A Read in parts: the entities not yet read, and the results so far.
pub struct Reading {
    program: Arc<Program>,
    allowed: Allowed,
    /// Entities without a query yet. A read of all tables takes one query per table.
    entities: std::vec::IntoIter<Entity>,
    queries: VecDeque<(usize, Query)>,
    outcomes: Outcomes,
}

impl Reading {
    /// Reads each requested entity, if it is allowed.
    pub fn new(program: Arc<Program>, request: ReadRequest, allowed: Allowed) -> Reading {
        let entities = request.entities.into_iter();
        Reading { program, allowed, entities, queries: VecDeque::new(), outcomes: Vec::new() }
    }

    /// The result for each entity, once everything has been read.
    pub fn outcomes(&self) -> Option<&Outcomes> {
        (self.queries.is_empty() && self.entities.as_slice().is_empty()).then_some(&self.outcomes)
    }

    /// Makes queries for entities, enough for this many turns.
    fn prepare(&mut self, turns: usize) {
        while self.queries.len() < turns
            && let Some(entity) = self.entities.next()
        {
            let queries = (self.allowed)(&entity).and_then(|()| work::query(&self.program, &entity));
            let position = self.outcomes.len();
            self.outcomes.push(queries.map(|queries| {
                self.queries.extend(queries.into_iter().map(|query| (position, query)));
            }));
        }
    }

    fn turn(&mut self, switch: &Switch, now: Nanos, found: &mut Vec<ReadResults>) {
        let Some((position, query)) = self.queries.pop_front() else { return };
        match query(switch, now) {
            Ok(answer) => {
                found.push(answer.found);
                if let Some(next) = answer.next {
                    self.queries.push_front((position, next));
                }
            }
            Err(error) => {
                self.outcomes[position] = Err(error);
                self.queries.retain(|(other, _)| *other != position);
            }
        }
    }

    /// A job of this many turns. It returns the rest of the Read and the results.
    pub fn part(
        mut self,
        turns: usize,
    ) -> impl FnMut(&mut Switch, Nanos) -> ControlFlow<(Reading, Vec<ReadResults>)> + Send + 'static {
        self.prepare(turns);
        let (mut reading, mut found, mut left) = (Some(self), Vec::new(), turns);
        move |switch, now| {
            if let Some(reading) = &mut reading {
                reading.turn(switch, now, &mut found);
                left = left.saturating_sub(1);
                if left > 0 && !reading.queries.is_empty() {
                    return ControlFlow::Continue(());
                }
            }
            match reading.take() {
                Some(rest) => ControlFlow::Break((rest, std::mem::take(&mut found))),
                // It is not called after its end.
                None => ControlFlow::Continue(()),
            }
        }
    }
}
