//! State of racks that `up --keep` left running: one file each, in a private folder of the user.

use crate::error::LabError;
use crate::sys;
use p4rack_netdev::NetNs;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A process id that cannot be mistaken for a later process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pid {
    /// Process id.
    pub pid: u32,
    /// Start time of the process, in the kernel's ticks since boot.
    pub start: u64,
}

impl Pid {
    /// The process that has this id now.
    pub fn of(pid: u32) -> io::Result<Pid> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let start = start_time(&stat).ok_or_else(|| io::Error::other("/proc/PID/stat in an unknown form"))?;
        Ok(Pid { pid, start })
    }

    /// All processes now.
    pub fn all() -> impl Iterator<Item = Pid> {
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter_map(|pid| Pid::of(pid).ok())
    }

    /// Sends a signal. Returns false if the process has ended; a later process with the same id never gets
    /// the signal.
    pub fn signal(&self, signal: i32) -> io::Result<bool> {
        let gone = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
        let process = match sys::open_process(self.pid) {
            Err(error) if gone(&error) => return Ok(false),
            other => other?,
        };
        // Checked with the descriptor open: the signal goes to the process that has the id now.
        if !self.is_alive() {
            return Ok(false);
        }
        match sys::signal_process(&process, signal) {
            Err(error) if gone(&error) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        Pid::of(self.pid).is_ok_and(|now| now == *self) && !self.is_zombie()
    }

    fn is_zombie(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
    }
}

/// Field 22 of `/proc/PID/stat`. The name in field 2 may contain anything, including brackets and spaces.
fn start_time(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// How to find the namespace of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamespaceHolder {
    /// A process lives there.
    Process(Pid),
    /// The supervisor holds it open by this descriptor.
    Descriptor(i32),
}

/// A host of a kept rack or topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptHost {
    /// Name of the host.
    pub name: String,
    /// Address that its applications use.
    pub ip: Ipv4Addr,
    /// Its namespace.
    pub place: NamespaceHolder,
}

/// A switch of a kept rack or topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSwitch {
    /// Name of the switch; in a rack `switch`, or `tor1` and `tor2`.
    pub name: String,
    /// Process of the switch.
    pub process: Pid,
    /// Address of P4Runtime, in the switch's namespace.
    pub grpc_addr: SocketAddr,
    /// P4Runtime device id.
    pub device_id: u64,
}

/// A kept rack or topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRack {
    /// Name of the rack.
    pub name: String,
    /// Scheme that it runs; `None`: a topology's switches run what they are given.
    pub scheme: Option<String>,
    /// Owner of all its processes, which end with it.
    pub supervisor: Pid,
    /// Switches; in a rack one or two.
    pub switches: Vec<KeptSwitch>,
    /// Hosts of the rack.
    pub hosts: Vec<KeptHost>,
}

/// What a rack's only switch is called. Any switch of a topology or of a rack with two is meant by it, too: they share a namespace.
pub const SWITCH: &str = "switch";

impl KeptRack {
    /// The switch with this name.
    pub fn switch(&self, name: &str) -> Result<&KeptSwitch, LabError> {
        self.switches.iter().find(|switch| switch.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.switches.iter().map(|switch| switch.name.as_str()).collect();
            let there = names.join(", ");
            LabError::NotThere(format!("{}: no switch is called `{name}`; there are {there}", self.name))
        })
    }

    /// The namespace of a node, opened while what holds it lives.
    pub fn namespace(&self, node: &str) -> Result<NetNs, LabError> {
        let host = self.hosts.iter().find(|host| host.name == node).map(|host| host.place);
        let of_name = |switch: &&KeptSwitch| switch.name == node;
        let alive = || self.switches.iter().find(|switch| switch.process.is_alive());
        let any = || alive().or_else(|| self.switches.first()).filter(|_| node == SWITCH);
        let switch = self.switches.iter().find(of_name).or_else(any);
        let place =
            host.or(switch.map(|switch| NamespaceHolder::Process(switch.process))).ok_or_else(|| {
                let hosts = self.hosts.iter().map(|host| host.name.as_str());
                let names: Vec<_> =
                    hosts.chain(self.switches.iter().map(|switch| switch.name.as_str())).collect();
                let message =
                    format!("{}: no host is called `{node}`; there are {}", self.name, names.join(", "));
                LabError::NotThere(message)
            })?;
        let (ns, holder) = match place {
            NamespaceHolder::Process(process) => (NetNs::of_process(process.pid), process),
            NamespaceHolder::Descriptor(fd) => (NetNs::held_by(self.supervisor.pid, fd), self.supervisor),
        };
        // The opened namespace is the node's if its holder still runs now.
        if !holder.is_alive() {
            let name = &self.name;
            let message = format!("{name}: {node} has died; end the rack with `p4rack down {name}`");
            return Err(LabError::NotThere(message));
        }
        Ok(ns?)
    }
}

