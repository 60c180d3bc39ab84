//! `up --keep`, `exec` and `down`: a rack that keeps running without a workload.
//!
//! A supervisor, detached from the terminal, builds the rack and owns its processes. It ends on SIGTERM, or
//! when the last switch or an agent ends.

use crate::described::Described;
use crate::error::LabError;
use crate::network::Access;
use crate::process::{self, own_binary};
use crate::progress::Progress;
use crate::running::Running;
use crate::state::{
    KeptHost, KeptRack, KeptSwitch, NamespaceHolder, Pid, RUNTIME_OPTION, Runtime, SUPERVISE, SWITCH,
};
use crate::{sys, up};
use p4rack_codegen::setting::Setting;
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_netdev::{NetNs, netns};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Printed by the supervisor when the rack runs.
const READY: &str = "ready";
/// How long `down` waits before it kills.
const DOWN: Duration = Duration::from_secs(12);
/// How long commands that `exec` started may take to end, after SIGTERM and after SIGKILL.
const RESIDENTS: Duration = Duration::from_secs(1);
/// Interval at which the supervisor checks its processes.
const WATCH: Duration = Duration::from_millis(200);

/// A rack to keep running.
#[derive(Clone, Debug)]
pub struct KeepOptions {
    /// Path of the description.
    pub path: PathBuf,
    /// Keys of the description that are set, whatever it says.
    pub settings: Vec<Setting>,
    /// Scheme; `None` is the description's.
    pub scheme: Option<Scheme>,
    /// Architecture of the switch's program; `None` is the description's.
    pub arch: Option<Arch>,
    /// Folder for captures.
    pub captures: Option<PathBuf>,
    /// Whether to hide progress.
    pub quiet: bool,
}

/// Starts a supervisor and waits until its rack runs.
pub fn keep(options: &KeepOptions) -> Result<KeptRack, LabError> {
    let rack = Rack::load_set(&options.path, &options.settings)?;
    let rack = rack.on(options.arch.unwrap_or(rack.switch.arch));
    let scheme = options.scheme.unwrap_or_else(|| rack.scheme());
    up::rack_under(&rack, scheme)?;
    let mut args: Vec<OsString> =
        ["--scheme", &scheme.name(), "--arch", rack.switch.arch.name()].map(OsString::from).into();
    for setting in &options.settings {
        args.extend(["--set".into(), format!("{}={}", setting.key, setting.value).into()]);
    }
    start(&rack.name, options, &args)
}

/// Starts the supervisor of a rack or topology with this name, with these options of its own, and waits until it runs.
pub(crate) fn start(name: &str, options: &KeepOptions, args: &[OsString]) -> Result<KeptRack, LabError> {
    let runtime = Runtime::locate();
    if runtime.racks()?.iter().any(|running| running.name == name) {
        return Err(taken(name));
    }
    let path = std::path::absolute(&options.path).map_err(LabError::file(&options.path))?;
    let mut command = own_binary();
    command.args(SUPERVISE).arg(path).args(args);
    command.arg(RUNTIME_OPTION).arg(runtime.folder());
    if let Some(captures) = &options.captures {
        command.arg("--pcap").arg(std::path::absolute(captures).map_err(LabError::file(captures))?);
    }
    if options.quiet {
        command.arg("--quiet");
    }
    // Its progress goes to our standard error until it is ready.
    command.stdout(Stdio::piped());
    let mut child = command.spawn().map_err(LabError::system("starting the supervisor"))?;
    let output = child.stdout.take().map(BufReader::new);
    let ready = output.into_iter().flat_map(BufRead::lines).map_while(Result::ok).any(|line| line == READY);
    if ready {
        return runtime.find(Some(name));
    }
    // It has printed why.
    let status = child.wait().map_err(LabError::system("waiting for the supervisor"))?;
    Err(LabError::Process { name: name.to_owned(), what: format!("did not start ({status})"), said: None })
}

