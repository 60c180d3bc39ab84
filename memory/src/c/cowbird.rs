//! Cowbird's client, as `include/p4rack_cowbird.h` declares and explains it.

use super::{Status, needed, tell, text};
use p4rack_cowbird::{Layout, PollError, PollId, Refused, RequestId};
use p4rack_fabric::roce::Config;
use p4rack_hosts::cowbird::node::ThreadClient;
use p4rack_hosts::cowbird::{CowbirdNode, NodeConfig, NodeState};
use p4rack_hosts::roce::Loss;
use p4rack_hosts::roce::setup::Server;
use p4rack_hosts::roce::tls::ClientTls;
use p4rack_wire::Nanos;
use p4rack_wire::roce::Mtu;
use std::ffi::{c_char, c_void};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Default sizes.
const ENTRIES: u64 = 256;
const RING_BYTES: u64 = 64 << 10;
const MTU_BYTES: u32 = 1_024;
/// Retransmission timeout: processes that share a machine wake late.
const TIMEOUT: Nanos = Nanos::from_millis(20);

/// Configuration of a compute node. Pointers and counts are the caller's.
#[derive(Debug)]
#[repr(C)]
pub struct CallerConfig {
    /// Interface of its adapter.
    pub interface: *const c_char,
    /// Address of its adapter.
    pub ip: *const c_char,
    /// Set-up service of the pool.
    pub pool: *const c_char,
    /// Set-up services of engines.
    pub engines: *const *const c_char,
    /// Sizes of remote regions.
    pub region_bytes: *const u64,
    /// Entries of each request ring; 0 is the default.
    pub entries: u64,
    /// Bytes of each data ring; 0 is the default.
    pub ring_bytes: u64,
    /// Number of engines.
    pub engine_count: u32,
    /// Number of regions.
    pub region_count: u32,
    /// Number of threads.
    pub threads: u32,
    /// Bytes of a packet's payload; 0 is the default.
    pub mtu_bytes: u32,
    /// Whether frames with a wrong iCRC are accepted: 0 or 1.
    pub ignore_icrc: u32,
    /// Authority of the servers' certificates; null is plain text.
    pub ca_cert: *const c_char,
    /// Our certificate, or null.
    pub cert: *const c_char,
    /// Its key; null without a certificate.
    pub private_key: *const c_char,
    /// Name in the servers' certificates, or null.
    pub server_name: *const c_char,
}

/// A compute node, and the rings that no thread has taken.
#[derive(Debug)]
pub struct ComputeNode {
    node: CowbirdNode,
    left: Vec<Rings>,
}

/// The rings of a thread, and the destinations of its reads.
#[derive(Debug)]
pub struct Rings {
    client: ThreadClient,
    /// Destinations by number of the read, one per read that may be in flight.
    dests: Vec<*mut u8>,
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Status {
        match refused {
            Refused::RequestsFull | Refused::RequestDataFull | Refused::ResponseDataFull => Status::Full,
            Refused::UnknownRegion | Refused::OutOfBounds => Status::OutOfBounds,
            Refused::BadLength => Status::BadLength,
            Refused::Ended(_) => Status::Gone,
        }
    }
}

impl From<PollError> for Status {
    fn from(error: PollError) -> Status {
        match error {
            PollError::UnknownGroup | PollError::UnknownRequest | PollError::Twice => Status::BadArgument,
            PollError::Ended(_) | PollError::Corrupt => Status::Gone,
        }
    }
}

/// A slice of the caller's.
///
/// # Safety
/// There are `count` of them and they outlive the call, or it is null or `count` is 0.
unsafe fn slice<'a, T>(pointer: *const T, count: u32, name: &str) -> Result<&'a [T], String> {
    match (pointer.is_null(), count) {
        (_, 0) => Err(format!("there is none in {name}: it needs at least one")),
        (true, _) => Err(format!("{name} is NULL")),
        // SAFETY: the caller promises it.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(pointer, count as usize) }),
    }
}

fn or(given: u64, default: u64) -> u64 {
    if given == 0 { default } else { given }
}

/// Encryption of set-ups; `None` is plain text.
///
/// # Safety
/// As [`p4rack_cowbird_open`].
unsafe fn encryption(config: &CallerConfig) -> Result<Option<ClientTls>, String> {
    // SAFETY: the caller promises it of all texts.
    let given = |pointer| unsafe { text(pointer) }.transpose();
    let (ca, server_name) = (given(config.ca_cert)?, given(config.server_name)?);
    let identity = match (given(config.cert)?, given(config.private_key)?) {
        (Some(cert), Some(key)) => Some((cert.into(), key.into())),
        (None, None) => None,
        (None, _) => return Err("private_key is given without cert".to_owned()),
        (_, None) => return Err("cert is given without private_key".to_owned()),
    };
    match ca {
        Some(ca) => Ok(Some(ClientTls {
            cacert: Some(ca.into()),
            identity,
            server_name: server_name.map(str::to_owned),
        })),
        None if identity.is_some() => Err("cert is given without ca_cert: it would be plain text".to_owned()),
        None if server_name.is_some() => {
            Err("server_name is given without ca_cert: it would be plain text".to_owned())
        }
        None => Ok(None),
    }
}

