use crate::rig::*;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{
    MasterArbitrationUpdate, Role, WriteRequest, stream_message_request, stream_message_response,
};

#[tokio::test]
async fn the_primarys_disconnect_promotes_nobody_and_the_others_are_told_not_found() {
    let rig = Rig::start().await;
    let (mut first, mut second) = (Client::connect(&rig).await, Client::connect(&rig).await);
    first.become_primary(10).await;
    second.arbitrate(DEVICE, "", election(5)).await;
    assert_eq!(second.next_arbitration().await, (Code::AlreadyExists, election(10)));
    drop(first);
    assert_eq!(second.next_arbitration().await, (Code::NotFound, election(10)));
    second.arbitrate(DEVICE, "", election(9)).await;
    assert_eq!(second.next_arbitration().await.0, Code::NotFound, "the highest is remembered");
    second.become_primary(11).await;
}

#[tokio::test]
async fn unset_election_id_is_never_primary_and_differs_from_zero() {
    let rig = Rig::start().await;
    let (mut unset, mut zero) = (Client::connect(&rig).await, Client::connect(&rig).await);
    unset.arbitrate(DEVICE, "", None).await;
    assert_eq!(unset.next_arbitration().await, (Code::NotFound, None));
    zero.become_primary(0).await;
    assert_eq!(unset.next_arbitration().await, (Code::AlreadyExists, election(0)));
}

#[tokio::test]
async fn changing_role_or_device_id_on_a_stream_is_a_failed_precondition() {
    let rig = Rig::start().await;
    for (device, role) in [(DEVICE, "other"), (DEVICE + 1, "")] {
        let mut client = Client::connect(&rig).await;
        client.arbitrate(DEVICE, "", None).await;
        client.next_arbitration().await;
        client.arbitrate(device, role, None).await;
        assert_eq!(client.next().await.unwrap_err().code(), tonic::Code::FailedPrecondition);
    }
}

#[tokio::test]
async fn an_unknown_device_is_not_found() {
    let rig = Rig::start().await;
    let mut client = Client::connect(&rig).await;
    client.arbitrate(DEVICE + 1, "", election(1)).await;
    assert_eq!(client.next().await.unwrap_err().code(), tonic::Code::NotFound);
    let request = WriteRequest { device_id: DEVICE + 1, ..Default::default() };
    assert_eq!(client.rpc.write(request).await.unwrap_err().code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn a_used_election_id_ends_the_stream_with_invalid_argument() {
    let rig = Rig::start().await;
    let (mut first, mut second) = (Client::connect(&rig).await, Client::connect(&rig).await);
    first.become_primary(3).await;
    second.arbitrate(DEVICE, "", election(3)).await;
    assert_eq!(second.next().await.unwrap_err().code(), tonic::Code::InvalidArgument);
}

#[tokio::test]
async fn write_by_a_non_primary_is_denied_before_any_update() {
    let (rig, mut primary) = Rig::ready().await;
    let mut other = Client::connect(&rig).await;
    let update = || vec![dmac(1, 1).update(schema()).unwrap()];
    for id in [0, 2] {
        other.election = id;
        let denied = other.write_all(update()).await.unwrap_err();
        assert_eq!(denied.code(), tonic::Code::PermissionDenied, "{denied:?}");
    }
    let unset = WriteRequest { device_id: DEVICE, updates: update(), ..Default::default() };
    assert_eq!(other.rpc.write(unset).await.unwrap_err().code(), tonic::Code::PermissionDenied);
    assert_eq!(primary.table(wildcard("dmac")).await, []);
    drop(primary);
    other.arbitrate(DEVICE, "", None).await;
    other.next_arbitration().await;
    other.election = 1;
    let denied = other.write_all(update()).await.unwrap_err();
    assert_eq!(denied.code(), tonic::Code::PermissionDenied, "nobody is primary");
}

#[tokio::test]
async fn only_the_primary_may_send_packets() {
    let (rig, _primary) = Rig::ready().await;
    let mut other = Client::connect(&rig).await;
    other.send(stream_message_request::Update::Packet(Default::default())).await;
    match other.next().await.unwrap() {
        stream_message_response::Update::Error(error) => {
            assert_eq!(error.canonical_code, Code::PermissionDenied as i32);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_graceful_shutdown_ends_streams_and_the_server() {
    let (mut rig, mut client) = Rig::ready().await;
    rig.shut_down();
    assert_eq!(client.next().await.unwrap_err().code(), tonic::Code::Unavailable);
    drop(client);
    let server = rig.server.take().unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(5), server).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_role_config_that_nobody_agreed_on_is_an_invalid_argument() {
    let rig = Rig::start().await;
    let mut client = Client::connect(&rig).await;
    let role = Role { name: "acl".into(), config: Some(Default::default()), ..Default::default() };
    let update = MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(role),
        election_id: election(1),
        status: None,
    };
    client.send(stream_message_request::Update::Arbitration(update)).await;
    let end = client.next().await.unwrap_err();
    assert_eq!(end.code(), tonic::Code::InvalidArgument, "{end:?}");
    assert!(end.message().contains("role.config"), "{end:?}");
}
