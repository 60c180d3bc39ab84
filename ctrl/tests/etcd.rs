//! etcd with encryption and users, against the real server.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::certificates;
use certificates::{Certificates, VALID};
use p4rack_ctrl::CtrlError;
use p4rack_ctrl::connect::Tls;
use p4rack_ctrl::etcd::{Access, Etcd};
use prost::Message;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic_prost::ProstCodec;

const KEY: &str = "/p4rack/racks/r";

/// A server in a scratch folder, ended when dropped.
struct Server {
    process: Child,
    addr: String,
    folder: Certificates,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Two different unused ports.
fn free_ports() -> (u16, u16) {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [first, second] = listeners.map(|listener| listener.local_addr().unwrap().port());
    (first, second)
}

/// Starts etcd, encrypted, for clients with a certificate of `ca` where `mutual`. Returns when it answers.
async fn start(mutual: bool) -> Option<Server> {
    if Command::new("etcd").arg("--version").stdout(Stdio::null()).status().is_err() {
        // Past the harness, which hides what a passing test prints.
        let _ =
            writeln!(std::io::stderr(), "skipped: needs etcd, get it by: sudo apt-get install etcd-server");
        return None;
    }
    // A port that was free may have been taken by the time etcd asks for it.
    for _ in 0..5 {
        let mut server = launch(mutual)?;
        if server.answers(mutual).await {
            return Some(server);
        }
    }
    panic!("etcd does not start on any of five pairs of ports");
}

/// `None` where there is no openssl.
fn launch(mutual: bool) -> Option<Server> {
    let folder = Certificates::new()?;
    for name in ["server", "controller"] {
        folder.sign(name, "ca", "DNS:localhost", VALID);
    }
    let file = |name: &str| folder.file(name);
    let (port, peer_port) = free_ports();
    let (client, peer) = (format!("https://localhost:{port}"), format!("http://127.0.0.1:{peer_port}"));
    let listen = format!("https://127.0.0.1:{port}");
    let mut command = Command::new("etcd");
    command.arg("--data-dir").arg(file("data")).args(["--log-level", "error", "--name", "test"]);
    for (option, url) in [
        ("--listen-client-urls", &listen),
        ("--advertise-client-urls", &client),
        ("--listen-peer-urls", &peer),
        ("--initial-advertise-peer-urls", &peer),
    ] {
        command.args([option, url]);
    }
    command.args(["--initial-cluster", &format!("test={peer}")]);
    command.arg("--cert-file").arg(file("server.pem")).arg("--key-file").arg(file("server.key"));
    if mutual {
        command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(file("ca.pem"));
    }
    // Debian builds it for architectures that its authors don't test.
    command.env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH);
    let process = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    Some(Server { process, addr: format!("localhost:{port}"), folder })
}

