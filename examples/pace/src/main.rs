//! `p4rack-pace simulate RACK`, `p4rack-pace generate RACK FOLDER`.

use p4rack_codegen::{Arch, Rack, Scheme, generate};
use p4rack_pace::{Definition, Outcome, incast};
use std::error::Error;
use std::process::ExitCode;
use std::{env, fs};

/// Frames that each sender has at the beginning.
const FRAMES: u64 = 200;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["simulate", rack] => load(rack).and_then(|rack| simulate(&rack)),
        ["generate", rack, folder] => load(rack).and_then(|rack| write(&rack, folder)),
        _ => {
            eprintln!("usage: p4rack-pace simulate RACK | p4rack-pace generate RACK FOLDER");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads a description. Only this call names Pace's definition.
fn load(path: &str) -> Result<Rack, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(Rack::parse_with(&text, path, &[&Definition])?)
}

fn simulate(rack: &Rack) -> Result<(), Box<dyn Error>> {
    println!("{}", Outcome::HEADING);
    for scheme in [Scheme::L2, rack.scheme()] {
        println!("{}", incast(rack, scheme, FRAMES)?.line(scheme));
    }
    Ok(())
}

fn write(rack: &Rack, folder: &str) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder).map_err(|error| format!("{folder}: {error}"))?;
    for (name, text) in generate(rack, rack.scheme(), Arch::V1model)?.files() {
        let path = format!("{folder}/{name}");
        fs::write(&path, text).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}
