//! `simple_switch_CLI`: sends lines to a switch and prints its answers.

use super::editor::Editor;
use super::runtime::{Answer, GREETING, Names, Request};
use super::switch::THRIFT_PORT;
use crate::cmd::refused;
use crate::output;
use std::cell::RefCell;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal, Write};
use std::net::TcpStream;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const PROMPT: &str = "RuntimeCmd: ";
/// First lines of BMv2's prompt; scripts skip them.
const INTRO: &str = "Obtaining JSON from switch...\nDone\nControl utility for runtime P4 table manipulation";

/// How long a switch may take to listen: scripts start it and then this command.
const LISTENS: Duration = Duration::from_secs(10);
/// Wait before a message says that the client is waiting.
const SILENT: Duration = Duration::from_secs(1);
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// Arguments of `simple_switch_CLI`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The switch's --thrift-port
    #[arg(long, value_name = "PORT", default_value_t = THRIFT_PORT, value_parser = crate::numbers::within::<u16>(1..))]
    thrift_port: u16,
    /// Address of the switch
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    thrift_ip: String,
    /// No effect: the switch has its program
    #[arg(long, value_name = "FILE")]
    #[allow(dead_code, reason = "accepted for scripts that give it")]
    json: Option<String>,
    /// No effect: simple_switch has one replication engine
    #[arg(long, value_name = "KIND")]
    #[allow(dead_code, reason = "accepted for scripts that give it")]
    pre: Option<String>,
}

/// A connection to a switch.
#[derive(Debug)]
struct Switch {
    stream: BufReader<TcpStream>,
}

impl Switch {
    fn connect(args: &Args) -> Result<Switch, String> {
        let place = format!("{}:{}", args.thrift_ip, args.thrift_port);
        let stream = reach(&place).and_then(|stream| {
            stream.set_nodelay(true)?;
            Ok(stream)
        });
        let stream = stream.map_err(|error| {
            format!(
                "no switch answers at {place}: {error}; start one with `simple_switch_grpc --thrift-port {}`, or give its \
                 --thrift-port",
                args.thrift_port
            )
        })?;
        let mut switch = Switch { stream: BufReader::new(stream) };
        let Answer { output, .. } = switch.answer_to(GREETING)?;
        match output.is_empty() {
            true => Ok(switch),
            false => Err(format!("the switch at {place}: {output}")),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Answer, String> {
        let text = serde_json::to_string(request).map_err(|error| error.to_string())?;
        self.answer_to(&text)
    }

    fn answer_to(&mut self, line: &str) -> Result<Answer, String> {
        let gone = |error: String| format!("the switch is gone: {error}");
        let line = format!("{line}\n");
        self.stream.get_mut().write_all(line.as_bytes()).map_err(|error| gone(error.to_string()))?;
        let mut answer = String::new();
        match self.stream.read_line(&mut answer) {
            Ok(0) => Err(gone("it closed the connection; is this its --thrift-port?".to_owned())),
            Ok(_) => {
                serde_json::from_str(&answer).map_err(|error| gone(format!("its answer is no JSON: {error}")))
            }
            Err(error) => Err(gone(error.to_string())),
        }
    }

    /// Carries out a line and returns what it prints. Errors: the switch is gone.
    fn run(&mut self, line: &str) -> Result<String, String> {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let path = rest.trim();
        // The switch reports a wrong number of words.
        let reads = first == "load_new_config_file" && path.split_whitespace().count() == 1;
        let file = match reads.then(|| fs::read_to_string(path)).transpose() {
            Ok(file) => file,
            Err(error) => return Ok(format!("Error: Not a valid filename: {path}: {error}\n")),
        };
        let mut answer = self.ask(&Request::Run { line: line.to_owned(), file })?;
        if let Some(text) = answer.file
            && let Err(error) = fs::write(path, text)
        {
            answer.output += &format!("Error: {path}: {error}\n");
        }
        Ok(answer.output)
    }
}

/// Connects to a switch that may have been started just now.
fn reach(place: &str) -> io::Result<TcpStream> {
    let start = Instant::now();
    let mut is_told = false;
    loop {
        match TcpStream::connect(place) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && start.elapsed() < LISTENS => {
                if !is_told && start.elapsed() >= SILENT {
                    eprintln!("waiting up to {} s for a switch at {place}", LISTENS.as_secs());
                    is_told = true;
                }
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

/// A shell's command, here: `shell …` or `! …`.
fn shell(line: &str) -> Option<&str> {
    line.strip_prefix('!').or_else(|| line.strip_prefix("shell ").or_else(|| (line == "shell").then_some("")))
}

/// Effect of a line.
enum Next {
    Go,
    End,
}

/// Carries out a line.
fn line(switch: &RefCell<Switch>, line: &str) -> Result<Next, String> {
    let line = line.trim();
    // BMv2's files have comments.
    if line.is_empty() || line.starts_with('#') {
        return Ok(Next::Go);
    }
    if matches!(line, "exit" | "quit" | "EOF") {
        return Ok(Next::End);
    }
    if let Some(command) = shell(line) {
        output::flush();
        if let Err(error) = Command::new("sh").args(["-c", command]).status() {
            println!("Error: sh: {error}");
        }
        return Ok(Next::Go);
    }
    let said = switch.borrow_mut().run(line)?;
    print!("{said}");
    output::flush();
    Ok(Next::Go)
}

/// Lines from a terminal, with completion and history.
fn interact(switch: Switch) -> Result<(), String> {
    let switch = RefCell::new(switch);
    let mut editor = Editor::new(|words, begun| {
        // Without names, commands are completed all the same.
        let answer = switch.borrow_mut().ask(&Request::Names).unwrap_or_default();
        let names: Names = answer.names.unwrap_or_default();
        let fits = |name: &String| {
            name.starts_with(begun) || name.rsplit('.').next().is_some_and(|last| last.starts_with(begun))
        };
        names.candidates(words, words.len()).into_iter().filter(fits).collect()
    })?;
    while let Some(text) = editor.read(PROMPT)? {
        if matches!(line(&switch, &text)?, Next::End) {
            break;
        }
    }
    Ok(())
}

/// Lines from a file or pipe. The prompts are in the output, as BMv2's are.
fn feed(switch: Switch) -> Result<(), String> {
    let switch = RefCell::new(switch);
    for text in std::io::stdin().lock().lines() {
        print!("{PROMPT}");
        let text = text.map_err(|error| format!("standard input: {error}"))?;
        if matches!(line(&switch, &text)?, Next::End) {
            println!();
            return Ok(());
        }
    }
    println!("{PROMPT}");
    Ok(())
}

/// Runs the command. As BMv2's, it succeeds even if commands fail: scripts read the output.
pub fn run(args: &Args) -> ExitCode {
    let switch = match Switch::connect(args) {
        Ok(switch) => switch,
        Err(error) => return refused(error),
    };
    println!("{INTRO}");
    output::flush();
    let done = if std::io::stdin().is_terminal() { interact(switch) } else { feed(switch) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(error),
    }
}