/// The folder of state files.
#[derive(Clone, Debug)]
pub struct Runtime {
    folder: PathBuf,
}

impl Runtime {
    /// The user's folder: below `$XDG_RUNTIME_DIR`, for root below `/run`, otherwise in `/tmp`.
    pub fn locate() -> Runtime {
        let user = sys::user_id();
        let from_environment = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
        let folder = match from_environment {
            Some(folder) => PathBuf::from(folder).join("p4rack"),
            None if user == 0 && Path::new("/run").is_dir() => PathBuf::from("/run/p4rack"),
            None => PathBuf::from(format!("/tmp/p4rack-{user}")),
        };
        Runtime { folder }
    }

    /// A folder at a path.
    pub fn at(folder: impl Into<PathBuf>) -> Runtime {
        Runtime { folder: folder.into() }
    }

    /// Path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the folder. Rejects one to which another user could write.
    pub fn prepare(&self) -> Result<(), LabError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(LabError::file(&self.folder))?;
        self.check().map(drop)
    }

    /// Whether the folder exists. Fails if it is not private to this user, because its contents could not be
    /// trusted.
    fn check(&self) -> Result<bool, LabError> {
        let meta = match fs::symlink_metadata(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other.map_err(LabError::file(&self.folder))?,
        };
        if !meta.is_dir() || meta.uid() != sys::user_id() || meta.mode() & 0o022 != 0 {
            let why = "must be a folder that belongs to you and that nobody else can write to; remove it";
            return Err(LabError::File { path: self.folder.clone(), source: io::Error::other(why) });
        }
        Ok(true)
    }

    /// Locks the name of a rack as long as the lock is held. `None` if another process has it.
    pub fn lock(&self, name: &str) -> Result<Option<NameLock>, LabError> {
        self.prepare()?;
        let path = self.folder.join(format!("{name}.lock"));
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&path)
                .map_err(LabError::file(&path))?;
            if !sys::try_lock(&file).map_err(LabError::file(&path))? {
                return Ok(None);
            }
            // The previous owner may have removed the file in between; then the lock is on a file without a name.
            let mine = file.metadata().map_err(LabError::file(&path))?;
            if fs::symlink_metadata(&path).is_ok_and(|there| there.ino() == mine.ino()) {
                return Ok(Some(NameLock { path, _file: file }));
            }
        }
    }

    /// File of a rack.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Writes a rack's file atomically.
    pub fn write(&self, rack: &KeptRack) -> Result<(), LabError> {
        self.prepare()?;
        let path = self.file(&rack.name);
        let temporary = path.with_extension("json.new");
        let text =
            serde_json::to_string_pretty(rack).map_err(io::Error::from).map_err(LabError::file(&path))?;
        // Left by a process that was killed here; we hold the lock of the name.
        let _ = fs::remove_file(&temporary);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .map_err(LabError::file(&temporary))?;
        file.write_all(text.as_bytes()).map_err(LabError::file(&temporary))?;
        fs::rename(&temporary, &path).map_err(LabError::file(&path))
    }

    /// Removes a rack's file if it exists. The caller holds the lock of the name.
    pub fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.file(name));
    }

    /// Stores why a rack ended, for the next command that looks for it. The caller holds the lock of the name.
    pub fn leave_word(&self, name: &str, word: &str) -> Result<(), LabError> {
        let path = self.folder.join(format!("{name}.{WORD}"));
        let _ = fs::remove_file(&path);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(word.as_bytes())).map_err(LabError::file(&path))
    }

    /// Words that racks have left, by name.
    fn words(&self) -> Vec<(String, String)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let word = |path: PathBuf| {
            let name = path.file_stem()?.to_str()?.to_owned();
            path.extension()
                .is_some_and(|ending| ending == WORD)
                .then(|| Some((name, read_own(&path).ok()?)))?
        };
        entries.filter_map(word).collect()
    }

    /// Removes all words, once they were shown.
    pub fn forget_words(&self) {
        for (name, _) in self.words() {
            let _ = self.take_word(&name);
        }
    }

    /// Takes the word that a rack of this name has left.
    pub fn take_word(&self, name: &str) -> Option<String> {
        let path = self.folder.join(format!("{name}.{WORD}"));
        let word = self.check().ok().filter(|there| *there).and_then(|_| read_own(&path).ok())?;
        let _ = fs::remove_file(&path);
        Some(word)
    }

    /// Removes a stale file, unless a rack of its name is being started.
    fn remove_stale(&self, path: &Path) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if let Ok(Some(_name)) = self.lock(&name)
            && running_rack(path).is_none()
        {
            let _ = fs::remove_file(path);
        }
    }

    /// The racks that are running. Removes files of racks that have ended.
    pub fn racks(&self) -> Result<Vec<KeptRack>, LabError> {
        let mut racks = Vec::new();
        if !self.check()? {
            return Ok(racks);
        }
        for entry in fs::read_dir(&self.folder).map_err(LabError::file(&self.folder))?.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match running_rack(&path) {
                Some(rack) => racks.push(rack),
                None => self.remove_stale(&path),
            }
        }
        racks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(racks)
    }

    /// Supervisors that keep their files here, whether they have written one or not, for `down --all`.
    pub fn supervisors(&self) -> Vec<Pid> {
        let folder = self.folder.as_os_str().as_bytes();
        let user = sys::user_id();
        let is_own = |process: &Pid| {
            let entry = PathBuf::from(format!("/proc/{}", process.pid));
            let own = fs::metadata(&entry).is_ok_and(|meta| meta.uid() == user);
            own && is_supervisor(&fs::read(entry.join("cmdline")).unwrap_or_default(), folder)
        };
        Pid::all().filter(is_own).collect()
    }

    /// The rack with this name, or the only one.
    pub fn find(&self, name: Option<&str>) -> Result<KeptRack, LabError> {
        self.find_or(name, "examples/pl2-incast.toml")
    }

    /// The same; `example` is the file in the error's advice if none is running.
    pub fn find_or(&self, name: Option<&str>, example: &str) -> Result<KeptRack, LabError> {
        let racks = self.racks()?;
        let names = || racks.iter().map(|rack| rack.name.as_str()).collect::<Vec<_>>().join(", ");
        match (name, racks.as_slice()) {
            (_, []) => {
                let start = format!("start one with `p4rack up --keep {example}`");
                let ended =
                    self.words().into_iter().map(|(name, word)| format!("\n{name} has ended: {word}"));
                Err(LabError::NotThere(format!("no rack is running: {start}{}", ended.collect::<String>())))
            }
            (None, [only]) => Ok(only.clone()),
            (None, _) => {
                Err(LabError::NotThere(format!("several racks are running, name one of them: {}", names())))
            }
            (Some(name), _) => racks.iter().find(|rack| rack.name == name).cloned().ok_or_else(|| {
                LabError::NotThere(format!("no rack called `{name}` is running; running: {}", names()))
            }),
        }
    }
}

