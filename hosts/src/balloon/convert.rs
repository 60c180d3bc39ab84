//! Messages of the balloon as protobuf has them, and back. Errors name the field.

use crate::remote::Granted;
use crate::roce::setup::Token;
use p4rack_fabric::balloon::{
    Access, Answer, Ask, Command, Epoch, Extent, Lent, Order, Place, Reply, Report, Reported, Request,
    Session, Term, Told, Why,
};
use p4rack_fabric::clio::lib::Credentials;
use p4rack_p4rt::p4rack::balloon::v1::{self, answer, ask_request, command, not_granted};
use p4rack_wire::Nanos;
use prost::Message as _;

/// Description of a message's error.
pub(super) type Wrong = String;

pub(super) fn extent_of(field: &str, extent: Option<v1::Extent>) -> Result<Extent, Wrong> {
    let v1::Extent { node, start, bytes, epoch } = extent.ok_or_else(|| format!("{field} is missing"))?;
    let node = node_of(&format!("{field}.node"), node)?;
    let v1::Epoch { term, number } = epoch.ok_or_else(|| format!("{field}.epoch is missing"))?;
    let term = term_of(&format!("{field}.epoch.term"), term)?;
    Ok(Extent { place: Place { node, start }, bytes, epoch: Epoch { term, number } })
}

pub(super) fn node_of(field: &str, node: u32) -> Result<u16, Wrong> {
    u16::try_from(node).map_err(|_| format!("{field} is {node}; expected 16 bits"))
}

fn term_of(field: &str, term: Option<v1::Term>) -> Result<Term, Wrong> {
    let v1::Term { number, service } = term.ok_or_else(|| format!("{field} is missing"))?;
    Ok(Term { number, service })
}

fn term(term: Term) -> v1::Term {
    v1::Term { number: term.number, service: term.service }
}

pub(super) fn extent(extent: Extent) -> v1::Extent {
    let Extent { place: Place { node, start }, bytes, epoch } = extent;
    let epoch = v1::Epoch { term: Some(term(epoch.term)), number: epoch.number };
    v1::Extent { node: node.into(), start, bytes, epoch: Some(epoch) }
}

pub(super) fn session_of(field: &str, session: Option<v1::Session>) -> Result<Session, Wrong> {
    let v1::Session { holder, instance } = session.ok_or_else(|| format!("{field} is missing"))?;
    Ok(Session { holder, instance })
}

pub(super) fn session(session: Session) -> v1::Session {
    v1::Session { holder: session.holder, instance: session.instance }
}

/// Rights to an extent, as its holder is given them. `None`: they are too long.
pub(super) fn access(granted: &Granted) -> Option<Access> {
    let of = match granted {
        Granted::Process { credentials: Credentials { pid, epoch, token }, address, .. } => {
            let (pid, epoch, token, address) = (*pid, u32::from(*epoch), *token, *address);
            v1::access::Of::Process(v1::Process { pid, epoch, token, address })
        }
        Granted::Region { token, key, address, .. } => {
            let (token, key, address) = (token.bytes().to_vec(), *key, *address);
            v1::access::Of::Region(v1::Region { token, key, address })
        }
    };
    Access::new(&v1::Access { of: Some(of) }.encode_to_vec())
}

