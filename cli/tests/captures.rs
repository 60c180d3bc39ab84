//! Captures prove that application bytes cross the rack's links, and that program and entries come over
//! gRPC.

mod common;
#[path = "common/pcap.rs"]
mod pcap;

use common::{KeptRack, can_make_namespaces, have, p4rack, repo, stderr};
use p4rack_p4rt::p4::v1::{SetForwardingPipelineConfigRequest, WriteRequest};
use p4rack_p4rt::text;
use pcap::{frames, grpc_messages, tcp_streams};
use prost::Message;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Bytes that no compression or chance repeats: a linear congruential generator's high bytes.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// The server reads a request of known length and answers with a file; the client does the reverse.
const SERVER: &str = "
import socket, sys
listener = socket.create_server(('10.0.0.6', 7000))
print('listening', flush=True)
connection, _ = listener.accept()
wanted, answer, got = int(sys.argv[1]), open(sys.argv[2], 'rb').read(), b''
while len(got) < wanted:
    got += connection.recv(65536)
connection.sendall(answer)
connection.shutdown(socket.SHUT_WR)
open(sys.argv[3], 'wb').write(got)
connection.recv(1)
";
const CLIENT: &str = "
import socket, sys
connection = socket.create_connection(('10.0.0.6', 7000), 20)
connection.sendall(open(sys.argv[1], 'rb').read())
got = b''
while chunk := connection.recv(65536):
    got += chunk
open(sys.argv[2], 'wb').write(got)
";

#[test]
fn every_application_byte_crosses_the_links_and_the_entries_come_over_grpc() {
    if !can_make_namespaces() || !have("python3", "python3") {
        return;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name);
    let word = |path: &Path| path.to_str().expect("a plain path").to_owned();
    let (request, answer) = (noise(1, 150_000), noise(2, 250_000));
    fs::write(at("request"), &request).expect("scratch is writable");
    fs::write(at("answer"), &answer).expect("scratch is writable");

    let rack = KeptRack::up_with(
        &repo("examples/pl2-incast.toml"),
        "pl2-clock",
        &["--pcap".as_ref(), at("captures").as_os_str()],
    );
    let length = request.len().to_string();
    let (answer_file, request_got, answer_got) =
        (word(&at("answer")), word(&at("request.got")), word(&at("answer.got")));
    let mut server = rack
        .exec("h6", &["python3", "-c", SERVER, &length, &answer_file, &request_got])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut line = String::new();
    let output = server.stdout.take().expect("its output is piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("it says something");
    let client = rack
        .exec("h1", &["python3", "-c", CLIENT, &word(&at("request")), &answer_got])
        .output()
        .expect("runs");
    assert!(client.status.success(), "{line}{}", stderr(&client));
    assert!(server.wait().expect("the server ends").success());
    assert!(fs::read(at("request.got")).expect("written") == request, "the server got something else");
    assert!(fs::read(at("answer.got")).expect("written") == answer, "the client got something else");
    drop(rack);

    let captures = at("captures/pl2-clock");
    let flow_to = |port: &str, to: u8| {
        let mut streams = tcp_streams(&frames(&captures.join(port)));
        let flow = streams
            .keys()
            .find(|flow| flow.2 == [10, 0, 0, to] && (flow.1 == 7000 || flow.3 == 7000))
            .copied();
        let flow = flow.unwrap_or_else(|| panic!("{port} has no such connection"));
        streams.remove(&flow).expect("just found")
    };
    for (ports, to, bytes) in [
        (["port1_in.pcap", "port6_out.pcap"], 6, &request),
        (["port6_in.pcap", "port1_out.pcap"], 1, &answer),
    ] {
        for port in ports {
            let stream = flow_to(port, to);
            assert!(stream.bytes() == *bytes, "{port}: not all bytes of the application are there");
            // One lane: its two halves by turns.
            let vids: Vec<_> = stream.vids.iter().copied().collect();
            assert_eq!(vids, [Some(100), Some(101)], "{port}: all of it in reserved slots");
        }
    }

    control_channel(&captures.join("control.pcap"), folder.path());
}

/// The capture holds the program's text and every entry, as `p4rack generate` writes them.
fn control_channel(capture: &Path, scratch: &Path) {
    let generated = scratch.join("generated");
    let output = p4rack()
        .args(["generate"])
        .arg(repo("examples/pl2-incast.toml"))
        .arg("-o")
        .arg(&generated)
        .output()
        .expect("p4rack starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let read = |name: &str| fs::read_to_string(generated.join(name)).expect("generated");
    let entries: WriteRequest = text::parse(&read("pl2-incast.entries.txtpb")).expect("a WriteRequest");

    let streams = tcp_streams(&frames(capture));
    let to_server = streams.iter().filter(|(flow, _)| flow.3 == 9559);
    let messages: Vec<Vec<u8>> = to_server.flat_map(|(_, stream)| grpc_messages(&stream.bytes())).collect();
    let program = read("pl2-incast.p4");
    let installs = messages.iter().filter_map(|m| SetForwardingPipelineConfigRequest::decode(&m[..]).ok());
    let carried =
        installs.filter_map(|install| install.config).any(|c| c.p4_device_config == program.as_bytes());
    assert!(carried, "the program's text did not cross the control channel");
    let written: Vec<_> = messages
        .iter()
        .filter_map(|m| WriteRequest::decode(&m[..]).ok())
        .flat_map(|request| request.updates)
        .filter_map(|update| update.entity)
        .map(p4rack_ctrl::normal)
        .collect();
    assert!(entries.updates.len() > 10, "the rack has entries");
    for update in entries.updates {
        // The order of a group's ports is free.
        let entity = p4rack_ctrl::normal(update.entity.expect("an update has an entity"));
        assert!(written.contains(&entity), "did not cross the control channel: {entity:?}");
    }
}
