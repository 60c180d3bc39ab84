//! Writes: checked outside of the data-plane thread, carried out in it.

use super::fixed::Step;
use super::loaded::Loaded;
use super::lookup::Target;
use super::outcome::{Existing, Options};
use super::prepared::Prepared;
use super::update::prepare;
use super::weigh::updates;
use crate::core::Isolation;
use crate::p4runtime::Job;
use p4rack_bfrt::p4runtime::Scratch;
use p4rack_entities::plain::Request;
use p4rack_entities::{Checked, Outcomes, Program, UPDATES_A_TURN, change, each, refuse, snapshot};
use p4rack_p4rt::bfrt_proto::table_attribute::Attribute;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::{self as bfrt, TableAttribute, WriteRequest, entity};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1;
use p4rack_switch::{Pipes, Switch};
use prost::Message;
use std::ops::ControlFlow;
use std::sync::Arc;
use tonic::Status;

/// A checked update, and the pipes that it is for; all if there are none.
type One = (Prepared, Option<Pipes>);
/// The same as a step.
type Steps = Vec<Checked<(Step, Option<Pipes>)>>;

/// A Write that is ready to be made.
pub struct Ready {
    pub job: Job,
    pub isolation: Isolation,
    /// Whether it changes the device, whichever program is prepared.
    pub is_of_device: bool,
    /// Whether its effect is invisible over P4Runtime.
    pub is_apart: bool,
    /// Bytes saved to undo it, in addition to those of its updates.
    pub saved_bytes: usize,
    /// Places of the updates that delete an entry and may find none.
    pub deletes: Vec<usize>,
    /// Places of those that found an entry to modify instead of inserting one.
    pub existing: Existing,
}

/// Whether an attribute enables notifications about ports.
fn tells_of_ports(given: &TableAttribute) -> bool {
    matches!(&given.attribute, Some(Attribute::PortStatusNotify(_)))
}

/// Whether an update is of a table of the device.
fn is_of_device(loaded: &Loaded, update: &bfrt::Update) -> bool {
    match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
        Some(entity::Entity::TableEntry(entry)) => loaded.fixed.is_of_device(entry.table_id),
        Some(entity::Entity::TableAttribute(given)) => tells_of_ports(given),
        _ => false,
    }
}

/// Whether an update's effect is invisible over P4Runtime: single pipes, tables and fields that only BFRuntime has,
/// attributes.
fn is_apart(loaded: &Loaded, target: Target, update: &bfrt::Update) -> bool {
    match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
        Some(entity::Entity::TableEntry(entry)) => {
            let id = entry.table_id;
            let fields = entry.data.iter().flat_map(|data| &data.fields);
            loaded.own.has(id)
                || loaded.fixed.has(id) && !loaded.fixed.is_of_device(id)
                || target.or(entry.entry_tgt.as_ref()).is_ok_and(|target| target.pipe().is_some())
                || loaded.extras.has(id)
                    && fields.map(|field| field.field_id).any(|field| loaded.extras.owns(id, field))
        }
        Some(entity::Entity::TableAttribute(given)) => !tells_of_ports(given),
        _ => false,
    }
}

/// Only a client subscribed to ports may enable their notifications.
fn may_enable(update: &bfrt::Update, options: Options) -> Checked<()> {
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    let Some(entity::Entity::TableAttribute(given)) = entity else { return Ok(()) };
    if options.hears_of_ports || !tells_of_ports(given) {
        return Ok(());
    }
    refuse(
        Code::InvalidArgument,
        "this client does not hear of ports: subscribe with enable_port_status_change_notifications",
    )
}

/// Prepares a Write.
pub fn ready(loaded: &Arc<Loaded>, request: &WriteRequest, options: Options) -> Result<Ready, Status> {
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
    let of_device = request.updates.iter().filter(|update| is_of_device(loaded, update)).count();
    if of_device > 0 && of_device < request.updates.len() && loaded.is_beside() {
        return Err(Status::invalid_argument(
            "the request changes the device and a program that is prepared; split it",
        ));
    }
    let is_of_device = of_device > 0;
    let is_apart = request.updates.iter().any(|update| is_apart(loaded, target, update));
    let mut deletes = if options.ignores_missing { deletions(request) } else { Vec::new() };
    let existing = Existing::default();
    let one = |(at, update)| {
        target.or(None)?;
        may_enable(update, options)?;
        prepare(loaded, (target, atomicity == Atomicity::RollbackOnError), update, at, &existing)
    };
    let prepared: Vec<Checked<One>> = request.updates.iter().enumerate().map(one).collect();
    let program = &loaded.program;
    let (mut saved_bytes, mut isolation) = (0, Isolation::Open);
    // Updates refused beforehand name nothing that could be missing.
    let job = if atomicity == Atomicity::RollbackOnError {
        (saved_bytes, isolation) = (loaded.saved_bytes(&request.updates)?, Isolation::Whole);
        let steps = steps(program, prepared, true);
        deletes.retain(|at| steps[*at].is_ok());
        all(steps, deletes.clone())
    } else if prepared.iter().all(|one| matches!(one, Ok((Prepared::Plain(_), None)) | Err(_))) {
        deletes.retain(|at| prepared[*at].is_ok());
        plain(program, prepared)
    } else {
        let steps = steps(program, prepared, false);
        deletes.retain(|at| steps[*at].is_ok());
        one_by_one(steps)
    };
    Ok(Ready { job, isolation, is_of_device, is_apart, saved_bytes, deletes, existing })
}

