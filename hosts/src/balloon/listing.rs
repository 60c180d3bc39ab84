//! The pool as its service lists it, in pages of extents.

use super::convert::{Wrong, extent, extent_of, node_of, session, session_of};
use p4rack_fabric::balloon::{
    Balloon, ExtentFacts, HolderFacts, MemoryFacts, NodeFacts, Place, Quota, State,
};
use p4rack_p4rt::p4rack::balloon::v1::list_response::Phase as PhaseNumber;
use p4rack_p4rt::p4rack::balloon::v1::{self, ListRequest, ListResponse, extent_facts};
use p4rack_wire::Nanos;

/// Extents of a page: with them, a message stays far below gRPC's limit of 4 MiB.
const PAGE: usize = 4_096;
/// Extents of a list at most. A service has fewer by [`Config::extents_max`](p4rack_fabric::balloon::Config::extents_max).
const EXTENTS_MAX: usize = 1 << 20;

/// The pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Whether the service lends.
    pub phase: Phase,
    /// The memory nodes.
    pub nodes: Vec<ListedNode>,
    /// The compute nodes that have sessions.
    pub holders: Vec<HolderFacts>,
    /// The extents that are not free, by memory node and start. Pages are of different times: an extent may have come or gone between.
    pub extents: Vec<ExtentFacts>,
    /// The service's counters, by name.
    pub counters: Vec<(String, u64)>,
}

/// Whether a service lends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits for its memory nodes.
    Starting,
    /// It lends.
    Serving,
    /// It has stopped lending, for this reason.
    Ended(String),
}

/// A memory node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedNode {
    /// The service's record of it.
    pub facts: NodeFacts,
    /// Its set-up service, HOST:PORT.
    pub addr: String,
    /// Why its last command has had no answer; `None`: it has.
    pub failure: Option<String>,
}

