//! The trace service.

use crate::rig::*;
use p4rack_p4rt::p4rack::trace::v1::trace_client::TraceClient;
use p4rack_p4rt::p4rack::trace::v1::{Event, Filter, WatchRequest, WatchResponse};
use std::time::Duration;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

async fn tracer(rig: &Rig) -> TraceClient<Channel> {
    TraceClient::connect(format!("http://{}", rig.addr)).await.unwrap()
}

/// A request of the primary's.
fn watch(filter: Filter, frames: u32) -> WatchRequest {
    let (device_id, election_id) = (DEVICE, election(1));
    WatchRequest { filter: Some(filter), frames, device_id, election_id, role: String::new() }
}

fn to(last: u8, frames: u32) -> WatchRequest {
    let destination = Some(vec![2, 0, 0, 0, 0, last]);
    watch(Filter { destination, ..Filter::default() }, frames)
}

/// A trace that is on.
async fn start(rig: &Rig, request: WatchRequest) -> Result<Streaming<WatchResponse>, Status> {
    let mut stream = tracer(rig).await.watch(request).await?.into_inner();
    assert_eq!(stream.message().await?, Some(WatchResponse::default()));
    Ok(stream)
}

/// All events up to the end.
async fn rest(mut stream: Streaming<WatchResponse>) -> Result<Vec<Event>, Status> {
    let mut all = Vec::new();
    while let Some(response) =
        tokio::time::timeout(Duration::from_secs(10), stream.message()).await.expect("an end within 10 s")?
    {
        all.extend(response.events);
    }
    Ok(all)
}

#[tokio::test]
async fn frames_that_fit_are_told_of_to_the_end_and_no_others() {
    let (rig, mut client) = Rig::ready().await;
    client.insert(dmac(1, 3)).await.unwrap();
    let stream = start(&rig, to(1, 2)).await.unwrap();
    for last in [2, 1, 2, 1, 1] {
        rig.inject(1, &frame(last, 0x0800)).await;
    }
    let events = rest(stream).await.unwrap();
    let begun: Vec<u32> =
        events.iter().filter(|event| event.text.starts_with("ingress")).map(|event| event.packet).collect();
    assert_eq!(begun, [1, 2], "{events:?}");
    assert!(
        events.iter().any(|event| event.text.contains("dmac") && event.text.contains("hit")),
        "{events:?}"
    );
    assert!(events.iter().any(|event| event.text.starts_with("sent      port 3")), "{events:?}");
    // Over: the next one may.
    start(&rig, to(1, 1)).await.unwrap();
}

#[tokio::test]
async fn a_second_caller_waits_for_the_first_to_go() {
    let (rig, _client) = Rig::ready().await;
    let first = start(&rig, to(1, 10)).await.unwrap();
    let refused = start(&rig, to(1, 10)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("another trace is active"), "{refused}");
    drop(first);
    for attempt in 0.. {
        match start(&rig, to(1, 10)).await {
            Ok(_) => break,
            Err(refused) => assert!(attempt < 100, "{refused}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_trace_ends_with_the_program() {
    let (rig, mut client) = Rig::ready().await;
    let stream = start(&rig, to(1, 10)).await.unwrap();
    client.install().await.unwrap();
    let ended = rest(stream).await.unwrap_err();
    assert_eq!(ended.code(), Code::Aborted);
    assert!(ended.message().contains("replaced"), "{ended}");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_name() {
    let rig = Rig::start().await;
    let refused = start(&rig, to(1, 1)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("no program"), "{refused}");
    let filter = |filter: Filter| watch(filter, 1);
    for (request, field) in [
        (to(1, 0), "frames"),
        (to(1, 1001), "frames"),
        (filter(Filter { source: Some(vec![1, 2, 3]), ..Filter::default() }), "filter.source"),
        (filter(Filter { ether_type: Some(1 << 16), ..Filter::default() }), "filter.ether_type"),
        (filter(Filter { ingress_port: Some(u32::MAX), ..Filter::default() }), "filter.ingress_port"),
    ] {
        let refused = start(&rig, request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(field), "{field}: {refused}");
    }
}

#[tokio::test]
async fn while_there_is_a_primary_a_trace_is_for_that() {
    let (rig, client) = Rig::ready().await;
    let mut other = to(1, 1);
    other.election_id = election(2);
    let refused = start(&rig, other.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    other.role = "acl".into();
    let refused = start(&rig, other.clone()).await.unwrap_err();
    assert!(refused.message().contains("only the primary of the default role"), "{refused}");
    let elsewhere = WatchRequest { device_id: DEVICE + 1, ..to(1, 1) };
    assert_eq!(start(&rig, elsewhere).await.unwrap_err().code(), Code::NotFound);
    // Without a primary, any client could become it.
    other.role.clear();
    drop(client);
    let mut tries = 0;
    while start(&rig, other.clone()).await.is_err() {
        tries += 1;
        assert!(tries < 200, "the primary has left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
