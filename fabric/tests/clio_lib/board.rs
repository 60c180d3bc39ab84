//! A model of a board: memory by page, and remembered results.

use crate::clio_lib::world::Node;
use p4rack_fabric::clio::lib::Credentials;
use p4rack_fabric::common::SplitMix;
use p4rack_wire::Nanos;
use p4rack_wire::clio::packet::{self, Packet};
use p4rack_wire::clio::{
    AllocBody, Atomic, FreeBody, Header, Kind, Manage, PageSize, Rights, Status, flags, lock_word,
};
use std::collections::{BTreeMap, VecDeque};

/// The process that all clients are of.
pub const PID: u32 = 7;
const EPOCH: u16 = 3;

/// Credentials for a board.
pub fn credentials(board: usize) -> Credentials {
    Credentials { pid: PID, epoch: EPOCH, token: 0x1234_5678_0000 + board as u64 }
}

/// A board's planted faults, in thousandths of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moods {
    /// It is busy.
    pub busy: u64,
    /// It has no free page for a first access.
    pub no_page: u64,
}

struct Remembered {
    since: Nanos,
    status: Status,
    address: u64,
    data: Vec<u8>,
}

pub struct Board {
    number: usize,
    mtu_bytes: u32,
    memory: Nanos,
    moods: Moods,
    random: SplitMix,
    /// Allocated pages, by address; `None`: never accessed.
    pages: BTreeMap<u64, Option<Vec<u8>>>,
    next_page: u32,
    remembered: BTreeMap<(u64, u16), Remembered>,
    answers: VecDeque<(usize, Vec<u8>)>,
    /// Executions, by kind's number.
    pub executed: BTreeMap<u8, u64>,
    /// Answers that repeated earlier executions.
    pub repeated: u64,
    pub nacks: u64,
    pub busy: u64,
}

impl Board {
    /// A board that remembers for `memory`, and cuts long answers at `mtu_bytes`.
    pub fn new(number: usize, mtu_bytes: u32, memory: Nanos, moods: Moods, seed: u64) -> Board {
        Board {
            number,
            mtu_bytes,
            memory,
            moods,
            random: SplitMix(seed),
            pages: BTreeMap::new(),
            next_page: 1,
            remembered: BTreeMap::new(),
            answers: VecDeque::new(),
            executed: BTreeMap::new(),
            repeated: 0,
            nacks: 0,
            busy: 0,
        }
    }

    /// Allocates pages of 4 KB, for tests that don't ask for them.
    pub fn alloc(&mut self, pages: u32) -> u64 {
        let first = self.next_page;
        self.next_page += pages + 1;
        for page in first..first + pages {
            self.pages.insert(PageSize::K4.address_of(page), None);
        }
        PageSize::K4.address_of(first)
    }

    /// A word of memory: 0 before the first access.
    pub fn word(&self, address: u64) -> u64 {
        let page = address & !0xfff;
        let bytes = self.pages.get(&page).and_then(Option::as_ref);
        bytes.map_or(0, |bytes| {
            u64::from_le_bytes(bytes[(address - page) as usize..][..8].try_into().unwrap())
        })
    }

    fn chance(&mut self, of: u64) -> bool {
        self.random.next() % 1_000 < of
    }

    /// Executes a packet. Returns the answers.
    fn answers_to(&mut self, bytes: &[u8], now: Nanos) -> Vec<Vec<u8>> {
        let Ok(packet) = packet::parse(bytes) else { return Vec::new() };
        let (header, own) = (packet.header, credentials(self.number));
        if (header.pid, header.epoch, header.token) != (own.pid, own.epoch, own.token)
            || !packet.kind.is_request()
        {
            return Vec::new();
        }
        if !packet::is_intact(bytes) {
            self.nacks += 1;
            return vec![answer(&header, Kind::Nack, Status::Done, header.address, (0, 1), 0, &[])];
        }
        self.remembered.retain(|_, kept| now < kept.since + self.memory);
        let key = (header.id, header.index);
        if let Some(kept) = self.remembered.get(&key) {
            self.repeated += 1;
            let index = (header.index, header.packets);
            let flag = flags::REPEATED;
            return vec![answer(&header, Kind::Answer, kept.status, kept.address, index, flag, &kept.data)];
        }
        if self.chance(self.moods.busy) {
            self.busy += 1;
            return vec![refusal(&header, Status::Busy)];
        }
        match self.execute(&packet) {
            Err(status) => vec![refusal(&header, status)],
            Ok((address, data)) => {
                *self.executed.entry(header.kind).or_default() += 1;
                if packet.kind == Kind::Read {
                    return self.parts(&header, &data);
                }
                let index = (header.index, header.packets);
                let out = answer(&header, Kind::Answer, Status::Done, address, index, 0, &data);
                self.remembered.insert(key, Remembered { since: now, status: Status::Done, address, data });
                vec![out]
            }
        }
    }

