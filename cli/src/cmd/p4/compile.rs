//! `p4rack p4 compile`: BMv2's JSON for a program.

use super::source::{Source, refuse, tell};
use super::{Format, encode, with_output};
use std::path::PathBuf;
use std::process::ExitCode;

/// Examples of the command.
pub const EXAMPLES: &str = "Examples:
  p4rack p4 compile forward.p4 -o forward.json --p4info forward.p4info.txtpb
  simple_switch_grpc --no-p4 -i 1@veth1 -- --grpc-server-addr 127.0.0.1:9559
  p4rack switch run forward.json";

/// Where the results go.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// File for the P4Info, in protobuf's text format
    #[arg(long, value_name = "FILE")]
    p4info: Option<PathBuf>,
}

/// Runs it: 0 written, 1 the program is refused, 2 a file can't be read or written.
pub fn run(source: &Source, options: Options) -> ExitCode {
    source.compiled(|_, _, compiled| {
        tell(&compiled.warnings);
        let json = match p4rack_bmv2::write(&compiled) {
            Ok(json) => json,
            Err(refused) => return refuse(&refused),
        };
        if let Some(path) = options.p4info {
            let info = encode(&compiled.p4info, Format::Text);
            let done = with_output(Some(path), |write| write(&info));
            if done != ExitCode::SUCCESS {
                return done;
            }
        }
        with_output(options.output, |write| write(format!("{json:#}\n").as_bytes()))
    })
}
