//! Writes prepared for the data plane, with the access of their senders.

use super::roles::Access;
use crate::core::Isolation;
use p4rack_entities::plain::Request;
use p4rack_entities::{Outcomes, Program, UPDATES_A_TURN, all, each};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use prost::DecodeError;
use prost::bytes::Bytes;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A prepared Write.
pub type Job = Box<dyn FnMut(&mut Switch, Nanos) -> ControlFlow<Outcomes> + Send>;

/// Properties of an authorised Write that hold for all its updates.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The running program.
    pub program: Arc<Program>,
    /// Access of the sender's role; `None` is everything.
    pub access: Option<Arc<Access>>,
    /// Effect of a rejected update on the others.
    pub atomicity: Atomicity,
}

/// Prepares a Write. Errors: it is malformed.
pub fn ready(request: Bytes, admitted: &Admitted) -> Result<(Job, Isolation), DecodeError> {
    let Admitted { program, access, atomicity } = admitted;
    let access = access.as_deref();
    let request = Request::decode(request, &program.plans)?;
    let allowed = |update: &Update| access.map_or(Ok(()), |access| access.check_update(update));
    Ok(match atomicity {
        Atomicity::ContinueOnError => (open(request, admitted), Isolation::Open),
        Atomicity::RollbackOnError => {
            (Box::new(all(program, &request.updates(), allowed, UPDATES_A_TURN)), Isolation::Whole)
        }
        // A single turn: no packet is processed between the updates.
        Atomicity::DataplaneAtomic => {
            (Box::new(all(program, &request.updates(), allowed, usize::MAX)), Isolation::Whole)
        }
    })
}

/// Like [`ready`], for a Write whose updates are all plain and independent of each other, which takes little time if it
/// is short. `None` for any other Write.
pub fn ready_plain(request: &Bytes, admitted: &Admitted) -> Option<(Job, Isolation)> {
    if admitted.atomicity != Atomicity::ContinueOnError {
        return None;
    }
    let request = Request::decode_plain(request, &admitted.program.plans)?;
    Some((open(request, admitted), Isolation::Open))
}

fn open(mut request: Request, admitted: &Admitted) -> Job {
    let Admitted { program, access, .. } = admitted;
    if let Some(access) = access {
        access.check_request(&mut request, &program.plans);
    }
    Box::new(each(program, request))
}