    fn parts(&self, header: &Header, data: &[u8]) -> Vec<Vec<u8>> {
        let count = data.len().div_ceil(self.mtu_bytes as usize) as u16;
        let mut address = header.address;
        let part = |(index, bytes): (u16, &[u8])| {
            let part = answer(header, Kind::Answer, Status::Done, address, (index, count), 0, bytes);
            address += bytes.len() as u64;
            part
        };
        (0u16..).zip(data.chunks(self.mtu_bytes as usize)).map(part).collect()
    }

    /// The bytes from the packet's address on, all in one page.
    fn bytes(&mut self, header: &Header, length: u32) -> Result<&mut [u8], Status> {
        let inside = header.address & 0xfff;
        if length == 0 || inside + u64::from(length) > 4_096 {
            return Err(Status::BadLength);
        }
        let lacks_page = self.chance(self.moods.no_page);
        let page = self.pages.get_mut(&(header.address - inside)).ok_or(Status::NoSuchAddress)?;
        if page.is_none() && lacks_page {
            self.busy += 1;
            return Err(Status::NoPageYet);
        }
        let page = page.get_or_insert_with(|| vec![0; 4_096]);
        Ok(&mut page[inside as usize..][..length as usize])
    }

    fn execute(&mut self, packet: &Packet<'_>) -> Result<(u64, Vec<u8>), Status> {
        let header = &packet.header;
        let (address, nothing) = (header.address, Vec::new());
        match packet.kind {
            Kind::Read => Ok((address, self.bytes(header, header.length)?.to_vec())),
            Kind::Write => {
                self.bytes(header, header.length)?.copy_from_slice(packet.data);
                Ok((address, nothing))
            }
            Kind::Atomic => {
                let word = self.bytes(header, 8)?;
                let old = u64::from_le_bytes((&*word).try_into().unwrap());
                let operand = |nth: usize| {
                    let bytes = packet.data.get(8 * nth..8 * nth + 8).ok_or(Status::BadLength)?;
                    Ok(u64::from_le_bytes(bytes.try_into().unwrap()))
                };
                let own = lock_word(header.pid, operand(0)? as u16, header.epoch);
                let new = match Atomic::of(header.code).ok_or(Status::BadRequest)? {
                    Atomic::CompareSwap if old == operand(0)? => operand(1)?,
                    Atomic::CompareSwap => old,
                    Atomic::FetchAdd => old.wrapping_add(operand(0)?),
                    Atomic::Swap => operand(0)?,
                    Atomic::Lock if old == 0 => own,
                    Atomic::Lock => old,
                    Atomic::Unlock if old == own => 0,
                    Atomic::Unlock => return Err(Status::NotOwner),
                };
                word.copy_from_slice(&new.to_le_bytes());
                Ok((address, old.to_le_bytes().to_vec()))
            }
            Kind::Fence => Ok((address, nothing)),
            Kind::Manage => self.manage(packet).map(|address| (address, nothing)),
            _ => Err(Status::BadRequest),
        }
    }

    fn manage(&mut self, packet: &Packet<'_>) -> Result<u64, Status> {
        let header = &packet.header;
        match Manage::of(header.code) {
            Some(Manage::Alloc) => {
                let body = AllocBody::parse(packet.data).map_err(|_| Status::BadLength)?;
                assert_eq!((body.page_size, Rights::of(body.rights)), (0, Ok(Rights::ALL)));
                Ok(self.alloc(body.bytes.div_ceil(4_096) as u32))
            }
            Some(Manage::Free) => {
                let body = FreeBody::parse(packet.data).map_err(|_| Status::BadLength)?;
                let pages = (header.address..header.address + body.bytes).step_by(4_096);
                match pages.clone().all(|page| self.pages.contains_key(&page)) {
                    true => pages.for_each(|page| drop(self.pages.remove(&page))),
                    false => return Err(Status::NoSuchAddress),
                }
                Ok(header.address)
            }
            _ => Err(Status::BadRequest),
        }
    }
}

impl Node for Board {
    fn credentials(&self) -> Credentials {
        credentials(self.number)
    }

    fn handle(&mut self, client: usize, bytes: &[u8], now: Nanos) {
        let answers = self.answers_to(bytes, now);
        self.answers.extend(answers.into_iter().map(|answer| (client, answer)));
    }

    fn poll(&mut self, _now: Nanos) -> Option<(usize, Vec<u8>)> {
        self.answers.pop_front()
    }

    fn next_call(&self) -> Option<Nanos> {
        None
    }

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn allocate(&mut self, pages: u32, _now: &mut Nanos) -> u64 {
        self.alloc(pages)
    }

    fn look(&mut self, address: u64, _now: &mut Nanos) -> u64 {
        self.word(address)
    }

    fn counts(&self) -> [u64; 2] {
        [self.repeated, self.nacks]
    }
}

fn answer(
    request: &Header,
    kind: Kind,
    status: Status,
    address: u64,
    (index, packets): (u16, u16),
    flags: u8,
    data: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    let (kind, code, length) = (kind as u8, status as u8, data.len() as u32);
    packet::compose(
        &Header { kind, code, flags, address, index, packets, length, ..*request },
        data,
        &mut out,
    );
    out
}

fn refusal(request: &Header, status: Status) -> Vec<u8> {
    answer(request, Kind::Answer, status, request.address, (request.index, request.packets), 0, &[])
}
