//! Ways to remote memory, by name. This is the registry from which commands, help texts, schemas, completions and reports take
//! the names; how each is opened is in `p4rack_hosts::remote`.

use serde::{Serialize, Serializer};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// How a program of a way uses its host's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Through the kernel's network stack.
    Kernel,
    /// As an RDMA adapter, which has the link for itself.
    Adapter,
    /// Beside the host's agent.
    Agent,
}

/// Service that offers the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Nothing: the memory is the program's own.
    None,
    /// A server of bytes over TCP.
    Bytes,
    /// A pool of RDMA memory.
    Pool,
    /// A memory node of EDM.
    Node,
    /// A board of Clio.
    Board,
}

/// Where Cowbird's engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A spare host.
    Host,
    /// The switch.
    Switch,
}

/// Static properties of a way, known before it is opened.
#[derive(Debug)]
pub struct Definition {
    /// Its name in files and on the command line.
    pub name: &'static str,
    /// Another name that is understood: that of a paper.
    pub alias: Option<&'static str>,
    /// Its name in tables and reports.
    pub title: &'static str,
    /// The scheme under which it works.
    pub scheme: &'static str,
    /// How its programs use their link.
    pub link: Link,
    /// Service that offers the memory.
    pub service: Service,
    /// The engine that executes requests; `None` if the program's own host does.
    pub engine: Option<Engine>,
    /// Whether it has atomic operations; which ones, it says when it is opened.
    pub atomics: bool,
    /// Whether one operation at a time is under way, however many a program could have.
    pub one_by_one: bool,
}

impl Definition {
    /// A way over plain switching, with many operations under way.
    const fn plain(name: &'static str, title: &'static str, link: Link, service: Service) -> Definition {
        Definition {
            name,
            alias: None,
            title,
            scheme: "l2",
            link,
            service,
            engine: None,
            atomics: true,
            one_by_one: false,
        }
    }

    const fn edm(name: &'static str, title: &'static str) -> Definition {
        Definition { scheme: name, ..Definition::plain(name, title, Link::Agent, Service::Node) }
    }

    const fn rdma(name: &'static str, title: &'static str) -> Definition {
        Definition::plain(name, title, Link::Adapter, Service::Pool)
    }

    /// Cowbird's rings take reads and writes alone.
    const fn cowbird(
        name: &'static str,
        title: &'static str,
        scheme: &'static str,
        engine: Engine,
    ) -> Definition {
        Definition { scheme, engine: Some(engine), atomics: false, ..Definition::rdma(name, title) }
    }
}

/// How a thread reaches remote memory.
#[derive(Clone, Copy, Debug)]
pub struct Way(&'static Definition);

impl Way {
    /// Not at all: the memory is the program's own.
    pub const LOCAL: Way = Way(&Definition::plain("local", "local memory", Link::Kernel, Service::None));
    /// The same, whose ends come late: for tests.
    pub const DELAYED: Way =
        Way(&Definition::plain("delayed", "local memory, late", Link::Kernel, Service::None));
    /// By requests to a server of bytes over TCP.
    pub const TCP: Way = Way(&Definition::plain("tcp", "TCP", Link::Kernel, Service::Bytes));
    /// By one-sided RDMA, one request at a time.
    pub const RDMA_SYNC: Way =
        Way(&Definition { one_by_one: true, ..Definition::rdma("rdma-sync", "RDMA, one by one") });
    /// By one-sided RDMA, many requests under way.
    pub const RDMA: Way =
        Way(&Definition { alias: Some("rdma-async"), ..Definition::rdma("rdma", "RDMA, many in flight") });
    /// By EDM with clocks of destinations.
    pub const EDM_TIMED_DST: Way = Way(&Definition::edm("edm-timed-dst", "EDM, timed-dst"));
    /// By EDM with clocks of sources and destinations.
    pub const EDM_TIMED: Way = Way(&Definition::edm("edm-timed", "EDM, timed"));
    /// By EDM with calendars.
    pub const EDM_CALENDAR: Way = Way(&Definition::edm("edm-calendar", "EDM, calendar"));
    /// By EDM with rings of demands.
    pub const EDM_MATCHED: Way = Way(&Definition::edm("edm-matched", "EDM, matched"));
    /// By Clio, over UDP.
    pub const CLIO: Way = Way(&Definition::plain("clio", "Clio", Link::Kernel, Service::Board));
    /// By Cowbird with the engine on a spare host.
    pub const COWBIRD_SPOT: Way =
        Way(&Definition::cowbird("cowbird-spot", "Cowbird-Spot", "l2", Engine::Host));
    /// By Cowbird with the engine in a switch.
    pub const COWBIRD_P4: Way =
        Way(&Definition::cowbird("cowbird-p4", "Cowbird-P4", "cowbird", Engine::Switch));

    /// All. A new way is a line here and one in `p4rack_hosts::remote`.
    pub const ALL: &[Way] = &[
        Way::LOCAL,
        Way::DELAYED,
        Way::TCP,
        Way::RDMA_SYNC,
        Way::RDMA,
        Way::EDM_TIMED_DST,
        Way::EDM_TIMED,
        Way::EDM_CALENDAR,
        Way::EDM_MATCHED,
        Way::CLIO,
        Way::COWBIRD_SPOT,
        Way::COWBIRD_P4,
    ];

    /// Those that Cowbird's paper compares (§7).
    pub const OF_COWBIRD: &[Way] =
        &[Way::LOCAL, Way::RDMA_SYNC, Way::RDMA, Way::COWBIRD_SPOT, Way::COWBIRD_P4];

    /// Its static properties.
    pub const fn definition(self) -> &'static Definition {
        self.0
    }

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Its name in tables and reports.
    pub const fn title(self) -> &'static str {
        self.0.title
    }

    /// Whether it takes time to reach: where it takes none, a store has everything there.
    pub fn is_remote(self) -> bool {
        self != Way::LOCAL
    }

    /// Whether a pool's memory is lent to its users in extents.
    pub fn lends_extents(self) -> bool {
        self == Way::CLIO || self == Way::RDMA
    }

    /// Operations under way at most, where as many as `most` may be.
    pub const fn depth(self, most: usize) -> usize {
        if self.0.one_by_one { 1 } else { most }
    }

    /// Names of all, for help texts and errors.
    pub fn names() -> String {
        names_of(Way::ALL)
    }
}