impl Server {
    /// Waits until it answers a request; false if it has ended.
    async fn answers(&mut self, mutual: bool) -> bool {
        let access = self.access(self.tls("ca.pem", mutual), None);
        let started = Instant::now();
        // An open port is not enough: it may be another's, or etcd may end before it serves.
        while works(&access, "ready").await.is_err() {
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(started.elapsed() < Duration::from_secs(30), "etcd answers");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        true
    }

    fn tls(&self, ca: &str, identity: bool) -> Option<Tls> {
        let file = |name: &str| self.folder.file(name);
        let identity = identity.then(|| (file("controller.pem"), file("controller.key")));
        Some(Tls { cacert: Some(file(ca)), identity, server_name: None })
    }

    fn access(&self, tls: Option<Tls>, login: Option<(&str, &str)>) -> Access {
        let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
        Access { addr: self.addr.clone(), tls, login }
    }
}

/// Puts and reads a value.
async fn works(access: &Access, value: &str) -> Result<(), CtrlError> {
    let mut etcd = Etcd::connect(access).await?;
    etcd.put(KEY, value).await?;
    assert_eq!(etcd.get(KEY).await?.as_deref(), Some(value));
    Ok(())
}

#[tokio::test]
async fn the_server_must_be_known_and_so_must_the_controller_where_asked_for() {
    let Some(server) = start(true).await else { return };
    works(&server.access(server.tls("ca.pem", true), None), "a").await.unwrap();
    for (tls, why) in [
        (None, "plain text"),
        (server.tls("other.pem", true), "another authority"),
        (server.tls("ca.pem", false), "no certificate of its own"),
    ] {
        let error = works(&server.access(tls, None), "b").await.expect_err(why).to_string();
        assert!(!error.is_empty(), "{why}");
    }
    let missing = Tls { cacert: Some("/nowhere/ca.pem".into()), ..Tls::default() };
    let error = works(&server.access(Some(missing), None), "b").await.unwrap_err().to_string();
    assert!(error.contains("/nowhere/ca.pem"), "{error}");
}

#[tokio::test]
async fn users_log_in_and_see_what_is_theirs() {
    let Some(server) = start(false).await else { return };
    let tls = || server.tls("ca.pem", false);
    works(&server.access(tls(), None), "before there are users").await.unwrap();
    make_users(&server).await;

    let controller = server.access(tls(), Some(("controller", "secret")));
    works(&controller, "first").await.unwrap();
    let mut etcd = Etcd::connect(&controller).await.unwrap();
    assert!(!etcd.put_if_absent(KEY, "other").await.unwrap());
    // Its role ends at /p4rack/.
    let error = etcd.put("/elsewhere", "x").await.unwrap_err().to_string();
    assert!(error.contains("permission denied"), "{error}");

    let wrong =
        works(&server.access(tls(), Some(("controller", "guess"))), "x").await.unwrap_err().to_string();
    assert!(wrong.contains("authentication failed"), "{wrong}");
    let nobody = works(&server.access(tls(), None), "x").await.unwrap_err().to_string();
    assert!(nobody.contains("user name is empty"), "{nobody}");

    // A watch needs the login as well, and sees others' writes.
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let watcher = tokio::spawn(async move {
        let mut etcd = Etcd::connect(&controller).await?;
        etcd.follow(KEY, |value| sender.send(value.to_owned()).unwrap()).await
    });
    const LIMIT: Duration = Duration::from_secs(10);
    assert_eq!(tokio::time::timeout(LIMIT, seen.recv()).await.unwrap().as_deref(), Some("first"));
    etcd.put(KEY, "second").await.unwrap();
    assert_eq!(tokio::time::timeout(LIMIT, seen.recv()).await.unwrap().as_deref(), Some("second"));
    watcher.abort();
}

#[test]
fn a_password_is_not_shown() {
    let login = Some(("controller".to_owned(), "secret".to_owned()));
    let shown = format!("{:?}", Access { login, ..Access::default() });
    assert!(shown.contains("controller") && !shown.contains("secret"), "{shown}");
}

/// `root`, and `controller` with the password `secret` and all below /p4rack/; then users are asked for.
async fn make_users(server: &Server) {
    let read = |name: &str| std::fs::read(server.folder.file(name)).unwrap();
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(read("ca.pem")))
        .identity(Identity::from_pem(read("controller.pem"), read("controller.key")));
    let endpoint =
        Endpoint::from_shared(format!("https://{}", server.addr)).unwrap().tls_config(tls).unwrap();
    let mut grpc = Grpc::new(endpoint.connect().await.unwrap());
    for user in ["root", "controller"] {
        call(&mut grpc, "/etcdserverpb.Auth/RoleAdd", Words::of(user, "")).await;
        call(&mut grpc, "/etcdserverpb.Auth/UserAdd", Words::of(user, "secret")).await;
        call(&mut grpc, "/etcdserverpb.Auth/UserGrantRole", Words::of(user, user)).await;
    }
    let permission =
        Permission { kind: READ_WRITE, key: b"/p4rack/".to_vec(), range_end: b"/p4rack0".to_vec() };
    let grant = GrantPermission { name: "controller".into(), permission: Some(permission) };
    call(&mut grpc, "/etcdserverpb.Auth/RoleGrantPermission", grant).await;
    call(&mut grpc, "/etcdserverpb.Auth/AuthEnable", Words::of("", "")).await;
}

async fn call<Q: Message + 'static>(grpc: &mut Grpc<Channel>, path: &'static str, request: Q) {
    grpc.ready().await.unwrap();
    let codec: ProstCodec<Q, Nothing> = ProstCodec::default();
    let answer = grpc.unary(tonic::Request::new(request), PathAndQuery::from_static(path), codec).await;
    answer.unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// An answer whose fields are of no interest.
#[derive(Clone, PartialEq, Message)]
struct Nothing {}

/// Request of most of these calls: a name, and a password or a role.
#[derive(Clone, PartialEq, Message)]
struct Words {
    #[prost(string, tag = "1")]
    first: String,
    #[prost(string, tag = "2")]
    second: String,
}

impl Words {
    fn of(first: &str, second: &str) -> Words {
        Words { first: first.into(), second: second.into() }
    }
}

/// `Permission.permType`.
const READ_WRITE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct Permission {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct GrantPermission {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    permission: Option<Permission>,
}
