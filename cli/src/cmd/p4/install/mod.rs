//! `p4rack p4 install`: a program on a running switch, once or after each save.
//!
//! ```text
//!  job     files ─▶ program and entries ─▶ switch
//!  lost    a file for entries that are missing after a lost connection
//!  report  what happened, as text and JSON
//!  follow  again after each save; `p4rack switch run --watch` uses it, too
//! ```

pub mod follow;
pub mod job;
mod lost;
mod report;

use super::source::{Source, USAGE};
use crate::cmd::connect;
use crate::output::Events;
use job::Job;
use lost::Lost;
use p4rack_codegen::rack::Target;
use std::path::PathBuf;
use std::process::ExitCode;

/// Examples of the command.
pub const EXAMPLES: &str = "Examples:
  p4rack p4 install route.p4 --entries s1.entries
  p4rack p4 install route.p4 --entries s1.entries --watch      again after each save
  p4rack p4 install route.p4 --dry-run                         what would become of the switch's entries";

/// What to install, and where.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// File with entries: lines as `p4rack table insert` takes them, a text-format WriteRequest, or a sN-runtime.json
    #[arg(long, value_name = "FILE")]
    entries: Option<PathBuf>,
    /// P4Info of the program, as text [default: the program's own]; a compiler's JSON lacks parts of it
    #[arg(long, value_name = "FILE")]
    p4info: Option<PathBuf>,
    /// Kind of switch: embedded, or bmv2, which gets BMv2's JSON [default: what answers]
    #[arg(long, value_name = "SWITCH")]
    to: Option<Target>,
    /// Remove the entries that the switch has, instead of keeping those that fit
    #[arg(long)]
    clear: bool,
    /// Only show what would become of the switch's entries; exit code 1 if anything would change
    #[arg(long, conflicts_with = "watch")]
    dry_run: bool,
    /// Keep running, and install again when the program, a file that it includes, or the entries are saved
    #[arg(long)]
    watch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    switch: connect::Args,
}

/// Runs it: 0 installed, 1 refused, or with --dry-run something would change, 2 an unreadable file.
pub fn run(source: &Source, options: Options) -> ExitCode {
    if let Err(error) = source.text(true) {
        eprintln!("error: {error}");
        return ExitCode::from(USAGE);
    }
    let job = Job {
        program: source.file().to_owned(),
        options: source.options(),
        p4info: options.p4info,
        entries: options.entries,
        to: options.to,
        clear: options.clear,
        target: options.switch.for_switch(None),
        target_words: options.switch.words(),
        takes_over: false,
    };
    connect::block_on(async {
        match (options.dry_run, options.watch) {
            (true, _) => match job.preview().await {
                Ok(preview) => report::previewed(&job, &preview, options.json),
                Err(error) => connect::fail(&error, options.json),
            },
            (_, true) => follow::until_the_end(job, Events::new(options.json)).await,
            _ => match job.install(None, &mut Lost::default()).await {
                Ok(done) => {
                    report::installed(&job, &done, options.json);
                    ExitCode::SUCCESS
                }
                Err(error) => connect::fail(&error, options.json),
            },
        }
    })
}
