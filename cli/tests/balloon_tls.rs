//! A balloon that demands certificates: its callers are the compute nodes that these name.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

#[path = "../../tests/certificates.rs"]
mod certificates;
mod common;

use certificates::{Certificates, VALID};
use common::balloon::{Pool, board, end, key, start};
use common::{stderr, stdout, wait_until};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_caller_is_the_compute_node_that_its_certificate_names() {
    let Some(certificates) = Certificates::new() else { return };
    certificates.sign("service", "ca", "IP:127.0.0.1", VALID);
    certificates.sign("one", "ca", "DNS:holder-1", VALID);
    // A host may be several compute nodes, and have names for other services.
    certificates.sign("others", "ca", "DNS:h2,DNS:holder-2,DNS:holder-3", VALID);
    let file = |name: &str| certificates.file(name).display().to_string();
    let (_folder, key) = key();
    let (_board, addr) = board("4 MiB", &key);
    let (ca, of_service) = (file("ca.pem"), ["service.pem", "service.key"].map(file));
    let (_service, at) = start(&[
        "balloon",
        "serve",
        "--lease",
        "60",
        "--key",
        &key,
        "--node",
        &addr,
        "--grpc-server-ssl",
        "--grpc-server-cert",
        &of_service[0],
        "--grpc-server-key",
        &of_service[1],
        "--grpc-server-cacert",
        &ca,
    ]);
    let pool = Pool(at);
    let [one, others] = ["one", "others"].map(|name| {
        let files = [".pem", ".key"].map(|ending| file(&format!("{name}{ending}")));
        ["--ssl", "--cacert", &ca, "--cert", &files[0], "--private-key", &files[1]].map(str::to_owned)
    });
    let [one, others] = [&one, &others].map(|words| words.each_ref().map(String::as_str));
    let free = |bytes: u64| {
        let shown = pool.run(&[&["show", "--json"], &one[..]].concat());
        let shown: serde_json::Value = serde_json::from_str(&stdout(&shown)).unwrap();
        shown["nodes"][0]["free_bytes"] == bytes
    };
    assert!(wait_until(LIMIT, || free(4 << 20)));
    let (first, _) = pool.hold_with("1", "2 MiB", &one);
    let denied = |words: &[&str], name: &str| {
        let output = pool.run(words);
        let said = stderr(&output);
        assert!(
            !output.status.success() && said.contains(&format!("the subjectAltName DNS:{name}")),
            "{said}"
        );
    };
    // It can't be another one, and another one can't take its extents: neither with a later session, nor as an
    // operator.
    denied(&[&["reserve", "2 MiB", "--holder", "2"], &one[..]].concat(), "holder-2");
    denied(&[&["reserve", "2 MiB", "--holder", "1"], &others[..]].concat(), "holder-1");
    denied(&[&["release", "1"], &others[..]].concat(), "holder-1");
    assert!(free(2 << 20), "what it holds stays");
    let (second, _) = pool.hold_with("3", "2 MiB", &others);
    assert!(free(0));
    let released = pool.run(&[&["release", "1"], &one[..]].concat());
    assert!(stdout(&released).contains("held 1 extents"), "{}", stderr(&released));
    end(second);
    drop(first);
    assert!(wait_until(LIMIT, || free(4 << 20)));
    // Without a certificate, none gets in.
    let unknown = stderr(&pool.run(&["show", "--ssl", "--cacert", &ca]));
    assert!(unknown.contains("client certificate"), "{unknown}");
}
