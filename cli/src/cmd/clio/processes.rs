//! `p4rack clio ps`.

use super::Board;
use crate::cmd::adapter::{runtime, text};
use p4rack_codegen::rack::units::show_size;
use p4rack_hosts::clio::list;
use p4rack_lab::rows::Rows;
use p4rack_p4rt::p4rack::clio::v1::{ListResponse, Process};
use serde_json::{Value, json};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    board: Board,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), String> {
    let listed = runtime()?.block_on(list(&args.board.server())).map_err(|error| args.board.said(error))?;
    match args.board.json {
        true => println!("{}", serde_json::to_string_pretty(&value(&listed)).map_err(text)?),
        false => print!("{}", shown(&listed)),
    }
    Ok(())
}

fn value(listed: &ListResponse) -> Value {
    let memory: Vec<Value> = listed
        .pages
        .iter()
        .map(|of| {
            json!({
                "page_bytes": of.page_bytes,
                "frames": of.frames,
                "taken": of.taken,
                "ready": of.ready,
                "promised": of.promised,
            })
        })
        .collect();
    let of_process = |process: &Process| {
        let pages: Vec<Value> = process
            .pages
            .iter()
            .map(|of| {
                json!({
                    "page_bytes": of.page_bytes,
                    "reserved": of.reserved,
                    "limit": of.limit,
                    "allocated": of.allocated,
                    "taken": of.taken,
                    "shared": of.shared,
                    "share_limit": of.share_limit,
                    "from_others": of.from_others,
                })
            })
            .collect();
        let ranges: Vec<Value> =
            process.ranges.iter().map(|of| json!({ "address": of.address, "bytes": of.bytes })).collect();
        json!({
            "pid": process.pid,
            "epoch": process.epoch,
            "kind": process.kind,
            "is_ending": process.is_ending,
            "pages": pages,
            "locks": process.locks,
            "reads": process.reads,
            "calls": process.calls,
            "ranges": ranges,
            "ranges_left": process.ranges_left,
        })
    };
    let processes: Vec<Value> = listed.processes.iter().map(of_process).collect();
    json!({ "memory": memory, "processes": processes })
}

/// Unique name of a process.
fn space(process: &Process) -> String {
    format!("{}:{}", process.pid, process.epoch)
}

fn shown(listed: &ListResponse) -> String {
    let mut out = String::new();
    for of in &listed.pages {
        let bytes = |frames: u32| show_size(u64::from(frames) * of.page_bytes);
        out += &format!(
            "memory: {} in {} pages of {}; {} taken, {} ready, {} reserved and unused\n",
            bytes(of.frames),
            of.frames,
            show_size(of.page_bytes),
            of.taken,
            of.ready,
            of.promised
        );
    }
    let head = [
        ">pid:epoch",
        "process",
        "page",
        ">allocated",
        ">taken",
        ">shared",
        ">reserved",
        ">limit",
        ">from others",
        ">locks",
        ">reads",
        ">calls",
    ];
    let mut rows = Rows::new(&head);
    for process in &listed.processes {
        let kind = process.kind.clone() + if process.is_ending { ", ending" } else { "" };
        let counts = [process.locks, process.reads, process.calls].map(|count| count.to_string());
        let mut first = true;
        for of in &process.pages {
            let (pid, kind) = if first { (space(process), kind.clone()) } else { Default::default() };
            let mut row = vec![pid, kind, show_size(of.page_bytes)];
            row.extend(
                [of.allocated, of.taken, of.shared, of.reserved, of.limit].map(|pages| pages.to_string()),
            );
            row.push(format!("{} of {}", of.from_others, of.share_limit));
            row.extend(if first { counts.clone() } else { Default::default() });
            rows.push(row);
            first = false;
        }
        if process.pages.is_empty() {
            let mut row = vec![space(process), kind, "–".to_owned()];
            row.extend(std::iter::repeat_n("–".to_owned(), 6));
            row.extend(counts);
            rows.push(row);
        }
    }
    out += &rows.text();
    for process in listed.processes.iter().filter(|process| !process.ranges.is_empty()) {
        out += &format!("allocated in {}, which these commands use:\n", space(process));
        for of in &process.ranges {
            out += &format!("  {:#x}  {}\n", of.address, show_size(of.bytes));
        }
        if process.ranges_left > 0 {
            out += &format!("  and {} more ranges\n", process.ranges_left);
        }
    }
    out
}
