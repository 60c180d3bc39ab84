use crate::rig::*;
use p4rack_p4rt::entity::Entry;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{
    PacketMetadata, PacketOut, StreamError, Uint128, stream_error::Details, stream_message_request,
    stream_message_response::Update,
};

fn metadata(id: u32, value: &[u8]) -> PacketMetadata {
    PacketMetadata { metadata_id: id, value: value.to_vec() }
}

async fn send(client: &Client, payload: &[u8], metadata: Vec<PacketMetadata>) {
    let packet = PacketOut { payload: payload.to_vec(), metadata };
    client.send(stream_message_request::Update::Packet(packet)).await;
}

async fn error(client: &mut Client) -> StreamError {
    match client.next().await.unwrap() {
        Update::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_packet_out_leaves_by_the_port_in_its_metadata() {
    let (rig, client) = Rig::ready().await;
    send(&client, &frame(1, 0x0800), vec![metadata(2, &[0]), metadata(1, &[0, 3])]).await;
    assert_eq!(rig.sent(1).await, [(3, frame(1, 0x0800))]);
}

#[tokio::test]
async fn a_packet_out_that_does_not_match_p4info_is_dropped_with_a_stream_error() {
    let (rig, mut client) = Rig::ready().await;
    for wrong in [
        vec![],
        vec![metadata(1, &[3])],
        vec![metadata(1, &[3]), metadata(2, &[0]), metadata(3, &[0])],
        vec![metadata(1, &[2, 0]), metadata(2, &[0])],
        vec![metadata(1, &[]), metadata(2, &[0])],
    ] {
        send(&client, &frame(1, 0x0800), wrong.clone()).await;
        let error = error(&mut client).await;
        assert_eq!(error.canonical_code, Code::InvalidArgument as i32, "{wrong:?}: {error:?}");
        let Some(Details::PacketOut(details)) = error.details else { panic!() };
        assert_eq!(details.packet_out.unwrap().metadata, wrong);
    }
    send(&client, &frame(2, 0x0800), vec![metadata(1, &[1]), metadata(2, &[0])]).await;
    assert_eq!(rig.sent(1).await, [(1, frame(2, 0x0800))], "only the good one was sent");
}

#[tokio::test]
async fn a_packet_in_carries_the_fields_of_its_header_to_the_primary() {
    let (rig, mut client) = Rig::ready().await;
    let mut backup = Client::connect(&rig).await;
    backup.arbitrate(DEVICE, "", None).await;
    backup.next_arbitration().await;
    let entry = Entry::of("dmac").exact("hdr.ethernet.dst", [2, 0, 0, 0, 0, 7]).action("to_controller");
    client.insert(entry).await.unwrap();
    rig.inject(4, &frame(7, 0x0800)).await;
    match client.next().await.unwrap() {
        Update::Packet(packet) => {
            assert_eq!(packet.payload, frame(7, 0x0800));
            assert_eq!(packet.metadata, [metadata(1, &[4]), metadata(2, &[5])]);
        }
        other => panic!("{other:?}"),
    }
    let silent = tokio::time::timeout(std::time::Duration::from_millis(50), backup.stream.message()).await;
    assert!(silent.is_err(), "backups get no packets");
}

#[tokio::test]
async fn a_packet_out_before_any_pipeline_is_a_failed_precondition() {
    let rig = Rig::start().await;
    let mut client = Client::connect(&rig).await;
    client.become_primary(1).await;
    send(&client, &frame(1, 0x0800), Vec::new()).await;
    assert_eq!(error(&mut client).await.canonical_code, Code::FailedPrecondition as i32);
}

#[tokio::test]
async fn telemetry_counts_frames_and_starts_anew_on_request() {
    use p4rack_p4rt::p4rack::telemetry::v1::{GetStatsRequest, telemetry_client::TelemetryClient};
    let (rig, mut client) = Rig::ready().await;
    client.insert(dmac(1, 2)).await.unwrap();
    rig.inject(1, &frame(1, 0x0800)).await;
    rig.inject(1, &frame(9, 0x0800)).await;
    rig.sent(1).await;
    let mut telemetry = TelemetryClient::connect(format!("http://{}", rig.addr)).await.unwrap();
    let anew = GetStatsRequest {
        reset: true,
        device_id: DEVICE,
        election_id: election(client.election),
        ..Default::default()
    };
    // Any client may read; only the primary of the default role may reset.
    for (claim, code) in strangers(&rig, client.election).await {
        let refused = GetStatsRequest {
            device_id: claim.0,
            election_id: claim.1,
            role: claim.2.into(),
            ..anew.clone()
        };
        assert_eq!(telemetry.get_stats(refused).await.unwrap_err().code(), code, "{claim:?}");
    }
    let stats = telemetry.get_stats(anew).await.unwrap().into_inner();
    let port = |number| stats.ports.iter().find(|port| port.port == number).unwrap();
    assert_eq!((port(1).rx_frames, port(1).rx_bytes), (2, 128));
    assert_eq!((port(2).tx_frames, port(2).tx_bytes), (1, 64));
    assert_eq!(stats.drops.get("ingress_drop"), Some(&1));
    let stats = telemetry.get_stats(GetStatsRequest::default()).await.unwrap().into_inner();
    assert!(stats.ports.iter().all(|port| port.rx_frames == 0 && port.tx_frames == 0));
}

#[tokio::test]
async fn generators_bring_frames_in_over_their_own_service() {
    use p4rack_p4rt::p4rack::generator::v1::generator_client::GeneratorClient;
    use p4rack_p4rt::p4rack::generator::v1::{Config, ListRequest, RemoveRequest, SetRequest};
    let (rig, mut client) = Rig::ready().await;
    client.insert(dmac(1, 2)).await.unwrap();
    let mut generators = GeneratorClient::connect(format!("http://{}", rig.addr)).await.unwrap();
    let config = Config {
        number: 5,
        frame: frame(1, 0x0800),
        ingress_port: 1,
        period_ns: 1_000_000,
        count: 3,
        delay_ns: 0,
    };
    let set = |config: &Config| SetRequest {
        config: Some(config.clone()),
        device_id: DEVICE,
        election_id: election(1),
        role: String::new(),
    };
    let remove =
        RemoveRequest { number: 5, device_id: DEVICE, election_id: election(1), role: String::new() };
    let bad = Config { ingress_port: 99, ..config.clone() };
    let refused = generators.set(set(&bad)).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound, "{refused}");
    let controllers = Config { ingress_port: CPU.into(), ..config.clone() };
    let refused = generators.set(set(&controllers)).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused}");
    assert!(refused.message().contains("port 510 is the CPU port"), "{refused}");
    for (claim, code) in strangers(&rig, 1).await {
        let (device_id, election_id, role) = (claim.0, claim.1, claim.2.to_owned());
        let request = SetRequest { device_id, election_id, role: role.clone(), ..set(&config) };
        assert_eq!(generators.set(request).await.unwrap_err().code(), code, "{claim:?}");
        let request = RemoveRequest { number: 5, device_id, election_id, role };
        assert_eq!(generators.remove(request).await.unwrap_err().code(), code, "{claim:?}");
    }
    let listed = generators.list(ListRequest {}).await.unwrap().into_inner().generators;
    assert_eq!(listed.len(), 0, "nothing was set, and anyone may look");
    generators.set(set(&config)).await.unwrap();
    rig.sent(3).await;
    let listed = generators.list(ListRequest {}).await.unwrap().into_inner().generators;
    assert_eq!((listed.len(), listed[0].sent, listed[0].skipped, listed[0].active), (1, 3, 0, false));
    generators.remove(remove.clone()).await.unwrap();
    assert_eq!(generators.remove(remove.clone()).await.unwrap_err().code(), tonic::Code::NotFound);
    // Without a primary no client may, not even with the last primary's election id.
    drop(client);
    let mut next = Client::connect(&rig).await;
    next.arbitrate(DEVICE, "", election(0)).await;
    while next.next_arbitration().await.0 != Code::NotFound {}
    assert_eq!(generators.remove(remove).await.unwrap_err().code(), tonic::Code::PermissionDenied);
}

/// A device, an election id and a role, as a request carries them.
type Claim = (u64, Option<Uint128>, &'static str);

/// Claims of clients that are not the primary of the default role (its election id is `primary`), and how they are
/// refused. One of them is another role's primary.
async fn strangers(rig: &Rig, primary: u128) -> [(Claim, tonic::Code); 5] {
    use tonic::Code::{NotFound, PermissionDenied};
    let mut other = Client::connect(rig).await;
    other.arbitrate(DEVICE, "other", election(primary)).await;
    assert_eq!(other.next_arbitration().await.0, Code::Ok);
    [
        ((DEVICE, None, ""), PermissionDenied),
        ((DEVICE, election(primary + 1), ""), PermissionDenied),
        ((DEVICE, election(primary), "other"), PermissionDenied),
        ((DEVICE, election(primary), "nobody"), PermissionDenied),
        ((DEVICE + 1, election(primary), ""), NotFound),
    ]
}
