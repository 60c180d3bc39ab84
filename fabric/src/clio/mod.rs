//! Clio: memory disaggregation with virtual addresses at the memory node and no connections (Guo et al., ASPLOS 2022).
//!
//! ```text
//!   applications ─ CLib at a compute node (CN) ── UDP, any network ── Board, the memory node (MN) ─ DRAM
//!                  order, retries, windows                            translation, page faults, allocation
//! ```
//!
//! ```
//! use p4rack_fabric::Machine;
//! use p4rack_fabric::clio::board::{Board, Config, Pool, Quota, Quotas};
//! use p4rack_fabric::clio::token::Secret;
//! use p4rack_wire::Nanos;
//! use p4rack_wire::clio::{AllocBody, Header, Kind, Manage, PageSize, Rights, VERSION, packet};
//!
//! let config = Config::new(vec![Pool { size: PageSize::K4, frames: 16, ready: 4 }]);
//! let memory = vec![0; config.bytes() as usize];
//! let mut board = Board::new(config, Secret::new([7; 16]), memory).expect("in range");
//! let mut quotas = Quotas::default();
//! quotas[PageSize::K4 as usize] = Quota { reserved: 2, limit: 8, shared: 0 };
//! let process = board.begin(quotas).expect("room");
//!
//! let (mut now, mut ids) = (Nanos::ZERO, 0);
//! let mut ask = |kind: Kind, code, address, length, data: &[u8]| {
//!     ids += 1;
//!     let header = Header {
//!         version: VERSION, kind: kind as u8, code, flags: 0, attempt: 0, index: 0, packets: 1, id: ids, address,
//!         pid: process.space.pid, length, token: process.token, epoch: process.space.epoch, reserved: 0, crc: 0,
//!     };
//!     let mut bytes = Vec::new();
//!     packet::compose(&header, data, &mut bytes);
//!     board.handle_link(("the client's address", &bytes), now, now);
//!     while board.poll_link(now, &mut bytes).is_none() {
//!         now = board.next_timeout().expect("a call of the slow path goes on");
//!         board.handle_timeout(now);
//!     }
//!     let answer = packet::parse_intact(&bytes).expect("intact");
//!     (answer.header.code, answer.header.address, answer.data.to_vec())
//! };
//! let mut body = [0; AllocBody::BYTES];
//! AllocBody { bytes: 10_000, page_size: PageSize::K4 as u8, rights: Rights::ALL.code(), reserved: 0 }.emit(&mut body);
//! let (_, address, _) = ask(Kind::Manage, Manage::Alloc as u8, 0, body.len() as u32, &body);
//! assert_eq!(ask(Kind::Write, 0, address + 100, 5, b"hello").0, 0);
//! assert_eq!(ask(Kind::Read, 0, address + 99, 7, &[]).2, b"\0hello\0");
//! ```
//!
//! All state about requests in flight is at the compute node. [`lib`] is its library, [`board`] the memory node, [`token`] the proof that a
//! packet is from a process that the board knows. `p4rack_wire::clio` describes packets and addresses.

pub mod board;
pub mod lib;
pub mod token;
