//! `p4rack cowbird bench`.

use p4rack_cowbird::bench::{self, Costs};
use p4rack_lab::rows::Rows;

/// Records that are measured unless others are asked for.
const RECORDS: [u32; 3] = [8, 64, 256];

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Bytes of a record; may be repeated [default: 8, 64, 256]
    #[arg(long, value_parser = crate::numbers::within::<u32>(1..=65_536))]
    bytes: Vec<u32>,
    /// Duration of each measurement
    #[arg(long, default_value_t = 1.0, value_parser = crate::cmd::finite)]
    seconds: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) {
    let records = if args.bytes.is_empty() { &RECORDS } else { args.bytes.as_slice() };
    let all = records.iter().flat_map(|bytes| [false, true].map(|write| (*bytes, write)));
    let costs: Vec<Costs> = all.map(|(bytes, write)| bench::run(bytes, write, args.seconds)).collect();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&costs).expect("numbers are JSON"));
        return;
    }
    let head = ["", ">record", ">cowbird", ">issue", ">poll", ">verbs", ">post", ">poll", "(ns)"];
    let mut rows = Rows::new(&head);
    for one in &costs {
        let ns =
            [one.cowbird_ns(), one.issue_ns, one.poll_ns, one.verbs_ns(), one.post_ns, one.completion_ns];
        let kind = if one.write { "write" } else { "read" };
        let ns = ns.map(|ns| format!("{ns:.1}"));
        rows.push([&[kind.to_owned(), format!("{} B", one.bytes)][..], &ns[..]].concat());
    }
    print!("{}", rows.text());
}
