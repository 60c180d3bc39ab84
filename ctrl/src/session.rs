//! A session with a switch: arbitration and the switch's messages.
//!
//! ```text
//!              another's id is higher
//!   primary ◀────────────────────────▶ standby
//!        ▲   campaign: id above all       │  NOT_FOUND: the primary has gone
//!        └────────────────────────────────┘
//! ```

use crate::client::Client;
use crate::connect::{CONNECT, ConnectOptions, RoleConfig};
use crate::error::{CtrlError, refused};
use p4rack_p4rt::google::rpc::Code as RpcCode;
use p4rack_p4rt::p4::v1::{
    DigestList, DigestListAck, IdleTimeoutNotification, MasterArbitrationUpdate, PacketIn, PacketOut, Role,
    StreamMessageRequest, StreamMessageResponse, stream_message_request, stream_message_response,
};
use p4rack_p4rt::stratum::P4RoleConfig;
use std::ops::{Deref, DerefMut};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};

/// How long to wait for an election id that is in use, and before the first try again: each waits twice as long.
const HANDOVER: Duration = Duration::from_secs(1);
const HANDOVER_FIRST: Duration = Duration::from_millis(60);
/// Maximum messages waiting to be sent.
const OUTGOING: usize = 256;

/// The role of this controller in the arbitration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// This controller may write.
    Primary,
    /// Another controller is primary.
    Standby {
        /// Highest election id known to the switch.
        highest: u128,
    },
    /// There is no primary: it has disconnected.
    Vacant {
        /// Highest election id known to the switch.
        highest: u128,
    },
}

/// A message from the switch.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The controller's standing may have changed.
    Standing(Standing),
    /// A packet.
    Packet(PacketIn),
    /// Digests of the program; acknowledge them with [`Session::acknowledge`].
    Digest(DigestList),
    /// Entries whose idle timeout has expired.
    Idle(IdleTimeoutNotification),
    /// A message of this controller was rejected.
    Refused(String),
}

/// A controller's session, which ends when dropped.
#[derive(Debug)]
pub struct Session {
    client: Client,
    standing: Standing,
    outgoing: mpsc::Sender<StreamMessageRequest>,
    incoming: Streaming<StreamMessageResponse>,
}

