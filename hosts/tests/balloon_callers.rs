//! A service of a balloon that demands certificates: no request of a session is taken from another compute node.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::board;
use crate::certificates;

use board::{key, with_board};
use certificates::{Certificates, VALID};
use p4rack_fabric::balloon::Config;
use p4rack_hosts::balloon::service::{Service, serve};
use p4rack_hosts::balloon::{LeaseError, Tenancy};
use p4rack_hosts::roce::pool;
use p4rack_hosts::roce::setup::Server;
use p4rack_hosts::roce::tls::{ClientTls, ServerTls};
use p4rack_wire::Nanos;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const EXTENT: u64 = 2 << 20;

fn denied<T: std::fmt::Debug>(asked: Result<T, LeaseError>) {
    let said = asked.unwrap_err().to_string();
    assert!(said.contains("not that of compute node 1: it needs the subjectAltName DNS:holder-1"), "{said}");
}

#[test]
fn no_request_of_a_session_is_taken_from_another_compute_node() {
    let Some(certificates) = Certificates::new() else { return };
    certificates.sign("service", "ca", "IP:127.0.0.1", VALID);
    certificates.sign("one", "ca", "DNS:holder-1", VALID);
    // Its common name doesn't count, nor does a name with the same beginning.
    certificates.sign("holder-1", "ca", "DNS:holder-10,DNS:holder-2", VALID);
    let file = |name: &str| certificates.file(name);
    let of_server = ServerTls {
        certificate: file("service.pem"),
        key: file("service.key"),
        client_ca: Some(file("ca.pem")),
    };
    with_board(2 * EXTENT, |place| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let config = Config { lease: Nanos::from_secs(60), ..Config::new(1) };
            let service = Service::start(vec![place.memory.clone().unwrap()], &key(), config).unwrap();
            let listener = pool::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
            let addr = listener.local_addr().unwrap().to_string();
            tokio::spawn(async move { serve(listener, service, Some(&of_server)).await });
            let server = |name: &str| {
                let identity = Some((file(&format!("{name}.pem")), file(&format!("{name}.key"))));
                let tls = ClientTls { cacert: Some(file("ca.pem")), identity, server_name: None };
                Server { addr: addr.clone(), tls: Some(tls) }
            };
            denied(Tenancy::open(server("holder-1"), 1, LIMIT).await);
            let mut tenancy = Tenancy::open(server("one"), 1, LIMIT).await.unwrap();
            let (lent, _) = tenancy.reserve(EXTENT).await.unwrap();
            tenancy.ask_at(server("holder-1"));
            denied(tenancy.renew().await);
            denied(tenancy.reserve(EXTENT).await);
            denied(tenancy.online(lent.extent).await);
            denied(tenancy.give_back(lent.extent).await);
            tenancy.ask_at(server("one"));
            assert_eq!(tenancy.renew().await.unwrap().len(), 1, "nothing has changed");
            tenancy.give_back(lent.extent).await.unwrap();
            tenancy.ask_at(server("holder-1"));
            denied(tenancy.close().await);
            let mut other = Tenancy::open(server("holder-1"), 2, LIMIT).await.unwrap();
            other.reserve(EXTENT).await.unwrap();
        });
    });
}