/// Rights to an extent of this many bytes, decoded from its holder's access. Errors: that is something
/// else.
pub fn granted(access: &[u8], bytes: u64) -> Result<Granted, String> {
    let access = v1::Access::decode(access).map_err(|error| format!("access: {error}"))?;
    match access.of.ok_or("access has neither process nor region")? {
        v1::access::Of::Process(v1::Process { pid, epoch, token, address }) => {
            let epoch = u16::try_from(epoch)
                .map_err(|_| format!("access.process.epoch is {epoch}; expected 16 bits"))?;
            Ok(Granted::Process { credentials: Credentials { pid, epoch, token }, address, bytes })
        }
        v1::access::Of::Region(v1::Region { token, key, address }) => {
            let token = Token::of(&token).map_err(|wrong| format!("access.region.{wrong}"))?;
            Ok(Granted::Region { token, key, address, bytes })
        }
    }
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
        leaves: lent.leaves,
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
        Order::Join { nonce, node } => command::Order::Join(v1::Join { nonce: *nonce, node: (*node).into() }),
        Order::Probe => command::Order::Probe(v1::Nothing {}),
        Order::Grant { extent: of, session: to, number } => command::Order::Grant(v1::Grant {
            extent: Some(extent(*of)),
            session: Some(session(*to)),
            number: *number,
        }),
        Order::Fence(of) => command::Order::Fence(extent(*of)),
        Order::Zero(of) => command::Order::Zero(extent(*of)),
    };
    v1::Command { term: Some(term(command.term)), instance: command.instance, order: Some(order) }
}

pub(super) fn command_of(command: v1::Command) -> Result<Command, Wrong> {
    let order = match command.order.ok_or("order is missing")? {
        command::Order::Join(v1::Join { nonce, node }) => {
            Order::Join { nonce, node: node_of("join.node", node)? }
        }
        command::Order::Probe(_) => Order::Probe,
        command::Order::Grant(v1::Grant { extent, session, number }) => Order::Grant {
            extent: extent_of("grant.extent", extent)?,
            session: session_of("grant.session", session)?,
            number,
        },
        command::Order::Fence(of) => Order::Fence(extent_of("fence", Some(of))?),
        command::Order::Zero(of) => Order::Zero(extent_of("zero", Some(of))?),
    };
    Ok(Command { term: term_of("term", command.term)?, instance: command.instance, order })
}

