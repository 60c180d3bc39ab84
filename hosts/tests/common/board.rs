//! A board of Clio on a thread of the test's process, with its set-up service.
// Each test uses a part of this.
#![allow(dead_code)]

use p4rack_fabric::clio::board::{Config, Pool};
use p4rack_fabric::roce;
use p4rack_hosts::Handle;
use p4rack_hosts::balloon::{Key, serve_board};
use p4rack_hosts::clio::server::{At, Host, Server as Board};
use p4rack_hosts::clio::service::Service;
use p4rack_hosts::remote::Attachment;
use p4rack_hosts::roce::Loss;
use p4rack_hosts::roce::pool;
use p4rack_hosts::roce::setup::Server;
use p4rack_netdev::wait::Waker;
use p4rack_wire::Nanos;
use p4rack_wire::clio::PageSize;
use std::net::{Ipv4Addr, SocketAddr};

/// How long a board remembers: processes that share a machine wake late.
pub const KEEP: Nanos = Nanos::from_millis(600);

/// Ends the board's thread, however the test ends.
struct Wakes<'a>(&'a Waker);

impl Drop for Wakes<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// The key of the board.
pub fn key() -> Key {
    Key::new(&[7; 32]).unwrap()
}

/// Runs a test beside a board with `bytes` bytes, and half as many for its store; it is given the place of a client that joins the process
/// offered to all.
pub fn with_board(bytes: u64, test: impl FnOnce(&Attachment)) {
    with_board_and_store(bytes, bytes / 2, |place, _| test(place));
}

/// The same with a store of `store_bytes`, and a handle to the board.
pub fn with_board_and_store(bytes: u64, store_bytes: u64, test: impl FnOnce(&Attachment, Handle<Host>)) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    with_board_at([any; 2], (bytes, store_bytes), test);
}

/// The same at these addresses of its packets and its set-up service.
pub fn with_board_at(
    [packets, set_up]: [SocketAddr; 2],
    (bytes, store_bytes): (u64, u64),
    test: impl FnOnce(&Attachment, Handle<Host>),
) {
    let setting = Setting {
        packets: At::Udp(packets),
        set_up,
        bytes,
        store_bytes,
        loss: Loss::default(),
        retry_keep: KEEP,
    };
    with_board_as(&setting, test);
}

/// The same, of a board that remembers what it has executed for `retry_keep`.
pub fn with_board_that_keeps(retry_keep: Nanos, bytes: u64, test: impl FnOnce(&Attachment, Handle<Host>)) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (packets, set_up, loss) = (At::Udp(any), any, Loss::default());
    with_board_as(&Setting { packets, set_up, bytes, store_bytes: 0, loss, retry_keep }, test);
}

/// A board, in the namespace of the calling thread.
pub struct Setting {
    pub packets: At,
    pub set_up: SocketAddr,
    pub bytes: u64,
    pub store_bytes: u64,
    pub loss: Loss,
    /// How long the board remembers what it has executed.
    pub retry_keep: Nanos,
}

/// The same as described.
pub fn with_board_as(setting: &Setting, test: impl FnOnce(&Attachment, Handle<Host>)) {
    let Setting { packets, set_up, bytes, store_bytes, loss, retry_keep } = setting;
    let size = PageSize::suiting(*bytes);
    let frames = size.pages(*bytes) as u32;
    let config = Config {
        retry_entries: 1 << 16,
        retry_keep: *retry_keep,
        processes_max: 257,
        ..Config::new(vec![Pool { size, frames, ready: 64.min(frames) }])
    };
    let mut board = Board::open_at(packets, config, *store_bytes).unwrap();
    board.lose(*loss);
    let end = Waker::new().unwrap();
    let ends = board.watch(&end).unwrap();
    let offer = board.offer().unwrap();
    let handle = board.handle();
    // A test's client may have all.
    let service = Service::new(handle.clone(), offer, 1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(pool::bind(*set_up)).unwrap();
    let memory = Server { addr: listener.local_addr().unwrap().to_string(), tls: None };
    runtime.spawn(serve_board(listener, service, key(), None));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !board.ready(ends) {
                board.turn(None).unwrap();
            }
        });
        let _wakes = Wakes(&end);
        let place = Attachment::at("", Ipv4Addr::LOCALHOST, roce::Config::default(), memory);
        test(&Attachment { shared: true, ..place }, handle);
    });
}
