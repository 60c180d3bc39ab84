use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::{CapabilitiesRequest, ForwardingPipelineConfig};

async fn primary() -> (Rig, Client) {
    let rig = Rig::start().await;
    let mut client = Client::connect(&rig).await;
    client.become_primary(1).await;
    (rig, client)
}

fn with_text(text: String) -> ForwardingPipelineConfig {
    ForwardingPipelineConfig { p4_device_config: text.into(), ..config() }
}

#[tokio::test]
async fn get_before_any_pipeline_leaves_the_config_unset() {
    let rig = Rig::start().await;
    let mut client = Client::connect(&rig).await;
    assert_eq!(client.get(ResponseType::All).await, None);
}

#[tokio::test]
async fn writes_and_reads_before_any_pipeline_are_a_failed_precondition() {
    let (_rig, mut client) = primary().await;
    let refused = client.write_all(Vec::new()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    assert_eq!(client.read_all(Vec::new()).await.0.unwrap_err().code(), tonic::Code::FailedPrecondition);
}

#[tokio::test]
async fn get_returns_what_was_set_in_the_parts_asked_for() {
    let (_rig, mut client) = Rig::ready().await;
    assert_eq!(client.get(ResponseType::All).await, Some(config()));
    let cookie = client.get(ResponseType::CookieOnly).await.unwrap();
    assert_eq!((cookie.p4info, cookie.p4_device_config.len()), (None, 0));
    assert_eq!(cookie.cookie, config().cookie);
    let info = client.get(ResponseType::P4infoAndCookie).await.unwrap();
    assert_eq!((info.p4info, info.p4_device_config.len()), (config().p4info, 0));
    let text = client.get(ResponseType::DeviceConfigAndCookie).await.unwrap();
    assert_eq!((text.p4info, text.p4_device_config), (None, config().p4_device_config));
}

#[tokio::test]
async fn verify_checks_that_the_target_can_realise_the_config_and_changes_nothing() {
    let (_rig, mut client) = primary().await;
    client.set(Action::Verify, Some(config())).await.unwrap();
    assert_eq!(client.get(ResponseType::All).await, None);
    let broken = PROGRAM.replace("action drop()", "action drop(");
    let refused = client.set(Action::Verify, Some(with_text(broken))).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(refused.message().contains("action drop("), "shows the line: {}", refused.message());
}

#[tokio::test]
async fn a_program_with_errors_leaves_the_running_one_untouched() {
    let (_rig, mut client) = Rig::ready().await;
    client.insert(dmac(1, 1)).await.unwrap();
    let broken = PROGRAM.replace("sm.egress_spec = port;", "sm.egress_spec = prt;");
    let refused = client.set(Action::VerifyAndCommit, Some(with_text(broken))).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(refused.message().contains("prt"), "{}", refused.message());
    assert_eq!(client.table(wildcard("dmac")).await.len(), 1);
    assert_eq!(client.get(ResponseType::All).await, Some(config()));
}

#[tokio::test]
async fn a_p4info_that_is_not_the_programs_is_refused_saying_what_differs() {
    let (_rig, mut client) = primary().await;
    let mut given = config();
    let info = given.p4info.as_mut().unwrap();
    info.tables.reverse();
    info.actions.reverse();
    client.set(Action::Verify, Some(given.clone())).await.expect("order does not matter");
    given.p4info.as_mut().unwrap().tables.iter_mut().find(|t| t.size == 4).unwrap().size = 5;
    let refused = client.set(Action::Verify, Some(given)).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(
        refused.message().contains("tables[Rig.dmac].size: 5 given, 4 in the program"),
        "{}",
        refused.message()
    );
    let none = ForwardingPipelineConfig { p4info: None, ..config() };
    let refused = client.set(Action::Verify, Some(none)).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
}

#[tokio::test]
async fn something_other_than_p4_text_is_refused() {
    let (_rig, mut client) = primary().await;
    for bytes in [Vec::new(), vec![0xff, 0xfe, 0]] {
        let given = ForwardingPipelineConfig { p4_device_config: bytes, ..config() };
        let refused = client.set(Action::VerifyAndCommit, Some(given)).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        assert!(refused.message().contains("P4_16 text"), "{}", refused.message());
    }
}

/// A `P4DeviceConfig` as p4lang's tutorials send it: `reassign` and `device_data`.
fn wrapped(data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![8, 1, 3 << 3 | 2];
    prost::encoding::encode_varint(data.len() as u64, &mut bytes);
    [bytes, data.to_vec()].concat()
}

#[tokio::test]
async fn text_in_a_p4_device_config_is_installed_and_given_back_as_it_came() {
    let (_rig, mut client) = primary().await;
    let given = ForwardingPipelineConfig { p4_device_config: wrapped(PROGRAM.as_bytes()), ..config() };
    client.set(Action::VerifyAndCommit, Some(given.clone())).await.unwrap();
    assert_eq!(client.get(ResponseType::All).await, Some(given));
    client.insert(dmac(1, 1)).await.unwrap();
    let broken = ForwardingPipelineConfig { p4_device_config: wrapped(b"control C("), ..config() };
    let refused = client.set(Action::Verify, Some(broken)).await.unwrap_err();
    assert!(refused.message().contains("p4_device_config:1:"), "{}", refused.message());
}

#[tokio::test]
async fn bmv2_json_is_installed_and_has_the_ids_of_the_p4info() {
    let (_rig, mut client) = primary().await;
    let compiled = p4rack_p4::compile(PROGRAM, "rig.p4", &p4rack_p4::Options::default()).unwrap();
    let json = p4rack_bmv2::write(&compiled).unwrap().to_string();
    for bytes in [json.clone().into_bytes(), wrapped(json.as_bytes())] {
        let given = ForwardingPipelineConfig { p4_device_config: bytes, ..config() };
        client.set(Action::VerifyAndCommit, Some(given.clone())).await.unwrap();
        assert_eq!(client.get(ResponseType::All).await, Some(given));
        client.insert(dmac(1, 1)).await.unwrap();
        assert_eq!(client.table(wildcard("dmac")).await.len(), 1);
    }
}

#[tokio::test]
async fn json_that_is_wrong_is_refused_saying_where() {
    let (_rig, mut client) = primary().await;
    let compiled = p4rack_p4::compile(PROGRAM, "rig.p4", &p4rack_p4::Options::default()).unwrap();
    let json = p4rack_bmv2::write(&compiled).unwrap().to_string();
    let other = r#"{ "header_types": [], "pipelines": [], "__meta__": {"version": [3, 0]} }"#;
    for (text, said) in [
        (other.to_owned(), "at `__meta__.version`: version 3 of the format"),
        (json.replace("Rig.dmac", "Rig.other"), "tables[Rig.dmac]: given, but the program has no such"),
        ("{}".to_owned(), "not BMv2's JSON"),
    ] {
        let given = ForwardingPipelineConfig { p4_device_config: text.into_bytes(), ..config() };
        let refused = client.set(Action::VerifyAndCommit, Some(given)).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        assert!(refused.message().contains(said), "{said}: {}", refused.message());
    }
}

#[tokio::test]
async fn a_program_from_the_network_includes_no_file_of_this_machine() {
    let (_rig, mut client) = primary().await;
    let secret = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for include in [format!("#include \"{secret}\""), format!("#include <{secret}>")] {
        let given = with_text(format!("{include}\n{PROGRAM}"));
        let refused = client.set(Action::Verify, Some(given)).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        assert!(!refused.message().contains("[package]"), "shows the file: {}", refused.message());
    }
}

#[tokio::test]
async fn a_slow_reader_keeps_nobody_waiting() {
    let (rig, mut client) = Rig::ready().await;
    let updates = (0..1000).map(|n| crate::entries::route(n).update(schema()).unwrap()).collect();
    client.write_all(updates).await.unwrap();
    let mut reader = Client::connect(&rig).await;
    let entity = p4rack_p4rt::p4::v1::Entity { entity: Some(EntityKind::TableEntry(wildcard("routes"))) };
    let request = p4rack_p4rt::p4::v1::ReadRequest {
        device_id: DEVICE,
        entities: vec![entity; 100],
        ..Default::default()
    };
    let _unread = reader.rpc.read(request).await.unwrap();
    let write = client.insert(dmac(1, 1));
    tokio::time::timeout(std::time::Duration::from_secs(5), write).await.expect("goes on").unwrap();
}

#[tokio::test]
async fn verify_and_commit_clears_state() {
    let (_rig, mut client) = Rig::ready().await;
    client.insert(dmac(1, 1)).await.unwrap();
    client.install().await.unwrap();
    assert_eq!(client.table(wildcard("dmac")).await, []);
}

#[tokio::test]
async fn commit_without_save_is_not_found_and_commit_with_a_config_an_invalid_argument() {
    let (_rig, mut client) = primary().await;
    assert_eq!(client.set(Action::Commit, None).await.unwrap_err().code(), tonic::Code::NotFound);
    let refused = client.set(Action::Commit, Some(config())).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    client.set(Action::VerifyAndSave, Some(config())).await.unwrap();
    assert_eq!(client.get(ResponseType::All).await, None, "saved is not running");
    client.set(Action::Commit, None).await.unwrap();
    assert_eq!(client.get(ResponseType::All).await, Some(config()));
    assert_eq!(client.set(Action::Commit, None).await.unwrap_err().code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn actions_without_a_config_or_without_an_action_are_invalid_arguments() {
    let (_rig, mut client) = primary().await;
    for action in [Action::Verify, Action::VerifyAndSave, Action::VerifyAndCommit] {
        assert_eq!(client.set(action, None).await.unwrap_err().code(), tonic::Code::InvalidArgument);
    }
    let refused = client.set(Action::Unspecified, Some(config())).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
}

#[tokio::test]
async fn a_non_primary_may_not_install() {
    let (rig, _primary) = primary().await;
    let mut other = Client::connect(&rig).await;
    other.election = 0;
    assert_eq!(other.install().await.unwrap_err().code(), tonic::Code::PermissionDenied);
}

#[tokio::test]
async fn capabilities_tell_the_version() {
    let rig = Rig::start().await;
    let mut client = Client::connect(&rig).await;
    for device_id in [0, DEVICE] {
        let answer = client.rpc.capabilities(CapabilitiesRequest { device_id }).await.unwrap().into_inner();
        assert_eq!(answer.p4runtime_api_version, "1.5.0");
    }
    let refused = client.rpc.capabilities(CapabilitiesRequest { device_id: 99 }).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound);
}

/// A program that is pushed does not know the switch's drop port; `mark_to_drop` of a copy means it all the same.
#[tokio::test]
async fn mark_to_drop_means_the_drop_port_of_the_switch() {
    let config = p4rack_switch::Config { drop_port: 77, ..Default::default() };
    let rig = Rig::start_on(config, |_| {}).await;
    let mut client = Client::connect(&rig).await;
    client.become_primary(1).await;
    let program = "#include <core.p4>\n#include <v1model.p4>
        struct none {} header h_t { bit<8> a; } struct h { h_t h; }
        parser P(packet_in p, out h hdr, inout none m, inout standard_metadata_t sm) {
            state start { p.extract(hdr.h); transition accept; } }
        control V(inout h hdr, inout none m) { apply {} }
        control I(inout h hdr, inout none m, inout standard_metadata_t sm) { apply { sm.egress_spec = 2; } }
        control E(inout h hdr, inout none m, inout standard_metadata_t sm) { apply {
            if (hdr.h.a == 1) { mark_to_drop(sm); }
            if (hdr.h.a == 2) { standard_metadata_t copy = sm; mark_to_drop(copy); sm = copy; } } }
        control C(inout h hdr, inout none m) { apply {} }
        control D(packet_out p, in h hdr) { apply { p.emit(hdr.h); } }
        V1Switch(P(), V(), I(), E(), C(), D()) main;";
    let compiled = p4rack_p4::compile(program, "drops.p4", &Default::default()).unwrap();
    let config = ForwardingPipelineConfig {
        p4info: Some(compiled.p4info),
        p4_device_config: program.into(),
        cookie: None,
    };
    client.set(Action::VerifyAndCommit, Some(config)).await.unwrap();
    for first in [1, 3, 2, 4] {
        rig.inject(1, &[first; 60]).await;
    }
    // They leave in order: frames missing before the last one were dropped.
    assert_eq!(rig.sent(2).await, [(2, vec![3; 60]), (2, vec![4; 60])]);
}