pub(crate) fn taken(name: &str) -> LabError {
    LabError::Unfit(format!("a rack called `{name}` is already running: end it with `p4rack down {name}`"))
}

/// The supervisor: locks the rack's name, builds the rack, announces it, and runs until a signal ends it.
/// Call this on the main thread before other threads are started.
pub fn supervise(options: &KeepOptions, runtime: &Runtime) -> Result<(), LabError> {
    sys::catch_interrupts();
    sys::detach().map_err(LabError::system("leaving the terminal"))?;
    let progress = Progress::new(options.quiet);
    let described = Described::load(&options.path, &options.settings)?;
    let rack = described.rack.on(options.arch.unwrap_or(described.rack.switch.arch));
    let _name = runtime.lock(&rack.name)?.ok_or_else(|| taken(&rack.name))?;
    let scheme = options.scheme.unwrap_or_else(|| rack.scheme());
    let rack = up::rack_under(&rack, scheme)?;
    let network = up::create_network(&rack, Access::Agent, &progress)?;
    let mut running =
        Running::start(&rack, described.path(), &network, scheme, options.captures.as_deref(), &progress)?;
    running.spares_switches = true;
    let kept = describe(&running)?;
    let registered = Registered::new(runtime, &kept)?;
    let stayed = stay(|| running.check());
    drop(registered);
    let stopped = running.stop();
    end_residents(|| network.namespaces());
    conclude(runtime, &rack.name, stayed.and(stopped))
}

/// The file by which other commands find a rack; it disappears with this value. The caller holds the lock of the name.
pub(crate) struct Registered<'r> {
    runtime: &'r Runtime,
    name: String,
}

