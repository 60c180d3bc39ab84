//! `p4rack rack`.

use p4rack_codegen::rack::Rack;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `p4rack rack`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Check a rack description and say what follows from it: slots, goodput ceilings
    Check {
        /// The description, TOML
        file: PathBuf,
        /// Print JSON: the checked model, or the errors
        #[arg(long)]
        json: bool,
    },
    /// Explain every field of a rack description
    Schema,
}

/// Runs it.
pub fn run(args: Args) -> ExitCode {
    match args.command {
        Command::Check { file, json } => check(&file, json),
        Command::Schema => {
            print!("{}", p4rack_codegen::rack::SCHEMA);
            ExitCode::SUCCESS
        }
    }
}

fn check(file: &std::path::Path, as_json: bool) -> ExitCode {
    match Rack::load(file) {
        Ok(rack) if as_json => println!("{:#}", rack.to_json()),
        Ok(rack) => print!("{}", rack.summary()),
        Err(error) => {
            if as_json {
                println!("{:#}", json!({ "errors": error.errors }));
            } else {
                eprintln!("{error}");
            }
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}
