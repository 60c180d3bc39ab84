//! `p4rack p4 samples --against-bmv2`: sends the same random packets and entries through the embedded switch
//! and BMv2.

mod known;
mod ours;
mod theirs;

use known::Reason;
use ours::{Ours, Way};
use p4rack_conformance::random::{Case, Packet};
use p4rack_conformance::{Sample, Suite, guarded};
use p4rack_p4rt::p4::v1::{Update, WriteRequest};
use p4rack_wire::hash;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use theirs::Theirs;

/// Parameters of the comparison.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed: all random choices follow from it and the program's name.
    pub seed: u64,
    /// Packets per program.
    pub packets: usize,
    /// Only the program with this file name.
    pub only: Option<String>,
    /// Whether to show entries and packets of differences.
    pub verbose: bool,
}

/// Frames sent, as port and frame, sorted.
type Frames = Vec<(u16, Vec<u8>)>;

/// Fate of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fate {
    /// Frames sent.
    frames: Frames,
    /// Reasons of drops.
    drops: Vec<&'static str>,
}

/// Results of all programs.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    seed: u64,
    /// Programs that both ran.
    programs: usize,
    /// Of these, programs with entries of their own.
    programs_with_entries: usize,
    /// Entries, groups and sessions that both accepted.
    updates: usize,
    /// Packets compared.
    packets: usize,
    /// Packets for which both sent the same frames.
    same: usize,
    /// Frames that this switch sent.
    frames: usize,
    /// Programs that were not compared, by reason.
    left_out: BTreeMap<&'static str, usize>,
    /// Differences of packets and entries with a known reason.
    known: BTreeMap<&'static str, usize>,
    /// Programs with such differences, by reason.
    known_programs: BTreeMap<&'static str, Vec<String>>,
    /// Differences without a known reason.
    differences: Vec<String>,
}

impl Report {
    /// Whether every difference has a known reason. Comparing nothing is a failure.
    pub fn is_success(&self) -> bool {
        self.packets > 0 && self.differences.is_empty()
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "bmv2    seed {}: {} programs, {} with entries ({} entries, groups and sessions), {} packets, {} the same, \
             {} frames: {}\n",
            self.seed,
            self.programs,
            self.programs_with_entries,
            self.updates,
            self.packets,
            self.same,
            self.frames,
            if self.is_success() { "ok" } else { "FAILED" },
        );
        for (why, count) in &self.left_out {
            text += &format!("        {count} programs left out: {why}\n");
        }
        for (why, count) in &self.known {
            let programs = self.known_programs.get(why).map_or(0, Vec::len);
            text += &format!("        {count} known differences in {programs} programs: {why}\n");
        }
        for difference in &self.differences {
            text += &format!("        {difference}\n");
        }
        text
    }

    fn enter(&mut self, name: &str, done: Done) {
        let Done { updates, packets, same, frames, differences } = done;
        self.programs += 1;
        self.programs_with_entries += usize::from(updates.1 > 0);
        self.updates += updates.0;
        self.packets += packets;
        self.same += same;
        self.frames += frames;
        for Difference { reason, what } in differences {
            match reason {
                Some(Reason(why)) => {
                    *self.known.entry(why).or_default() += 1;
                    let programs = self.known_programs.entry(why).or_default();
                    if programs.last().is_none_or(|last| last != name) {
                        programs.push(name.to_owned());
                    }
                }
                None => self.differences.push(format!("{name}: {what}")),
            }
        }
    }
}

/// Results of one program.
#[derive(Default)]
struct Done {
    /// Updates accepted by both: all, and those other than groups and sessions.
    updates: (usize, usize),
    packets: usize,
    same: usize,
    frames: usize,
    differences: Vec<Difference>,
}

struct Difference {
    reason: Option<Reason>,
    what: String,
}

/// Runs all programs of a folder. The error names a missing requirement.
pub fn run(suite: &Suite, plan: &Plan) -> Result<Report, String> {
    let samples: Vec<Sample> = suite.v1model_samples()?;
    let samples: Vec<Sample> = samples
        .into_iter()
        .filter(|sample| plan.only.as_ref().is_none_or(|only| *only == sample.name))
        .collect();
    let report = Mutex::new(Report { seed: plan.seed, ..Report::default() });
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(sample) = samples.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = one(suite, sample, plan);
                    let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                    match result {
                        Ok(done) => report.enter(&sample.name, done),
                        Err(Stop::LeftOut(why)) => *report.left_out.entry(why).or_default() += 1,
                        Err(Stop::Failed(why)) => report.differences.push(format!("{}: {why}", sample.name)),
                    }
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.differences.sort();
    Ok(report)
}

