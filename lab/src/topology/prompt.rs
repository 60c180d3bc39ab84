//! Lines such as `h1 ping h2`, as Mininet's prompt takes them, from a terminal or a script.

use super::hosts::{LIMIT, shell};
use super::running::Running;
use crate::error::LabError;
use crate::process::{self, Others, POLL, Process, on_path};
use crate::sys;
use p4rack_codegen::topology::Topology;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// What the prompt shows.
const PROMPT: &str = "mininet> ";
/// Interval at which the prompt looks at the switches.
const LOOK: Duration = Duration::from_millis(200);
/// How long iperf may take.
const IPERF: Duration = Duration::from_secs(12);
/// How long `pingall` waits for an answer, beside the delays of links.
const PING: Duration = Duration::from_secs(1);
const HELP: &str = "\
  NODE COMMAND     runs a command on a host or at the switches; names of hosts become their addresses
  pingall          pings between all hosts
  iperf H1 H2      TCP from one host to another for 3 s
  nodes, net       lists nodes, links
  dump             lists addresses
  sh COMMAND       runs a command where the switches' P4Runtime servers are
  exit             ends the network
A command that ends in & goes on in the background.
";

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
enum Line<'l> {
    Nothing,
    Exit,
    Help,
    PingAll,
    /// Positions of two hosts.
    Iperf(usize, usize),
    Nodes,
    Net,
    Dump,
    /// A command line in the namespace of the switches.
    Shell(&'l str),
    /// A node and a command line.
    Node(&'l str, String),
}

/// How a line ended.
enum Ended {
    Exit,
    Well,
    Failed(String),
}

fn parse<'l>(topology: &Topology, line: &'l str) -> Result<Line<'l>, String> {
    let line = line.trim();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let alone = |line: Line<'l>| match rest.is_empty() {
        true => Ok(line),
        false => Err(format!("{first} takes no arguments, found `{rest}`")),
    };
    let is_node = topology.host(first).is_some() || topology.switch(first).is_some();
    match first {
        _ if is_node && rest.trim().is_empty() => Err(format!("name a command to run on {first}")),
        _ if is_node => Ok(Line::Node(first, with_addresses(topology, rest))),
        "" => Ok(Line::Nothing),
        _ if first.starts_with('#') => Ok(Line::Nothing),
        "exit" | "quit" => alone(Line::Exit),
        "help" | "?" => alone(Line::Help),
        "pingall" => alone(Line::PingAll),
        "iperf" => match rest.split_whitespace().map(|name| topology.host(name)).collect::<Vec<_>>()[..] {
            [Some(from), Some(to)] if from != to => Ok(Line::Iperf(from, to)),
            _ => Err(format!("iperf takes the names of two hosts, found `{rest}`")),
        },
        "nodes" => alone(Line::Nodes),
        "net" | "links" => alone(Line::Net),
        "dump" => alone(Line::Dump),
        "sh" if !rest.trim().is_empty() => Ok(Line::Shell(rest)),
        "xterm" | "gterm" => Err(format!(
            "{first} is not supported: there is no display here; run the command at this prompt, with & for the \
             background, e.g. `h2 ./receive.py > h2.txt &`"
        )),
        _ => Err(format!("`{first}` is no node and no command; `help` lists commands, `nodes` nodes")),
    }
}

