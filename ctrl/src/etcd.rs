//! etcd, where several controllers share a rack's description: as much of its v3 API as that needs.

use crate::error::{CtrlError, refused};
use prost::Message;
use std::time::Duration;
use tonic::Request;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// How long connecting and each call may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// A connection to an etcd server.
#[derive(Clone, Debug)]
pub struct Etcd {
    grpc: Grpc<Channel>,
}

impl Etcd {
    /// Connects to `host:port`.
    pub async fn connect(addr: &str) -> Result<Etcd, CtrlError> {
        let fail = |reason: String| CtrlError::Etcd(format!("no etcd answers at {addr}: {reason}"));
        let endpoint = Endpoint::from_shared(format!("http://{addr}")).map_err(|e| fail(e.to_string()))?;
        let endpoint = endpoint.connect_timeout(PATIENCE).http2_keep_alive_interval(PATIENCE);
        let channel = endpoint.connect().await.map_err(|error| {
            let cause = std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string);
            fail(cause)
        })?;
        Ok(Etcd { grpc: Grpc::new(channel) })
    }

    async fn call<Q, A>(&mut self, path: &'static str, request: Q) -> Result<A, CtrlError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.grpc.ready().await.map_err(|error| CtrlError::Etcd(error.to_string()))?;
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        let answer = self.grpc.unary(Request::new(request), PathAndQuery::from_static(path), codec);
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(answer) => Ok(answer.map_err(refused("asking etcd"))?.into_inner()),
            Err(_) => Err(CtrlError::Timeout("etcd's answer".into(), PATIENCE.as_millis())),
        }
    }

    /// The value under a key.
    pub async fn get(&mut self, key: &str) -> Result<Option<String>, CtrlError> {
        Ok(self.range(key).await?.0)
    }

    /// The value, and the revision at which it was so.
    async fn range(&mut self, key: &str) -> Result<(Option<String>, i64), CtrlError> {
        let answer: RangeResponse =
            self.call("/etcdserverpb.KV/Range", RangeRequest { key: key.into() }).await?;
        let value = answer.kvs.into_iter().next().map(|found| text(found.value)).transpose()?;
        Ok((value, answer.header.unwrap_or_default().revision))
    }

    /// Puts a value under a key.
    pub async fn put(&mut self, key: &str, value: &str) -> Result<(), CtrlError> {
        let request = PutRequest { key: key.into(), value: value.into() };
        self.call::<_, PutResponse>("/etcdserverpb.KV/Put", request).await.map(|_| ())
    }

    /// Puts a value under a key that has none; whether it did.
    pub async fn put_if_absent(&mut self, key: &str, value: &str) -> Result<bool, CtrlError> {
        let absent = Compare { target: CREATE, key: key.into(), create_revision: Some(0) };
        let put = RequestOp { put: Some(PutRequest { key: key.into(), value: value.into() }) };
        let request = TxnRequest { compare: vec![absent], success: vec![put] };
        let answer: TxnResponse = self.call("/etcdserverpb.KV/Txn", request).await?;
        Ok(answer.succeeded)
    }

    /// Hands over the value under a key, and every later one; returns when the connection has ended.
    pub async fn follow(&mut self, key: &str, mut take: impl FnMut(&str)) -> Result<(), CtrlError> {
        let (value, revision) = self.range(key).await?;
        if let Some(value) = value {
            take(&value);
        }
        let create = WatchCreateRequest { key: key.into(), start_revision: revision + 1 };
        let requests = tokio_stream::once(WatchRequest { create: Some(create) });
        // The stream stays open for as long as etcd keeps its side open.
        let requests = tokio_stream::StreamExt::chain(requests, tokio_stream::pending());
        self.grpc.ready().await.map_err(|error| CtrlError::Etcd(error.to_string()))?;
        let codec: ProstCodec<WatchRequest, WatchResponse> = ProstCodec::default();
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let answers = self.grpc.streaming(Request::new(requests), path, codec).await;
        let mut answers = answers.map_err(refused("watching etcd"))?.into_inner();
        while let Some(answer) = answers.message().await.map_err(refused("watching etcd"))? {
            if answer.canceled {
                return Err(CtrlError::Etcd(format!("the watch was cancelled: {}", answer.cancel_reason)));
            }
            for event in answer.events {
                // A deleted description leaves the switches as they are.
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

/// `Compare.target`: the revision at which the key was made.
const CREATE: i32 = 1;
/// `Event.type`.
const PUT: i32 = 0;

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
