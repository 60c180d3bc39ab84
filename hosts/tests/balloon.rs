//! The balloon over real sockets of this machine, without root: boards lend extents, a service gives them to compute nodes.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::board;

use board::{key, with_board};
use p4rack_fabric::balloon::{Config, Epoch, Extent, Lent, Place};
use p4rack_hosts::balloon::service::{Service, ServiceError, serve};
use p4rack_hosts::balloon::{Key, LeaseError, Listed, Phase, Tenancy, leave, list, release};
use p4rack_hosts::clio::{AskError, Patience, Session};
use p4rack_hosts::region::{RegionConfig, RemoteRegion};
use p4rack_hosts::remote::{Attachment, Movable};
use p4rack_hosts::roce::pool;
use p4rack_hosts::roce::setup::Server;
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::balloon::v1::balloon_server::{Balloon as Rpc, BalloonServer};
use p4rack_p4rt::p4rack::balloon::v1::node_client::NodeClient;
use p4rack_p4rt::p4rack::balloon::v1::{
    AskRequest, AskResponse, Command, Join, LeaveRequest, LeaveResponse, ListRequest, ListResponse, Term,
    command,
};
use p4rack_wire::{Nanos, SplitMix};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::{Code, Request, Response, Status};

/// Long enough for a machine that other tests keep busy.
const LIMIT: Duration = Duration::from_secs(60);
const EXTENT: u64 = 2 << 20;
/// Time and tries after which an operation without an answer is given up. Calls that have to succeed are tried again.
const SHORT: Patience =
    Patience { timeout: Nanos::from_millis(20), retries: 3, target_delay: Nanos::from_millis(20) };

type Serving = JoinHandle<Result<(), ServiceError>>;

struct Rig {
    runtime: Runtime,
    serving: Serving,
    nodes: Vec<Server>,
    server: Server,
}

fn config(nodes: usize, lease: Nanos) -> Config {
    Config { lease, retry: Nanos::from_millis(50), ..Config::new(nodes as u16) }
}

/// Starts a service for boards.
fn start(runtime: &Runtime, nodes: Vec<Server>, key: &Key, config: Config) -> (Serving, Server) {
    runtime.block_on(async {
        let service = Service::start(nodes, key, config).unwrap();
        let listener = pool::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let server = Server { addr: listener.local_addr().unwrap().to_string(), tls: None };
        (tokio::spawn(async move { serve(listener, service, None).await }), server)
    })
}

impl Rig {
    fn new(nodes: Vec<Server>, lease: Nanos) -> Rig {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (serving, server) = start(&runtime, nodes.clone(), &key(), config(nodes.len(), lease));
        Rig { runtime, serving, nodes, server }
    }

    /// Starts another service for the same boards, and goes on with that one. Returns the earlier one.
    fn start_anew(&mut self, lease: Nanos) -> Serving {
        let config = config(self.nodes.len(), lease);
        let (serving, server) = start(&self.runtime, self.nodes.clone(), &key(), config);
        self.server = server;
        std::mem::replace(&mut self.serving, serving)
    }

    /// Why a service ends.
    fn end(&self, serving: Serving) -> String {
        let ended = self.runtime.block_on(async { tokio::time::timeout(LIMIT, serving).await });
        ended.expect("it ends in time").unwrap().unwrap_err().to_string()
    }

    fn open(&self, holder: u32) -> Tenancy {
        self.runtime.block_on(Tenancy::open(self.server.clone(), holder, LIMIT)).unwrap()
    }

    fn reserve(&self, tenancy: &mut Tenancy) -> (Lent, Session) {
        let (lent, addr) = self.runtime.block_on(tenancy.reserve(EXTENT)).unwrap();
        let session = Tenancy::connect(&lent, &Server { addr, tls: None }, SHORT).unwrap();
        (lent, session)
    }