impl<'r> Registered<'r> {
    pub(crate) fn new(runtime: &'r Runtime, kept: &KeptRack) -> Result<Registered<'r>, LabError> {
        runtime.write(kept)?;
        let _ = runtime.take_word(&kept.name);
        Ok(Registered { runtime, name: kept.name.clone() })
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.runtime.remove(&self.name);
    }
}

/// Announces what runs, and watches it until SIGTERM, or until `check` fails.
pub(crate) fn stay(check: impl FnMut() -> Result<(), LabError>) -> Result<(), LabError> {
    announce().and_then(|()| watch(check))
}

/// Leaves word of an error, because the terminal is released.
pub(crate) fn conclude(runtime: &Runtime, name: &str, ended: Result<(), LabError>) -> Result<(), LabError> {
    if let Err(error) = &ended {
        runtime.leave_word(name, &error.to_string())?;
    }
    ended
}

/// Ends what commands have left in namespaces, which last as long as a process is in them.
pub(crate) fn end_residents<'n, N: Iterator<Item = &'n NetNs>>(namespaces: impl Fn() -> N) {
    let resides = |process: &Pid| namespaces().any(|ns| ns.has_process(process.pid));
    let kill_ns = sys::monotonic_ns() + RESIDENTS.as_nanos() as u64;
    let mut told: Vec<Pid> = Vec::new();
    loop {
        let residents: Vec<Pid> = Pid::all().filter(resides).collect();
        let late = sys::monotonic_ns() >= kill_ns;
        if residents.is_empty() || sys::monotonic_ns() >= kill_ns + RESIDENTS.as_nanos() as u64 {
            return;
        }
        for process in residents {
            // A process of another user stays; there is nothing else to do about it.
            if late {
                let _ = process.signal(libc::SIGKILL);
            } else if !told.contains(&process) {
                told.push(process);
                let _ = process.signal(libc::SIGTERM);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn describe(running: &Running<'_>) -> Result<KeptRack, LabError> {
    let pid = |number: u32| Pid::of(number).map_err(LabError::system("reading a process's start time"));
    let mut hosts = Vec::new();
    for (host, agent) in running.rack.hosts.iter().zip(&running.agents) {
        let place = NamespaceHolder::Process(pid(agent.pid())?);
        hosts.push(KeptHost { name: host.name.clone(), ip: host.ip, place });
    }
    let mut switches = Vec::new();
    for (tor, (switch, grpc_addr)) in
        running.switches.iter().zip(running.rack.switch.grpc_addrs()).enumerate()
    {
        let name = if running.switches.len() > 1 { format!("tor{}", tor + 1) } else { SWITCH.to_owned() };
        let device_id = running.rack.switch.device_id;
        switches.push(KeptSwitch { name, process: pid(switch.pid())?, grpc_addr, device_id });
    }
    Ok(KeptRack {
        name: running.rack.name.clone(),
        scheme: Some(running.scheme.name()),
        supervisor: pid(std::process::id())?,
        switches,
        hosts,
    })
}

/// Announces that the rack runs, then releases the terminal.
fn announce() -> Result<(), LabError> {
    let mut output = std::io::stdout();
    writeln!(output, "{READY}")
        .and_then(|()| output.flush())
        .map_err(LabError::system("telling that it runs"))?;
    sys::release_output().map_err(LabError::system("letting go of the terminal"))
}

fn watch(mut check: impl FnMut() -> Result<(), LabError>) -> Result<(), LabError> {
    loop {
        match process::pause(WATCH) {
            Err(LabError::Interrupted) => return Ok(()),
            other => other?,
        }
        check()?;
    }
}

/// Replaces this process with a command inside a host of a kept rack (`switch` is the switch). Returns only
/// on failure.
pub fn exec(rack: Option<&str>, host: &str, command: &[OsString]) -> LabError {
    match enter(rack, host, command) {
        Ok(mut command) => {
            let source = command.exec();
            LabError::File { path: PathBuf::from(command.get_program()), source }
        }
        Err(error) => error,
    }
}

/// Replaces this process with the same command beside a switch of a kept rack or topology, where its address is. `example` is the
/// file in the error's advice if none is running. Returns only on failure.
pub fn top(rack: Option<&str>, switch: &str, words: &[OsString], example: &str) -> LabError {
    let beside = || {
        let rack = Runtime::locate().find_or(rack, example)?;
        let KeptSwitch { name, grpc_addr, device_id, .. } = rack.switch(switch)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("p4rack").args(words);
        command.args(["--grpc-addr", &grpc_addr.to_string(), "--device-id", &device_id.to_string()]);
        command.args(["--beside", name]);
        rack.namespace(switch)?.command(&mut command, false)?;
        Ok(command)
    };
    match beside() {
        Ok(mut command) => LabError::system("starting p4rack beside the switch")(command.exec()),
        Err(error) => error,
    }
}

fn enter(rack: Option<&str>, host: &str, command: &[OsString]) -> Result<Command, LabError> {
    let rack = Runtime::locate().find(rack)?;
    let Some((program, args)) = command.split_first() else {
        return Err(LabError::Unfit("name the command to run: p4rack exec HOST -- COMMAND".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(args);
    rack.namespace(host)?.command(&mut command, false)?;
    if rack.scheme.is_none() {
        netns::show_own_interfaces(&mut command);
    }
    Ok(command)
}

/// A rack that is down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Down {
    /// Its name.
    pub name: String,
    /// A problem, if there was one: a process that ended early, a capture that lacks frames.
    pub word: Option<String>,
}

/// Ends a kept rack, with the processes that `exec` has started on it.
pub fn down(name: Option<&str>) -> Result<Down, LabError> {
    let runtime = Runtime::locate();
    // The error has the words of racks that have ended.
    let rack = runtime.find(name).inspect_err(|_| runtime.forget_words())?;
    end(rack.supervisor)?;
    Ok(Down { word: runtime.take_word(&rack.name), name: rack.name })
}

/// Ends all kept racks of this user, including those that are starting or have lost their file.
pub fn down_all() -> Result<Vec<Down>, LabError> {
    let runtime = Runtime::locate();
    let racks = runtime.racks()?;
    let mut all = Vec::new();
    for KeptRack { name, supervisor, .. } in racks {
        end(supervisor)?;
        all.push(Down { word: runtime.take_word(&name), name });
    }
    for supervisor in runtime.supervisors() {
        if end(supervisor)? {
            all.push(Down {
                name: format!("a rack without a file (process {})", supervisor.pid),
                word: None,
            });
        }
    }
    Ok(all)
}

/// Ends a supervisor, and with it its rack. Returns false if it had ended already.
fn end(supervisor: Pid) -> Result<bool, LabError> {
    let signal = |signal| supervisor.signal(signal).map_err(LabError::system("ending the rack"));
    if !signal(libc::SIGTERM)? {
        return Ok(false);
    }
    if !ends_within(supervisor, DOWN) {
        // Its processes end with it.
        signal(libc::SIGKILL)?;
        if !ends_within(supervisor, DOWN) {
            let late = io::Error::new(io::ErrorKind::TimedOut, "its supervisor still runs after SIGKILL");
            return Err(LabError::system("ending the rack")(late));
        }
    }
    Ok(true)
}

fn ends_within(process: Pid, limit: Duration) -> bool {
    let until_ns = sys::monotonic_ns() + limit.as_nanos() as u64;
    while process.is_alive() && sys::monotonic_ns() < until_ns {
        std::thread::sleep(Duration::from_millis(10));
    }
    !process.is_alive()
}

/// Summary of a rack or topology that was just started.
pub fn welcome(rack: &KeptRack) -> String {
    let hosts: Vec<String> = rack.hosts.iter().map(|host| format!("{} {}", host.name, host.ip)).collect();
    let hosts = if hosts.is_empty() { "none".to_owned() } else { hosts.join(", ") };
    let what = match &rack.scheme {
        Some(scheme) => format!("{} runs under {scheme}: {hosts}", rack.name),
        None => {
            let at = |switch: &KeptSwitch| format!("{} {}", switch.name, switch.grpc_addr);
            let switches: Vec<String> = rack.switches.iter().map(at).collect();
            format!("{} runs: {}\n  hosts: {hosts}", rack.name, switches.join(", "))
        }
    };
    // A network without hosts has its switches.
    let next = match (rack.hosts.first(), rack.hosts.last()) {
        (Some(first), Some(last)) if rack.hosts.len() > 1 => {
            format!("p4rack exec {} -- ping -c 3 {}", first.name, last.ip)
        }
        (Some(only), _) => format!("p4rack exec {} -- ip address", only.name),
        _ => {
            let switch = rack.switches.first().map_or(SWITCH, |switch| switch.name.as_str());
            format!("p4rack top --switch {switch}")
        }
    };
    format!("{what}\n  {next}\n  p4rack down {}", rack.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_welcomed_with_a_command_that_its_nodes_can_run() {
        let process = Pid::of(std::process::id()).unwrap();
        let switch = KeptSwitch {
            name: "s1".to_owned(),
            process,
            grpc_addr: "127.0.0.1:9559".parse().unwrap(),
            device_id: 1,
        };
        let host = |n: u8| KeptHost {
            name: format!("h{n}"),
            ip: [10, 0, 0, n].into(),
            place: NamespaceHolder::Process(process),
        };
        let of = |hosts: Vec<KeptHost>| {
            let switches = vec![switch.clone()];
            welcome(&KeptRack { name: "t".to_owned(), scheme: None, supervisor: process, switches, hosts })
        };
        let none = of(Vec::new());
        assert!(none.contains("hosts: none") && !none.contains("exec"), "{none}");
        assert!(none.contains("\n  p4rack top --switch s1\n  p4rack down t"), "{none}");
        let one = of(vec![host(1)]);
        assert!(one.contains("\n  p4rack exec h1 -- ip address\n"), "{one}");
        let two = of(vec![host(1), host(2)]);
        assert!(two.contains("\n  p4rack exec h1 -- ping -c 3 10.0.0.2\n"), "{two}");
    }
}