/// The driver's part of a service's listing.
pub(super) struct Driven<'a> {
    /// Addresses and failures, by number of the memory node.
    pub(super) addrs: &'a [String],
    pub(super) failures: &'a [String],
    /// Why the service has ended.
    pub(super) end: Option<String>,
    /// Counters of the driver.
    pub(super) counts: [(&'static str, u64); 3],
}

/// The place behind which a page begins. Errors: the request is invalid.
pub(super) fn after_of(request: ListRequest) -> Result<Option<Place>, Wrong> {
    let place = |of: v1::Place| Ok(Place { node: node_of("after.node", of.node)?, start: of.start });
    request.after.map(place).transpose()
}

/// A page of extents; the first one has everything else.
pub(super) fn page(machine: &Balloon, driven: Driven<'_>, after: Option<Place>) -> ListResponse {
    let mut extents: Vec<_> = machine.extents_after(after).take(PAGE + 1).map(extent_message).collect();
    let has_more = extents.len() > PAGE;
    extents.truncate(PAGE);
    let phase = match (machine.is_serving(), &driven.end) {
        (_, Some(_)) => PhaseNumber::Ended,
        (true, None) => PhaseNumber::Serving,
        (false, None) => PhaseNumber::Starting,
    };
    let end = driven.end.clone().unwrap_or_default();
    let rest = ListResponse { phase: phase.into(), extents, has_more, end, ..ListResponse::default() };
    if after.is_some() {
        return rest;
    }
    let counters = machine.counters().iter().chain(driven.counts);
    ListResponse {
        nodes: machine.nodes().into_iter().map(|facts| node_message(&facts, &driven)).collect(),
        holders: machine.holders().iter().map(holder_message).collect(),
        counters: counters.map(|(name, value)| v1::Count { name: name.to_owned(), value }).collect(),
        ..rest
    }
}

fn node_message(facts: &NodeFacts, driven: &Driven<'_>) -> v1::NodeFacts {
    let of = |texts: &[String]| texts.get(usize::from(facts.number)).cloned().unwrap_or_default();
    v1::NodeFacts {
        number: facts.number.into(),
        addr: of(driven.addrs),
        is_there: facts.is_there,
        memory: facts.memory.map(memory_message),
        same_as: facts.same_as.map(u32::from),
        failure: of(driven.failures),
        leaves: facts.leaves,
    }
}

fn memory_message(facts: MemoryFacts) -> v1::MemoryFacts {
    v1::MemoryFacts {
        bytes: facts.bytes,
        free_bytes: facts.free_bytes,
        longest_bytes: facts.longest_bytes,
        ranges: facts.ranges as u64,
        lent_bytes: facts.lent_bytes,
        fencing_bytes: facts.fencing_bytes,
        zeroing_bytes: facts.zeroing_bytes,
    }
}

fn holder_message(facts: &HolderFacts) -> v1::HolderFacts {
    v1::HolderFacts {
        session: Some(session(facts.session)),
        left_ns: facts.left.0,
        held_bytes: facts.held_bytes,
        extents: facts.extents as u64,
        reserved_bytes: facts.quota.reserved_bytes,
        limit_bytes: facts.quota.limit_bytes,
    }
}

fn extent_message(facts: ExtentFacts) -> v1::ExtentFacts {
    let state = match facts.state {
        State::Found => extent_facts::State::Found,
        State::Granting => extent_facts::State::Granting,
        State::Lent => extent_facts::State::Lent,
        State::Fencing => extent_facts::State::Fencing,
        State::Zeroing => extent_facts::State::Zeroing,
    };
    v1::ExtentFacts {
        extent: Some(extent(facts.extent)),
        state: state.into(),
        session: facts.session.map(session),
        is_online: facts.is_online,
        sent: facts.sent,
    }
}

impl Listed {
    /// From the first page. Errors: which value is missing or makes no sense.
    pub(super) fn of(first: ListResponse) -> Result<Listed, Wrong> {
        let phase = match PhaseNumber::try_from(first.phase) {
            Ok(PhaseNumber::Starting) => Phase::Starting,
            Ok(PhaseNumber::Serving) => Phase::Serving,
            Ok(PhaseNumber::Ended) => Phase::Ended(first.end),
            Ok(PhaseNumber::Unspecified) => return Err("phase is missing".to_owned()),
            Err(_) => return Err(format!("phase is {}; expected 1 to 3", first.phase)),
        };
        Ok(Listed {
            phase,
            nodes: first.nodes.into_iter().map(node).collect::<Result<_, _>>()?,
            holders: first.holders.into_iter().map(holder).collect::<Result<_, _>>()?,
            extents: first.extents.into_iter().map(extent_facts_of).collect::<Result<_, _>>()?,
            counters: first.counters.into_iter().map(|count| (count.name, count.value)).collect(),
        })
    }

    /// Where the next page begins.
    pub(super) fn last(&self) -> Option<Place> {
        self.extents.last().map(|facts| facts.extent.place)
    }

    /// Adds the extents of the next page. Errors: which value makes no sense; the page does not follow the last one; there are too many.
    pub(super) fn add(&mut self, page: ListResponse) -> Result<(), Wrong> {
        if self.extents.len() + page.extents.len() > EXTENTS_MAX {
            return Err(format!("more than {EXTENTS_MAX} extents came"));
        }
        for facts in page.extents {
            let facts = extent_facts_of(facts)?;
            if self.last() >= Some(facts.extent.place) {
                return Err("extents of the next page do not follow the last one".to_owned());
            }
            self.extents.push(facts);
        }
        Ok(())
    }
}

/// A request for the page behind a place.
pub(super) fn request(after: Option<Place>) -> ListRequest {
    ListRequest { after: after.map(|Place { node, start }| v1::Place { node: node.into(), start }) }
}

fn count(field: &str, value: u64) -> Result<usize, Wrong> {
    usize::try_from(value).map_err(|_| format!("{field} is {value}, which is too large"))
}

fn node(of: v1::NodeFacts) -> Result<ListedNode, Wrong> {
    let facts = NodeFacts {
        number: node_of("nodes.number", of.number)?,
        is_there: of.is_there,
        same_as: of.same_as.map(|other| node_of("nodes.same_as", other)).transpose()?,
        leaves: of.leaves,
        memory: of.memory.map(memory).transpose()?,
    };
    match of.addr.is_empty() {
        true => Err("nodes.addr is missing".to_owned()),
        false => {
            let failure = (!of.failure.is_empty()).then_some(of.failure);
            Ok(ListedNode { facts, addr: of.addr, failure })
        }
    }
}

fn memory(of: v1::MemoryFacts) -> Result<MemoryFacts, Wrong> {
    if of.longest_bytes > of.free_bytes {
        return Err("nodes.memory.longest_bytes is more than nodes.memory.free_bytes".to_owned());
    }
    Ok(MemoryFacts {
        bytes: of.bytes,
        free_bytes: of.free_bytes,
        longest_bytes: of.longest_bytes,
        ranges: count("nodes.memory.ranges", of.ranges)?,
        lent_bytes: of.lent_bytes,
        fencing_bytes: of.fencing_bytes,
        zeroing_bytes: of.zeroing_bytes,
    })
}

fn holder(of: v1::HolderFacts) -> Result<HolderFacts, Wrong> {
    Ok(HolderFacts {
        session: session_of("holders.session", of.session)?,
        left: Nanos(of.left_ns),
        held_bytes: of.held_bytes,
        extents: count("holders.extents", of.extents)?,
        quota: Quota { reserved_bytes: of.reserved_bytes, limit_bytes: of.limit_bytes },
    })
}

fn extent_facts_of(of: v1::ExtentFacts) -> Result<ExtentFacts, Wrong> {
    let state = match extent_facts::State::try_from(of.state) {
        Ok(extent_facts::State::Found) => State::Found,
        Ok(extent_facts::State::Granting) => State::Granting,
        Ok(extent_facts::State::Lent) => State::Lent,
        Ok(extent_facts::State::Fencing) => State::Fencing,
        Ok(extent_facts::State::Zeroing) => State::Zeroing,
        Ok(extent_facts::State::Unspecified) => return Err("extents.state is missing".to_owned()),
        Err(_) => return Err(format!("extents.state is {}; expected 1 to 5", of.state)),
    };
    Ok(ExtentFacts {
        extent: extent_of("extents.extent", of.extent)?,
        state,
        session: of.session.map(|of| session_of("extents.session", Some(of))).transpose()?,
        is_online: of.is_online,
        sent: of.sent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_fabric::Machine as _;
    use p4rack_fabric::balloon::{
        Answer, Config, EXTENT_BYTES_MIN, Epoch, Received, Report, Reported, Sent, Term, Told,
    };

    /// A service whose memory node has reported that many extents.
    fn service(extents: u64) -> Balloon {
        let term = Term { number: 9, service: 1 };
        let mut machine = Balloon::new(Config::new(1), term, Nanos::ZERO).expect("it is valid");
        let sent = machine.poll_link(Nanos::ZERO, &mut ());
        assert!(matches!(sent, Some(Sent::Command(0, _))), "it joins: {sent:?}");
        let epoch = Epoch { term: Term { number: 8, service: 1 }, number: 1 };
        let reported =
            |nth| Reported { start: nth * EXTENT_BYTES_MIN, bytes: EXTENT_BYTES_MIN, epoch, lent: None };
        let extents: Vec<_> = (0..extents).map(reported).collect();
        let report = Report { nonce: 1, bytes: extents.len() as u64 * EXTENT_BYTES_MIN, extents };
        let answer = Answer { instance: 5, told: Told::Joined(report) };
        machine.handle_link(Received::Answer(0, answer), Nanos::ZERO, Nanos::ZERO);
        machine
    }

    fn driven<'a>(addrs: &'a [String], failures: &'a [String]) -> Driven<'a> {
        Driven { addrs, failures, end: None, counts: [("dropped", 1), ("failed", 2), ("unheard", 3)] }
    }

    #[test]
    fn all_extents_come_in_pages_that_a_message_holds() {
        let (machine, addrs) = (service(60_000), ["a:1".to_owned()]);
        let mut listed: Option<Listed> = None;
        loop {
            let after = listed.as_ref().and_then(Listed::last);
            let asked = after_of(request(after)).expect("it is valid");
            let page = page(&machine, driven(&addrs, &[]), asked);
            assert!(prost::Message::encoded_len(&page) < 1 << 20);
            let has_more = page.has_more;
            match &mut listed {
                Some(listed) => listed.add(page).expect("it follows"),
                None => listed = Some(Listed::of(page).expect("it makes sense")),
            }
            if !has_more {
                break;
            }
        }
        let listed = listed.expect("there is a page");
        assert_eq!(listed.extents, machine.extents().collect::<Vec<_>>());
        assert_eq!((listed.extents.len(), listed.phase), (60_000, Phase::Serving));
        assert_eq!((listed.nodes[0].facts, &listed.nodes[0].addr), (machine.nodes()[0], &addrs[0]));
    }

    #[test]
    fn a_missing_value_is_an_error() {
        let (machine, addrs) = (service(2), ["a:1".to_owned()]);
        let whole = page(&machine, driven(&addrs, &[]), None);
        let mut twice = Listed::of(whole.clone()).expect("it makes sense");
        assert!(twice.add(whole.clone()).is_err_and(|wrong| wrong.contains("do not follow")));
        let mut full = Listed { extents: vec![twice.extents[0]; EXTENTS_MAX], ..twice };
        assert!(full.add(whole.clone()).is_err_and(|wrong| wrong.contains("more than 1048576")));
        let wrong = |change: fn(&mut ListResponse)| {
            let mut page = whole.clone();
            change(&mut page);
            Listed::of(page).expect_err("a value is missing")
        };
        assert_eq!(wrong(|page| page.phase = 0), "phase is missing");
        assert_eq!(wrong(|page| page.nodes[0].addr.clear()), "nodes.addr is missing");
        assert_eq!(wrong(|page| page.extents[0].extent = None), "extents.extent is missing");
        assert_eq!(wrong(|page| page.extents[1].state = 0), "extents.state is missing");
        let holder = v1::HolderFacts::default();
        let wrong = Listed::of(ListResponse { holders: vec![holder], ..whole.clone() });
        assert_eq!(wrong, Err("holders.session is missing".to_owned()));
    }
}