/// A command line with hosts' addresses in place of their names.
fn with_addresses(topology: &Topology, line: &str) -> String {
    let word = |word: &str| match topology.host(word).and_then(|at| topology.hosts.get(at)) {
        Some(host) => host.ip.to_string(),
        None => word.to_owned(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Prints. A reader that has gone away doesn't end the network.
fn say(text: &str) {
    let mut output = std::io::stdout();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

/// Runs lines from standard input until `exit` or end of file. Reports lines that fail, and continues.
pub(super) fn interact(running: &mut Running<'_>) -> Result<(), LabError> {
    sys::catch_at_prompt();
    let is_terminal = std::io::stdin().is_terminal();
    loop {
        if is_terminal {
            say(PROMPT);
        }
        let line = loop {
            let read = sys::read_line(LOOK).map_err(LabError::system("reading a line"))?;
            running.check()?;
            if sys::interrupted() {
                return Err(LabError::Interrupted);
            }
            if sys::take_ctrl_c() && is_terminal {
                say(&format!("\n{PROMPT}"));
            }
            if let Some(line) = read {
                break line;
            }
        };
        let Some(line) = line else { return Ok(()) };
        match run(running, &line, None)? {
            Ended::Exit => return Ok(()),
            Ended::Well => {}
            // The user has ended it.
            Ended::Failed(_) if sys::take_ctrl_c() => say("\n"),
            Ended::Failed(why) => _ = writeln!(std::io::stderr(), "{why}"),
        }
        let _ = sys::take_ctrl_c();
    }
}

/// Whether a script has lines that are run.
pub(super) fn has_lines(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Runs the lines of a script, each for a limited time. Returns what went wrong at the first one that fails.
pub(super) fn script(running: &mut Running<'_>, path: &Path, text: &str) -> Result<Option<String>, LabError> {
    for (n, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            say(&format!("{PROMPT}{}\n", line.trim()));
        }
        let ended = run(running, line, Some(LIMIT))?;
        running.check()?;
        if sys::interrupted() {
            return Err(LabError::Interrupted);
        }
        match ended {
            Ended::Exit => break,
            Ended::Well => {}
            Ended::Failed(why) => {
                return Ok(Some(format!("{}:{}: {}: {why}", path.display(), n + 1, line.trim())));
            }
        }
    }
    Ok(None)
}

/// Runs a line. A command that takes longer than `limit` is killed.
fn run(running: &mut Running<'_>, line: &str, limit: Option<Duration>) -> Result<Ended, LabError> {
    let topology = running.topology;
    let parsed = match parse(topology, line) {
        Ok(parsed) => parsed,
        Err(why) => return Ok(Ended::Failed(why)),
    };
    match parsed {
        Line::Nothing => Ok(Ended::Well),
        Line::Exit => Ok(Ended::Exit),
        Line::Help => {
            say(HELP);
            Ok(Ended::Well)
        }
        Line::Nodes => {
            let names = topology.hosts.iter().map(|host| host.name.as_str());
            let names = names.chain(topology.switches.iter().map(|switch| switch.name.as_str()));
            say(&format!("{}\n", names.collect::<Vec<_>>().join(" ")));
            Ok(Ended::Well)
        }
        Line::Net => {
            say(&net(topology));
            Ok(Ended::Well)
        }
        Line::Dump => {
            say(&dump(topology));
            Ok(Ended::Well)
        }
        Line::PingAll => ping_all(running),
        Line::Iperf(from, to) => iperf(running, from, to),
        Line::Shell(command) => finish(shell(&running.wiring.switches, command)?, limit, running),
        Line::Node(node, command) => match running.wiring.of(topology, node) {
            Some(ns) => finish(shell(ns, &command)?, limit, running),
            None => Ok(Ended::Failed(format!("`{node}` is no node"))),
        },
    }
}

/// Runs a command to its end, in the foreground.
fn finish(
    mut command: Command,
    limit: Option<Duration>,
    running: &mut Running<'_>,
) -> Result<Ended, LabError> {
    let mut child = command.spawn().map_err(LabError::system("starting a shell"))?;
    let status = wait(&mut child, limit, &mut || running.check())?;
    Ok(match status.map(|status| status.code()) {
        Some(Some(0)) => Ended::Well,
        Some(Some(code)) => Ended::Failed(format!("exit code {code}")),
        Some(None) => Ended::Failed("a signal ended it".to_owned()),
        None => Ended::Failed(format!("did not end within {} s", limit.unwrap_or_default().as_secs())),
    })
}

/// Waits for a child. Kills it if we are asked to end, if the `others` fail, or at the limit; then returns `None`.
fn wait(
    child: &mut Child,
    limit: Option<Duration>,
    others: Others<'_>,
) -> Result<Option<ExitStatus>, LabError> {
    let started_ns = sys::monotonic_ns();
    loop {
        if let Some(status) = child.try_wait().map_err(LabError::system("waiting for a command"))? {
            return Ok(Some(status));
        }
        let goes_on = others().and_then(|()| process::pause(POLL));
        let is_late = limit.is_some_and(|limit| sys::monotonic_ns() - started_ns > limit.as_nanos() as u64);
        if goes_on.is_err() || is_late {
            let _ = child.kill().and_then(|()| child.wait());
            return goes_on.map(|()| None);
        }
    }
}

fn net(topology: &Topology) -> String {
    let mut text = String::new();
    for link in &topology.links {
        let [a, b] = link.ends.map(|end| topology.end_name(end));
        let rate = link.rate_bps.map(|rate_bps| format!(" {}", p4rack_report::text::rate(rate_bps as f64)));
        let delay = (link.delay.0 > 0).then(|| format!(" {}", link.delay));
        let loss = (link.loss_ppm > 0).then(|| format!(" {} % lost", f64::from(link.loss_ppm) / 1e4));
        let more = [rate, delay, loss].into_iter().flatten().collect::<String>();
        let _ = writeln!(text, "{a} <-> {b}{more}");
    }
    text
}

fn dump(topology: &Topology) -> String {
    let mut text = String::new();
    for host in &topology.hosts {
        let _ = writeln!(text, "{} {}/{} {}", host.name, host.ip, host.prefix, host.mac);
    }
    for switch in &topology.switches {
        let _ = writeln!(text, "{} P4Runtime {} device {}", switch.name, switch.grpc_addr, switch.device_id);
    }
    text
}

/// How long an answer may take on any path: there and back, with ARP before it. Whole seconds.
fn ping_limit(topology: &Topology) -> Duration {
    let delays_ns = topology.links.iter().fold(0u64, |sum, link| sum.saturating_add(link.delay.0));
    PING + Duration::from_secs(delays_ns.saturating_mul(4).div_ceil(1_000_000_000))
}

/// Pings from every host to every other, all of a host's at the same time.
fn ping_all(running: &Running<'_>) -> Result<Ended, LabError> {
    if on_path("ping").is_none() {
        return Ok(Ended::Failed("needs ping, get it by: sudo apt-get install iputils-ping".to_owned()));
    }
    let topology = running.topology;
    let limit_s = ping_limit(topology).as_secs().to_string();
    let (mut lost, mut sent) = (0, 0);
    for (at, (host, ns)) in topology.hosts.iter().zip(&running.wiring.hosts).enumerate() {
        let mut children = BTreeMap::new();
        for (to, other) in topology.hosts.iter().enumerate().filter(|(to, _)| *to != at) {
            let mut command = Command::new("ping");
            command.args(["-n", "-q", "-c", "1", "-W", &limit_s, &other.ip.to_string()]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            ns.command(&mut command, true)?;
            children.insert(to, command.spawn().map_err(LabError::system("starting ping"))?);
        }
        let mut words = Vec::new();
        for (to, mut child) in children {
            let is_answered = wait(&mut child, None, &mut || Ok(()))?.is_some_and(|status| status.success());
            sent += 1;
            lost += usize::from(!is_answered);
            words.push(if is_answered { topology.hosts[to].name.as_str() } else { "X" });
        }
        say(&format!("{} -> {}\n", host.name, words.join(" ")));
    }
    let percent = (lost * 100).checked_div(sent).unwrap_or(0);
    say(&format!("Results: {percent}% dropped ({}/{sent} received)\n", sent - lost));
    match lost {
        0 => Ok(Ended::Well),
        _ => Ok(Ended::Failed(format!("{lost} of {sent} pings were not answered"))),
    }
}

/// TCP from one host to another, by iperf as Mininet's command has it.
fn iperf(running: &mut Running<'_>, from: usize, to: usize) -> Result<Ended, LabError> {
    if on_path("iperf").is_none() {
        return Ok(Ended::Failed("needs iperf, get it by: sudo apt-get install iperf".to_owned()));
    }
    let (hosts, namespaces) = (&running.topology.hosts, &running.wiring.hosts);
    say(&format!("iperf: TCP from {} to {}\n", hosts[from].name, hosts[to].name));
    let start = |name: &str, at: usize, words: &[&str]| {
        let mut command = Command::new("iperf");
        command.args(words).stdin(Stdio::null());
        Process::start_program(name, &namespaces[at], command)
    };
    let mut server = start("iperf's server", to, &["-s"])?;
    let address = hosts[to].ip.to_string();
    let client = ["-c", &address, "-t", "3"];
    let until_ns = sys::monotonic_ns() + IPERF.as_nanos() as u64;
    let ended = loop {
        server.check_running()?;
        match start("iperf", from, &client)?.finish(IPERF) {
            Ok(said) => match said.lines().rfind(|line| line.contains("bits/sec")) {
                Some(line) => {
                    say(&format!("{}\n", line.trim()));
                    break Ended::Well;
                }
                // The server may not listen yet; a client that reaches none ends well.
                None if sys::monotonic_ns() < until_ns => process::pause(LOOK)?,
                None => break Ended::Failed("the server was not reached".to_owned()),
            },
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(error) => break Ended::Failed(error.to_string()),
        }
    };
    process::stop([&mut server]);
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn topology() -> Topology {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.toml");
        let text = "name = \"t\"\n[[switch]]\nname = \"s1\"\nprogram = \"none\"\n\
            [[host]]\nname = \"h1\"\nip = \"10.0.1.1/24\"\n[[host]]\nname = \"h2\"\nip = \"10.0.2.2/24\"\n\
            [[link]]\nends = [\"h1\", \"s1:1\"]\nrate = \"1 Gb/s\"\n[[link]]\nends = [\"h2\", \"s1:2\"]\ndelay = \"1 ms\"\n";
        fs::write(&file, text).unwrap();
        Topology::load(&file).unwrap()
    }

    #[test]
    fn lines_are_commands_of_the_prompt_or_of_nodes() {
        let topology = topology();
        let parse = |line| parse(&topology, line);
        assert_eq!(parse("h1 ping -c 1 h2"), Ok(Line::Node("h1", "ping -c 1 10.0.2.2".to_owned())));
        assert_eq!(parse("s1 echo h1x"), Ok(Line::Node("s1", "echo h1x".to_owned())));
        assert_eq!(parse("  pingall "), Ok(Line::PingAll));
        assert_eq!((parse(""), parse("# a comment")), (Ok(Line::Nothing), Ok(Line::Nothing)));
        assert_eq!(parse("sh ls h1"), Ok(Line::Shell("ls h1")));
        assert_eq!((parse("exit"), parse("quit")), (Ok(Line::Exit), Ok(Line::Exit)));
        for (line, said) in [
            ("xterm h1 h2", "xterm is not supported"),
            ("h3 ping h1", "`h3` is no node"),
            ("h1", "name a command to run on h1"),
            ("pingall h1", "takes no arguments"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn links_and_addresses_are_listed() {
        let topology = topology();
        assert_eq!(net(&topology), "s1:1 <-> h1 1 Gb/s\ns1:2 <-> h2 1.000 ms\n");
        assert!(dump(&topology).contains("h2 10.0.2.2/24 02:00:00:00:00:02"));
        assert_eq!(ping_limit(&topology), Duration::from_secs(2));
    }
}
