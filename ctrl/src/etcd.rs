//! etcd, through which controllers share a rack description: the part of its v3 API that this needs.

use crate::connect::Tls;
use crate::error::{CtrlError, refused};
use p4rack_p4rt::transport::innermost;
use prost::Message;
use std::time::Duration;
use tonic::Request;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// Time limit for connecting and for each call.
const PATIENCE: Duration = Duration::from_secs(3);

/// Address and credentials of an etcd server.
#[derive(Clone, Default)]
pub struct Access {
    /// `host:port`
    pub addr: String,
    /// Encryption; `None` is plain text.
    pub tls: Option<Tls>,
    /// User name and password. `None` if the server asks for none or identifies clients by certificate.
    pub login: Option<(String, String)>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let user = self.login.as_ref().map(|(user, _)| user);
        f.debug_struct("Access")
            .field("addr", &self.addr)
            .field("tls", &self.tls)
            .field("user", &user)
            .finish()
    }
}

/// A connection to an etcd server.
#[derive(Clone)]
pub struct Etcd {
    grpc: Grpc<Channel>,
    /// Token from the login, sent with every call.
    token: Option<AsciiMetadataValue>,
}

impl Etcd {
    /// Connects, and logs in if there are credentials.
    pub async fn connect(access: &Access) -> Result<Etcd, CtrlError> {
        let addr = &access.addr;
        let fail = |reason: String| CtrlError::Etcd(format!("no etcd answers at {addr}: {reason}"));
        let scheme = if access.tls.is_some() { "https" } else { "http" };
        let endpoint =
            Endpoint::from_shared(format!("{scheme}://{addr}")).map_err(|e| fail(e.to_string()))?;
        let mut endpoint = endpoint.connect_timeout(PATIENCE).http2_keep_alive_interval(PATIENCE);
        if let Some(tls) = &access.tls {
            endpoint = endpoint.tls_config(tls.config()?).map_err(|error| fail(innermost(&error)))?;
        }
        let channel = endpoint.connect().await.map_err(|error| fail(innermost(&error)))?;
        let mut etcd = Etcd { grpc: Grpc::new(channel), token: None };
        if let Some((name, password)) = &access.login {
            let request = AuthenticateRequest { name: name.clone(), password: password.clone() };
            let answer: AuthenticateResponse = etcd.call("/etcdserverpb.Auth/Authenticate", request).await?;
            let token = answer.token.parse().map_err(|_| fail("its token is not text".into()))?;
            etcd.token = Some(token);
        }
        Ok(etcd)
    }

    /// A request with the login's token.
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }

    async fn call<Q, A>(&mut self, path: &'static str, request: Q) -> Result<A, CtrlError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.grpc.ready().await.map_err(|error| CtrlError::Etcd(error.to_string()))?;
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        let request = self.request(request);
        let answer = self.grpc.unary(request, PathAndQuery::from_static(path), codec);
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(answer) => Ok(answer.map_err(refused("asking etcd"))?.into_inner()),
            Err(_) => Err(CtrlError::Timeout("etcd's answer".into(), PATIENCE.as_millis())),
        }
    }

    /// The value of a key.
    pub async fn get(&mut self, key: &str) -> Result<Option<String>, CtrlError> {
        Ok(self.range(key).await?.0)
    }

    /// The value of a key and the revision at which it was read.
    async fn range(&mut self, key: &str) -> Result<(Option<String>, i64), CtrlError> {
        let answer: RangeResponse =
            self.call("/etcdserverpb.KV/Range", RangeRequest { key: key.into() }).await?;
        let value = answer.kvs.into_iter().next().map(|found| text(found.value)).transpose()?;
        // Without it, a watch would start at the very first change.
        let header = answer
            .header
            .ok_or_else(|| refused("asking etcd")(tonic::Status::internal("its answer has no header")))?;
        Ok((value, header.revision))
    }

    /// Sets the value of a key.
    pub async fn put(&mut self, key: &str, value: &str) -> Result<(), CtrlError> {
        let request = PutRequest { key: key.into(), value: value.into() };
        self.call::<_, PutResponse>("/etcdserverpb.KV/Put", request).await.map(|_| ())
    }

    /// Sets the value of a key that has none. Returns whether it did.
    pub async fn put_if_absent(&mut self, key: &str, value: &str) -> Result<bool, CtrlError> {
        let absent = Compare { target: CREATE, key: key.into(), create_revision: Some(0) };
        let put = RequestOp { put: Some(PutRequest { key: key.into(), value: value.into() }) };
        let request = TxnRequest { compare: vec![absent], success: vec![put] };
        let answer: TxnResponse = self.call("/etcdserverpb.KV/Txn", request).await?;
        Ok(answer.succeeded)
    }

    /// Passes on the value of a key and every later one. Returns when the connection has ended.
    pub async fn follow(&mut self, key: &str, mut take: impl FnMut(&str)) -> Result<(), CtrlError> {
        let (value, revision) = self.range(key).await?;
        if let Some(value) = value {
            take(&value);
        }
        let create = WatchCreateRequest { key: key.into(), start_revision: revision + 1 };
        let requests = tokio_stream::once(WatchRequest { create: Some(create) });
        // The stream stays open as long as etcd keeps its side open.
        let requests = tokio_stream::StreamExt::chain(requests, tokio_stream::pending());
        self.grpc.ready().await.map_err(|error| CtrlError::Etcd(error.to_string()))?;
        let codec: ProstCodec<WatchRequest, WatchResponse> = ProstCodec::default();
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let requests = self.request(requests);
        let answers = self.grpc.streaming(requests, path, codec).await;
        let mut answers = answers.map_err(refused("watching etcd"))?.into_inner();
        while let Some(answer) = answers.message().await.map_err(refused("watching etcd"))? {
            if answer.canceled {
                return Err(CtrlError::Etcd(format!("the watch was cancelled: {}", answer.cancel_reason)));
            }
            for event in answer.events {
                // If the description is deleted, the switches stay as they are.
                if let (PUT, Some(found)) = (event.kind, event.kv) {
                    take(&text(found.value)?);
                }
            }
        }
        Err(CtrlError::Etcd("it ended the watch".into()))
    }
}

fn text(value: Vec<u8>) -> Result<String, CtrlError> {
    String::from_utf8(value).map_err(|_| CtrlError::Etcd("the value is not text".into()))
}

/// `Compare.target`: the revision at which the key was created.
const CREATE: i32 = 1;
/// `Event.type`.
const PUT: i32 = 0;

#[derive(Clone, PartialEq, Message)]
struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    password: String,
}

#[derive(Clone, PartialEq, Message)]
struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    token: String,
}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(int64, tag = "3")]
    revision: i64,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct PutResponse {}

#[derive(Clone, PartialEq, Message)]
struct Compare {
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(int64, optional, tag = "5")]
    create_revision: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct RequestOp {
    #[prost(message, optional, tag = "2")]
    put: Option<PutRequest>,
}

#[derive(Clone, PartialEq, Message)]
struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
struct TxnResponse {
    #[prost(bool, tag = "2")]
    succeeded: bool,
}

#[derive(Clone, PartialEq, Message)]
struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(int64, tag = "3")]
    start_revision: i64,
}

#[derive(Clone, PartialEq, Message)]
struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    create: Option<WatchCreateRequest>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(message, optional, tag = "2")]
    kv: Option<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct WatchResponse {
    #[prost(bool, tag = "4")]
    canceled: bool,
    #[prost(string, tag = "6")]
    cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    events: Vec<Event>,
}
