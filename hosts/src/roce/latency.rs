//! Latency of requests to a pool, over any network.

use super::bench::Kind;
use super::port::{RocePort, RocePortError};
use super::setup::Offer;
use p4rack_fabric::roce::{Completion, Outcome, Regions, Request};
use p4rack_netdev::clock;
use p4rack_wire::{Histogram, Nanos};
use serde::Serialize;
use std::collections::VecDeque;

/// Time limit for the requests in flight at the end.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Parameters of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Kind of the requests.
    pub kind: Kind,
    /// Bytes that each writes or reads.
    pub bytes: u32,
    /// Requests in flight.
    pub under_way: usize,
    /// For how long.
    pub span: Nanos,
}

/// Measured values.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Kind of the requests.
    pub kind: Kind,
    /// Bytes of each.
    pub bytes: u32,
    /// Requests that were done.
    pub requests: u64,
    /// The same, a second.
    pub requests_per_s: f64,
    /// Median of the time from request to completion, in microseconds.
    pub p50_us: f64,
    /// Of ninety-nine in a hundred, at most.
    pub p99_us: f64,
    /// Of all, at most.
    pub max_us: f64,
    /// Packets sent again.
    pub repeated: u64,
    /// Times that nothing was acknowledged for too long.
    pub timeouts: u64,
    /// Requests that were given up: repeated too often, refused, or without an answer for ten seconds. Nothing is requested after
    /// the first one.
    pub failed: u64,
}

/// Keeps requests of one queue pair in flight, and waits for the last ones.
///
/// Errors: the interface is gone.
pub fn measure(
    port: &mut RocePort<Regions>,
    qpn: u32,
    offer: &Offer,
    load: &Load,
) -> Result<Latency, RocePortError> {
    let counted = |port: &mut RocePort<Regions>| {
        let half = port.adapter().requester(qpn);
        half.map_or((0, 0), |half| (half.counters().repeated_out, half.counters().timeouts))
    };
    let before = counted(port);
    let stride = u64::from(load.bytes).next_multiple_of(8).max(8);
    let slots = (offer.bytes / stride).max(1);
    let (start, mut asked, mut under_way) = (clock::now(), 0u64, VecDeque::new());
    let (mut took, mut failed) = (Histogram::new(), 0);
    loop {
        let now = clock::now();
        let asks = now < start + load.span && failed == 0;
        while asks && under_way.len() < load.under_way {
            let (key, address) = (offer.key, offer.address + asked % slots * stride);
            let request = match load.kind {
                Kind::Write => {
                    let bytes = vec![asked as u8; load.bytes as usize];
                    Request::Write { key, address, bytes, immediate: None }
                }
                Kind::Read => Request::Read { key, address, bytes: load.bytes },
                Kind::Add => Request::FetchAdd { key, address, add: 1 },
            };
            if port.adapter().handle_request(qpn, request).is_err() {
                break;
            }
            asked += 1;
            under_way.push_back(clock::now());
        }
        if under_way.is_empty() && !asks {
            break;
        }
        if now >= start + load.span + PATIENCE {
            failed += under_way.len() as u64;
            break;
        }
        port.turn(Some(now + Nanos::from_millis(5)))?;
        let now = clock::now();
        while let Some((_, completion)) = port.adapter().poll_completion() {
            // Those of a queue pair end in order.
            let since = under_way.pop_front();
            match completion {
                Completion::Request(_, Outcome::Failed(_)) => failed += 1,
                _ => {
                    if let Some(since) = since {
                        took.record(now.saturating_sub(since).0);
                    }
                }
            }
        }
    }
    let seconds = (clock::now() - start).as_secs_f64();
    let after = counted(port);
    let us = |share| took.at(share) as f64 / 1e3;
    Ok(Latency {
        kind: load.kind,
        bytes: load.bytes,
        requests: took.len(),
        requests_per_s: took.len() as f64 / seconds,
        p50_us: us(0.5),
        p99_us: us(0.99),
        max_us: us(1.0),
        repeated: after.0 - before.0,
        timeouts: after.1 - before.1,
        failed,
    })
}
