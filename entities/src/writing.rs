//! Writes and reads as jobs of the data plane: so many updates or entries, then packets get a turn.

use super::Refused;
use super::pipeline::Program;
use super::plain::{Request, Step};
use super::roles::Access;
use super::work::{self, Change, Found, Query, Snapshot, Undo};
use crate::core::Isolation;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::{Entity, ReadRequest, Update};
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use prost::DecodeError;
use prost::bytes::Bytes;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Updates applied between packets.
pub const UPDATES_A_TURN: usize = 16;

/// What became of each update.
pub type Outcomes = Vec<Refused<()>>;

/// A Write made ready.
pub type Job = Box<dyn FnMut(&mut Switch, Nanos) -> ControlFlow<Outcomes> + Send>;

/// What a Write says of all its updates, once its sender may write.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// What runs.
    pub program: Arc<Program>,
    /// What the sender's role may do; `None` is everything.
    pub access: Option<Arc<Access>>,
    /// What a refused update means for the others.
    pub atomicity: Atomicity,
}

/// Makes a Write ready. Errors: it is malformed.
pub fn ready(request: Bytes, admitted: &Admitted) -> Result<(Job, Isolation), DecodeError> {
    let Admitted { program, access, atomicity } = admitted;
    let access = access.as_deref();
    let mut request = Request::decode(request, &program.plans)?;
    Ok(match atomicity {
        Atomicity::ContinueOnError => {
            if let Some(access) = access {
                access.check_request(&mut request, &program.plans);
            }
            (Box::new(each(program, request)), Isolation::Open)
        }
        Atomicity::RollbackOnError => {
            (Box::new(all(program, &request.updates(), access, UPDATES_A_TURN)), Isolation::Whole)
        }
        // No packet comes between the updates of one turn.
        Atomicity::DataplaneAtomic => {
            (Box::new(all(program, &request.updates(), access, usize::MAX)), Isolation::Whole)
        }
    })
}

/// Applies updates one by one, whatever becomes of the others.
pub fn each(
    program: &Arc<Program>,
    request: Request,
) -> impl FnMut(&mut Switch, Nanos) -> ControlFlow<Outcomes> + Send + 'static {
    let prepare = |step: &Step| match step {
        Step::Message(update) => Some(work::change(program, update)),
        Step::Plain(_) | Step::Refused(_) => None,
    };
    let changes: Vec<Refused<Change>> = request.steps.iter().filter_map(prepare).collect();
    let (mut changes, mut at) = (changes.into_iter(), 0);
    let mut outcomes = Vec::with_capacity(request.steps.len());
    let program = program.clone();
    move |switch, now| {
        for step in request.steps[at..].iter().take(UPDATES_A_TURN) {
            at += 1;
            let (quick, outcome) = match step {
                Step::Plain(plain) => request.apply(plain, &program, switch, now),
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

/// Applies all updates or, when one is refused, none: those before it are taken back, the last first.
pub fn all(
    program: &Arc<Program>,
    updates: &[Update],
    access: Option<&Access>,
    updates_a_turn: usize,
) -> impl FnMut(&mut Switch, Nanos) -> ControlFlow<Outcomes> + Send + 'static {
    type Step = Refused<(Snapshot, Change)>;
    let step = |update| {
        access.map_or(Ok(()), |access| access.check_update(update))?;
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
                    // All of them travel in the headers at the call's end: the one that matters gets the words.
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

/// A Read, made in parts: what has not been read, and what became of each entity so far.
pub struct Reading {
    program: Arc<Program>,
    access: Option<Arc<Access>>,
    /// Of which no query has been made: what is asked of all tables is a query for each.
    entities: std::vec::IntoIter<Entity>,
    queries: VecDeque<(usize, Query)>,
    outcomes: Outcomes,
}

impl Reading {
    /// Of what each entity asks for.
    pub fn new(program: Arc<Program>, request: ReadRequest, access: Option<Arc<Access>>) -> Reading {
        let entities = request.entities.into_iter();
        Reading { program, access, entities, queries: VecDeque::new(), outcomes: Vec::new() }
    }

    /// What became of each entity, if everything has been read.
    pub fn outcomes(&self) -> Option<&Outcomes> {
        (self.queries.is_empty() && self.entities.as_slice().is_empty()).then_some(&self.outcomes)
    }

    /// Makes queries of entities, enough for so many turns.
    fn prepare(&mut self, turns: usize) {
        while self.queries.len() < turns
            && let Some(entity) = self.entities.next()
        {
            let access = self.access.as_deref();
            let allowed = access.map_or(Ok(()), |access| access.check_entity(entity.entity.as_ref()));
            let queries = allowed.and_then(|()| work::query(&self.program, &entity));
            let position = self.outcomes.len();
            self.outcomes.push(queries.map(|queries| {
                self.queries.extend(queries.into_iter().map(|query| (position, query)));
            }));
        }
    }

    fn turn(&mut self, switch: &Switch, now: Nanos, found: &mut Vec<Found>) {
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

    /// A job that takes so many turns of it, and gives back the rest and what it found.
    pub fn part(
        mut self,
        turns: usize,
    ) -> impl FnMut(&mut Switch, Nanos) -> ControlFlow<(Reading, Vec<Found>)> + Send + 'static {
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
