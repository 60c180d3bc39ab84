//! View of `p4rack far top`: programs with far memory, with rates since an earlier look.

use super::report::{amplification, times};
use crate::output::plain;
use p4rack_lab::rows::Rows;
use p4rack_memory::far::{About, Figures, PAGE_BYTES};
use p4rack_report::text::bytes;
use serde::Serialize;

/// A program's figures at one time.
#[derive(Clone, Debug)]
pub struct Look {
    pub about: About,
    pub figures: Figures,
}

impl Look {
    /// Whether this is the process, the command's process, or the program's name.
    pub fn is(&self, wanted: &str) -> bool {
        let pids = [self.figures.pid, self.about.pid.into()];
        self.about.program == wanted || wanted.parse().is_ok_and(|pid: u64| pids.contains(&pid))
    }
}

/// Programs with rates since another look.
#[derive(Debug, Serialize)]
pub struct View {
    programs: Vec<ProgramView>,
}

#[derive(Debug, Serialize)]
struct ProgramView {
    pid: u64,
    program: String,
    way: String,
    at: String,
    policy: String,
    /// Length of the interval; none for a program that was not there at its beginning, and so has no rates.
    seconds: Option<f64>,
    faults_per_s: Option<f64>,
    /// Pages filled: with zeros, from copies of pages that left, from the region.
    zeroed_per_s: Option<f64>,
    restored_per_s: Option<f64>,
    filled_per_s: Option<f64>,
    /// Blocks for the latter: here, and fetched.
    blocks_here_per_s: Option<f64>,
    blocks_fetched_per_s: Option<f64>,
    in_bps: Option<f64>,
    out_bps: Option<f64>,
    /// Since the start.
    fetched_per_filled: Option<f64>,
    written_per_changed: Option<f64>,
    in_place_bytes: u64,
    local_bytes: u64,
    local_limit_bytes: u64,
    in_use_bytes: u64,
    far_bytes: u64,
    refused: u64,
}

impl View {
    /// The view of `now`, with rates since `before`.
    pub fn new(before: &[Look], now: &[Look]) -> View {
        let one = |look: &Look| {
            let same = |old: &&Look| old.figures.pid == look.figures.pid && old.about.pid == look.about.pid;
            let old = before.iter().find(same).map_or(look.figures, |old| old.figures);
            ProgramView::new(&old, look)
        };
        View { programs: now.iter().map(one).collect() }
    }

    /// The view as a table.
    pub fn text(&self) -> String {
        if self.programs.is_empty() {
            return "no program has far memory: `p4rack far run` starts one\n".to_owned();
        }
        let mut rows = Rows::new(&[
            "pid",
            "program",
            "way",
            ">faults/s",
            ">zeros/s",
            ">copies/s",
            ">filled/s",
            ">blocks here/s",
            ">fetched/s",
            ">in Mb/s",
            ">out Mb/s",
            ">fetched ÷ filled",
            ">written ÷ changed",
            ">in place",
            ">local",
            ">of",
            ">in use",
            ">of far",
            ">refused",
        ]);
        for one in &self.programs {
            let rates = [
                one.faults_per_s,
                one.zeroed_per_s,
                one.restored_per_s,
                one.filled_per_s,
                one.blocks_here_per_s,
                one.blocks_fetched_per_s,
            ];
            let mut row = vec![one.pid.to_string(), plain(&one.program), plain(&one.way)];
            let shown = |per_s: Option<f64>, digits| {
                per_s.map_or_else(|| "–".to_owned(), |per_s| format!("{per_s:.digits$}"))
            };
            row.extend(rates.map(|per_s| shown(per_s, 0)));
            row.extend([one.in_bps, one.out_bps].map(|bps| shown(bps.map(|bps| bps / 1e6), 2)));
            row.extend([one.fetched_per_filled, one.written_per_changed].map(times));
            let sizes =
                [one.in_place_bytes, one.local_bytes, one.local_limit_bytes, one.in_use_bytes, one.far_bytes];
            row.extend(sizes.map(bytes));
            row.push(one.refused.to_string());
            rows.push(row);
        }
        rows.text()
    }
}

impl ProgramView {
    fn new(old: &Figures, look: &Look) -> ProgramView {
        let (now, about) = (&look.figures, &look.about);
        let seconds = now.at_ns.saturating_sub(old.at_ns) as f64 / 1e9;
        let seconds = (seconds > 0.0).then_some(seconds);
        let per_s = |of: fn(&Figures) -> u64| Some(of(now).saturating_sub(of(old)) as f64 / seconds?);
        let [fetched_per_filled, written_per_changed] = amplification(now);
        ProgramView {
            pid: now.pid,
            program: about.program.clone(),
            way: about.way.clone(),
            at: about.at.clone(),
            policy: about.policy.clone(),
            seconds,
            faults_per_s: per_s(|figures| figures.read_faults + figures.write_faults),
            zeroed_per_s: per_s(|figures| figures.zeroed),
            restored_per_s: per_s(|figures| figures.restored),
            filled_per_s: per_s(|figures| figures.filled),
            blocks_here_per_s: per_s(|figures| figures.blocks_here),
            blocks_fetched_per_s: per_s(|figures| figures.blocks_fetched),
            in_bps: per_s(|figures| 8 * figures.fetched_bytes),
            out_bps: per_s(|figures| 8 * figures.written_bytes),
            fetched_per_filled,
            written_per_changed,
            in_place_bytes: now.in_place * PAGE_BYTES,
            local_bytes: now.local_bytes,
            local_limit_bytes: now.local_limit_bytes,
            in_use_bytes: now.in_use_bytes,
            far_bytes: now.bytes,
            refused: now.refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_interval_and_ratios_of_the_whole_time() {
        let look = |at_ns, faults, fetched_bytes| Look {
            about: About {
                program: "redis-server".to_owned(),
                pid: 1,
                way: "tcp".to_owned(),
                at: "h2".to_owned(),
                policy: "runs".to_owned(),
            },
            figures: Figures {
                at_ns,
                pid: 2,
                read_faults: faults,
                filled: 2_000,
                fetched_bytes,
                in_place: 256,
                local_limit_bytes: 2 << 20,
                ..Figures::default()
            },
        };
        let (old, new) = (look(1_000_000_000, 50, 1 << 20), look(3_000_000_000, 250, 4_096_000));
        let text = View::new(std::slice::from_ref(&old), std::slice::from_ref(&new)).text();
        let row: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(row[..4], ["2", "redis-server", "tcp", "100"], "{text}");
        assert!(text.contains("0.50") && text.contains("1 MiB") && text.contains("2 MiB"), "{text}");
        // Its first look has no rates.
        let first = View::new(&[], std::slice::from_ref(&new)).text();
        let row: Vec<&str> = first.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(row[..4], ["2", "redis-server", "tcp", "–"], "{first}");
        assert!(new.is("2") && new.is("1") && new.is("redis-server") && !new.is("3"));
        assert!(View::new(&[], &[]).text().contains("no program"));
    }
}
