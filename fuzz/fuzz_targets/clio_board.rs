//! A board of Clio takes any packets, with a right and without, in any order with its slow path and its offloads. A
//! process beside them reads its own writes to a page that it shares with none, and all frames are free in the end.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{Board, Call, Config, Grant, Pool, Quota, Quotas, Space, View as _};
use p4rack_fabric::clio::token::Secret;
use p4rack_wire::Nanos;
use p4rack_wire::clio::{AllocBody, Header, Kind, Manage, PageSize, ShareBody, Status, VERSION, packet};

const ANSWERS_MAX: usize = 16;
/// Data that the process beside the fuzzed one writes.
const MARK: [u8; 24] = [0x5c; 24];

#[derive(Arbitrary, Debug)]
enum Step {
    /// Any bytes.
    Bytes(Vec<u8>),
    /// A request with numbers near real ones, with the process's token or a wrong one, perhaps damaged.
    Request {
        kind: u8,
        code: u8,
        id: u8,
        attempt: u8,
        page: u8,
        at: u16,
        length: u16,
        data: Vec<u8>,
        forged: bool,
        damaged: bool,
    },
    Alloc {
        pages: u8,
        rights: u8,
    },
    Free {
        page: u8,
        pages: u8,
    },
    /// Shares pages with the process beside, with a page of its own for such, with itself, or with none.
    Share {
        page: u8,
        pages: u8,
        pid: u8,
        rights: u8,
    },
    /// The process beside shares its second page with the fuzzed one, or frees pages that others share with it.
    Beside {
        frees: bool,
        page: u8,
    },
    /// A call of an offload.
    Call {
        id: u8,
        attempt: u8,
        data: Vec<u8>,
    },
    /// An offload takes a call.
    Take,
    /// It reads or writes memory of the caller or of the other process, and ends a call that it has taken.
    Finish {
        which: u8,
        page: u8,
        at: u16,
        length: u8,
        writes: bool,
        fails: bool,
    },
    Poll(u8),
    Wait(u16),
    /// The process ends, and another one begins.
    End,
}

type Clio = Board<Vec<u8>, ()>;

fn board() -> Clio {
    let pool = Pool { size: PageSize::K4, frames: 8, ready: 2 };
    let config = Config {
        bucket_slots: 4,
        spare_percent: 50,
        tlb_entries: 3,
        data_bytes_max: 256,
        read_bytes_max: 2_048,
        answers_max: [ANSWERS_MAX - 2, ANSWERS_MAX],
        held_max: [2, 4],
        jobs_max: [3, 6],
        retry_entries: 32,
        retry_keep: Nanos(50_000),
        calls_max: [2, 3],
        call_read_bytes_max: 1_000,
        call_result_bytes_max: 600,
        locks_max: [1, 2],
        step_pages: 2,
        ..Config::new(vec![pool])
    };
    let memory = vec![0xee; config.bytes() as usize];
    Board::new(config, Secret::new([5; 16]), memory).expect("in range")
}

fn begin(board: &mut Clio) -> Option<Grant> {
    let mut quotas = Quotas::default();
    quotas[PageSize::K4 as usize] = Quota { reserved: 2, limit: 9, shared: 3 };
    board.begin(quotas).ok()
}

fn header(grant: &Grant, kind: u8, code: u8, id: u64, address: u64, length: u32) -> Header {
    Header {
        version: VERSION,
        kind,
        code,
        flags: 0,
        attempt: 0,
        index: 0,
        packets: 1,
        id,
        address,
        pid: grant.space.pid,
        length,
        token: grant.token,
        epoch: grant.space.epoch,
        reserved: 0,
        crc: 0,
    }
}

/// Shares pages, by number and count, with another process.
fn share(
    board: &mut Clio,
    (now, id): (Nanos, u64),
    of: &Grant,
    (page, pages): (u8, u8),
    (to, rights): (Space, u8),
) {
    let mut body = [0; ShareBody::BYTES];
    ShareBody { bytes: u64::from(pages) << 12, pid: to.pid, epoch: to.epoch, rights, reserved: 0 }
        .emit(&mut body);
    manage(board, now, of, (Manage::Share, id), PageSize::K4.address_of(page.into()), &body);
}

/// Sends a request of the slow path. Its answer waits.
fn manage(board: &mut Clio, now: Nanos, of: &Grant, what: (Manage, u64), address: u64, body: &[u8]) {
    let (call, id) = what;
    let header = header(of, Kind::Manage as u8, call as u8, id, address, body.len() as u32);
    let mut out = Vec::new();
    packet::compose(&header, body, &mut out);
    board.handle_link(((), &out), now, now);
}

