//! The trace service, next to P4Runtime: shows the program's steps on single packets. A log may have them of all packets.
//!
//! ```text
//!  switch ── events (bounded, the rest is counted) ─▶ polled every 50 ms ─▶ stream (bounded) ─▶ caller
//!                                                                        └▶ channel (bounded) ─▶ log
//! ```

use crate::core::Handle;
use crate::p4runtime::{Claim, Device};
use p4rack_p4rt::p4rack::trace::v1::trace_server::Trace;
use p4rack_p4rt::p4rack::trace::v1::{Event, Filter, WatchRequest, WatchResponse};
use p4rack_switch::{Switch, TraceEvent, TraceFilter, TraceState, Traced};
use p4rack_wire::Nanos;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// Maximum frames per trace.
const MAX_FRAMES: u32 = 1000;
/// Interval at which the switch is polled.
const INTERVAL: Duration = Duration::from_millis(50);
/// Maximum events taken from the switch per call, which takes no longer than a few packets.
const EVENTS: usize = 256;
/// The same interval while more events wait: a log gets up to 25 600 per second.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum responses that wait for a slow caller. Further events wait in the switch, which has its own limit.
const RESPONSES: usize = 16;
/// How long to wait, after the last frame, for events of frames in queues.
const QUIET: Duration = Duration::from_secs(1);

/// Serves traces of a switch.
#[derive(Clone, Debug)]
pub(crate) struct TraceService {
    device: Arc<Device>,
    handle: Handle,
    stopping: watch::Receiver<bool>,
}

impl TraceService {
    /// A service for the device whose switch is behind `handle`. Streams end when `stopping` becomes true.
    pub fn new(device: Arc<Device>, handle: Handle, stopping: watch::Receiver<bool>) -> TraceService {
        TraceService { device, handle, stopping }
    }
}

fn address(bytes: Option<Vec<u8>>, name: &str) -> Result<Option<[u8; 6]>, Status> {
    let six = |bytes: Vec<u8>| <[u8; 6]>::try_from(bytes);
    let wrong = |bytes: Vec<u8>| {
        Status::invalid_argument(format!(
            "filter.{name}: an Ethernet address has 6 bytes, not {}",
            bytes.len()
        ))
    };
    bytes.map(six).transpose().map_err(wrong)
}

fn number(value: Option<u32>, name: &str) -> Result<Option<u16>, Status> {
    let wrong = |_| Status::invalid_argument(format!("filter.{name}: expected a number up to 65535"));
    value.map(u16::try_from).transpose().map_err(wrong)
}

fn filter(wanted: Filter) -> Result<TraceFilter, Status> {
    Ok(TraceFilter {
        ingress_port: number(wanted.ingress_port, "ingress_port")?,
        ether_type: number(wanted.ether_type, "ether_type")?,
        source: address(wanted.source, "source")?,
        destination: address(wanted.destination, "destination")?,
    })
}

#[tonic::async_trait]
impl Trace for TraceService {
    type WatchStream = ReceiverStream<Result<WatchResponse, Status>>;

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let WatchRequest { filter: wanted, frames, device_id, election_id, role } = request.into_inner();
        let filter = filter(wanted.unwrap_or_default())?;
        if frames == 0 || frames > MAX_FRAMES {
            return Err(Status::invalid_argument(format!(
                "frames: {frames} is not within 1 to {MAX_FRAMES}"
            )));
        }
        let claim = Claim { device_id, role: &role, election_id: election_id.as_ref() };
        let (trace, only) = self.device.trace(claim, filter, frames).await?;
        let (sender, responses) = mpsc::channel(RESPONSES);
        let (handle, mut stopping) = (self.handle.clone(), self.stopping.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = pass_on(&handle, trace, &sender) => {}
                () = sender.closed() => {}
                _ = stopping.wait_for(|stop| *stop) => {}
            }
            // The switch may be gone.
            let _ = handle.call(move |switch, _| switch.trace_stop(trace)).await;
            // Before the caller learns of the end, so that it can start another trace.
            drop(only);
        });
        Ok(Response::new(ReceiverStream::new(responses)))
    }
}

/// Passes on events until there are no more.
async fn pass_on(handle: &Handle, trace: u32, sender: &mpsc::Sender<Result<WatchResponse, Status>>) {
    let mut response = WatchResponse::default();
    let mut quiet = Duration::ZERO;
    loop {
        let some = response.events.len();
        if sender.send(Ok(response)).await.is_err() {
            return;
        }
        if some < EVENTS {
            tokio::time::sleep(INTERVAL).await;
        }
        let taken = handle.call(move |switch, _| take(switch, trace)).await;
        let Ok(Some((state, events))) = taken else {
            let why = "the trace has ended: the program was replaced, or the switch is shutting down";
            // A dropped receiver discards the result.
            let _ = sender.send(Err(Status::aborted(why))).await;
            return;
        };
        quiet = if events.is_empty() && state.left == 0 { quiet + INTERVAL } else { Duration::ZERO };
        if quiet >= QUIET {
            return;
        }
        response = WatchResponse { events: events.into_iter().map(event).collect() };
    }
}

/// Passes on what happens to all packets, until the receiver or the switch has gone. Events wait in the switch while the
/// receiver has no room.
pub(crate) async fn follow(handle: Handle, log: mpsc::Sender<Vec<Traced>>) {
    while let Ok(room) = log.reserve().await {
        let Ok(events) = handle.call(|switch, _| waiting(switch)).await else { return };
        let pause = if events.len() < EVENTS { INTERVAL } else { BUSY_INTERVAL };
        if !events.is_empty() {
            room.send(events);
        }
        tokio::time::sleep(pause).await;
    }
}

fn waiting(switch: &mut Switch) -> Vec<Traced> {
    std::iter::from_fn(|| switch.poll_traced()).take(EVENTS).collect()
}

/// State of the trace and its waiting events; `None` once it has ended.
fn take(switch: &mut Switch, trace: u32) -> Option<(TraceState, Vec<Traced>)> {
    let state = switch.trace_state(trace)?;
    Some((state, waiting(switch)))
}

fn event(traced: Traced) -> Event {
    let Traced { packet, time: Nanos(time_ns), event } = traced;
    match event {
        TraceEvent::Lost { events } => Event { lost: events, ..Event::default() },
        event => Event { packet, time_ns, text: event.to_string(), lost: 0 },
    }
}
