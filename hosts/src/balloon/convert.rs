//! Messages of the balloon as protobuf has them, and back. Errors name the field.

use p4rack_fabric::balloon::{
    Access, Answer, Ask, Command, Epoch, Extent, Lent, Order, Place, Reply, Report, Reported, Request,
    Session, Told, Why,
};
use p4rack_p4rt::p4rack::balloon::v1::{self, answer, ask_request, command, not_granted};
use p4rack_wire::Nanos;

/// What is wrong with a message.
pub(super) type Wrong = String;

pub(super) fn extent_of(field: &str, extent: Option<v1::Extent>) -> Result<Extent, Wrong> {
    let v1::Extent { node, start, bytes, epoch } = extent.ok_or_else(|| format!("{field} is missing"))?;
    let node = u16::try_from(node).map_err(|_| format!("{field}.node is {node}; expected 16 bits"))?;
    let v1::Epoch { term, number } = epoch.ok_or_else(|| format!("{field}.epoch is missing"))?;
    Ok(Extent { place: Place { node, start }, bytes, epoch: Epoch { term, number } })
}

pub(super) fn extent(extent: Extent) -> v1::Extent {
    let Extent { place: Place { node, start }, bytes, epoch: Epoch { term, number } } = extent;
    v1::Extent { node: node.into(), start, bytes, epoch: Some(v1::Epoch { term, number }) }
}

fn session_of(field: &str, session: Option<v1::Session>) -> Result<Session, Wrong> {
    let v1::Session { holder, instance } = session.ok_or_else(|| format!("{field} is missing"))?;
    Ok(Session { holder, instance })
}

pub(super) fn session(session: Session) -> v1::Session {
    v1::Session { holder: session.holder, instance: session.instance }
}

fn access_of(field: &str, bytes: &[u8]) -> Result<Access, Wrong> {
    Access::new(bytes).ok_or_else(|| format!("{field} has {} bytes, which are too many", bytes.len()))
}

pub(super) fn request(request: &Request) -> v1::AskRequest {
    let ask = match request.ask {
        Ask::Open => ask_request::Ask::Open(v1::Nothing {}),
        Ask::Renew => ask_request::Ask::Renew(v1::Nothing {}),
        Ask::Reserve { number, bytes } => ask_request::Ask::Reserve(v1::Reserve { number, bytes }),
        Ask::Online(of) => ask_request::Ask::Online(extent(of)),
        Ask::Offline(of) => ask_request::Ask::Offline(extent(of)),
        Ask::Return(of) => ask_request::Ask::GiveBack(extent(of)),
        Ask::Close => ask_request::Ask::Close(v1::Nothing {}),
    };
    v1::AskRequest { session: Some(session(request.session)), ask: Some(ask) }
}

pub(super) fn request_of(request: v1::AskRequest) -> Result<Request, Wrong> {
    let session = session_of("session", request.session)?;
    let ask = match request.ask.ok_or("ask is missing")? {
        ask_request::Ask::Open(_) => Ask::Open,
        ask_request::Ask::Renew(_) => Ask::Renew,
        ask_request::Ask::Reserve(v1::Reserve { number, bytes }) => Ask::Reserve { number, bytes },
        ask_request::Ask::Online(of) => Ask::Online(extent_of("online", Some(of))?),
        ask_request::Ask::Offline(of) => Ask::Offline(extent_of("offline", Some(of))?),
        ask_request::Ask::GiveBack(of) => Ask::Return(extent_of("give_back", Some(of))?),
        ask_request::Ask::Close(_) => Ask::Close,
    };
    Ok(Request { session, ask })
}

/// The response to a request; `addr` gives the set-up service of a memory node. `Err` is a refusal.
pub(super) fn response(
    reply: Reply,
    addr: impl Fn(u16) -> String,
) -> Result<v1::AskResponse, p4rack_fabric::balloon::Refusal> {
    let lent = |lent: Lent| v1::Lent {
        addr: addr(lent.extent.place.node),
        extent: Some(extent(lent.extent)),
        number: lent.number,
        is_online: lent.is_online,
        access: lent.access.bytes().to_vec(),
    };
    match reply {
        Reply::Opened(lease) => Ok(v1::AskResponse { lease_ns: lease.0, lent: Vec::new() }),
        Reply::Renewed(lease, all) => {
            Ok(v1::AskResponse { lease_ns: lease.0, lent: all.into_iter().map(lent).collect() })
        }
        Reply::Reserved(one) => Ok(v1::AskResponse { lease_ns: 0, lent: vec![lent(one)] }),
        Reply::Done => Ok(v1::AskResponse::default()),
        Reply::Refused(refusal) => Err(refusal),
    }
}

