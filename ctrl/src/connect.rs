//! How to connect to a switch, and with which identity.

use crate::error::CtrlError;
use crate::log::RequestLog;
use crate::protocol::Protocol;
use p4rack_codegen::rack::units::parse_number;
use p4rack_p4rt::p4::v1::Uint128;
use p4rack_p4rt::stratum::P4RoleConfig;
use p4rack_p4rt::text;
pub use p4rack_p4rt::transport::tls::ClientTls as Tls;
use p4rack_p4rt::transport::{innermost, tls};
use prost::Message;
use prost_types::Any;
use std::path::Path;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

/// Maximum status accepted: one error per update of a Write travels in it.
const STATUS_LIMIT: u32 = 16 << 20;
/// HTTP/2 window: bytes that a switch may send ahead of the client, some messages of a read.
const WINDOW: u32 = 4 << 20;
/// Time limit for connecting.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);
/// Interval of keepalive pings on an idle connection, and how long to wait for the answer.
const KEEPALIVE: Duration = Duration::from_secs(5);

/// Address of a switch, and the identity under which to connect.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// `host:port`
    pub addr: String,
    /// Protocol of that server.
    pub protocol: Protocol,
    /// Device id at that server.
    pub device_id: u64,
    /// Election id; the highest one is primary.
    pub election_id: u128,
    /// Name of the role; empty is full access.
    pub role: String,
    /// Permissions of the role; `None` is everything.
    pub role_config: Option<RoleConfig>,
    /// Encryption; `None` is plain text.
    pub tls: Option<Tls>,
    /// Log of all requests.
    pub log: Option<RequestLog>,
}

/// Permissions of a role, in Stratum's format.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleConfig(pub P4RoleConfig);

impl RoleConfig {
    /// Reads a text-format `stratum.P4RoleConfig`.
    pub fn read(path: &Path) -> Result<RoleConfig, CtrlError> {
        let refused = |reason: String| CtrlError::RoleConfig { path: path.display().to_string(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
        text::parse(&text).map(RoleConfig).map_err(|error| refused(error.to_string()))
    }

    /// The configuration as P4Runtime carries it.
    pub fn message(&self) -> Any {
        Any { type_url: "type.googleapis.com/stratum.P4RoleConfig".into(), value: self.0.encode_to_vec() }
    }
}

impl ConnectOptions {
    /// A device at `host:port`, in plain text, with election id 1.
    pub fn new(addr: impl Into<String>, device_id: u64) -> ConnectOptions {
        let addr = addr.into();
        ConnectOptions {
            addr,
            protocol: Protocol::P4Runtime,
            device_id,
            election_id: 1,
            role: String::new(),
            role_config: None,
            tls: None,
            log: None,
        }
    }

    /// The election id as P4Runtime carries it.
    pub fn election(&self) -> Uint128 {
        Uint128 { high: (self.election_id >> 64) as u64, low: self.election_id as u64 }
    }

    /// Connects to the gRPC server.
    pub(crate) async fn channel(&self) -> Result<Channel, CtrlError> {
        let addr = &self.addr;
        let fail =
            |reason: String| CtrlError::Connect { protocol: self.protocol, addr: addr.clone(), reason };
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{addr}"))
            .map_err(|error| fail(error.to_string()))?
            .connect_timeout(CONNECT)
            .http2_max_header_list_size(STATUS_LIMIT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .tcp_nodelay(true);
        if let Some(tls) = &self.tls {
            endpoint = endpoint.tls_config(tls.config()?).map_err(|error| fail(innermost(&error)))?;
        }
        endpoint.connect().await.map_err(|error| {
            let reason = innermost(&error);
            fail(match (tls::objection(&error), &self.tls) {
                (Some(objection), _) => objection.to_owned(),
                (None, Some(_)) => {
                    format!(
                        "{reason} (with TLS; is the server's certificate signed by --cacert, for this name?)"
                    )
                }
                (None, None) => reason,
            })
        })
    }
}

/// Parses an election id written as `HI,LO` or `LO`.
pub fn parse_election_id(text: &str) -> Result<u128, String> {
    let wrong = || format!("`{text}` is not an election id such as 0,1");
    let number = |text: &str| parse_number(text).map_err(|_| wrong());
    match text.split_once(',') {
        Some((high, low)) => Ok(u128::from(number(high)?) << 64 | u128::from(number(low)?)),
        None => number(text).map(u128::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn election_ids_are_read() {
        assert_eq!(parse_election_id("0,1"), Ok(1));
        assert_eq!((parse_election_id("7"), parse_election_id("0x10,0")), (Ok(7), Ok(16 << 64)));
        assert_eq!(parse_election_id("2, 3"), Ok((2 << 64) + 3));
        for wrong in ["", "a", "1,", "-1", "1,2,3"] {
            assert!(parse_election_id(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_role_config_is_text_and_its_faults_have_a_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            RoleConfig::read(file.path())
        };
        let config = read("# the ACL's\nexclusive_p4_ids: 0x02000001\nreceives_packet_ins: true").unwrap();
        assert_eq!(config.0.exclusive_p4_ids, [0x0200_0001]);
        assert!(config.message().type_url.ends_with("/stratum.P4RoleConfig"));
        let error = read("exclusive_p4_ids: 1\nexclusive_p4_id: 2").unwrap_err().to_string();
        assert!(error.contains(": 2:1: field 'exclusive_p4_id' not found"), "{error}");
        let error = RoleConfig::read(Path::new("/nowhere/role.txtpb")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/role.txtpb: No such file"), "{error}");
    }

    #[tokio::test]
    async fn a_missing_certificate_is_named() {
        let tls = Tls { cacert: Some("/nowhere/ca.pem".into()), ..Default::default() };
        let error = ConnectOptions { tls: Some(tls), ..ConnectOptions::new("127.0.0.1:1", 1) }
            .channel()
            .await
            .unwrap_err();
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
    }
}
