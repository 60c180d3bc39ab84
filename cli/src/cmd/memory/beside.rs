//! `p4rack memory bench --beside`: reads by several ways on one rack, in turns.

use crate::numbers::median;
use p4rack_codegen::Rack;
use p4rack_fabric::remote::Way;
use p4rack_lab::memory::{Load, bench_alone};
use p4rack_lab::rows::Rows;
use p4rack_report::text;
use serde_json::json;
use std::path::Path;

/// Figures of a way, one for each turn.
#[derive(Default)]
struct Figures {
    p50_us: Vec<f64>,
    p99_us: Vec<f64>,
    /// Processor time of the server's process for a read.
    cpu_us: Vec<f64>,
    unknown: u64,
}

/// Measures the ways in turns, and prints the first one's figures as multiples of the others'.
pub(super) fn run(
    runs: &[(Way, Rack)],
    path: &Path,
    (load, rounds): (Load, u16),
    quiet: bool,
    json: bool,
) -> Result<(), String> {
    let mut all: Vec<Figures> = runs.iter().map(|_| Figures::default()).collect();
    for _ in 0..rounds {
        for ((way, rack), figures) in runs.iter().zip(&mut all) {
            let done = bench_alone(rack, path, (rack.scheme(), *way), load, quiet);
            let done = done.map_err(|error| format!("--way {way}: {error}"))?;
            let reads = done.memory.latencies.first().ok_or_else(|| format!("--way {way}: no reads"))?;
            figures.p50_us.push(reads.p50_us);
            figures.p99_us.push(reads.p99_us);
            figures.cpu_us.push(done.server_cpu_us / (reads.operations + reads.unknown).max(1) as f64);
            figures.unknown += reads.unknown;
        }
    }
    let medians = |figures: &Figures| {
        let of = |values: &[f64]| median(values.iter().copied()).ok_or("nothing was measured".to_owned());
        Ok::<[f64; 3], String>([of(&figures.p50_us)?, of(&figures.p99_us)?, of(&figures.cpu_us)?])
    };
    let of_all = all.iter().map(medians).collect::<Result<Vec<_>, _>>()?;
    let first = runs[0].0;
    let head = [
        "way".to_owned(),
        ">p50".to_owned(),
        ">p99".to_owned(),
        ">server's CPU a read".to_owned(),
        ">unknown".to_owned(),
        format!(">p50 of {first} ÷ this"),
        format!(">CPU of {first} ÷ this"),
    ];
    let mut rows = Rows::new(&head);
    let mut list = Vec::new();
    for (((way, _), figures), [p50, p99, cpu]) in runs.iter().zip(&all).zip(&of_all) {
        let [p50_ratio, cpu_ratio] = [of_all[0][0] / p50, of_all[0][2] / cpu];
        rows.push(vec![
            way.to_string(),
            text::micros(*p50),
            text::micros(*p99),
            text::micros(*cpu),
            figures.unknown.to_string(),
            format!("{p50_ratio:.2}"),
            format!("{cpu_ratio:.2}"),
        ]);
        list.push(json!({
            "way": way.name(),
            "p50_us": p50,
            "p99_us": p99,
            "server_cpu_us": cpu,
            "unknown": figures.unknown,
            "p50_of_first_ratio": p50_ratio,
            "cpu_of_first_ratio": cpu_ratio,
        }));
    }
    match json {
        true => println!("{}", json!({ "bytes": load.bytes, "rounds": rounds, "ways": list })),
        false => {
            print!("reads of {} bytes, one at a time, medians of {rounds}\n\n{}", load.bytes, rows.text())
        }
    }
    Ok(())
}
