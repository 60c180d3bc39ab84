//! Packets into and out of `simple_switch_grpc` over gRPC. This needs neither interfaces nor privileges, and
//! the switch reports when it has finished a packet.
//!
//! The service is `p4.bm.DataplaneInterface`, at the switch's `--dp-grpc-server-addr`.

use crate::connect::ConnectOptions;
use crate::error::{CtrlError, refused};
use std::time::Duration;
use tokio::time::timeout;
use tonic::Request;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

const CALL: &str = "sending a packet through BMv2";
/// Time limit per packet, for packets that are recirculated endlessly.
const LONGEST: Duration = Duration::from_secs(10);
/// Maximum frames that one packet may become.
const MOST: usize = 10_000;

/// A packet at a port, in or out.
#[derive(Clone, PartialEq, prost::Message)]
struct AtPort {
    #[prost(uint64, tag = "2")]
    device_id: u64,
    #[prost(uint32, tag = "3")]
    port: u32,
    #[prost(bytes = "vec", tag = "4")]
    packet: Vec<u8>,
}

/// A connection to the switch's ports.
#[derive(Clone, Debug)]
pub struct Packets {
    grpc: Grpc<Channel>,
    device_id: u64,
}

impl Packets {
    /// Connects to the service at an address, for the device with this id.
    pub async fn connect(addr: &str, device_id: u64) -> Result<Packets, CtrlError> {
        let channel = ConnectOptions::new(addr, device_id).channel().await?;
        Ok(Packets { grpc: Grpc::new(channel), device_id })
    }

    /// Sends a packet of at least one byte into a port. Returns what it became, once all of that has left:
    /// port and frame, in order.
    pub async fn send(&mut self, port: u16, packet: &[u8]) -> Result<Vec<(u16, Vec<u8>)>, CtrlError> {
        let late = |_| CtrlError::Timeout("BMv2's reply to a packet".into(), LONGEST.as_millis());
        timeout(LONGEST, self.through(port, packet)).await.map_err(late)?
    }

    async fn through(&mut self, port: u16, packet: &[u8]) -> Result<Vec<(u16, Vec<u8>)>, CtrlError> {
        self.grpc.ready().await.map_err(|error| CtrlError::Ended(error.to_string()))?;
        let packet = AtPort { device_id: self.device_id, port: port.into(), packet: packet.to_vec() };
        let path = PathAndQuery::from_static("/p4.bm.DataplaneInterface/PacketStream");
        let codec: ProstCodec<AtPort, AtPort> = ProstCodec::default();
        // Closing the stream of packets makes the switch finish when it has none left.
        let request = Request::new(tokio_stream::once(packet));
        let mut answers =
            self.grpc.streaming(request, path, codec).await.map_err(refused(CALL))?.into_inner();
        let mut sent = Vec::new();
        while let Some(AtPort { port, packet, .. }) = answers.message().await.map_err(refused(CALL))? {
            if sent.len() == MOST {
                return Err(CtrlError::Ended(format!("one packet became more than {MOST} frames")));
            }
            sent.push((port as u16, packet));
        }
        Ok(sent)
    }
}