/// Why a program was not compared.
enum Stop {
    LeftOut(&'static str),
    Failed(String),
}

fn one(suite: &Suite, sample: &Sample, plan: &Plan) -> Result<Done, Stop> {
    let options = suite.options(&sample.path);
    let path = sample.path.to_string_lossy();
    let compiled = guarded(|| p4rack_p4::compile(&sample.text, &path, &options))
        .map_err(Stop::Failed)?
        .map_err(|_| Stop::LeftOut("not a program for a switch, or rejected by this compiler"))?;
    let stem = sample.name.trim_end_matches(".p4");
    let folders: Vec<_> =
        options.include_dirs.iter().filter_map(|folder| std::path::absolute(folder).ok()).collect();
    let ours = Ours::new(&compiled, &sample.text)
        .map_err(|_| Stop::LeftOut("accepted by the compiler, but not by this switch"))?;
    let json = p4rack_ctrl::bmv2::compile_including(stem, &sample.text, &folders)
        .map_err(|_| Stop::LeftOut("refused by p4c-bm2-ss"))?;
    // Different programs should get different packets.
    let seed = hash::further(plan.seed, stem.bytes());
    let case = Case::new(&compiled.program, &compiled.p4info, seed, plan.packets);
    let mut theirs = match Theirs::start(compiled.p4info.clone(), json) {
        Ok(theirs) => theirs,
        Err(theirs::Failed::Program) => return Err(Stop::LeftOut("compiled by p4c, rejected by BMv2")),
        Err(theirs::Failed::Switch(why)) => return Err(Stop::Failed(why)),
    };
    Ok(Run { name: &sample.name, plan, ours, theirs: &mut theirs }.through(case))
}

/// A program on both switches.
struct Run<'a> {
    name: &'a str,
    plan: &'a Plan,
    ours: Ours,
    theirs: &'a mut Theirs,
}

impl Run<'_> {
    fn through(mut self, mut case: Case) -> Done {
        let mut done = Done::default();
        self.write(&mut case, &mut done);
        let mine = match self.ours.play(&case, Way::Usual) {
            Ok(mine) => mine,
            Err(what) => {
                done.differences.push(Difference { reason: None, what });
                return done;
            }
        };
        for (at, packet) in case.packets.iter().enumerate() {
            let fate = &mine[at];
            done.packets += 1;
            done.frames += fate.frames.len();
            let what = match self.theirs.send(packet) {
                Ok(frames) if frames == fate.frames => {
                    done.same += 1;
                    continue;
                }
                Ok(frames) => difference(&fate.frames, &frames),
                Err(why) => {
                    let reason = known::end(fate, self.name);
                    let what = self.describe(at, packet, &why, &case);
                    done.differences.push(Difference { reason, what });
                    // It has ended, or is in an endless loop.
                    break;
                }
            };
            let reason = known::of_program(self.name).or_else(|| self.ours.undefined(&case, at, &mine));
            let what = self.describe(at, packet, &what, &case);
            done.differences.push(Difference { reason, what });
        }
        done
    }

    /// Writes the case's entries to both. Drops those that not both accept.
    fn write(&mut self, case: &mut Case, done: &mut Done) {
        let mut kept = Vec::new();
        for update in std::mem::take(&mut case.updates) {
            let is_entry = ours::is_entry(&update);
            match (self.ours.take(&update), self.theirs.write(&update)) {
                (Ok(()), Ok(())) => {
                    done.updates.0 += 1;
                    done.updates.1 += usize::from(is_entry);
                    kept.push(update);
                }
                (Err(_), Err(_)) => {}
                (mine, theirs) => {
                    let undone = match &mine {
                        Ok(()) => self.ours.keep(&kept),
                        Err(_) => {
                            self.theirs.undo(&update);
                            Ok(())
                        }
                    };
                    if let Err(what) = undone {
                        done.differences.push(Difference { reason: None, what });
                    }
                    let show = |taken: Result<(), String>| taken.map_or_else(|why| why, |()| "taken".into());
                    let what = format!(
                        "an update that one of both takes\n    this switch: {}\n    BMv2: {}\n{}    {}",
                        show(mine),
                        show(theirs),
                        in_text(std::slice::from_ref(&update)),
                        self.repeat()
                    );
                    let reason = known::of_update(&what).or_else(|| known::of_program(self.name));
                    done.differences.push(Difference { reason, what });
                }
            }
        }
        case.updates = kept;
    }

    fn repeat(&self) -> String {
        format!(
            "repeat with --against-bmv2 {} --packets {} --program {} -v",
            self.plan.seed, self.plan.packets, self.name
        )
    }

    fn describe(&self, at: usize, packet: &Packet, what: &str, case: &Case) -> String {
        let mut text = format!(
            "packet {} of {}, port {}: {}\n{what}\n    {}",
            at + 1,
            case.packets.len(),
            packet.port,
            hex(&packet.frame),
            self.repeat()
        );
        if self.plan.verbose {
            text += &format!("\nafter these entries:\n{}", in_text(&case.updates));
        }
        text
    }
}

/// Frames of both switches, one line per frame.
fn difference(mine: &Frames, theirs: &Frames) -> String {
    let lines = |who: &str, frames: &Frames, others: &Frames| -> Vec<String> {
        let alone = frames.iter().filter(|frame| !others.contains(frame));
        alone.map(|(port, frame)| format!("    only {who}: port {port}: {}", hex(frame))).collect()
    };
    let mut all = lines("this switch", mine, theirs);
    all.extend(lines("BMv2", theirs, mine));
    if all.is_empty() {
        all.push(format!("    this switch sent {} frames, BMv2 {}", mine.len(), theirs.len()));
    }
    all.join("\n")
}

/// Updates in the form for `p4rack p4 run --entries`.
fn in_text(updates: &[Update]) -> String {
    let request = WriteRequest { updates: updates.to_vec(), ..WriteRequest::default() };
    p4rack_p4rt::text::print(&request)
}

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}