pub(super) fn command(command: &Command) -> v1::Command {
    let order = match &command.order {
        Order::Join { nonce } => command::Order::Join(v1::Join { nonce: *nonce }),
        Order::Probe => command::Order::Probe(v1::Nothing {}),
        Order::Grant { extent: of, session: to, number } => command::Order::Grant(v1::Grant {
            extent: Some(extent(*of)),
            session: Some(session(*to)),
            number: *number,
        }),
        Order::Fence(of) => command::Order::Fence(extent(*of)),
        Order::Zero(of) => command::Order::Zero(extent(*of)),
    };
    v1::Command { term: command.term, instance: command.instance, order: Some(order) }
}

pub(super) fn command_of(command: v1::Command) -> Result<Command, Wrong> {
    let order = match command.order.ok_or("order is missing")? {
        command::Order::Join(v1::Join { nonce }) => Order::Join { nonce },
        command::Order::Probe(_) => Order::Probe,
        command::Order::Grant(v1::Grant { extent, session, number }) => Order::Grant {
            extent: extent_of("grant.extent", extent)?,
            session: session_of("grant.session", session)?,
            number,
        },
        command::Order::Fence(of) => Order::Fence(extent_of("fence", Some(of))?),
        command::Order::Zero(of) => Order::Zero(extent_of("zero", Some(of))?),
    };
    Ok(Command { term: command.term, instance: command.instance, order })
}

pub(super) fn answer(answer: Answer) -> v1::Answer {
    let told = match answer.told {
        Told::Joined(report) => answer::Told::Joined(v1::Report {
            nonce: report.nonce,
            bytes: report.bytes,
            extents: report.extents.into_iter().map(reported).collect(),
        }),
        Told::Stale(term) => answer::Told::Stale(term),
        Told::OtherInstance => answer::Told::OtherInstance(v1::Nothing {}),
        Told::Alive => answer::Told::Alive(v1::Nothing {}),
        Told::Granted(of, access) => {
            let access = access.bytes().to_vec();
            answer::Told::Granted(v1::Granted { extent: Some(extent(of)), access })
        }
        Told::NotGranted(of, why) => {
            let why = match why {
                Why::Late => not_granted::Why::Late,
                Why::Taken => not_granted::Why::Taken,
                Why::Full => not_granted::Why::Full,
            };
            answer::Told::NotGranted(v1::NotGranted { extent: Some(extent(of)), why: why.into() })
        }
        Told::Fenced(of) => answer::Told::Fenced(extent(of)),
        Told::Zeroed(of) => answer::Told::Zeroed(extent(of)),
        Told::Zeroing(of) => answer::Told::Zeroing(extent(of)),
        Told::Refused(of) => answer::Told::Refused(extent(of)),
    };
    v1::Answer { instance: answer.instance, told: Some(told) }
}

fn reported(of: Reported) -> v1::Reported {
    let place = Place { node: 0, start: of.start };
    let extent = Some(extent(Extent { place, bytes: of.bytes, epoch: of.epoch }));
    match of.lent {
        Some((to, number, access)) => {
            let access = access.bytes().to_vec();
            v1::Reported { extent, session: Some(session(to)), number, access }
        }
        None => v1::Reported { extent, ..v1::Reported::default() },
    }
}

fn reported_of(of: v1::Reported) -> Result<Reported, Wrong> {
    let Extent { place, bytes, epoch } = extent_of("joined.extents.extent", of.extent)?;
    let lent = match of.session {
        Some(to) => {
            let to = session_of("joined.extents.session", Some(to))?;
            Some((to, of.number, access_of("joined.extents.access", &of.access)?))
        }
        None => None,
    };
    Ok(Reported { start: place.start, bytes, epoch, lent })
}