impl Deref for Session {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Session {
    /// Connects and becomes primary.
    pub async fn connect(target: ConnectOptions) -> Result<Session, CtrlError> {
        let patience = Instant::now() + HANDOVER;
        let mut pause = HANDOVER_FIRST;
        loop {
            match Session::join(target.clone()).await {
                // The switch may not have noticed yet that a controller has disconnected.
                Err(CtrlError::Refused { status, .. })
                    if status.code() == tonic::Code::InvalidArgument && Instant::now() < patience =>
                {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Ok(session) => {
                    session.need_primary()?;
                    return Ok(session);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Connects beside the controllers that there are: as primary of a role of its own, which may send packets and receive
    /// them, and nothing else. Where a switch has no roles, as primary like others.
    pub async fn beside(target: ConnectOptions) -> Result<Session, CtrlError> {
        if !target.role.is_empty() {
            return Session::connect(target).await;
        }
        // Those of several processes are different.
        let role = format!("p4rack-packets-{}", std::process::id());
        let config = P4RoleConfig { receives_packet_ins: true, ..Default::default() };
        let own = ConnectOptions { role, role_config: Some(RoleConfig(config)), ..target.clone() };
        match Session::connect(own).await {
            Err(CtrlError::Refused { .. } | CtrlError::Ended(_)) => Session::connect(target).await,
            connected => connected,
        }
    }

    /// Connects and asks to be primary. The result may be that another controller is.
    pub async fn join(target: ConnectOptions) -> Result<Session, CtrlError> {
        let mut client = Client::connect(target).await?;
        let (outgoing, requests) = mpsc::channel(OUTGOING);
        let first = arbitration(&client);
        client.log("StreamChannel", &first)?;
        outgoing.try_send(first).expect("the queue is new and has room");
        let incoming = client
            .grpc
            .stream_channel(ReceiverStream::new(requests))
            .await
            .map_err(refused("opening a session"))?
            .into_inner();
        let standing = Standing::Vacant { highest: 0 };
        let mut session = Session { client, standing, outgoing, incoming };
        match session.event(Instant::now() + CONNECT).await? {
            Some(Event::Standing(_)) => Ok(session),
            Some(_) => Err(CtrlError::Ended("it answered arbitration with something else".into())),
            None => Err(CtrlError::Timeout("the answer to arbitration".into(), CONNECT.as_millis())),
        }
    }

    /// The standing last reported by the switch.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Asks again with another election id. The answer arrives as an [`Event::Standing`].
    pub async fn campaign(&mut self, election_id: u128) -> Result<(), CtrlError> {
        self.client.target.election_id = election_id;
        let message = arbitration(&self.client);
        self.send(message).await
    }

    /// Whether this error means that the connection is unusable.
    pub(crate) fn is_lost(&self, error: &CtrlError) -> bool {
        match error {
            CtrlError::Refused { status, .. } => {
                matches!(status.code(), Code::Unavailable | Code::Cancelled | Code::Unknown)
            }
            CtrlError::Ended(_) => true,
            _ => false,
        }
    }

    fn need_primary(&self) -> Result<(), CtrlError> {
        let (addr, device_id) = (self.target().addr.clone(), self.target().device_id);
        let show = |highest: u128| format!("{},{}", highest >> 64, highest as u64);
        match self.standing {
            Standing::Primary => Ok(()),
            Standing::Standby { highest } => {
                Err(CtrlError::NotPrimary { addr, device_id, highest: show(highest) })
            }
            Standing::Vacant { highest } => {
                Err(CtrlError::NoPrimary { addr, device_id, highest: show(highest) })
            }
        }
    }

    /// The next message from the switch; `None` if none arrives by `until`.
    pub async fn event(&mut self, until: Instant) -> Result<Option<Event>, CtrlError> {
        use stream_message_response::Update;
        loop {
            let message = match timeout_at(until, self.incoming.message()).await {
                Err(_) => return Ok(None),
                Ok(Ok(Some(message))) => message,
                Ok(Ok(None)) => return Err(CtrlError::Ended("it closed the stream".into())),
                Ok(Err(status)) => return Err(refused("session")(status)),
            };
            return Ok(Some(match message.update {
                Some(Update::Arbitration(answer)) => {
                    self.standing = standing(&answer);
                    Event::Standing(self.standing)
                }
                Some(Update::Packet(packet)) => Event::Packet(packet),
                Some(Update::Digest(list)) => Event::Digest(list),
                Some(Update::IdleTimeoutNotification(idle)) => Event::Idle(idle),
                Some(Update::Error(error)) => Event::Refused(error.message),
                Some(Update::Other(_)) | None => continue,
            }));
        }
    }

    async fn send(&mut self, message: StreamMessageRequest) -> Result<(), CtrlError> {
        self.client.log("StreamChannel", &message)?;
        let sent = self.outgoing.send(message).await;
        sent.map_err(|_| CtrlError::Ended("it closed the stream".into()))
    }

    /// Sends a packet.
    pub async fn packet_out(&mut self, packet: PacketOut) -> Result<(), CtrlError> {
        let update = stream_message_request::Update::Packet(packet);
        self.send(StreamMessageRequest { update: Some(update) }).await
    }

    /// Acknowledges a digest list.
    pub async fn acknowledge(&mut self, list: &DigestList) -> Result<(), CtrlError> {
        let ack = DigestListAck { digest_id: list.digest_id, list_id: list.list_id };
        let update = stream_message_request::Update::DigestAck(ack);
        self.send(StreamMessageRequest { update: Some(update) }).await
    }

    /// The next packet from the switch; `None` if none arrives by `until`. Errors: a packet-out was rejected,
    /// another controller took over, or the session ended.
    pub async fn packet_in(&mut self, until: Instant) -> Result<Option<PacketIn>, CtrlError> {
        loop {
            match self.event(until).await? {
                None => return Ok(None),
                Some(Event::Packet(packet)) => return Ok(Some(packet)),
                Some(Event::Standing(_)) => self.need_primary()?,
                Some(Event::Refused(why)) => return Err(CtrlError::PacketOut(why)),
                Some(Event::Digest(_) | Event::Idle(_)) => {}
            }
        }
    }
}

fn arbitration(client: &Client) -> StreamMessageRequest {
    let target = client.target();
    let config = target.role_config.as_ref().map(RoleConfig::message);
    let role = Role { name: target.role.clone(), config, ..Default::default() };
    let arbitration = MasterArbitrationUpdate {
        device_id: target.device_id,
        role: (!target.role.is_empty()).then_some(role),
        election_id: Some(target.election()),
        status: None,
    };
    StreamMessageRequest { update: Some(stream_message_request::Update::Arbitration(arbitration)) }
}

fn standing(answer: &MasterArbitrationUpdate) -> Standing {
    let code = answer.status.as_ref().map_or(0, |status| status.code);
    let highest = answer.election_id.unwrap_or_default();
    let highest = u128::from(highest.high) << 64 | u128::from(highest.low);
    match code {
        code if code == RpcCode::Ok as i32 => Standing::Primary,
        code if code == RpcCode::NotFound as i32 => Standing::Vacant { highest },
        _ => Standing::Standby { highest },
    }
}