/// Starts a compute node.
///
/// # Safety
/// As [`p4rack_cowbird_open`].
unsafe fn open(config: &CallerConfig) -> Result<ComputeNode, String> {
    // SAFETY: the caller promises it of all texts.
    let words = |pointer, name| unsafe { needed(pointer, name) };
    // SAFETY: the caller promises it.
    let tls = unsafe { encryption(config) }?;
    let server = |addr: &str| Server { addr: addr.to_owned(), tls: tls.clone() };
    // SAFETY: the caller promises both.
    let (engines, regions) = unsafe {
        let engines = slice(config.engines, config.engine_count, "engines")?;
        (engines, slice(config.region_bytes, config.region_count, "region_bytes")?)
    };
    let engines: Result<Vec<Server>, String> =
        engines.iter().map(|engine| words(*engine, "an engine").map(server)).collect();
    let ip = words(config.ip, "ip")?;
    let ip: Ipv4Addr = ip.parse().map_err(|_| format!("ip is `{ip}`, which is no IPv4 address"))?;
    let (entries, ring) = (or(config.entries, ENTRIES), or(config.ring_bytes, RING_BYTES));
    let mtu_bytes = or(config.mtu_bytes.into(), MTU_BYTES.into());
    let mtu = Mtu::ALL.into_iter().find(|mtu| u64::from(mtu.bytes()) == mtu_bytes);
    let mtu =
        mtu.ok_or_else(|| format!("mtu_bytes is {mtu_bytes}: 256, 512, 1024, 2048 or 4096 is possible"))?;
    if config.threads == 0 {
        return Err("threads is 0: there has to be one".to_owned());
    }
    let icrc_verified = match config.ignore_icrc {
        0 => true,
        1 => false,
        other => return Err(format!("ignore_icrc is {other}: 0 or 1 is possible")),
    };
    let config = NodeConfig {
        interface: words(config.interface, "interface")?.to_owned(),
        ip,
        adapter: Config { mtu, timeout: TIMEOUT, icrc_verified, ..Config::default() },
        loss: Loss::default(),
        pool: server(words(config.pool, "pool")?),
        engines: engines?,
        layout: Layout { entries, request_bytes: ring, response_bytes: ring },
        threads: config.threads as usize,
        region_bytes: regions.to_vec(),
    };
    let (node, clients) = CowbirdNode::start(config).map_err(|error| error.to_string())?;
    let rings = |client| Rings { client, dests: vec![std::ptr::null_mut(); entries as usize] };
    Ok(ComputeNode { node, left: clients.into_iter().map(rings).collect() })
}

/// Starts a compute node; see the header.
///
/// # Safety
/// `config` and all that it points to can be read; texts end with a zero. `error` can be written for `error_length` bytes or is
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_open(
    config: *const CallerConfig,
    error: *mut c_char,
    error_length: usize,
) -> *mut ComputeNode {
    // SAFETY: the caller promises all of it.
    let opened = match unsafe { config.as_ref() } {
        Some(config) => unsafe { open(config) },
        None => Err("config is NULL".to_owned()),
    };
    match opened {
        Ok(node) => Box::into_raw(Box::new(node)),
        Err(why) => {
            // SAFETY: the caller promises it.
            unsafe { tell(&why, error, error_length) };
            std::ptr::null_mut()
        }
    }
}

/// Ends a compute node; see the header.
///
/// # Safety
/// It is null, or of [`p4rack_cowbird_open`] and not ended yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_close(node: *mut ComputeNode) {
    if !node.is_null() {
        // SAFETY: the caller promises it.
        drop(unsafe { Box::from_raw(node) });
    }
}

/// Servers of a compute node; see the header.
///
/// # Safety
/// The node is open or null. `into` can be written for `length` bytes or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_look(
    node: *const ComputeNode,
    into: *mut c_char,
    length: usize,
) -> u32 {
    // SAFETY: the caller promises it.
    let state = unsafe { node.as_ref() }.map(|node| node.node.state());
    let (number, words) = match state {
        Some(NodeState::Served(engine)) => (0, engine),
        Some(NodeState::Unserved(why)) => (1, why),
        Some(NodeState::Lost(why)) => (2, why),
        None => (2, "the node is NULL".to_owned()),
    };
    // SAFETY: the caller promises it.
    unsafe { tell(&words, into, length) };
    number
}

/// The rings for another thread; see the header.
///
/// # Safety
/// The node is open and used by no other thread during the call, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_take(node: *mut ComputeNode) -> *mut Rings {
    // SAFETY: the caller promises it.
    let rings = unsafe { node.as_mut() }.and_then(|node| node.left.pop());
    rings.map_or(std::ptr::null_mut(), |rings| Box::into_raw(Box::new(rings)))
}

/// Ends rings; see the header.
///
/// # Safety
/// They are null, or of [`p4rack_cowbird_take`] and not ended yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_thread_close(rings: *mut Rings) {
    if !rings.is_null() {
        // SAFETY: the caller promises it.
        drop(unsafe { Box::from_raw(rings) });
    }
}