/// Ending of the file with a rack's last word.
const WORD: &str = "ended";

/// A locked rack name. Released when this is dropped or its process ends.
#[derive(Debug)]
pub struct NameLock {
    path: PathBuf,
    _file: File,
}

impl Drop for NameLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The rack that a file describes, if it is running.
fn running_rack(path: &Path) -> Option<KeptRack> {
    let rack: KeptRack = serde_json::from_str(&read_own(path).ok()?).ok()?;
    rack.supervisor.is_alive().then_some(rack)
}

/// Reads a file of this user, without following links.
fn read_own(path: &Path) -> io::Result<String> {
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    if file.metadata()?.uid() != sys::user_id() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// The arguments with which supervisors are started.
pub(crate) const SUPERVISE: [&str; 2] = ["workload", "supervise"];
/// The option that names the folder.
pub(crate) const RUNTIME_OPTION: &str = "--runtime";

/// Whether a command line, with words ended by zeros, is that of a supervisor whose files are in `folder`.
fn is_supervisor(line: &[u8], folder: &[u8]) -> bool {
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    let [_, first, second, rest @ ..] = words.as_slice() else { return false };
    [*first, *second] == SUPERVISE.map(str::as_bytes)
        && rest.windows(2).any(|pair| pair[0] == RUNTIME_OPTION.as_bytes() && pair[1] == folder)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