    /// Waits until the service lists something.
    fn until(&self, mut is_so: impl FnMut(&Listed) -> bool) {
        let end = clock::now() + Nanos(LIMIT.as_nanos() as u64);
        loop {
            let listed = self.runtime.block_on(list(&self.server)).unwrap();
            if is_so(&listed) {
                return;
            }
            assert!(clock::now() < end, "{listed:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until that many bytes are free.
    fn until_free(&self, bytes: u64) {
        self.until(|listed| {
            let free: Option<u64> = listed.nodes.iter().map(|node| Some(node.facts.memory?.free_bytes)).sum();
            listed.phase == Phase::Serving && free == Some(bytes)
        });
    }
}

/// The words at both ends of an extent, after `word` was written there, however busy the machine is.
fn words(session: &mut Session, word: Option<u64>) -> [u64; 2] {
    let end = clock::now() + Nanos(LIMIT.as_nanos() as u64);
    loop {
        match ends(session, word) {
            Ok(words) => return words,
            Err(AskError::Unknown) if clock::now() < end => {}
            Err(error) => panic!("{error}"),
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
        assert_eq!(words(&mut session, None), [0, 0]);
        assert_eq!(words(&mut session, Some(77)), [77, 77]);
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
            assert_eq!(words(&mut session, None), [0, 0], "no word of the former holder");
        }
        let full = rig.runtime.block_on(other.reserve(EXTENT)).unwrap_err();
        assert!(matches!(full, LeaseError::Full(_)), "{full:?}");
        assert!(full.to_string().contains("no memory node has a free range"), "{full}");
        assert_eq!(rig.runtime.block_on(release(&rig.server, 2)).unwrap(), 2);
        assert!(matches!(rig.runtime.block_on(other.renew()), Err(LeaseError::Ended(_))));
        rig.until_free(2 * EXTENT);
    });
}

/// A thread's random accesses to every third word of a region, until `is_over`. Returns its words.
fn uses(region: &RemoteRegion, thread: u64, steps: &AtomicU64, is_over: &AtomicBool) -> Vec<u64> {
    let mut random = SplitMix(thread);
    let mut words = vec![0u64; (EXTENT / 8 / 3) as usize];
    while !is_over.load(Ordering::Relaxed) {
        let own = random.between(0, words.len() as u64 - 1);
        let (at, last) = ((own * 3 + thread) * 8, &mut words[own as usize]);
        if random.next().is_multiple_of(2) {
            *last = random.next();
            region.write(at, &last.to_be_bytes()).unwrap();
        } else {
            let mut read = [0; 8];
            region.read(at, &mut read).unwrap();
            assert_eq!(u64::from_be_bytes(read), *last, "thread {thread}, word {own}");
        }
        steps.fetch_add(1, Ordering::Relaxed);
    }
    words
}

#[test]
fn an_extent_moves_from_a_memory_node_that_goes_offline_while_threads_use_it() {
    with_board(EXTENT, |first| {
        with_board(EXTENT, |second| {
            let nodes = [first, second].map(|place| place.memory.clone().unwrap());
            let rig = Rig::new(nodes.to_vec(), Nanos::from_secs(60));
            let mut tenancy = rig.open(1);
            let place = first.clone();
            let open = move |lent: &Lent, addr: String| {
                let memory = Some(Server { addr, tls: None });
                Tenancy::open_extent(lent, Attachment { memory, ..place.clone() })
            };
            let (lent, addr) = rig.runtime.block_on(tenancy.reserve(EXTENT)).unwrap();
            assert_eq!((lent.extent.place.node, lent.leaves), (0, false));
            let (remote, held) = open(&lent, addr).unwrap();
            let (movable, mover) = Movable::new(remote);
            let region = RemoteRegion::new(Box::new(movable), &RegionConfig::new(256 << 10)).unwrap();
            let (steps, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
            let go_on = |more: u64| {
                let (from, end) =
                    (steps.load(Ordering::Relaxed), clock::now() + Nanos(LIMIT.as_nanos() as u64));
                while steps.load(Ordering::Relaxed) < from + more {
                    assert!(clock::now() < end, "threads make no progress");
                    std::thread::sleep(Duration::from_millis(5));
                }
            };
            let words: Vec<Vec<u64>> = std::thread::scope(|scope| {
                let start = |thread| {
                    let (region, steps, is_over) = (&region, &steps, &is_over);
                    scope.spawn(move || uses(region, thread, steps, is_over))
                };
                let threads: Vec<_> = (0..3).map(start).collect();
                go_on(300);
                rig.runtime.block_on(leave(&rig.server, 0, true)).unwrap();
                let said = rig.runtime.block_on(leave(&rig.server, 2, true)).unwrap_err().to_string();
                assert!(said.contains("memory node 2; the last one is 1"), "{said}");
                let renewed = rig.runtime.block_on(tenancy.renew()).unwrap();
                assert!(
                    matches!(&renewed[..], [(renewed, _)] if renewed.leaves && renewed.extent == lent.extent)
                );
                let (told, keeps) = mpsc::channel();
                let carry = move |new: Lent, addr: String| {
                    let (remote, held) = open(&new, addr)?;
                    mover.move_to(remote)?;
                    told.send(held).unwrap();
                    Ok(())
                };
                let moved = rig.runtime.block_on(tenancy.move_away(&lent, carry)).unwrap();
                drop(held);
                let held = keeps.recv().unwrap();
                assert_eq!((moved.extent.place.node, moved.leaves), (1, false));
                go_on(300);
                rig.until(|listed| {
                    let extents = listed.extents.iter().map(|facts| facts.extent).collect::<Vec<_>>();
                    listed.nodes[0].facts.leaves
                        && listed.nodes[0].facts.memory.is_some_and(|memory| memory.free_bytes == EXTENT)
                        && extents == [moved.extent]
                });
                is_over.store(true, Ordering::Relaxed);
                let words = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
                region.flush().unwrap();
                let mut bytes = vec![0; EXTENT as usize];
                region.read(0, &mut bytes).unwrap();
                for (at, word) in bytes.chunks_exact(8).enumerate().take((EXTENT / 8 / 3 * 3) as usize) {
                    let words: &Vec<Vec<u64>> = &words;
                    assert_eq!(
                        u64::from_be_bytes(word.try_into().unwrap()),
                        words[at % 3][at / 3],
                        "word {at}"
                    );
                }
                drop(held);
                words
            });
            assert_eq!(words.len(), 3);
        });
    });
}

#[test]
fn what_a_dead_compute_node_held_comes_back_with_its_lease() {
    with_board(EXTENT, |place| {
        let rig = Rig::new(vec![place.memory.clone().unwrap()], Nanos::from_secs(20));
        let mut dead = rig.open(1);
        let (_, mut session) = rig.reserve(&mut dead);
        // However long a busy machine writes, the lease lasts until then.
        let living = rig.runtime.spawn(async move {
            loop {
                dead.renew().await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        assert_eq!(words(&mut session, Some(5)), [5, 5]);
        living.abort();
        assert!(rig.runtime.block_on(living).is_err_and(|ended| ended.is_cancelled()), "it was renewed");
        rig.until_free(EXTENT);
        assert!(ends(&mut session, Some(6)).is_err(), "it is fenced");
        let mut next = rig.open(2);
        assert_eq!(words(&mut rig.reserve(&mut next).1, None), [0, 0]);
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
                words(session, Some(nth as u64 + 1));
            }
            rig.start_anew(Nanos::from_secs(60)).abort();
            rig.until_free(0);
            // The same session, at the next service.
            tenancy.ask_at(rig.server.clone());
            let held = rig.runtime.block_on(tenancy.renew()).unwrap();
            let extents: Vec<_> = held.iter().map(|(lent, _)| lent.extent).collect();
            assert_eq!(extents, all.iter().map(|(lent, _)| lent.extent).collect::<Vec<_>>());
            for (nth, (_, session)) in all.iter_mut().enumerate() {
                assert_eq!(words(session, None), [nth as u64 + 1; 2]);
            }
            rig.runtime.block_on(tenancy.close()).unwrap();
            rig.until_free(3 * EXTENT);
        });
    });
}

#[test]
fn a_superseded_service_says_so_and_ends() {
    with_board(EXTENT, |place| {
        let mut rig = Rig::new(vec![place.memory.clone().unwrap()], Nanos::from_secs(60));
        rig.until_free(EXTENT);
        let first = rig.start_anew(Nanos::from_secs(60));
        rig.until_free(EXTENT);
        let said = rig.end(first);
        assert!(said.contains("superseded: the service of term"), "{said}");
        rig.open(1);
    });
}

#[test]
fn a_board_that_is_named_twice_is_refused() {
    with_board(EXTENT, |place| {
        let board = place.memory.clone().unwrap();
        // Two names of one address.
        let port = board.addr.rsplit_once(':').unwrap().1;
        let again = Server { addr: format!("localhost:{port}"), tls: None };
        let mut rig = Rig::new(vec![board.clone()], Nanos::from_secs(60));
        let mut tenancy = rig.open(1);
        let (_, mut session) = rig.reserve(&mut tenancy);
        words(&mut session, Some(9));
        rig.nodes.push(again);
        rig.start_anew(Nanos::from_secs(60)).abort();
        let serving = std::mem::replace(&mut rig.serving, rig.runtime.spawn(async { Ok(()) }));
        let said = rig.end(serving);
        assert!(said.contains("are the same memory node") && said.contains("localhost"), "{said}");
        assert_eq!(words(&mut session, None), [9, 9], "what is lent stays");
    });
}

#[test]
fn a_board_takes_commands_only_with_its_key() {
    with_board(EXTENT, |place| {
        let board = place.memory.clone().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = runtime.block_on(async {
            let mut client = NodeClient::connect(format!("http://{}", board.addr)).await.unwrap();
            let term = Some(Term { number: u64::MAX, service: 1 });
            let order = Some(command::Order::Join(Join { nonce: 1, node: 0 }));
            client.execute(Command { term, instance: 0, order }).await.unwrap_err()
        });
        assert_eq!(refused.code(), tonic::Code::Unauthenticated);
        let mut rig = Rig::new(vec![board.clone()], Nanos::from_secs(60));
        rig.until_free(EXTENT);
        let other = Key::new(&[8; 32]).unwrap();
        let (serving, server) = start(&rig.runtime, vec![board], &other, config(1, Nanos::from_secs(60)));
        rig.server = server;
        rig.until(|listed| {
            let failure = listed.nodes[0].failure.as_deref();
            failure.is_some_and(|why| why.contains("the key is another one"))
        });
        serving.abort();
    });
}

/// Carries bytes while the gate is open.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    gate: &watch::Receiver<bool>,
) {
    let (mut bytes, mut gate) = ([0; 4_096], gate.clone());
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let is_open = gate.wait_for(|is_open| *is_open).await.is_ok();
        if !is_open || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// Listens before a board. While the gate is shut, nothing passes.
async fn forward(listener: TcpListener, board: String, gate: watch::Receiver<bool>) {
    while let Ok((mut near, _)) = listener.accept().await {
        let (board, gate) = (board.clone(), gate.clone());
        tokio::spawn(async move {
            let Ok(mut far) = TcpStream::connect(board).await else { return };
            let ((near_in, near_out), (far_in, far_out)) = (near.split(), far.split());
            tokio::select! {
                () = carry(near_in, far_out, &gate) => {}
                () = carry(far_in, near_out, &gate) => {}
            }
        });
    }
}

#[test]
fn a_lease_is_renewed_while_a_reservation_waits() {
    with_board(EXTENT, |place| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let (gate, open) = watch::channel(true);
        runtime.spawn(forward(listener, place.memory.clone().unwrap().addr, open));
        let nodes = vec![Server { addr, tls: None }];
        // The grant is not given up while the node is silent.
        let config = Config { grants_max: u32::MAX, ..config(1, Nanos::from_secs(15)) };
        let (serving, server) = start(&runtime, nodes.clone(), &key(), config);
        let rig = Rig { runtime, serving, nodes, server };
        rig.until_free(EXTENT);
        let mut tenancy = rig.open(1);
        gate.send_replace(false);
        let reserving = rig.runtime.spawn(async move { tenancy.reserve(EXTENT).await.map(|_| tenancy) });
        // Open, Reserve, Renew and Reserve.
        rig.until(|listed| listed.counters.iter().any(|(name, value)| name == "requests" && *value >= 4));
        gate.send_replace(true);
        let mut tenancy = rig.runtime.block_on(reserving).unwrap().unwrap();
        assert_eq!(rig.runtime.block_on(tenancy.renew()).unwrap().len(), 1);
    });
}

/// A service that gives these answers to requests, one after the other.
struct Told(Mutex<VecDeque<Result<AskResponse, Code>>>);

#[tonic::async_trait]
impl Rpc for Told {
    async fn ask(&self, _: Request<AskRequest>) -> Result<Response<AskResponse>, Status> {
        let next = self.0.lock().unwrap().pop_front().expect("no further request was expected");
        next.map(Response::new).map_err(|code| Status::new(code, "as told"))
    }

    async fn list(&self, _: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        Err(Status::unimplemented("no list is expected"))
    }

    async fn leave(&self, _: Request<LeaveRequest>) -> Result<Response<LeaveResponse>, Status> {
        Err(Status::unimplemented("no memory node goes offline"))
    }
}

/// A session at a service that gives these answers after it was opened.
async fn open_at(answers: &[Result<AskResponse, Code>]) -> Tenancy {
    let opened = Ok(AskResponse { lease_ns: 600_000_000_000, lent: Vec::new() });
    let told = Told(Mutex::new(std::iter::once(opened).chain(answers.iter().cloned()).collect()));
    let listener = pool::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let router = tonic::transport::Server::builder().add_service(BalloonServer::new(told));
    tokio::spawn(router.serve_with_incoming(incoming));
    Tenancy::open(Server { addr, tls: None }, 1, LIMIT).await.unwrap()
}

#[test]
fn a_request_whose_first_reply_is_lost_has_succeeded() {
    let epoch = Epoch { term: p4rack_fabric::balloon::Term { number: 1, service: 1 }, number: 1 };
    let extent = Extent { place: Place { node: 0, start: 0 }, bytes: EXTENT, epoch };
    let lost = Err(Code::Unavailable);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut tenancy =
            open_at(&[lost.clone(), Err(Code::NotFound), lost, Err(Code::FailedPrecondition)]).await;
        tenancy.give_back(extent).await.unwrap();
        tenancy.close().await.unwrap();
        // The first copy is refused: it is no success.
        let mut tenancy = open_at(&[Err(Code::NotFound), Err(Code::FailedPrecondition)]).await;
        assert!(matches!(tenancy.give_back(extent).await, Err(LeaseError::Setup(_))));
        assert!(matches!(tenancy.close().await, Err(LeaseError::Ended(_))));
    });
}