/// Sends a request and waits for its answer, after all others.
fn ask(board: &mut Clio, now: &mut Nanos, header: Header, data: &[u8]) -> (Header, Vec<u8>) {
    let mut out = Vec::new();
    while board.poll_link(*now, &mut out).is_some() {}
    packet::compose(&header, data, &mut out);
    board.handle_link(((), &out), *now, *now);
    loop {
        while board.poll_link(*now, &mut out).is_some() {
            let answer = packet::parse_intact(&out).expect("boards send whole packets");
            if (answer.header.pid, answer.header.id) == (header.pid, header.id) {
                return (answer.header, answer.data.to_vec());
            }
        }
        *now = (*now).max(board.next_timeout().expect("it is at work"));
        board.handle_timeout(*now);
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let (mut board, mut now, mut out) = (board(), Nanos::ZERO, Vec::new());
    let [mine, offload] = [(); 2].map(|()| begin(&mut board).expect("room"));
    let (mut grant, mut calls) = (begin(&mut board), Vec::<Call<()>>::new());
    // The first page has the mark, the second one is shared.
    let mut body = [0; AllocBody::BYTES];
    AllocBody { bytes: 2 << 12, page_size: 0, rights: 3, reserved: 0 }.emit(&mut body);
    let alloc = header(&mine, Kind::Manage as u8, Manage::Alloc as u8, 1, 0, body.len() as u32);
    let address = ask(&mut board, &mut now, alloc, &body).0.address;
    let write = header(&mine, Kind::Write as u8, 0, 2, address, MARK.len() as u32);
    while ask(&mut board, &mut now, write, &MARK).0.code != Status::Done as u8 {}
    for (nth, step) in (10_000..).zip(steps) {
        let of = grant.unwrap_or(Grant { token: 0, ..mine });
        match step {
            Step::Bytes(bytes) => board.handle_link(((), &bytes), now, now),
            Step::Request { kind, code, id, attempt, page, at, length, mut data, forged, damaged } => {
                let address = PageSize::K4.address_of(u32::from(page % 12)) + u64::from(at % 5_000);
                let kind = kind % 10;
                if kind != Kind::Read as u8 {
                    data.truncate(length.into());
                }
                let length = if kind == Kind::Read as u8 { length.into() } else { data.len() as u32 };
                let header = header(&of, kind, code, id.into(), address, length);
                let token = if forged { !header.token } else { header.token };
                packet::compose(&Header { attempt, token, ..header }, &data, &mut out);
                if damaged && let Some(last) = out.last_mut() {
                    *last ^= 1;
                }
                board.handle_link(((), &out), now, now);
            }
            Step::Alloc { pages, rights } => {
                let mut body = [0; AllocBody::BYTES];
                AllocBody { bytes: u64::from(pages % 12) << 12, page_size: 0, rights, reserved: 0 }
                    .emit(&mut body);
                manage(&mut board, now, &of, (Manage::Alloc, nth), 0, &body);
            }
            Step::Free { page, pages } => {
                let (address, bytes) =
                    (PageSize::K4.address_of((page % 12).into()), u64::from(pages % 12) << 12);
                manage(&mut board, now, &of, (Manage::Free, nth), address, &bytes.to_be_bytes());
            }
            Step::Share { page, pages, pid, rights } => {
                let to = [mine, offload, of][usize::from(pid % 3)].space;
                share(&mut board, (now, nth), &of, (page % 12, pages % 12), (to, rights));
            }
            Step::Beside { frees, page } => {
                let second = PageSize::K4.page_of(address) as u8 + 1;
                let at = PageSize::K4.address_of((page % 12).into());
                if !frees {
                    share(&mut board, (now, nth), &mine, (second, 1), (of.space, 3));
                } else if at != address {
                    manage(&mut board, now, &mine, (Manage::Free, nth), at, &4_096u64.to_be_bytes());
                }
            }
            Step::Call { id, attempt, mut data } => {
                data.truncate(100);
                let call =
                    Header { attempt, ..header(&of, Kind::Call as u8, 0, id.into(), 0, data.len() as u32) };
                packet::compose(&call, &data, &mut out);
                board.handle_link(((), &out), now, now);
            }
            Step::Take => calls.extend(board.poll_call()),
            Step::Finish { which, page, at, length, writes, fails } => {
                if calls.is_empty() {
                    continue;
                }
                let call = calls.swap_remove(usize::from(which) % calls.len());
                let address = PageSize::K4.address_of((page % 12).into()) + u64::from(at % 5_000);
                let mut bytes = vec![7; usize::from(length) * 3];
                for space in [call.caller, offload.space] {
                    let mut view = board.view(offload.space, &call);
                    // Any status is right.
                    let _ = if writes {
                        view.write(space, address, &bytes)
                    } else {
                        view.read(space, address, &mut bytes)
                    };
                }
                let ended = if fails { Err(Status::NotFound) } else { Ok(()) };
                board.finish_call(call, ended, &bytes, now);
            }
            Step::Poll(times) => {
                for _ in 0..times {
                    board.poll_link(now, &mut out);
                }
            }
            Step::Wait(ns) => {
                let until = now + Nanos(ns.into());
                while let Some(at) = board.next_timeout().filter(|at| *at <= until) {
                    now = now.max(at);
                    board.handle_timeout(now);
                    assert!(board.next_timeout().is_none_or(|next| next > now));
                }
                now = until;
            }
            Step::End => {
                grant.iter().for_each(|grant| assert!(board.end(grant.space, now)));
                grant = begin(&mut board);
            }
        }
    }
    let read = header(&mine, Kind::Read as u8, 0, u64::MAX, address, MARK.len() as u32);
    assert_eq!(ask(&mut board, &mut now, read, &[]).1, MARK);
    calls.into_iter().for_each(|call| board.finish_call(call, Ok(()), &[], now));
    assert!(board.end(mine.space, now) && board.end(offload.space, now));
    grant.iter().for_each(|grant| assert!(board.end(grant.space, now)));
    while let Some(at) = board.next_timeout() {
        now = now.max(at);
        board.handle_timeout(now);
    }
    let usage = board.usage(PageSize::K4);
    assert_eq!((board.processes(), board.table().taken(), usage.taken, usage.promised), (0, 0, 0, 0));
});
