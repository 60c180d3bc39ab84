//! Writes and reads as jobs of the data plane: so many updates or entries, then packets get a turn.

use super::Refused;
use super::pipeline::Program;
use super::work::{self, Change, Messages, Query, Snapshot, Undo};
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
type Outcomes = Vec<Refused<()>>;

/// Applies updates one by one, whatever becomes of the others.
pub fn each(
    program: &Arc<Program>,
    updates: &[Update],
) -> impl FnMut(&mut Switch, Nanos) -> ControlFlow<Outcomes> + Send + 'static {
    let changes: Vec<Refused<Change>> = updates.iter().map(|update| work::change(program, update)).collect();
    let mut changes = changes.into_iter();
    let mut outcomes = Vec::with_capacity(updates.len());
    move |switch, now| {
        for change in changes.by_ref().take(UPDATES_A_TURN) {
            outcomes.push(change.and_then(|change| change(switch, now)));
        }
        match changes.len() {
            0 => ControlFlow::Break(std::mem::take(&mut outcomes)),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Applies all updates or, when one is refused, none: those before it are taken back, the last first.
pub fn all(
    program: &Arc<Program>,
    updates: &[Update],
    updates_a_turn: usize,
) -> impl FnMut(&mut Switch, Nanos) -> ControlFlow<Outcomes> + Send + 'static {
    type Step = Refused<(Snapshot, Change)>;
    let step = |update| {
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

/// Reads what each entity asks for and sends it on; ends with what became of each of them.
pub fn reading(
    program: &Arc<Program>,
    entities: &[Entity],
    found: UnboundedSender<Messages>,
) -> impl FnMut(&mut Switch, Nanos) -> ControlFlow<Outcomes> + Send + 'static {
    let mut outcomes = Vec::with_capacity(entities.len());
    let mut queries: VecDeque<(usize, Query)> = VecDeque::new();
    for (position, entity) in entities.iter().enumerate() {
        match work::query(program, entity) {
            Ok(parts) => {
                queries.extend(parts.into_iter().map(|query| (position, query)));
                outcomes.push(Ok(()));
            }
            Err(error) => outcomes.push(Err(error)),
        }
    }
    move |switch, now| {
        if let Some((position, query)) = queries.pop_front() {
            match query(switch, now) {
                Ok(answer) => {
                    // The reader may have left.
                    let _ = found.send(answer.messages);
                    if let Some(next) = answer.next {
                        queries.push_front((position, next));
                    }
                }
                Err(error) => {
                    outcomes[position] = Err(error);
                    queries.retain(|(other, _)| *other != position);
                }
            }
        }
        match queries.is_empty() {
            true => ControlFlow::Break(std::mem::take(&mut outcomes)),
            false => ControlFlow::Continue(()),
        }
    }
}
