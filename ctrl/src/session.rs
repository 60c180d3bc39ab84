//! A session with a switch: connection, arbitration, packets in and out.

use crate::error::{CtrlError, refused};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::p4_runtime_client::P4RuntimeClient;
use p4rack_p4rt::p4::v1::{
    MasterArbitrationUpdate, PacketIn, PacketOut, Role, StreamMessageRequest, StreamMessageResponse, Uint128,
    stream_message_request, stream_message_response,
};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

/// Largest status taken: one error for each update of a Write travels in it.
const STATUS_LIMIT: u32 = 16 << 20;
/// How long connecting and arbitrating may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an election id that is in use is waited for.
const HANDOVER: Duration = Duration::from_secs(1);
/// How often a silent switch is asked whether it lives, and how long it may take to say so.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// Messages that may wait to be sent.
const OUTGOING: usize = 256;
/// Largest message taken.
const RECEIVE_LIMIT: usize = 128 << 20;

/// Which switch, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `host:port`
    pub addr: String,
    /// The switch's number at that server.
    pub device_id: u64,
    /// The highest one is primary.
    pub election_id: u128,
    /// Empty: full access.
    pub role: String,
}

impl Target {
    /// Election id as P4Runtime carries it.
    pub fn election(&self) -> Uint128 {
        Uint128 { high: (self.election_id >> 64) as u64, low: self.election_id as u64 }
    }
}

/// Reads an election id written `HI,LO`, or `LO` alone.
pub fn parse_election_id(text: &str) -> Result<u128, String> {
    let wrong = || format!("`{text}` is not an election id such as 0,1");
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    match text.split_once(',') {
        Some((high, low)) => Ok(u128::from(number(high)?) << 64 | u128::from(number(low)?)),
        None => number(text).map(u128::from),
    }
}

/// A primary's session. It ends when dropped.
#[derive(Debug)]
pub struct Session {
    target: Target,
    pub(crate) client: P4RuntimeClient<Channel>,
    pub(crate) channel: Channel,
    outgoing: mpsc::Sender<StreamMessageRequest>,
    incoming: Streaming<StreamMessageResponse>,
}

/// Connects to a gRPC server.
pub(crate) async fn channel(addr: &str) -> Result<Channel, CtrlError> {
    let fail = |reason: String| CtrlError::Connect { addr: addr.into(), reason };
    let endpoint = Endpoint::from_shared(format!("http://{addr}"))
        .map_err(|error| fail(error.to_string()))?
        .connect_timeout(CONNECT)
        .http2_max_header_list_size(STATUS_LIMIT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .tcp_nodelay(true);
    endpoint.connect().await.map_err(|error| {
        // The outermost error says only that the transport failed.
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        fail(cause.to_string())
    })
}

impl Session {
    /// Connects and becomes primary.
    pub async fn connect(target: Target) -> Result<Session, CtrlError> {
        let patience = Instant::now() + HANDOVER;
        loop {
            match Session::try_connect(target.clone()).await {
                // A controller that has just ended may not be gone yet for the switch.
                Err(CtrlError::Refused { status, .. })
                    if status.code() == tonic::Code::InvalidArgument && Instant::now() < patience =>
                {
                    tokio::time::sleep(HANDOVER / 20).await;
                }
                result => return result,
            }
        }
    }

    async fn try_connect(target: Target) -> Result<Session, CtrlError> {
        let channel = channel(&target.addr).await?;
        let mut client = P4RuntimeClient::new(channel.clone()).max_decoding_message_size(RECEIVE_LIMIT);
        let (outgoing, requests) = mpsc::channel(OUTGOING);
        let role = Role { name: target.role.clone(), ..Default::default() };
        let arbitration = MasterArbitrationUpdate {
            device_id: target.device_id,
            role: (!target.role.is_empty()).then_some(role),
            election_id: Some(target.election()),
            status: None,
        };
        let update = stream_message_request::Update::Arbitration(arbitration);
        let first = StreamMessageRequest { update: Some(update) };
        outgoing.try_send(first).expect("the queue is new and has room");
        let incoming = client
            .stream_channel(ReceiverStream::new(requests))
            .await
            .map_err(refused("opening a session"))?
            .into_inner();
        let mut session = Session { target, client, channel, outgoing, incoming };
        let answer = session.next(Instant::now() + CONNECT, "the answer to arbitration").await?;
        let Some(stream_message_response::Update::Arbitration(answer)) = answer.update else {
            return Err(CtrlError::Ended("it answered arbitration with something else".into()));
        };
        session.check(&answer)?;
        Ok(session)
    }

    /// Which switch, and as whom.
    pub fn target(&self) -> &Target {
        &self.target
    }

    fn check(&self, answer: &MasterArbitrationUpdate) -> Result<(), CtrlError> {
        let code = answer.status.as_ref().map_or(0, |status| status.code);
        if code == Code::Ok as i32 {
            return Ok(());
        }
        let highest = answer.election_id.unwrap_or_default();
        Err(CtrlError::NotPrimary {
            addr: self.target.addr.clone(),
            device_id: self.target.device_id,
            highest: format!("{},{}", highest.high, highest.low),
        })
    }

    async fn next(&mut self, until: Instant, what: &str) -> Result<StreamMessageResponse, CtrlError> {
        let started = Instant::now();
        match timeout_at(until, self.incoming.message()).await {
            Err(_) => Err(CtrlError::Timeout(what.into(), started.elapsed().as_millis())),
            Ok(Ok(Some(message))) => Ok(message),
            Ok(Ok(None)) => Err(CtrlError::Ended("it closed the stream".into())),
            Ok(Err(status)) => Err(CtrlError::Refused { call: "session", status: Box::new(status) }),
        }
    }

    /// Sends a packet.
    pub async fn packet_out(&mut self, packet: PacketOut) -> Result<(), CtrlError> {
        let update = stream_message_request::Update::Packet(packet);
        let sent = self.outgoing.send(StreamMessageRequest { update: Some(update) }).await;
        sent.map_err(|_| CtrlError::Ended("it closed the stream".into()))
    }

    /// The next packet from the switch; `None` when none came until then. Errors: a packet-out was
    /// refused, another controller took over, the session ended.
    pub async fn packet_in(&mut self, until: Instant) -> Result<Option<PacketIn>, CtrlError> {
        loop {
            let message = match self.next(until, "a packet").await {
                Err(CtrlError::Timeout(..)) => return Ok(None),
                message => message?,
            };
            match message.update {
                Some(stream_message_response::Update::Packet(packet)) => return Ok(Some(packet)),
                Some(stream_message_response::Update::Arbitration(answer)) => self.check(&answer)?,
                Some(stream_message_response::Update::Error(error)) => {
                    return Err(CtrlError::PacketOut(error.message));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn election_ids_are_read() {
        assert_eq!(parse_election_id("0,1"), Ok(1));
        assert_eq!(parse_election_id("7"), Ok(7));
        assert_eq!(parse_election_id("2, 3"), Ok((2 << 64) + 3));
        for wrong in ["", "a", "1,", "-1", "1,2,3"] {
            assert!(parse_election_id(wrong).is_err(), "{wrong}");
        }
    }
}
