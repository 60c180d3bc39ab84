//! Writes and reads as jobs of the data plane: so many updates or entries, then packets get a turn.

use super::Refused;
use super::pipeline::Program;
use super::plain::{Request, Step};
use super::roles::Access;
use super::work::{self, Change, Found, Query, Snapshot, Undo};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{Entity, Update};
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// Updates applied between packets.
pub const UPDATES_A_TURN: usize = 16;

/// What became of each update.
pub type Outcomes = Vec<Refused<()>>;

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
#[derive(Default)]
pub struct Reading {
    queries: VecDeque<(usize, Query)>,
    outcomes: Outcomes,
}

impl Reading {
    /// Of what each entity asks for.
    pub fn new(program: &Arc<Program>, entities: &[Entity], access: Option<&Access>) -> Reading {
        let mut reading = Reading::default();
        for (position, entity) in entities.iter().enumerate() {
            let allowed = access.map_or(Ok(()), |access| access.check_entity(entity.entity.as_ref()));
            match allowed.and_then(|()| work::query(program, entity)) {
                Ok(parts) => {
                    reading.queries.extend(parts.into_iter().map(|query| (position, query)));
                    reading.outcomes.push(Ok(()));
                }
                Err(error) => reading.outcomes.push(Err(error)),
            }
        }
        reading
    }

    /// What became of each entity, if everything has been read.
    pub fn outcomes(&self) -> Option<&Outcomes> {
        self.queries.is_empty().then_some(&self.outcomes)
    }

    fn turn(&mut self, switch: &Switch, now: Nanos, found: &UnboundedSender<Found>) {
        let Some((position, query)) = self.queries.pop_front() else { return };
        match query(switch, now) {
            Ok(answer) => {
                // The reader may have left.
                let _ = found.send(answer.found);
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

    /// A job that takes so many turns of it, sends on what it finds, and gives back the rest.
    pub fn part(
        self,
        turns: usize,
        found: UnboundedSender<Found>,
    ) -> impl FnMut(&mut Switch, Nanos) -> ControlFlow<Reading> + Send + 'static {
        let (mut reading, mut left) = (self, turns);
        move |switch, now| {
            reading.turn(switch, now, &found);
            left = left.saturating_sub(1);
            match left == 0 || reading.queries.is_empty() {
                true => ControlFlow::Break(std::mem::take(&mut reading)),
                false => ControlFlow::Continue(()),
            }
        }
    }
}
