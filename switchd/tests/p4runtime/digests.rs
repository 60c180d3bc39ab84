//! Digests on the stream.

use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::digest_entry::Config;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::*;
use p4rack_p4rt::schema::id_of;
use std::time::Duration;

fn seen() -> u32 {
    id_of(schema().info().digests[0].preamble.as_ref())
}

fn entry(config: Option<Config>) -> EntityKind {
    EntityKind::DigestEntry(DigestEntry { digest_id: seen(), config })
}

/// The program's digest of a frame from the host with this number, on port 1.
fn message(source: u8) -> P4Data {
    let bits = |bits: &[u8]| P4Data { data: Some(p4_data::Data::Bitstring(bits.to_vec())) };
    let members = vec![bits(&[2, 0, 0, 0, 0, source]), bits(&[1])];
    P4Data { data: Some(p4_data::Data::Struct(P4StructLike { members })) }
}

async fn report(rig: &Rig, source: u8) {
    let mut frame = frame(1, 0x1234);
    frame[11] = source;
    rig.inject(1, &frame).await;
}

async fn list(client: &mut Client) -> DigestList {
    match client.next().await.unwrap() {
        stream_message_response::Update::Digest(list) => list,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn digests_come_in_lists_without_repeats_until_acknowledged() {
    let (rig, mut client) = Rig::ready().await;
    let config = Config { max_timeout_ns: 1_000_000_000, max_list_size: 2, ack_timeout_ns: 60_000_000_000 };
    client.write(Type::Insert, entry(Some(config))).await.unwrap();
    for source in [7, 7, 8] {
        report(&rig, source).await;
    }
    let first = list(&mut client).await;
    assert_eq!((first.digest_id, &first.data), (seen(), &vec![message(7), message(8)]));
    report(&rig, 7).await;
    report(&rig, 9).await;
    report(&rig, 10).await;
    let second = list(&mut client).await;
    assert_eq!(second.data, [message(9), message(10)]);
    assert_ne!(first.list_id, second.list_id);

    let ack = |list_id| {
        let ack = DigestListAck { digest_id: seen(), list_id };
        stream_message_request::Update::DigestAck(ack)
    };
    client.send(ack(first.list_id)).await;
    // The acknowledgement and the frames take different ways.
    for _ in 0..100 {
        report(&rig, 7).await;
        report(&rig, 11).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(list(&mut client).await.data.len(), 2);
}

#[tokio::test]
async fn a_list_is_sent_when_its_oldest_digest_has_waited() {
    let (rig, mut client) = Rig::ready().await;
    let config = Config { max_timeout_ns: 20_000_000, max_list_size: 0, ack_timeout_ns: 0 };
    client.write(Type::Insert, entry(Some(config))).await.unwrap();
    assert_eq!(client.read(entry(None)).await.unwrap(), [entry(Some(config))]);
    report(&rig, 7).await;
    assert_eq!(list(&mut client).await.data, [message(7)]);
    report(&rig, 7).await;
    assert_eq!(list(&mut client).await.data, [message(7)], "nothing is held back without ack_timeout");
    client.write(Type::Delete, entry(None)).await.unwrap();
    assert_eq!(client.read(entry(None)).await.unwrap(), []);
}

#[tokio::test]
async fn an_acknowledgement_of_what_is_not_reported_is_a_stream_error() {
    let (_rig, mut client) = Rig::ready().await;
    let ack = DigestListAck { digest_id: seen(), list_id: 1 };
    client.send(stream_message_request::Update::DigestAck(ack)).await;
    match client.next().await.unwrap() {
        stream_message_response::Update::Error(error) => {
            assert_eq!(error.canonical_code, Code::NotFound as i32);
            assert!(matches!(error.details, Some(stream_error::Details::DigestListAck(_))));
        }
        other => panic!("{other:?}"),
    }
    let error = client.write(Type::Insert, entry(None)).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
}
