//! A program's side of the set-up.

use crate::roce::SetupError;
use crate::roce::setup::{Call, Server};
use p4rack_fabric::clio::lib::{Credentials, NUMBER_BITS};
use p4rack_p4rt::p4rack::clio::v1::clio_client::ClioClient;
use p4rack_p4rt::p4rack::clio::v1::{AttachRequest, AttachResponse};
use p4rack_wire::Nanos;
use p4rack_wire::clio::address::ADDRESS_BITS;
use p4rack_wire::clio::{PageSize, WORD_BYTES};
use std::ops::RangeInclusive;

/// Data bytes that the longest packet may have: a datagram has room for no more.
const MTU_BYTES: RangeInclusive<u32> = 64..=65_000;

/// Times for which a board may remember executed requests: clients derive their TIMEOUT from it.
const MEMORY_NS: RangeInclusive<u64> = 1_000_000..=3_600_000_000_000;

/// A client's request to a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes of the range of a process of its own; 0: it joins the process whose memory is offered to all, and the rest is `None`.
    pub reserve_bytes: u64,
    /// Bytes that the process may have allocated, the range included; `None`: twice as many as are reserved, or all
    /// bytes that the board has left.
    pub limit_bytes: Option<u64>,
    /// Bytes that other processes may share with it beside those; `None`: none.
    pub share_limit_bytes: Option<u64>,
}

impl Wanted {
    /// What each of several boards is asked for, so that all together have as much: equal parts, in whole words.
    pub(super) fn each_of(self, boards: usize) -> Wanted {
        let part = |bytes: u64| match boards {
            0 | 1 => bytes,
            boards => bytes.div_ceil(boards as u64).next_multiple_of(WORD_BYTES.into()),
        };
        Wanted {
            reserve_bytes: part(self.reserve_bytes),
            limit_bytes: self.limit_bytes.map(part),
            share_limit_bytes: self.share_limit_bytes.map(part),
        }
    }

    /// A range of this length, and the board's limits.
    pub fn bytes(reserve_bytes: u64) -> Wanted {
        Wanted { reserve_bytes, ..Wanted::default() }
    }
}

/// A client's rights and parameters. A process that the client has reserved ends when this is dropped.
#[derive(Debug)]
pub struct Attached {
    /// Rights to the process.
    pub credentials: Credentials,
    /// Number of the client among all that the board has had.
    pub client: u32,
    /// Number of the client in words of locks: no other client of the board has it.
    pub thread: u16,
    /// Port at which the board takes packets.
    pub udp_port: u16,
    /// Address and bytes of the client's range.
    pub range: (u64, u64),
    /// Bytes that the process may have allocated, the range included.
    pub limit_bytes: u64,
    /// Bytes that other processes may share with it.
    pub share_limit_bytes: u64,
    /// Size of its pages.
    pub page_size: PageSize,
    /// Data bytes of the longest packet.
    pub mtu_bytes: u32,
    /// How long the board remembers executed requests.
    pub memory: Nanos,
    call: Call<AttachResponse>,
}

impl Attached {
    /// The same client with rights to another process of the board, and a range of it. Errors: the address names no page size.
    pub(crate) fn granted(self, credentials: Credentials, range: (u64, u64)) -> Result<Attached, String> {
        let page_size = PageSize::of_address(range.0);
        let page_size =
            page_size.map_err(|_| format!("a range at {:#x}, which names no page size", range.0))?;
        Ok(Attached { credentials, range, limit_bytes: range.1, share_limit_bytes: 0, page_size, ..self })
    }

    /// Resolves when the board has ended the process, or is gone. Returns why.
    pub async fn ended(&mut self) -> String {
        self.call.ended().await
    }
}

/// Attaches a client to a board: to a new process, or to the one whose memory is offered to all. Errors: the board can't be reached,
/// refuses, or answers nonsense.
pub async fn attach(server: &Server, wanted: Wanted) -> Result<Attached, SetupError> {
    let mut client = ClioClient::new(server.channel().await?);
    let Wanted { reserve_bytes, limit_bytes, share_limit_bytes } = wanted;
    let request = AttachRequest { reserve_bytes, limit_bytes, share_limit_bytes };
    let (answer, call) = server.answer(client.attach(request).await).await?;
    let small = |name: &str, number: u32| {
        u16::try_from(number).map_err(|_| server.nonsense(format!("{name} is {number}; expected 16 bits")))
    };
    let end = answer.address.checked_add(answer.bytes).filter(|end| *end <= 1 << ADDRESS_BITS);
    if answer.bytes == 0 || end.is_none() {
        return Err(server.nonsense(format!("a range of {} bytes at {:#x}", answer.bytes, answer.address)));
    }
    if answer.bytes < reserve_bytes {
        return Err(server.nonsense(format!("{} bytes; {reserve_bytes} were asked for", answer.bytes)));
    }
    if !MEMORY_NS.contains(&answer.memory_ns) {
        return Err(server.nonsense(format!("memory_ns is {}; expected {MEMORY_NS:?}", answer.memory_ns)));
    }
    if !MTU_BYTES.contains(&answer.mtu_bytes) {
        return Err(server.nonsense(format!("mtu_bytes is {}; expected {MTU_BYTES:?}", answer.mtu_bytes)));
    }
    if answer.client >= 1 << NUMBER_BITS {
        return Err(server.nonsense(format!("client is {}; expected {NUMBER_BITS} bits", answer.client)));
    }
    let page_size = PageSize::of_address(answer.address).map_err(|_| {
        server.nonsense(format!("a range at {:#x}, which names no page size", answer.address))
    })?;
    if answer.udp_port == 0 {
        return Err(server.nonsense("udp_port is 0; expected a port".to_owned()));
    }
    if answer.thread == 0 {
        let why = "thread is 0; expected a number from 1 on: the board may be an older one, start it anew";
        return Err(server.nonsense(why.to_owned()));
    }
    let credentials =
        Credentials { pid: answer.pid, epoch: small("epoch", answer.epoch)?, token: answer.token };
    Ok(Attached {
        credentials,
        client: answer.client,
        thread: small("thread", answer.thread)?,
        udp_port: small("udp_port", answer.udp_port)?,
        range: (answer.address, answer.bytes),
        limit_bytes: answer.limit_bytes,
        share_limit_bytes: answer.share_limit_bytes,
        page_size,
        mtu_bytes: answer.mtu_bytes,
        memory: Nanos(answer.memory_ns),
        call,
    })
}
