//! The balloon over real sockets of this machine, without root: boards lend extents, a service gives them to compute nodes.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

#[path = "common/board.rs"]
mod board;

use board::with_board;
use p4rack_fabric::balloon::{Config, Lent};
use p4rack_hosts::balloon::service::{Service, serve};
use p4rack_hosts::balloon::{LeaseError, Tenancy, list, release};
use p4rack_hosts::clio::{AskError, Patience, Session};
use p4rack_hosts::roce::pool;
use p4rack_hosts::roce::setup::Server;
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Long enough for a machine that other tests keep busy.
const LIMIT: Duration = Duration::from_secs(60);
const EXTENT: u64 = 2 << 20;
/// Time and tries after which an operation without an answer is given up.
const SHORT: Patience =
    Patience { timeout: Nanos::from_millis(20), retries: 3, target_delay: Nanos::from_millis(20) };

struct Rig {
    runtime: Runtime,
    serving: JoinHandle<()>,
    nodes: Vec<Server>,
    server: Server,
}

/// Starts a service for boards.
fn start(runtime: &Runtime, nodes: Vec<Server>, lease: Nanos) -> (JoinHandle<()>, Server) {
    runtime.block_on(async {
        let config = Config { lease, retry: Nanos::from_millis(50), ..Config::new(nodes.len() as u16) };
        let service = Service::start(nodes, config).unwrap();
        let listener = pool::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let server = Server { addr: listener.local_addr().unwrap().to_string(), tls: None };
        (tokio::spawn(async move { serve(listener, service, None).await.unwrap() }), server)
    })
}

impl Rig {
    fn new(nodes: Vec<Server>, lease: Nanos) -> Rig {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (serving, server) = start(&runtime, nodes.clone(), lease);
        Rig { runtime, serving, nodes, server }
    }

    fn open(&self, holder: u32) -> Tenancy {
        self.runtime.block_on(Tenancy::open(self.server.clone(), holder, LIMIT)).unwrap()
    }

    fn reserve(&self, tenancy: &mut Tenancy) -> (Lent, Session) {
        let (lent, addr) = self.runtime.block_on(tenancy.reserve(EXTENT)).unwrap();
        let session = Tenancy::connect(&lent, &Server { addr, tls: None }, SHORT).unwrap();
        (lent, session)
    }

    /// Waits until that many bytes are free.
    fn until_free(&self, bytes: u64) {
        let end = clock::now() + Nanos(LIMIT.as_nanos() as u64);
        loop {
            let listed = self.runtime.block_on(list(&self.server)).unwrap();
            let free: u64 = listed.nodes.iter().map(|node| node.free_bytes).sum();
            if listed.is_serving && free == bytes {
                return;
            }
            assert!(clock::now() < end, "{free} bytes are free: {listed:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The words at both ends of an extent, after `word` was written there.
fn ends(session: &mut Session, word: Option<u64>) -> Result<[u64; 2], AskError> {
    let (address, bytes) = session.range();
    let mut found = [0; 2];
    for (found, at) in found.iter_mut().zip([address, address + bytes - 8]) {
        if let Some(word) = word {
            session.write(at, &word.to_le_bytes())?;
        }
        *found = u64::from_le_bytes(session.read(at, 8)?.try_into().unwrap());
    }
    Ok(found)
}

#[test]
fn an_extent_is_fenced_and_zeroed_before_another_gets_it() {
    with_board(2 * EXTENT, |place| {
        let rig = Rig::new(vec![place.memory.clone().unwrap()], Nanos::from_secs(60));
        let (mut one, mut other) = (rig.open(1), rig.open(2));
        let (lent, mut session) = rig.reserve(&mut one);
        assert_eq!(ends(&mut session, None).unwrap(), [0, 0]);
        assert_eq!(ends(&mut session, Some(77)).unwrap(), [77, 77]);
        rig.runtime.block_on(one.online(lent.extent)).unwrap();
        let refused = rig.runtime.block_on(one.give_back(lent.extent)).unwrap_err().to_string();
        assert!(refused.contains("offline first"), "{refused}");
        rig.runtime.block_on(one.offline(lent.extent)).unwrap();
        rig.runtime.block_on(one.give_back(lent.extent)).unwrap();
        rig.until_free(2 * EXTENT);
        // All of the memory, so that every frame is used again.
        let again = [rig.reserve(&mut other), rig.reserve(&mut other)];
        assert_eq!(again[0].0.extent.place, lent.extent.place);
        let late = ends(&mut session, Some(78)).unwrap_err();
        assert!(matches!(late, AskError::Unknown | AskError::Failed(_)), "{late}");
        for (_, mut session) in again {
            assert_eq!(ends(&mut session, None).unwrap(), [0, 0], "no word of the former holder");
        }
        let full = rig.runtime.block_on(other.reserve(EXTENT)).unwrap_err().to_string();
        assert!(full.contains("no memory node has a free range"), "{full}");
        assert_eq!(rig.runtime.block_on(release(&rig.server, 2)).unwrap(), 2);
        assert!(matches!(rig.runtime.block_on(other.renew()), Err(LeaseError::Ended)));
        rig.until_free(2 * EXTENT);
    });
}

#[test]
fn what_a_dead_compute_node_held_comes_back_with_its_lease() {
    with_board(EXTENT, |place| {
        let rig = Rig::new(vec![place.memory.clone().unwrap()], Nanos::from_secs(2));
        let mut dead = rig.open(1);
        let (_, mut session) = rig.reserve(&mut dead);
        assert_eq!(ends(&mut session, Some(5)).unwrap(), [5, 5]);
        drop(dead);
        rig.until_free(EXTENT);
        assert!(ends(&mut session, Some(6)).is_err(), "it is fenced");
        let mut next = rig.open(2);
        assert_eq!(ends(&mut rig.reserve(&mut next).1, None).unwrap(), [0, 0]);
    });
}

#[test]
fn a_service_that_starts_anew_knows_what_is_lent_and_the_bytes_stay() {
    with_board(2 * EXTENT, |first| {
        with_board(EXTENT, |second| {
            let nodes = vec![first.memory.clone().unwrap(), second.memory.clone().unwrap()];
            let mut rig = Rig::new(nodes, Nanos::from_secs(60));
            let mut tenancy = rig.open(1);
            let mut all: Vec<_> = (0..3).map(|_| rig.reserve(&mut tenancy)).collect();
            let at: Vec<u16> = all.iter().map(|(lent, _)| lent.extent.place.node).collect();
            assert_eq!(at, [0, 0, 1], "first fit");
            for (nth, (_, session)) in all.iter_mut().enumerate() {
                ends(session, Some(nth as u64 + 1)).unwrap();
            }
            rig.serving.abort();
            (rig.serving, rig.server) = start(&rig.runtime, rig.nodes.clone(), Nanos::from_secs(60));
            rig.until_free(0);
            // The same session, at the next service.
            tenancy.ask_at(rig.server.clone());
            let held = rig.runtime.block_on(tenancy.renew()).unwrap();
            let extents: Vec<_> = held.iter().map(|(lent, _)| lent.extent).collect();
            assert_eq!(extents, all.iter().map(|(lent, _)| lent.extent).collect::<Vec<_>>());
            for (nth, (_, session)) in all.iter_mut().enumerate() {
                assert_eq!(ends(session, None).unwrap(), [nth as u64 + 1; 2]);
            }
            rig.runtime.block_on(tenancy.close()).unwrap();
            rig.until_free(3 * EXTENT);
        });
    });
}
