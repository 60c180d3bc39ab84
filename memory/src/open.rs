//! Another host's memory, by the name of the way to it.

use crate::{BOARD_PORT, BYTES_PORT, NoMemory, POOL_PORT, client, memory_node, node};
use p4rack_codegen::Rack;
use p4rack_codegen::rack::Host;
use p4rack_codegen::scheme::clio::Clio;
use p4rack_fabric::remote::{Engine, Link, Service, Way};
use p4rack_fabric::roce::Config;
use p4rack_hosts::clio::ClioError;
use p4rack_hosts::clio::Patience;
use p4rack_hosts::memory::{EdmPortError, NotHere};
use p4rack_hosts::paging::MappingError;
use p4rack_hosts::region::RegionError;
use p4rack_hosts::remote::{
    self, Attachment, Granted, Held, Own, Region, Remote, RemoteError, Shape, UnderWay,
};
use p4rack_hosts::roce::setup::Server;
use p4rack_hosts::roce::tls::ClientTls;
use p4rack_wire::Nanos;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Operations of a kind in flight over rings, and bytes of the longest: the default limits of an engine in a switch.
const UNDER_WAY: u64 = 32;
const LONGEST_BYTES: u32 = 1_024;
/// Retransmission timeout of an adapter: processes that share a machine wake late.
const TIMEOUT: Nanos = Nanos::from_millis(20);

/// The memory that a program uses, the program's host, and the way.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    /// Name of the program's host.
    pub host: &'a str,
    /// Its interface; `None`: the one with the host's address.
    pub interface: Option<&'a str>,
    /// Name of the host with the memory. By Clio it may be several with a comma in between: the region goes on from board to board.
    pub at: &'a str,
    /// The way; `None`: the scheme's.
    pub way: Option<Way>,
    /// Key of the region of a memory node of EDM.
    pub key: u32,
    /// Address of the memory's service, `HOST:PORT`, or as many with commas in between as `at` has hosts; `None`: the default port of
    /// the host with the memory.
    pub memory: Option<&'a str>,
    /// Address of an engine of Cowbird, `HOST:PORT`.
    pub engine: Option<&'a str>,
    /// How the set-ups of a pool and an engine are encrypted; `None`: not at all.
    pub tls: Option<ClientTls>,
    /// Bytes to reserve in a pool; 0: use the memory that it offers to all.
    pub reserve_bytes: u64,
}

impl<'a> Access<'a> {
    /// The memory of `at` from `host`, by the scheme's way, under key 1.
    pub fn new(host: &'a str, at: &'a str) -> Access<'a> {
        Access {
            host,
            interface: None,
            at,
            way: None,
            key: 1,
            memory: None,
            engine: None,
            tls: None,
            reserve_bytes: 0,
        }
    }
}

