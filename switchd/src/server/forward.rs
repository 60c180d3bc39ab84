//! Forwards events of the data plane to controllers.

use crate::bfruntime;
use crate::core::{Event, Events, Handle};
use crate::p4runtime::Device;
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Interval at which idle entries are asked whether they were hit, for clients of BFRuntime that want to know.
const WATCH: Nanos = Nanos::from_millis(200);

/// Forwards events until the data plane has ended. Events without a receiver are counted.
pub(super) async fn forward(
    mut events: Events,
    device: Arc<Device>,
    noticed: Option<bfruntime::Service>,
    handle: Handle,
) {
    let (mut digests_at, mut watch_at) = (None, None);
    loop {
        let event = tokio::select! {
            () = until(watch_at) => {
                let any = match &noticed {
                    Some(service) => service.active().await,
                    None => false,
                };
                watch_at = any.then(|| clock::now() + WATCH);
                continue;
            }
            event = events.recv() => event,
            () = until(digests_at) => {
                digests_at = device.send_digests(clock::now()).await;
                continue;
            }
        };
        match event {
            None => break,
            Some(Event::PacketIn { frame }) => {
                if !device.packet_in(&frame).await {
                    handle.count_lost();
                    tracing::debug!(bytes = frame.len(), "packet-in lost");
                }
            }
            Some(Event::Idle(entries)) => {
                let known = match &noticed {
                    Some(service) => service.idle(&entries).await,
                    None => false,
                };
                watch_at = watch_at.or_else(|| known.then(|| clock::now() + WATCH));
                if !device.idle(entries, SystemTime::now()).await && !known {
                    handle.count_lost();
                }
            }
            Some(Event::Links) => {
                if let Some(service) = &noticed {
                    service.ports().await;
                }
            }
            Some(Event::Digest(message)) => {
                if let Some(service) = &noticed {
                    service.digest(&message).await;
                }
                let now = clock::now();
                device.digest(message, now).await;
                digests_at = device.send_digests(now).await;
            }
        }
    }
}

/// Sleeps until a time of the monotonic clock; forever without one.
async fn until(moment: Option<Nanos>) {
    match moment {
        Some(moment) => {
            tokio::time::sleep(Duration::from_nanos(moment.saturating_sub(clock::now()).0)).await;
        }
        None => std::future::pending().await,
    }
}