/// Names of ways, with commas.
pub fn names_of(ways: &[Way]) -> String {
    ways.iter().map(|way| way.name()).collect::<Vec<_>>().join(", ")
}

impl PartialEq for Way {
    fn eq(&self, other: &Way) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Way {}

impl Hash for Way {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Way {
    type Err = String;
    fn from_str(text: &str) -> Result<Way, String> {
        let is_called = |way: &&Way| way.name() == text || way.0.alias == Some(text);
        Way::ALL
            .iter()
            .find(is_called)
            .copied()
            .ok_or_else(|| format!("`{text}` is no way to remote memory; there are {}", Way::names()))
    }
}

impl Serialize for Way {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_each_is_there_once() {
        for (nth, way) in Way::ALL.iter().enumerate() {
            assert_eq!(way.name().parse(), Ok(*way));
            assert!(!Way::ALL[nth + 1..].contains(way), "{way} twice");
        }
        assert_eq!("rdma-async".parse(), Ok(Way::RDMA));
        assert!("cowbird".parse::<Way>().unwrap_err().contains("cowbird-spot"));
        assert_eq!((Way::RDMA_SYNC.depth(100), Way::COWBIRD_P4.depth(100)), (1, 100));
    }

    #[test]
    fn ways_have_names_for_files_and_for_people() {
        assert_eq!(Way::TCP.title(), "TCP");
        assert_eq!((Way::EDM_TIMED.name(), Way::EDM_TIMED.title()), ("edm-timed", "EDM, timed"));
        assert_eq!(format!("{:>6}|{:<6}|", Way::TCP, Way::RDMA), "   tcp|rdma  |", "columns of tables");
        assert!(Way::names().starts_with("local, delayed, tcp, rdma-sync, "), "{}", Way::names());
        assert_eq!((Way::names().split(", ").count(), names_of(&[])), (Way::ALL.len(), String::new()));
        assert_eq!(names_of(Way::OF_COWBIRD), "local, rdma-sync, rdma, cowbird-spot, cowbird-p4");
    }

    #[test]
    fn each_way_says_what_it_needs() {
        let of = |way: Way| {
            let Definition { scheme, link, service, engine, atomics, .. } = way.definition();
            (*scheme, *link, *service, *engine, *atomics)
        };
        assert_eq!(of(Way::TCP), ("l2", Link::Kernel, Service::Bytes, None, true));
        assert_eq!(of(Way::RDMA), ("l2", Link::Adapter, Service::Pool, None, true));
        assert_eq!(of(Way::EDM_MATCHED), ("edm-matched", Link::Agent, Service::Node, None, true));
        let (spot, p4) = (of(Way::COWBIRD_SPOT), of(Way::COWBIRD_P4));
        assert_eq!(spot, ("l2", Link::Adapter, Service::Pool, Some(Engine::Host), false));
        assert_eq!(p4, ("cowbird", Link::Adapter, Service::Pool, Some(Engine::Switch), false));
        let near: Vec<Way> = Way::ALL.iter().copied().filter(|way| !way.is_remote()).collect();
        assert_eq!(near, [Way::LOCAL]);
    }
}