/// Why memory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The description has no such memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// The interface is not the host's.
    #[error(transparent)]
    NotHere(#[from] NotHere),
    /// The way did not open.
    #[error(transparent)]
    Way(#[from] RemoteError),
    /// A board of Clio can't be used.
    #[error(transparent)]
    Board(#[from] ClioError),
    /// A cached region can't be made of it.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// A mapping can't be made of it.
    #[error(transparent)]
    Mapping(#[from] MappingError),
}

impl OpenError {
    /// The reason that marks the place as wrong, if that is the cause.
    pub fn not_here(&self) -> Option<&NotHere> {
        match self {
            OpenError::NotHere(place) | OpenError::Way(RemoteError::Edm(EdmPortError::NotHere(place))) => {
                Some(place)
            }
            _ => None,
        }
    }
}

/// Another host's memory: a region of it, or all of it.
pub struct Memory {
    region: Region,
    way: Way,
    // Last: the lease ends after the way is closed.
    _held: Held,
}

impl Memory {
    /// The way to it.
    pub fn way(&self) -> Way {
        self.way
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("way", &self.way).finish_non_exhaustive()
    }
}

impl Deref for Memory {
    type Target = Region;
    fn deref(&self) -> &Region {
        &self.region
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut Region {
        &mut self.region
    }
}

/// The named way, or the scheme's.
pub fn way(rack: &Rack, named: Option<Way>) -> Result<Way, NoMemory> {
    named.or_else(|| rack.scheme().way()).ok_or_else(|| {
        let what = "has no way to remote memory under this scheme: name one";
        NoMemory(format!("rack {}: {what} of {}", rack.name, Way::names()))
    })
}

/// Error: the description has boards, and `name` is none of them.
pub fn board(rack: &Rack, name: &str) -> Result<(), NoMemory> {
    match rack.protocol::<Clio>().filter(|clio| !clio.boards.iter().any(|board| board == name)) {
        Some(clio) => {
            Err(NoMemory(format!("{name} has no board: clio.boards has {}", clio.boards.join(", "))))
        }
        None => Ok(()),
    }
}

/// The set-up services of the hosts' boards that `access` names. Errors: a host is not in the rack, has no board, or is named twice; not
/// as many addresses are given.
pub(crate) fn boards(rack: &Rack, access: &Access<'_>) -> Result<Vec<Server>, NoMemory> {
    let names: Vec<&str> = access.at.split(',').map(str::trim).collect();
    let given: Option<Vec<&str>> = access.memory.map(|addrs| addrs.split(',').map(str::trim).collect());
    if let Some(given) = given.as_ref().filter(|given| given.len() != names.len()) {
        let why = format!("{} addresses of boards for {} hosts: give one for each", given.len(), names.len());
        return Err(NoMemory(why));
    }
    let mut servers = Vec::with_capacity(names.len());
    for (nth, name) in names.iter().enumerate() {
        let there = &rack.hosts[usize::from(node(rack, name)?)];
        board(rack, name)?;
        if names[..nth].contains(name) {
            return Err(NoMemory(format!("{name} is named twice: its board has one part of the region")));
        }
        let addr = given.as_ref().map(|given| given[nth].to_owned());
        let addr = addr.unwrap_or_else(|| format!("{}:{BOARD_PORT}", there.ip));
        servers.push(Server { addr, tls: access.tls.clone() });
    }
    Ok(servers)
}

/// How long clients of the rack's boards wait, as described or by default.
pub fn patience(rack: &Rack) -> Patience {
    rack.protocol::<Clio>().map(Clio::patience).unwrap_or_default()
}

/// Opens another host's memory, from the calling thread's network namespace. `rack` is under the scheme that runs.
pub fn open(rack: &Rack, access: &Access<'_>) -> Result<Memory, OpenError> {
    let (way, remote, held) = connect(rack, access)?;
    Ok(Memory { region: Region::new(remote), way, _held: held })
}

/// Opens an extent that a balloon has lent, from the calling thread's network namespace. `access.memory` is the set-up service of its
/// memory node, which comes with the extent; the host with the memory, the way, the key and the engine mean nothing here. Errors: the
/// memory node can't be reached, or the extent has gone back.
pub fn open_extent(rack: &Rack, access: &Access<'_>, extent: &Granted) -> Result<Memory, OpenError> {
    let (remote, held) = connect_extent(rack, access, extent)?;
    Ok(Memory { region: Region::new(remote), way: extent.way(), _held: held })
}

/// The bare way to an extent.
pub(crate) fn connect_extent(
    rack: &Rack,
    access: &Access<'_>,
    extent: &Granted,
) -> Result<remote::Opened, OpenError> {
    let own = &rack.hosts[usize::from(node(rack, access.host)?)];
    let Some(addr) = access.memory else {
        return Err(NoMemory(
            "an extent is reached by the set-up service of its memory node: name it".into(),
        )
        .into());
    };
    let memory = Server { addr: addr.to_owned(), tls: access.tls.clone() };
    Ok(extent.open(attachment(rack, access, own, extent.way(), Some(memory))?)?)
}

/// This end of a way, whose memory has this service.
fn attachment(
    rack: &Rack,
    access: &Access<'_>,
    own: &Host,
    way: Way,
    memory: Option<Server>,
) -> Result<Attachment, OpenError> {
    let definition = way.definition();
    let icrc_verified = definition.engine != Some(Engine::Switch);
    let adapter = Config { icrc_verified, timeout: TIMEOUT, ..Config::default() };
    let mut attachment = Attachment {
        interface: String::new(),
        ip: own.ip,
        adapter,
        memory,
        more_boards: Vec::new(),
        engines: Vec::new(),
        node: None,
        shared: access.reserve_bytes == 0,
        patience: patience(rack),
    };
    match definition.link {
        // The memory is the program's own.
        Link::Kernel if definition.service == Service::None && access.interface.is_none() => {}
        Link::Kernel => routed(access, &described(own))?,
        link => attachment.interface = at_all(rack, own).interface(link, access.interface)?,
    }
    Ok(attachment)
}

/// Checks where a way runs that the kernel routes: an interface that is named has to be the host's. An address of the memory's
/// service that is given may be any, such as one of loopback; the description's is meant for the host. No packet is sent before.
fn routed(access: &Access<'_>, own: &Own<'_>) -> Result<(), NotHere> {
    match (access.interface, access.memory) {
        (Some(named), _) => own.interface(Link::Kernel, Some(named)).map(drop),
        (None, None) => own.address(),
        (None, Some(_)) => Ok(()),
    }
}

/// The same for a client of a board. Errors: the rack has no such host, or this is another.
pub(crate) fn routed_here(rack: &Rack, access: &Access<'_>) -> Result<(), OpenError> {
    let own = &rack.hosts[usize::from(node(rack, access.host)?)];
    Ok(routed(access, &described(own))?)
}

/// Checks that this is one of the rack's hosts, for a client of `at`, one host or several with commas in between, that does not name its
/// own. Errors: it is none.
pub(crate) fn on_some_host(rack: &Rack, at: &str) -> Result<(), NotHere> {
    let is_here = |host: &Host| described(host).address().is_ok();
    let has_board = |host: &Host| at.split(',').any(|name| name.trim() == host.name);
    match rack.hosts.iter().find(|host| !has_board(host)) {
        Some(client) if !rack.hosts.iter().any(is_here) => described(client).address(),
        _ => Ok(()),
    }
}

fn described(host: &Host) -> Own<'_> {
    Own { name: &host.name, mac: host.mac, ip: host.ip, links: 1 }
}

/// A host with all its links to the rack.
fn at_all<'a>(rack: &Rack, host: &'a Host) -> Own<'a> {
    Own { links: rack.switch.tors.into(), ..described(host) }
}

/// The bare way to another host's memory, and the guard of its end.
pub(crate) fn connect(rack: &Rack, access: &Access<'_>) -> Result<(Way, Box<dyn Remote>, Held), OpenError> {
    let way = way(rack, access.way)?;
    let definition = way.definition();
    let own = &rack.hosts[usize::from(node(rack, access.host)?)];
    let server = |addr: String| Server { addr, tls: access.tls.clone() };
    let port = match definition.service {
        Service::Bytes => Some(BYTES_PORT),
        Service::Pool => Some(POOL_PORT),
        Service::Board | Service::None | Service::Node => None,
    };
    let servers = match definition.service {
        Service::Board => boards(rack, access)?,
        _ => {
            let there = &rack.hosts[usize::from(node(rack, access.at)?)];
            let addr = access.memory.map(str::to_owned);
            addr.or_else(|| port.map(|port| format!("{}:{port}", there.ip))).map(server).into_iter().collect()
        }
    };
    let mut servers = servers.into_iter();
    let mut attachment = attachment(rack, access, own, way, servers.next())?;
    attachment.more_boards = servers.collect();
    attachment.engines = access.engine.map(str::to_owned).map(server).into_iter().collect();
    if definition.service == Service::Node {
        let under = match rack.scheme().way() {
            Some(running) if running == way => rack.clone(),
            _ => rack.under(rack.by(way).scheme).map_err(|error| NoMemory(error.to_string()))?,
        };
        let remote = p4rack_hosts::memory::Remote { node: memory_node(&under, access.at)?, key: access.key };
        attachment.node = Some((client(&under, own, &attachment.interface)?, remote));
    }
    let under_way = UnderWay::of(UNDER_WAY, LONGEST_BYTES);
    let shape = Shape { region_bytes: access.reserve_bytes, reads: under_way, writes: under_way };
    let (remote, held) = remote::open(way, attachment, shape)?;
    Ok((way, remote, held))
}

#[cfg(test)]
mod tests {
    use p4rack_codegen::scheme::edm::Mode;
    use p4rack_fabric::remote::Service;

    #[test]
    fn every_mode_of_edm_is_a_way() {
        for mode in Mode::ALL {
            let way = mode.scheme().way();
            assert!(way.is_some_and(|way| way.definition().service == Service::Node), "{mode:?}: {way:?}");
        }
    }
}