/// Stores a request's number for the caller.
///
/// # Safety
/// `request` is a word.
unsafe fn asked(id: Result<RequestId, Refused>, request: *mut u64) -> Status {
    match id {
        Ok(id) => {
            // SAFETY: the caller promises it.
            unsafe { request.write(id.0) };
            Status::Ok
        }
        Err(refused) => refused.into(),
    }
}

/// Issues a read; see the header.
///
/// # Safety
/// The rings are open and used by no other thread during the call, or null.
/// `dest` can be written for `length` bytes until the request is reported;
/// `request` is a word or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_async_read(
    rings: *mut Rings,
    region: u16,
    src: u64,
    dest: *mut c_void,
    length: u32,
    request: *mut u64,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(rings) = (unsafe { rings.as_mut() }) else { return Status::BadArgument };
    if dest.is_null() || request.is_null() {
        return Status::BadArgument;
    }
    let id = rings.client.async_read(region, src, length);
    if let Ok(id) = id {
        let slot = rings.slot(id);
        rings.dests[slot] = dest.cast();
    }
    // SAFETY: the caller promises it, and it is not null.
    unsafe { asked(id, request) }
}

/// Issues a write; see the header.
///
/// # Safety
/// The rings are open and used by no other thread during the call, or null.
/// `src` can be read for `length` bytes; `request` is a word or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_async_write(
    rings: *mut Rings,
    region: u16,
    src: *const c_void,
    dest: u64,
    length: u32,
    request: *mut u64,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(rings) = (unsafe { rings.as_mut() }) else { return Status::BadArgument };
    if src.is_null() || request.is_null() {
        return Status::BadArgument;
    }
    // SAFETY: the caller promises it, and it is not null.
    let bytes = unsafe { std::slice::from_raw_parts(src.cast(), length as usize) };
    let id = rings.client.async_write(region, bytes, dest);
    // SAFETY: the caller promises it, and it is not null.
    unsafe { asked(id, request) }
}

/// Makes a group; see the header.
///
/// # Safety
/// The rings are open and used by no other thread during the call, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_poll_create(rings: *mut Rings) -> u32 {
    // SAFETY: the caller promises it.
    unsafe { rings.as_mut() }.map_or(u32::MAX, |rings| rings.client.poll_create().number())
}

/// Adds a request to a group; see the header.
///
/// # Safety
/// The rings are open and used by no other thread during the call, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_poll_add(rings: *mut Rings, poll: u32, request: u64) -> Status {
    // SAFETY: the caller promises it.
    let Some(rings) = (unsafe { rings.as_mut() }) else { return Status::BadArgument };
    let added = rings.client.poll_add(PollId::of_number(poll), RequestId(request));
    added.map_or_else(Status::from, |()| Status::Ok)
}

/// Removes a request from a group; see the header.
///
/// # Safety
/// The rings are open and used by no other thread during the call, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_poll_remove(rings: *mut Rings, poll: u32, request: u64) -> Status {
    // SAFETY: the caller promises it.
    let Some(rings) = (unsafe { rings.as_mut() }) else { return Status::BadArgument };
    match rings.client.poll_remove(PollId::of_number(poll), RequestId(request)) {
        Ok(true) => Status::Ok,
        Ok(false) => Status::BadArgument,
        Err(error) => error.into(),
    }
}

/// Waits for requests of a group; see the header.
///
/// # Safety
/// The rings are open and used by no other thread during the call, or null.
/// `requests` are `max` words, `count` is one, or they are null. Destinations of reads are still valid, as promised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_cowbird_poll_wait(
    rings: *mut Rings,
    poll: u32,
    requests: *mut u64,
    max: usize,
    timeout_us: u64,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(rings) = (unsafe { rings.as_mut() }) else { return Status::BadArgument };
    if requests.is_null() || count.is_null() {
        return Status::BadArgument;
    }
    let Rings { client, dests } = rings;
    let mut told = 0;
    let waited =
        client.poll_wait(PollId::of_number(poll), max, Duration::from_micros(timeout_us), |response| {
            if let Some(data) = response.data {
                let dest = dests[slot(response.id, dests.len())];
                // SAFETY: `async_read` was given it for that many bytes, which are the caller's until now.
                data.copy_to(unsafe { std::slice::from_raw_parts_mut(dest, data.len()) });
            }
            // SAFETY: the caller promises `max` words, and there are no more responses.
            unsafe { requests.add(told).write(response.id.0) };
            told += 1;
        });
    // SAFETY: the caller promises it, and it is not null.
    unsafe { count.write(told) };
    waited.map_or_else(Status::from, |_| Status::Ok)
}

/// Index of a read's destination. Fewer reads than entries are in flight, so no two share an index.
fn slot(id: RequestId, entries: usize) -> usize {
    id.number().wrapping_sub(1) as usize & (entries - 1)
}

impl Rings {
    fn slot(&self, id: RequestId) -> usize {
        slot(id, self.dests.len())
    }
}