/// A Write of nothing but ordinary insertions and deletions of entries in all pipes, which needs no messages.
pub fn direct(loaded: &Loaded, request: &[u8], head: &WriteRequest, options: Options) -> Option<Ready> {
    let target = Target::of(head.target.as_ref(), loaded.pipes).or(None).ok()?;
    let is_plain = head.atomicity == Atomicity::ContinueOnError as i32 && target.pipe().is_none();
    if !is_plain || options.ignores_missing {
        return None;
    }
    let (mut bytes, mut scratch) =
        (Vec::with_capacity(request.len() + request.len() / 2), Scratch::default());
    let mut known = None;
    for update in updates(request) {
        let may = |table: u32, inserts: bool| {
            // Most updates are of the same table.
            let (is_own, has_extras) = match known {
                Some((last, is_own, has_extras)) if last == table => (is_own, has_extras),
                _ => {
                    let is_known = loaded.shadows.has(table) && !loaded.shadows.is_initial(table);
                    (loaded.own.has(table) || is_known, loaded.extras.has(table))
                }
            };
            known = Some((table, is_own, has_extras));
            !(is_own || inserts && has_extras)
        };
        loaded.translation.direct(update?, may, &mut scratch, &mut bytes)?;
    }
    let request = Request::decode(bytes.into(), &loaded.program.plans).ok()?;
    Some(Ready {
        job: Box::new(each(&loaded.program, request)),
        isolation: Isolation::Open,
        is_of_device: false,
        is_apart: false,
        saved_bytes: 0,
        deletes: Vec::new(),
        existing: Existing::default(),
    })
}

/// Carries out updates that P4Runtime can express, in the same way as P4Runtime's.
fn plain(program: &Arc<Program>, prepared: Vec<Checked<One>>) -> Job {
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

/// Converts prepared updates to steps.
fn steps(program: &Arc<Program>, prepared: Vec<Checked<One>>, undone: bool) -> Steps {
    prepared.into_iter().map(|one| one.and_then(|one| step(program, one, undone))).collect()
}

fn step(program: &Arc<Program>, ready: One, undone: bool) -> Checked<(Step, Option<Pipes>)> {
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

/// Runs `run` for some pipes, or all.
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
fn deletions(request: &WriteRequest) -> Vec<usize> {
    let deletes = |(_, update): &(usize, &bfrt::Update)| update.r#type == bfrt::update::Type::Delete as i32;
    request.updates.iter().enumerate().filter(deletes).map(|(at, _)| at).collect()
}

/// Carries out all updates, even if some fail.
fn one_by_one(steps: Steps) -> Job {
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

/// All updates or none: those before the first that fails are undone, in reverse order. Its error is the only one, except
/// for those of `deletes` that find nothing to delete.
fn all(steps: Steps, deletes: Vec<usize>) -> Job {
    let total = steps.len();
    let failed = move |at: usize, error| {
        let mut outcomes = vec![Ok(()); total];
        outcomes[at] = Err(error);
        ControlFlow::Break(outcomes)
    };
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
    let mut outcomes = Outcomes::with_capacity(total);
    Box::new(move |switch, now| {
        for _ in 0..UPDATES_A_TURN {
            let Some((step, pipes)) = steps.next() else {
                return ControlFlow::Break(std::mem::take(&mut outcomes));
            };
            let done = in_pipes(switch, pipes, |switch| {
                let undo = step.snapshot.map(|snapshot| snapshot(switch));
                (step.change)(switch, now).map(|()| undo)
            });
            match done.flatten() {
                Ok(undo) => {
                    undos.push((undo, pipes));
                    outcomes.push(Ok(()));
                }
                Err(error)
                    if error.code == Code::NotFound && deletes.binary_search(&outcomes.len()).is_ok() =>
                {
                    outcomes.push(Err(error));
                }
                Err(error) => {
                    let at = outcomes.len();
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
