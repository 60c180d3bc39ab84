//! Encrypted connections: the server must be known and, where asked for, so must the controller.

use crate::rig::*;
use crate::unfriendly::{is_in_time, trickle};
use p4rack_p4rt::p4::v1::CapabilitiesRequest;
use p4rack_p4rt::p4::v1::p4_runtime_client::P4RuntimeClient;
use p4rack_switchd::core;
use p4rack_switchd::server::{ServerConfig, ServerTls, bind, serve_on};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

#[path = "../../../tests/certificates.rs"]
mod certificates;
use certificates::{Certificates, VALID};

impl Certificates {
    /// A certificate of an authority for `localhost`, to the end of a year.
    fn certificate(&self, name: &str, authority: &str, year: u32) {
        self.sign(name, authority, "DNS:localhost", year);
    }

    fn server(&self, name: &str, client_ca: Option<&str>) -> ServerTls {
        ServerTls {
            certificate: self.file(&format!("{name}.pem")),
            key: self.file(&format!("{name}.key")),
            client_ca: client_ca.map(|name| self.file(&format!("{name}.pem"))),
        }
    }

    /// Whether a controller that trusts an authority, and may show a certificate of its own, is answered.
    async fn reaches(&self, rig: &Rig, trusts: &str, shows: Option<&str>) -> bool {
        let read = |name: String| std::fs::read(self.file(&name)).unwrap();
        let ca = Certificate::from_pem(read(format!("{trusts}.pem")));
        let mut tls = ClientTlsConfig::new().ca_certificate(ca).domain_name("localhost");
        if let Some(name) = shows {
            tls = tls.identity(Identity::from_pem(read(format!("{name}.pem")), read(format!("{name}.key"))));
        }
        let endpoint =
            Endpoint::from_shared(format!("https://{}", rig.addr)).unwrap().tls_config(tls).unwrap();
        let Ok(channel) = endpoint.connect().await else { return false };
        P4RuntimeClient::new(channel).capabilities(CapabilitiesRequest::default()).await.is_ok()
    }
}

#[tokio::test]
async fn a_controller_talks_only_to_a_server_that_it_knows() {
    let Some(folder) = Certificates::new() else { return };
    folder.certificate("server", "ca", VALID);
    folder.certificate("expired", "ca", 2020);
    let rig = Rig::encrypted(folder.server("server", None)).await;
    assert!(folder.reaches(&rig, "ca", None).await);
    assert!(!folder.reaches(&rig, "other", None).await, "of another authority");
    let plain = Endpoint::from_shared(format!("http://{}", rig.addr)).unwrap().connect().await;
    if let Ok(channel) = plain {
        assert!(
            P4RuntimeClient::new(channel).capabilities(CapabilitiesRequest::default()).await.is_err(),
            "in plain text"
        );
    }
    let expired = Rig::encrypted(folder.server("expired", None)).await;
    assert!(!folder.reaches(&expired, "ca", None).await, "its certificate has expired");
}

#[tokio::test]
async fn a_server_that_asks_for_certificates_lets_only_those_in_that_it_knows() {
    let Some(folder) = Certificates::new() else { return };
    for name in ["server", "controller"] {
        folder.certificate(name, "ca", VALID);
    }
    folder.certificate("expired", "ca", 2020);
    folder.certificate("stranger", "other", VALID);
    let rig = Rig::encrypted(folder.server("server", Some("ca"))).await;
    assert!(!folder.reaches(&rig, "ca", None).await, "no certificate");
    assert!(!folder.reaches(&rig, "ca", Some("stranger")).await, "a certificate of another authority");
    assert!(!folder.reaches(&rig, "ca", Some("expired")).await, "a certificate that has expired");
    // Refused clients don't keep others out.
    assert!(folder.reaches(&rig, "ca", Some("controller")).await);
}

#[tokio::test]
async fn a_hundred_handshakes_that_stop_halfway_keep_nobody_out() {
    let Some(folder) = Certificates::new() else { return };
    folder.certificate("server", "ca", VALID);
    let rig = Rig::encrypted(folder.server("server", None)).await;
    let mut halfway = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(&rig.addr).await.unwrap();
        // The beginning of a record with a ClientHello.
        stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]).await.unwrap();
        halfway.push(stream);
    }
    assert!(folder.reaches(&rig, "ca", None).await);
}

#[tokio::test]
async fn a_certificate_of_the_first_version_is_refused_as_that() {
    let Some(folder) = Certificates::new() else { return };
    folder.key("old", &["-out", "request"]);
    folder.openssl(&["x509", "-req", "-in", "request", "-key", "old.key", "-days", "2", "-out", "old.pem"]);
    let error = folder.server("old", None).config().unwrap_err().to_string();
    assert!(
        error.contains("old.pem") && error.contains("X.509 version 1, and TLS needs version 3"),
        "{error}"
    );
}

#[tokio::test]
async fn handshake_and_preface_have_one_limit_however_they_trickle() {
    let Some(folder) = Certificates::new() else { return };
    folder.certificate("server", "ca", VALID);
    let tls = folder.server("server", None);
    let rig = Rig::start_with(|config| {
        (config.tls, config.keepalive) = (Some(tls), Duration::from_millis(100));
    })
    .await;
    // A record that announces 508 bytes of a ClientHello.
    let mut hello = vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    hello.resize(60, 7);
    let stream = TcpStream::connect(&rig.addr).await.unwrap();
    let slow = tokio::spawn(async move { trickle(stream, &hello).await });
    // With a prompt TLS handshake, and slow afterwards.
    let mut roots = RootCertStore::empty();
    let ca = std::fs::read(folder.file("ca.pem")).unwrap();
    roots.add(CertificateDer::from_pem_slice(&ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let connector = TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()));
    let stream = TcpStream::connect(&rig.addr).await.unwrap();
    let encrypted = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    let slower = tokio::spawn(async move { trickle(encrypted, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r").await });
    assert!(folder.reaches(&rig, "ca", None).await, "nobody else waits");
    for took in [slow.await.unwrap(), slower.await.unwrap()] {
        assert!(is_in_time(took), "{took:?}");
    }
    assert_eq!(rig.handle.turned_away().load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn files_that_are_no_certificate_are_refused_by_name_before_anything_is_served() {
    let Some(folder) = Certificates::new() else { return };
    folder.certificate("server", "ca", VALID);
    std::fs::write(folder.file("text.pem"), "not a certificate").unwrap();
    let refused = async |tls: ServerTls| {
        let (handle, _jobs, _sender, events) = core::channel().unwrap();
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let config = ServerConfig { tls: Some(tls), ..ServerConfig::new(addr, DEVICE) };
        serve_on(listener, handle, events, config, async {}).await.unwrap_err().to_string()
    };
    let good = folder.server("server", None);
    let missing = refused(ServerTls { key: folder.file("nowhere.key"), ..good.clone() }).await;
    assert!(missing.contains("nowhere.key"), "{missing}");
    let text = refused(ServerTls { certificate: folder.file("text.pem"), ..good.clone() }).await;
    assert!(text.contains("text.pem") && text.contains("PEM"), "{text}");
    let no_pair = refused(ServerTls { key: folder.file("ca.key"), ..good }).await;
    assert!(no_pair.contains("the key must be the certificate's"), "{no_pair}");
}