pub(super) fn answer(answer: Answer) -> v1::Answer {
    let told = match answer.told {
        Told::Joined(report) => answer::Told::Joined(v1::Report {
            nonce: report.nonce,
            bytes: report.bytes,
            extents: report.extents.into_iter().map(reported).collect(),
        }),
        Told::Stale(larger) => answer::Told::Stale(term(larger)),
        Told::OtherNumber { nonce, node } => {
            answer::Told::OtherNumber(v1::OtherNumber { nonce, node: node.into() })
        }
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
        answer::Told::Stale(larger) => Told::Stale(term_of("stale", Some(larger))?),
        answer::Told::OtherNumber(v1::OtherNumber { nonce, node }) => {
            Told::OtherNumber { nonce, node: node_of("other_number.node", node)? }
        }
        answer::Told::OtherInstance(_) => Told::OtherInstance,
        answer::Told::Alive(_) => Told::Alive,
        answer::Told::Granted(of) => {
            Told::Granted(extent_of("granted.extent", of.extent)?, access_of("granted.access", &of.access)?)
        }
        answer::Told::NotGranted(of) => {
            let why = match not_granted::Why::try_from(of.why) {
                Ok(not_granted::Why::Late) => Why::Late,
                Ok(not_granted::Why::Taken) => Why::Taken,
                Ok(not_granted::Why::Full) => Why::Full,
                Ok(not_granted::Why::Unspecified) => return Err("not_granted.why is missing".to_owned()),
                Err(_) => return Err(format!("not_granted.why is {}; expected 1 to 3", of.why)),
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
    match lent.addr.is_empty() {
        true => Err("lent.addr is missing".to_owned()),
        false => {
            let v1::Lent { number, is_online, leaves, .. } = lent;
            Ok((Lent { extent, number, is_online, leaves, access }, lent.addr))
        }
    }
}

/// The lease in the response to a request to open or to renew.
pub(super) fn lease_of(response: &v1::AskResponse) -> Result<Nanos, Wrong> {
    match response.lease_ns {
        0 => Err("lease_ns is missing".to_owned()),
        lease_ns => Ok(Nanos(lease_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Extent {
        let epoch = Epoch { term: Term { number: 3, service: 9 }, number: 4 };
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
        for order in [
            Order::Join { nonce: 2, node: 5 },
            Order::Probe,
            grant,
            Order::Fence(some()),
            Order::Zero(some()),
        ] {
            let given = Command { term: some().epoch.term, instance: 2, order };
            assert_eq!(command_of(command(&given)), Ok(given));
        }
        let lent = Some((to, 8, access.clone()));
        let extents =
            [lent, None].map(|lent| Reported { start: 0, bytes: 2 << 20, epoch: some().epoch, lent });
        let told = [
            Told::Joined(Report { nonce: 2, bytes: 8 << 20, extents: extents.to_vec() }),
            Told::Stale(some().epoch.term),
            Told::OtherNumber { nonce: 2, node: 5 },
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
    fn rights_survive_the_journey() {
        let credentials = Credentials { pid: 3, epoch: 4, token: u64::MAX };
        let token = Token::new([9; 16]);
        for granted_there in [
            Granted::Process { credentials, address: 1 << 40, bytes: 2 << 20 },
            Granted::Region { token, key: u32::MAX, address: 1 << 48, bytes: 2 << 20 },
        ] {
            let access = access(&granted_there).expect("it is short");
            assert_eq!(granted(access.bytes(), 2 << 20), Ok(granted_there));
        }
        assert_eq!(granted(&[], 2 << 20), Err("access has neither process nor region".to_owned()));
        assert!(granted(&[0xff], 2 << 20).is_err_and(|wrong| wrong.starts_with("access: ")));
        let region = v1::Region { token: vec![1; 3], key: 1, address: 2 };
        let short = v1::Access { of: Some(v1::access::Of::Region(region)) }.encode_to_vec();
        assert!(
            granted(&short, 2 << 20).is_err_and(|wrong| wrong.contains("access.region.token has 3 bytes"))
        );
        let process = v1::Process { epoch: 70_000, ..v1::Process::default() };
        let late = v1::Access { of: Some(v1::access::Of::Process(process)) }.encode_to_vec();
        assert!(granted(&late, 2 << 20).is_err_and(|wrong| wrong.contains("epoch is 70000")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(request_of(v1::AskRequest::default()), Err("session is missing".to_owned()));
        let far = v1::Extent { node: 70_000, ..extent(some()) };
        assert!(extent_of("fence", Some(far)).is_err_and(|wrong| wrong.contains("fence.node is 70000")));
        let ageless = v1::Extent { epoch: None, ..extent(some()) };
        assert!(extent_of("fence", Some(ageless)).is_err_and(|wrong| wrong.contains("fence.epoch")));
        assert!(access_of("access", &[0; 600]).is_err());
        let termless = v1::Epoch { term: None, number: 1 };
        let termless = v1::Extent { epoch: Some(termless), ..extent(some()) };
        assert!(extent_of("fence", Some(termless)).is_err_and(|wrong| wrong.contains("fence.epoch.term")));
    }

    #[test]
    fn a_missing_value_is_an_error() {
        for (why, wrong) in [(0, "not_granted.why is missing"), (9, "not_granted.why is 9")] {
            let told = answer::Told::NotGranted(v1::NotGranted { extent: Some(extent(some())), why });
            let answered = answer_of(v1::Answer { instance: 1, told: Some(told) });
            assert!(answered.as_ref().is_err_and(|said| said.contains(wrong)), "{answered:?}");
        }
        assert_eq!(lease_of(&v1::AskResponse::default()), Err("lease_ns is missing".to_owned()));
        let access = Access::new(&[7]).expect("it is short");
        let lent = Lent { extent: some(), number: 1, is_online: false, leaves: true, access };
        let response = response(Reply::Reserved(lent), |_| String::new()).expect("it is no refusal");
        let lent = response.lent.into_iter().next().expect("it has the extent");
        assert_eq!(lent_of(lent), Err("lent.addr is missing".to_owned()));
    }
}
