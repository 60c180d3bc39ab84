//! Encrypted connections, against a server that only knows its version.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::certificates;
use certificates::{Certificates, VALID};
use p4rack_ctrl::connect::Tls;
use p4rack_ctrl::{Client, ConnectOptions, CtrlError};
use p4rack_p4rt::p4::v1::p4_runtime_server::{P4Runtime, P4RuntimeServer};
use p4rack_p4rt::p4::v1::*;
use tokio::net::TcpListener;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};

struct OnlyVersion;

type Answer<T> = Result<Response<T>, Status>;

fn no<T>() -> Answer<T> {
    Err(Status::unimplemented("only its version"))
}

#[tonic::async_trait]
impl P4Runtime for OnlyVersion {
    type ReadStream = ReceiverStream<Result<ReadResponse, Status>>;
    type StreamChannelStream = ReceiverStream<Result<StreamMessageResponse, Status>>;

    async fn capabilities(&self, _: Request<CapabilitiesRequest>) -> Answer<CapabilitiesResponse> {
        Ok(Response::new(CapabilitiesResponse {
            p4runtime_api_version: "1.5.0".into(),
            ..Default::default()
        }))
    }
    async fn write(&self, _: Request<WriteRequest>) -> Answer<WriteResponse> {
        no()
    }
    async fn read(&self, _: Request<ReadRequest>) -> Answer<Self::ReadStream> {
        no()
    }
    async fn set_forwarding_pipeline_config(
        &self,
        _: Request<SetForwardingPipelineConfigRequest>,
    ) -> Answer<SetForwardingPipelineConfigResponse> {
        no()
    }
    async fn get_forwarding_pipeline_config(
        &self,
        _: Request<GetForwardingPipelineConfigRequest>,
    ) -> Answer<GetForwardingPipelineConfigResponse> {
        no()
    }
    async fn stream_channel(
        &self,
        _: Request<Streaming<StreamMessageRequest>>,
    ) -> Answer<Self::StreamChannelStream> {
        no()
    }
}

async fn start(certificates: &Certificates, client_ca: Option<&str>) -> String {
    let read = |name: &str| std::fs::read(certificates.file(name)).unwrap();
    let mut tls = ServerTlsConfig::new().identity(Identity::from_pem(read("server.pem"), read("server.key")));
    if let Some(ca) = client_ca {
        tls = tls.client_ca_root(Certificate::from_pem(read(ca)));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Server::builder().tls_config(tls).unwrap().add_service(P4RuntimeServer::new(OnlyVersion));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    format!("localhost:{port}")
}

async fn version(addr: &str, tls: Option<Tls>) -> Result<String, CtrlError> {
    let target = ConnectOptions { tls, ..ConnectOptions::new(addr, 1) };
    Client::connect(target).await?.api_version().await
}

#[tokio::test]
async fn the_server_must_be_known_and_so_must_the_controller_where_asked_for() {
    let Some(certificates) = Certificates::new() else { return };
    for name in ["server", "controller"] {
        certificates.sign(name, "ca", "DNS:localhost", VALID);
    }
    let file = |name: &str| certificates.file(name);
    let known = |ca: &str| Tls { cacert: Some(file(ca)), ..Default::default() };

    let addr = start(&certificates, None).await;
    assert_eq!(version(&addr, Some(known("ca.pem"))).await.unwrap(), "1.5.0");
    let stranger = version(&addr, Some(known("other.pem"))).await.unwrap_err().to_string();
    assert!(stranger.contains("--cacert"), "{stranger}");
    assert!(version(&addr, None).await.is_err(), "plain text");
    let by_address = addr.replace("localhost", "127.0.0.1");
    assert!(version(&by_address, Some(known("ca.pem"))).await.is_err(), "the certificate is for localhost");
    let named = Tls { server_name: Some("localhost".into()), ..known("ca.pem") };
    assert_eq!(version(&by_address, Some(named)).await.unwrap(), "1.5.0");

    let mutual = start(&certificates, Some("ca.pem")).await;
    let identity = Some((file("controller.pem"), file("controller.key")));
    let both = Tls { identity, ..known("ca.pem") };
    assert_eq!(version(&mutual, Some(both)).await.unwrap(), "1.5.0");
    let unknown = version(&mutual, Some(known("ca.pem"))).await.unwrap_err().to_string();
    assert!(unknown.contains("wants a client certificate") && unknown.contains("--private-key"), "{unknown}");
}
