//! Writes: checked outside of the data-plane thread, carried out in it.

use super::fixed::Step;
use super::loaded::Loaded;
use super::lookup::Target;
use super::update::{Prepared, prepare};
use crate::core::Isolation;
use crate::p4runtime::Job;
use p4rack_entities::plain::Request;
use p4rack_entities::{Checked, Outcomes, Program, UPDATES_A_TURN, change, each, snapshot};
use p4rack_p4rt::bfrt_proto::WriteRequest;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1;
use prost::Message;
use std::ops::ControlFlow;
use std::sync::Arc;
use tonic::Status;

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
    let target = Target::of(request.target.as_ref());
    let one = |update| {
        target.or(None)?;
        prepare(loaded, target, update)
    };
    let prepared: Vec<Checked<Prepared>> = request.updates.iter().map(one).collect();
    if atomicity == Atomicity::RollbackOnError {
        return Ok((all(&loaded.program, prepared), Isolation::Whole));
    }
    let is_plain = |prepared: &Checked<Prepared>| matches!(prepared, Ok(Prepared::Plain(_)) | Err(_));
    let job = if prepared.iter().all(is_plain) {
        plain(&loaded.program, prepared)
    } else {
        one_by_one(&loaded.program, prepared)
    };
    Ok((job, Isolation::Open))
}

/// Carries out updates that P4Runtime can express, in the same way as P4Runtime's.
fn plain(program: &Arc<Program>, prepared: Vec<Checked<Prepared>>) -> Job {
    let total = prepared.len();
    let mut refused: Vec<(usize, UpdateError)> = Vec::new();
    let mut updates = Vec::with_capacity(total);
    for (at, one) in prepared.into_iter().enumerate() {
        match one {
            Ok(Prepared::Plain(update)) => updates.push(*update),
            Err(error) => refused.push((at, error)),
            // The caller has checked this.
            Ok(Prepared::Step(_)) => {}
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
fn step(program: &Arc<Program>, prepared: Prepared, undone: bool) -> Checked<Step> {
    match prepared {
        Prepared::Step(step) => Ok(step),
        Prepared::Plain(update) => {
            let change = change(program, &update)?;
            let snapshot = undone.then(|| snapshot(program, &update)).transpose()?;
            Ok(Step { snapshot, change })
        }
    }
}

/// Carries out all updates, even if some fail.
fn one_by_one(program: &Arc<Program>, prepared: Vec<Checked<Prepared>>) -> Job {
    let steps: Vec<Checked<Step>> =
        prepared.into_iter().map(|one| one.and_then(|one| step(program, one, false))).collect();
    let mut outcomes = Outcomes::with_capacity(steps.len());
    let mut steps = steps.into_iter();
    Box::new(move |switch, now| {
        for step in steps.by_ref().take(UPDATES_A_TURN) {
            outcomes.push(step.and_then(|step| (step.change)(switch, now)));
        }
        match steps.len() {
            0 => ControlFlow::Break(std::mem::take(&mut outcomes)),
            _ => ControlFlow::Continue(()),
        }
    })
}

/// All updates or none: those before the first that fails are undone, in reverse order. Its error is the only one.
fn all(program: &Arc<Program>, prepared: Vec<Checked<Prepared>>) -> Job {
    let total = prepared.len();
    let failed = move |at: usize, error| {
        let mut outcomes = vec![Ok(()); total];
        outcomes[at] = Err(error);
        ControlFlow::Break(outcomes)
    };
    let steps: Vec<Checked<Step>> =
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
            let Some(step) = steps.next() else {
                return ControlFlow::Break(vec![Ok(()); total]);
            };
            let undo = step.snapshot.map(|snapshot| snapshot(switch));
            match (step.change)(switch, now) {
                Ok(()) => undos.push(undo),
                Err(error) => {
                    let at = undos.len();
                    undos.drain(..).rev().flatten().for_each(|undo| undo(switch));
                    return failed(at, error);
                }
            }
        }
        ControlFlow::Continue(())
    })
}
