//! Cached regions whose memory starts again at the same address, with zeros: none of them reads these. `region.rs` has TCP's end of a
//! connection, and `region_edm.rs` EDM.

#![allow(clippy::unwrap_used)]

use crate::board;

use board::{with_board, with_board_at};
use p4rack_fabric::remote::Way;
use p4rack_fabric::roce;
use p4rack_hosts::clio::{Wanted, attach};
use p4rack_hosts::cowbird::rack::Pool;
use p4rack_hosts::region::{RegionConfig, RegionError, RemoteRegion};
use p4rack_hosts::remote::{Attachment, Remote, Shape, UnderWay, open};
use p4rack_hosts::roce::star::{FRAMES, Star};
use p4rack_wire::Nanos;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

const REGION_BYTES: u64 = 256 << 10;

fn shape() -> Shape {
    let under_way = UnderWay::of(32, 1_024);
    Shape { region_bytes: REGION_BYTES, reads: under_way, writes: under_way }
}

fn config() -> RegionConfig {
    RegionConfig { policy: "lru".to_owned(), ..RegionConfig::new(64 << 10) }
}

/// A region whose remote memory has sevens, few of which are here.
fn region_of_sevens(remote: Box<dyn Remote>) -> RemoteRegion {
    let region = RemoteRegion::new(remote, &config()).unwrap();
    region.write(0, &vec![7; REGION_BYTES as usize]).unwrap();
    region.flush().unwrap();
    let mut bytes = vec![0; REGION_BYTES as usize];
    region.read(0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 7), "it works before");
    region
}

/// Reads until the region is lost, and sees nothing but sevens before, although the successor answers others with zeros.
fn reads_sevens_until_it_is_lost(region: &RemoteRegion, successor: Box<dyn Remote>) {
    let others = RemoteRegion::new(successor, &config()).unwrap();
    let mut byte = [1];
    assert_eq!((others.read(0, &mut byte), byte), (Ok(()), [0]));
    let lost = (0..REGION_BYTES).step_by(512).find_map(|at| {
        let mut byte = [1];
        let read = region.read(at, &mut byte);
        assert!(read.is_err() || byte == [7], "byte {at} is {byte:?}");
        read.err()
    });
    assert!(matches!(lost, Some(RegionError::Lost(_))), "{lost:?}");
    assert!(matches!(region.flush(), Err(RegionError::Lost(_))));
}

/// The successor offers memory at the same addresses to all, under other tokens.
#[test]
fn a_board_that_starts_again_loses_the_region() {
    let (mut region, mut at) = (None, None);
    with_board(REGION_BYTES, |place| {
        let server = place.memory.as_ref().unwrap();
        let set_up: SocketAddr = server.addr.parse().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let udp_port = runtime.block_on(attach(server, Wanted::default())).unwrap().udp_port;
        at = Some([SocketAddr::from((Ipv4Addr::LOCALHOST, udp_port)), set_up]);
        let (remote, held) = open(Way::CLIO, place.clone(), shape()).unwrap();
        region = Some((region_of_sevens(remote), held));
    });
    let (region, _held) = region.unwrap();
    with_board_at(at.unwrap(), (REGION_BYTES, REGION_BYTES / 2), |place, _| {
        let (successor, _held) = open(Way::CLIO, place.clone(), shape()).unwrap();
        reads_sevens_until_it_is_lost(&region, successor);
    });
}

/// The successor has reserved as many bytes for another client.
#[test]
fn a_pool_that_starts_again_loses_the_region() {
    let Ok(star) = Star::create(3) else {
        // Past the harness, which hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return;
    };
    let star = Arc::new(star);
    let adapter = roce::Config { timeout: Nanos::from_millis(50), ..roce::Config::default() };
    let start = || Pool::start(Arc::clone(&star), &adapter, 2 * REGION_BYTES).unwrap();
    let client = |host| {
        let place = Attachment::at(FRAMES, Star::ip(host), adapter.clone(), Pool::server());
        star.host(host).run(|| open(Way::RDMA, place, shape())).unwrap().unwrap()
    };
    let pool = start();
    let (remote, _held) = client(1);
    let region = region_of_sevens(remote);
    drop(pool);
    let _pool = start();
    let (successor, _successor_held) = client(2);
    reads_sevens_until_it_is_lost(&region, successor);
}
