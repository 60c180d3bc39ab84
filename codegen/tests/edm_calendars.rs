//! Calendars of EDM's mode `calendar`, for all architectures: which cells of time are granted.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::edm::*;
use p4rack_codegen::Scheme;
use p4rack_codegen::scheme::edm::{RIGHTS, STALLED_COUNTER};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Kind, Target};

const FULL: u32 = WINDOW;

/// Time units of a cell and of a page in these tests' rack, where a chunk takes 26 862; cells of a page, and of a window.
const CELL: u32 = 26_880;
const PAGE: u32 = 1 << 19;
const CELLS: u32 = PAGE / CELL;
const WINDOW_CELLS: u32 = 2;

fn calendars() -> Vec<Net> {
    built(Scheme::EDM_CALENDAR, "shares = false").iter().map(Net::new).collect()
}

#[test]
fn a_calendar_grants_what_is_free_at_both_ends_and_lies_before_what_is_taken() {
    for mut net in calendars() {
        net.rig.now = Nanos(u64::from(PAGE * 100 + CELL - 1));
        assert_eq!(net.notify(1, 3, 0, 200).unwrap().wait, 1, "the next cell");
        assert_eq!(net.notify(2, 3, 0, 200).unwrap().wait, 1 + CELL);
        // Host 2 sends then; before that, time is free at both ends.
        assert_eq!(net.notify(2, 4, 0, 200).unwrap().wait, 1);
        assert_eq!(net.notify(1, 4, 0, FULL).unwrap().wait, 1 + CELL);
        assert_eq!(net.rig.all_drops(), []);
    }
}

/// Cells that have begun are not granted, nor are cells behind a page's last one; and a window may span two pages.
#[test]
fn what_is_granted_goes_on_in_the_next_page() {
    for mut net in calendars() {
        for id in 0..DEMANDS {
            let page = PAGE * (100 + 2 * u32::from(id));
            let mut wait = |at, from, to, bytes| {
                net.rig.now = Nanos(u64::from(page + at));
                net.notify(from, to, id, bytes).unwrap().wait
            };
            let last = (CELLS - 1) * CELL;
            assert_eq!(wait(last - CELL, 1, 3, FULL), CELL, "the last cell, and the next page's first one");
            assert_eq!(wait(last, 2, 3, 200), PAGE + CELL - last);
            assert_eq!(wait(PAGE - 1, 2, 4, 200), 1, "its first one");
            assert_eq!(wait(PAGE - 1, 4, 3, FULL), 1 + 2 * CELL);
        }
    }
}

/// Links are granted ahead as far as it takes; free cells are found in the last two pages.
#[test]
fn what_lies_before_two_pages_is_lost() {
    for mut net in calendars() {
        net.rig.now = Nanos(u64::from(PAGE * 1_000));
        let begins_ahead = |net: &mut Net, pages: u32| {
            let target = Target::Destination as u8;
            net.manage(Kind::MgmtWrite, target, 3, pages * PAGE).unwrap();
        };
        begins_ahead(&mut net, 1);
        assert_eq!(net.notify(1, 3, 0, 200).unwrap().wait, PAGE);
        assert_eq!(net.notify(1, 4, 0, FULL).unwrap().wait, CELL, "host 1 has nothing before");
        begins_ahead(&mut net, 3);
        assert_eq!(net.notify(1, 3, 1, 200).unwrap().wait, 3 * PAGE);
        assert_eq!(net.notify(1, 4, 1, 200).unwrap().wait, 2 * PAGE, "host 1 had time before");
        assert_eq!(net.notify(2, 4, 0, 200).unwrap().wait, PAGE, "and host 4");
        for id in 0..DEMANDS {
            net.notify(2, 3, id, FULL).unwrap();
        }
        let last = net.notify(4, 3, 0, FULL).unwrap().wait;
        assert_eq!(last, 3 * PAGE + (1 + u32::from(DEMANDS) * WINDOW_CELLS) * CELL);
    }
}

/// A demand whose cells are taken between its two passes reserves nothing and gets no right to a window; another demand
/// gets these cells.
#[test]
fn cells_that_others_took_meanwhile_are_not_granted() {
    for built in built(Scheme::EDM_CALENDAR, "shares = false")
        .into_iter()
        .filter(|built| built.rack.switch.arch.is_tofino())
    {
        // The second pass begins a microsecond after the frame came.
        let text =
            built.p4().replace("ig_prsr_md.global_tstamp[31:0]", "ig_prsr_md.global_tstamp[31:0] + 1000");
        let mut net = Net::new(&built.with_text(&text));
        let lane = |asks| edm_of(&built).cell(&built.rack, asks, 2, false, 0).unwrap() as u16;
        assert!(net.notify(1, 3, 0, 10 * FULL).is_some());
        net.wait(999);
        assert_eq!(net.notify(2, 3, 0, FULL), None);
        assert_eq!(net.rig.all_drops(), [("edm_no_time", 1)]);
        assert_eq!(net.rig.register(RIGHTS, lane(1)), 0);
        // The first chunk of a window has the earlier grant, and no more.
        assert_eq!(chunk(&mut net, (1, 3), 0, 10 * FULL, 0), []);
        assert_eq!(net.rig.counter(STALLED_COUNTER, 0).packets, 1);
        assert_eq!(net.rig.register(RIGHTS, lane(0)), u64::from(FULL - CHUNK));
        net.wait(1);
        assert!(net.notify(4, 3, 0, FULL).is_some());
        net.wait(1_000);
        assert!(net.notify(2, 3, 0, FULL).is_some(), "its lane is free");
    }
}

/// A reset frees a link immediately; a controller's write occupies a link, in whole pages.
#[test]
fn the_controller_says_when_a_calendar_begins() {
    for mut net in calendars() {
        net.rig.now = Nanos(u64::from(PAGE * 1_000));
        assert_eq!(net.notify(1, 3, 0, 200).unwrap().wait, CELL);
        for (target, link, way) in [(Target::Destination, 3, (2, 3)), (Target::Source, 1, (1, 4))] {
            let target = target as u8;
            assert_eq!(net.manage(Kind::MgmtReset, target, link, 0), Some(0));
            assert_eq!(net.notify(way.0, way.1, 1, 200).unwrap().wait, CELL, "what was taken is free");
            assert_eq!(net.manage(Kind::MgmtWrite, target, link, 7 * PAGE + 1), Some(0));
            assert_eq!(net.manage(Kind::MgmtRead, target, link, 0), Some(7 * PAGE));
            assert_eq!(net.notify(way.0, way.1, 2, 200).unwrap().wait, 7 * PAGE);
            assert_eq!(net.manage(Kind::MgmtReset, target, link, 0), Some(7 * PAGE));
        }
    }
}