pub(super) fn answer_of(answer: v1::Answer) -> Result<Answer, Wrong> {
    let told = match answer.told.ok_or("told is missing")? {
        answer::Told::Joined(report) => Told::Joined(Report {
            nonce: report.nonce,
            bytes: report.bytes,
            extents: report.extents.into_iter().map(reported_of).collect::<Result<_, _>>()?,
        }),
        answer::Told::Stale(term) => Told::Stale(term),
        answer::Told::OtherInstance(_) => Told::OtherInstance,
        answer::Told::Alive(_) => Told::Alive,
        answer::Told::Granted(of) => {
            Told::Granted(extent_of("granted.extent", of.extent)?, access_of("granted.access", &of.access)?)
        }
        answer::Told::NotGranted(of) => {
            let why = match of.why() {
                not_granted::Why::Late => Why::Late,
                not_granted::Why::Taken => Why::Taken,
                not_granted::Why::Full => Why::Full,
            };
            Told::NotGranted(extent_of("not_granted.extent", of.extent)?, why)
        }
        answer::Told::Fenced(of) => Told::Fenced(extent_of("fenced", Some(of))?),
        answer::Told::Zeroed(of) => Told::Zeroed(extent_of("zeroed", Some(of))?),
        answer::Told::Zeroing(of) => Told::Zeroing(extent_of("zeroing", Some(of))?),
        answer::Told::Refused(of) => Told::Refused(extent_of("refused", Some(of))?),
    };
    Ok(Answer { instance: answer.instance, told })
}

/// A lent extent, and the set-up service of its memory node.
pub(super) fn lent_of(lent: v1::Lent) -> Result<(Lent, String), Wrong> {
    let extent = extent_of("lent.extent", lent.extent)?;
    let access = access_of("lent.access", &lent.access)?;
    Ok((Lent { extent, number: lent.number, is_online: lent.is_online, access }, lent.addr))
}

/// A lease, as a compute node is told.
pub(super) fn lease_of(response: &v1::AskResponse) -> Nanos {
    Nanos(response.lease_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Extent {
        let epoch = Epoch { term: 3, number: 4 };
        Extent { place: Place { node: 5, start: 4 << 20 }, bytes: 2 << 20, epoch }
    }

    #[test]
    fn messages_survive_the_journey() {
        let (to, access) = (Session { holder: 1, instance: 9 }, Access::new(&[7; 12]).expect("it is short"));
        let asks = [
            Ask::Open,
            Ask::Renew,
            Ask::Reserve { number: 3, bytes: 2 << 20 },
            Ask::Online(some()),
            Ask::Offline(some()),
            Ask::Return(some()),
            Ask::Close,
        ];
        for ask in asks {
            let asked = Request { session: to, ask };
            assert_eq!(request_of(request(&asked)), Ok(asked));
        }
        let grant = Order::Grant { extent: some(), session: to, number: 8 };
        for order in
            [Order::Join { nonce: 2 }, Order::Probe, grant, Order::Fence(some()), Order::Zero(some())]
        {
            let given = Command { term: 1, instance: 2, order };
            assert_eq!(command_of(command(&given)), Ok(given));
        }
        let lent = Some((to, 8, access.clone()));
        let extents =
            [lent, None].map(|lent| Reported { start: 0, bytes: 2 << 20, epoch: some().epoch, lent });
        let told = [
            Told::Joined(Report { nonce: 2, bytes: 8 << 20, extents: extents.to_vec() }),
            Told::Stale(7),
            Told::OtherInstance,
            Told::Alive,
            Told::Granted(some(), access),
            Told::NotGranted(some(), Why::Late),
            Told::NotGranted(some(), Why::Taken),
            Told::NotGranted(some(), Why::Full),
            Told::Fenced(some()),
            Told::Zeroed(some()),
            Told::Zeroing(some()),
            Told::Refused(some()),
        ];
        for told in told {
            let given = Answer { instance: 6, told };
            assert_eq!(answer_of(answer(given.clone())), Ok(given));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(request_of(v1::AskRequest::default()), Err("session is missing".to_owned()));
        let far = v1::Extent { node: 70_000, ..extent(some()) };
        assert!(extent_of("fence", Some(far)).is_err_and(|wrong| wrong.contains("fence.node is 70000")));
        let ageless = v1::Extent { epoch: None, ..extent(some()) };
        assert!(extent_of("fence", Some(ageless)).is_err_and(|wrong| wrong.contains("fence.epoch")));
        assert!(access_of("access", &[0; 600]).is_err());
    }
}
