//! Programs from Debian that know nothing of PL2, unmodified, over a rack under PL2.

mod common;
use common::{KeptRack, can_make_namespaces, have, repo, stderr, stdout, wait_until};
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A server inside the rack, ended with the test.
struct Server(Child);

impl Server {
    fn start(mut command: std::process::Command) -> Server {
        Server(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the server starts"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ping_crosses_the_rack_in_every_scheme() {
    if !can_make_namespaces() || !have("ping", "iputils-ping") {
        return;
    }
    for scheme in ["l2", "pl2-counter", "pl2-clock"] {
        let rack = KeptRack::up(&repo("examples/pl2-incast.toml"), scheme);
        for size in ["56", "1472"] {
            let ping = rack.exec("h1", &["ping", "-c", "3", "-i", "0.2", "-s", size, "-W", "2", "10.0.0.6"]);
            let output = { ping }.output().expect("p4rack starts");
            assert!(output.status.success(), "{scheme} {size}: {}{}", stdout(&output), stderr(&output));
        }
        let missing = rack.exec("h9", &["true"]).output().expect("p4rack starts");
        assert_eq!(missing.status.code(), Some(1));
        assert!(stderr(&missing).contains("h6"), "names the hosts there are: {}", stderr(&missing));
    }
}

#[test]
fn memcached_answers_across_the_rack() {
    if !can_make_namespaces() || !have("memcached", "memcached") {
        return;
    }
    let rack = KeptRack::up(&repo("examples/pl2-incast.toml"), "pl2-clock");
    let _server =
        Server::start(rack.exec("h6", &["memcached", "-u", "nobody", "-l", "10.0.0.6", "-p", "11211"]));
    let value = "v".repeat(4096);
    // The client is bash's own TCP, in h1: nothing to install.
    let script = format!(
        "exec 3<>/dev/tcp/10.0.0.6/11211; printf 'set key 0 0 4096\\r\\n{value}\\r\\nget key\\r\\nquit\\r\\n' >&3; cat <&3"
    );
    let mut answer = String::new();
    let answered = wait_until(Duration::from_secs(20), || {
        let output = rack.exec("h1", &["bash", "-c", &script]).output().expect("p4rack starts");
        answer = stdout(&output);
        answer.contains("STORED")
    });
    assert!(answered, "memcached did not answer: {answer}");
    assert!(
        answer.contains(&format!("VALUE key 0 4096\r\n{value}\r\nEND")),
        "{}",
        &answer[..80.min(answer.len())]
    );
}

#[test]
fn iperf3_carries_tcp_across_the_rack() {
    if !can_make_namespaces() || !have("iperf3", "iperf3") {
        return;
    }
    let rack = KeptRack::up(&repo("examples/pl2-incast.toml"), "pl2-clock");
    let _server = Server::start(rack.exec("h1", &["iperf3", "-s", "-1", "-B", "10.0.0.1"]));
    let mut result = String::new();
    let ran = wait_until(Duration::from_secs(20), || {
        let client = rack.exec("h2", &["iperf3", "-c", "10.0.0.1", "-t", "3", "-J"]).output();
        result = stdout(&client.expect("p4rack starts"));
        result.contains("sum_received")
    });
    assert!(ran, "iperf3 did not finish: {result}");
    let json: serde_json::Value = serde_json::from_str(&result).expect("iperf3 -J prints JSON");
    let rate_bps = json["end"]["sum_received"]["bits_per_second"].as_f64().expect("a rate");
    // `rack check` promises 93.96 Mb/s of IP to h1 at most, a slot a full frame, of which TCP's headers leave 1448 of 1500
    // bytes: 90.7. A single connection has it all to itself but for its start; beside compilers it reached 89.
    assert!(rate_bps > 80e6, "only {rate_bps} b/s");
    // Under all of TCP's load, scheduled frames were not lost.
    let example = repo("examples/pl2-incast.toml").display().to_string();
    let top = [env!("CARGO_BIN_EXE_p4rack"), "top", &example, "--once", "--every", "0.1"];
    let top = stdout(&rack.exec("switch", &top).output().expect("p4rack starts"));
    let dropped = top.split_once("dropped  frames  a second").map(|(_, reasons)| reasons.trim());
    assert_eq!(dropped, Some(""), "reasons under top's last headline: {top}");
    let _ = writeln!(
        std::io::stdout(),
        "iperf3 over PL2: {:.1} Mb/s received",
        json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0) / 1e6
    );
}
