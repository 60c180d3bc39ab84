//! Writes: checked outside of the data-plane thread, carried out in it.

use super::fixed::Step;
use super::loaded::Loaded;
use super::lookup::Target;
use super::update::{Prepared, prepare};
use crate::core::Isolation;
use crate::p4runtime::Job;
use p4rack_entities::plain::Request;
use p4rack_entities::{Checked, Outcomes, Program, UPDATES_A_TURN, change, each, refuse, snapshot};
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::{self as bfrt, WriteRequest};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1;
use p4rack_switch::{Pipes, Switch};
use prost::Message;
use std::ops::ControlFlow;
use std::sync::Arc;
use tonic::Status;

/// A checked update, and the pipes that it is for; all if there are none.
type Ready = (Prepared, Option<Pipes>);

/// Prepares a Write. Returns how many of its updates are not refused already.
pub fn ready(loaded: &Arc<Loaded>, request: &WriteRequest) -> Result<(Job, Isolation), Status> {
    let atomicity = match Atomicity::try_from(request.atomicity) {
        Ok(Atomicity::DataplaneAtomic) => {
            return Err(Status::unimplemented(
                "DATAPLANE_ATOMIC is not offered by this switch; use ROLLBACK_ON_ERROR",
            ));
        }
        Ok(atomicity) => atomicity,
        Err(_) => return Err(Status::invalid_argument("there is no such atomicity")),
    };
    let target = Target::of(request.target.as_ref(), loaded.pipes);
    let one = |update| {
        target.or(None)?;
        prepare(loaded, target, update)
    };
    let prepared: Vec<Checked<Ready>> = request.updates.iter().map(one).collect();
    if atomicity == Atomicity::RollbackOnError {
        return Ok((all(&loaded.program, prepared), Isolation::Whole));
    }
    let is_plain = |prepared: &Checked<Ready>| matches!(prepared, Ok((Prepared::Plain(_), None)) | Err(_));
    let job = if prepared.iter().all(is_plain) {
        plain(&loaded.program, prepared)
    } else {
        one_by_one(&loaded.program, prepared)
    };
    Ok((job, Isolation::Open))
}

/// Carries out updates that P4Runtime can express, in the same way as P4Runtime's.
fn plain(program: &Arc<Program>, prepared: Vec<Checked<Ready>>) -> Job {
    let total = prepared.len();
    let mut refused: Vec<(usize, UpdateError)> = Vec::new();
    let mut updates = Vec::with_capacity(total);
    for (at, one) in prepared.into_iter().enumerate() {
        match one {
            Ok((Prepared::Plain(update), _)) => updates.push(*update),
            Err(error) => refused.push((at, error)),
            // The caller has checked this.
            Ok((Prepared::Step(_), _)) => {}
        }
    }
    let bytes = v1::WriteRequest { updates, ..Default::default() }.encode_to_vec();
    let mut job = match Request::decode(bytes.into(), &program.plans) {
        Ok(request) => each(program, request),
        Err(error) => {
            let error = UpdateError::new(Code::Internal, error.to_string());
            return Box::new(move |_, _| ControlFlow::Break(vec![Err(error.clone()); total]));
        }
    };
    Box::new(move |switch, now| {
        let outcomes = match job(switch, now) {
            ControlFlow::Continue(()) => return ControlFlow::Continue(()),
            ControlFlow::Break(outcomes) => outcomes,
        };
        if refused.is_empty() {
            return ControlFlow::Break(outcomes);
        }
        let (mut done, mut refused) = (outcomes.into_iter(), refused.drain(..).peekable());
        let one = |at| match refused.next_if(|(place, _)| *place == at) {
            Some((_, error)) => Err(error),
            None => done.next().unwrap_or(Ok(())),
        };
        ControlFlow::Break((0..total).map(one).collect())
    })
}

/// Converts a prepared update to a step.
fn step(program: &Arc<Program>, ready: Ready, undone: bool) -> Checked<(Step, Option<Pipes>)> {
    let step = match ready.0 {
        Prepared::Step(step) => step,
        Prepared::Plain(update) => {
            let change = change(program, &update)?;
            let snapshot = undone.then(|| snapshot(program, &update)).transpose()?;
            Step { snapshot, change }
        }
    };
    Ok((step, ready.1))
}

/// Lets what `run` does mean some pipes, or all.
pub fn in_pipes<T>(
    switch: &mut Switch,
    pipes: Option<Pipes>,
    run: impl FnOnce(&mut Switch) -> T,
) -> Checked<T> {
    match pipes {
        None => Ok(run(switch)),
        Some(pipes) => {
            switch.within(pipes, run).or_else(|error| refuse(Code::InvalidArgument, error.to_string()))
        }
    }
}

/// Places of the updates of a Write that delete one entry.
pub fn deletions(request: &WriteRequest) -> Vec<usize> {
    let deletes = |(_, update): &(usize, &bfrt::Update)| update.r#type == bfrt::update::Type::Delete as i32;
    request.updates.iter().enumerate().filter(deletes).map(|(at, _)| at).collect()
}

/// Carries out all updates, even if some fail.
fn one_by_one(program: &Arc<Program>, prepared: Vec<Checked<Ready>>) -> Job {
    let steps: Vec<Checked<(Step, Option<Pipes>)>> =
        prepared.into_iter().map(|one| one.and_then(|one| step(program, one, false))).collect();
    let mut outcomes = Outcomes::with_capacity(steps.len());
    let mut steps = steps.into_iter();
    Box::new(move |switch, now| {
        for step in steps.by_ref().take(UPDATES_A_TURN) {
            outcomes.push(
                step.and_then(|(step, pipes)| in_pipes(switch, pipes, |switch| (step.change)(switch, now))?),
            );
        }
        match steps.len() {
            0 => ControlFlow::Break(std::mem::take(&mut outcomes)),
            _ => ControlFlow::Continue(()),
        }
    })
}

/// All updates or none: those before the first that fails are undone, in reverse order. Its error is the only one.
fn all(program: &Arc<Program>, prepared: Vec<Checked<Ready>>) -> Job {
    let total = prepared.len();
    let failed = move |at: usize, error| {
        let mut outcomes = vec![Ok(()); total];
        outcomes[at] = Err(error);
        ControlFlow::Break(outcomes)
    };
    let steps: Vec<Checked<(Step, Option<Pipes>)>> =
        prepared.into_iter().map(|one| one.and_then(|one| step(program, one, true))).collect();
    if let Some(at) = steps.iter().position(Result::is_err) {
        // Nothing to undo.
        let mut error = steps.into_iter().nth(at).and_then(Result::err);
        return Box::new(move |_, _| match error.take() {
            Some(error) => failed(at, error),
            None => ControlFlow::Continue(()),
        });
    }
    let mut steps = steps.into_iter().flatten();
    let mut undos = Vec::with_capacity(total);
    Box::new(move |switch, now| {
        for _ in 0..UPDATES_A_TURN {
            let Some((step, pipes)) = steps.next() else {
                return ControlFlow::Break(vec![Ok(()); total]);
            };
            let done = in_pipes(switch, pipes, |switch| {
                let undo = step.snapshot.map(|snapshot| snapshot(switch));
                (step.change)(switch, now).map(|()| undo)
            });
            match done.flatten() {
                Ok(undo) => undos.push((undo, pipes)),
                Err(error) => {
                    let at = undos.len();
                    for (undo, pipes) in undos.drain(..).rev() {
                        let _ = in_pipes(switch, pipes, |switch| undo.map(|undo| undo(switch)));
                    }
                    return failed(at, error);
                }
            }
        }
        ControlFlow::Continue(())
    })
}
