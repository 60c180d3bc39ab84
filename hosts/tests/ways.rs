//! Properties that all ways to remote memory share, on real links; EDM's are in `memory.rs`, beside a switch that
//! grants.

#![allow(clippy::unwrap_used)]

use crate::board;
use crate::pieces;

use p4rack_fabric::remote::{Engine, Link, Service};
use p4rack_fabric::roce;
use p4rack_hosts::remote::setting::{Setting, Way};
use p4rack_hosts::remote::tcp::Served;
use p4rack_hosts::remote::{Attachment, Remote, Shape, UnderWay, open};
use p4rack_hosts::roce::setup::Server;
use p4rack_netdev::NetNs;
use p4rack_netdev::wait::Waker;
use pieces::gathers_and_scatters;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};

const REGION_BYTES: u64 = 1 << 16;

fn shape() -> Shape {
    // Fewer than the pieces of a test.
    let under_way = UnderWay::of(6, 1_024);
    Shape { region_bytes: REGION_BYTES, reads: under_way, writes: under_way }
}

/// Runs a test over a server of bytes.
fn over_tcp(test: impl FnOnce(&mut dyn Remote)) {
    /// Ends the server, however the test ends.
    struct Wakes<'a>(&'a Waker);
    impl Drop for Wakes<'_> {
        fn drop(&mut self) {
            self.0.wake();
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let (served, end) = (Served::new(vec![0u8; REGION_BYTES as usize], false), Waker::new().unwrap());
    std::thread::scope(|scope| {
        let ends = end.try_clone().unwrap();
        scope.spawn(move || served.serve(&listener, &ends).unwrap());
        let _wakes = Wakes(&end);
        let memory = Server { addr, tls: None };
        let place = Attachment::at("", Ipv4Addr::LOCALHOST, roce::Config::default(), memory);
        test(open(Way::TCP, place, shape()).unwrap().0.as_mut());
    });
}

#[test]
fn each_way_gathers_and_scatters() {
    for way in Way::ALL.iter().copied() {
        let definition = way.definition();
        match (definition.service, definition.link) {
            (Service::None, _) => {
                gathers_and_scatters(open(way, Attachment::local(), shape()).unwrap().0.as_mut(), 0);
            }
            (Service::Bytes, _) => over_tcp(|remote| gathers_and_scatters(remote, 0)),
            (Service::Board, _) => board::with_board(REGION_BYTES, |place| {
                gathers_and_scatters(open(way, place.clone(), shape()).unwrap().0.as_mut(), 0);
            }),
            // In memory.rs; in cli/tests/cowbird_switch.rs there is a switch.
            (Service::Node, _) => {}
            (Service::Pool, _) if definition.engine == Some(Engine::Switch) => {}
            (Service::Pool, Link::Adapter) if NetNs::create().is_ok() => {
                let (mut remote, _meter) = Setting::start(way, shape()).unwrap().split();
                gathers_and_scatters(remote.as_mut(), 0);
            }
            (Service::Pool, _) => {
                // Past the harness, which hides what a passing test prints.
                let _ = writeln!(
                    std::io::stderr(),
                    "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
                );
            }
        }
    }
}
