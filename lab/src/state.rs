//! Racks that `up --keep` left running: one file each, in a folder of the user's own.

use crate::error::LabError;
use crate::sys;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A process that must not be mistaken for a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pid {
    /// Number.
    pub pid: u32,
    /// When it was started, in the kernel's ticks since boot.
    pub start: u64,
}

impl Pid {
    /// The process that has this number now.
    pub fn of(pid: u32) -> io::Result<Pid> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let start = start_time(&stat).ok_or_else(|| io::Error::other("/proc/PID/stat in an unknown form"))?;
        Ok(Pid { pid, start })
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

/// Field 22 of `/proc/PID/stat`; the name in field 2 may hold anything, also brackets and spaces.
fn start_time(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// One host of a kept rack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptHost {
    /// Name.
    pub name: String,
    /// Address of its TAP.
    pub ip: Ipv4Addr,
    /// Its agent.
    pub agent: Pid,
}

/// A kept rack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRack {
    /// Name.
    pub name: String,
    /// What it runs.
    pub scheme: String,
    /// Owner of all its processes: when it ends, so do they.
    pub supervisor: Pid,
    /// The switch.
    pub switch: Pid,
    /// Where P4Runtime listens, in the switch's namespace.
    pub grpc_addr: SocketAddr,
    /// Hosts.
    pub hosts: Vec<KeptHost>,
}

/// The folder with the files.
#[derive(Clone, Debug)]
pub struct Runtime {
    folder: PathBuf,
}

impl Runtime {
    /// The user's folder: below `$XDG_RUNTIME_DIR`, for root below `/run`, else in `/tmp`.
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

    /// A folder given by its path.
    pub fn at(folder: impl Into<PathBuf>) -> Runtime {
        Runtime { folder: folder.into() }
    }

    /// Makes the folder; refuses one that another user could write to.
    pub fn prepare(&self) -> Result<(), LabError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(LabError::file(&self.folder))?;
        let meta = fs::symlink_metadata(&self.folder).map_err(LabError::file(&self.folder))?;
        if !meta.is_dir() || meta.uid() != sys::user_id() || meta.mode() & 0o022 != 0 {
            let why = "must be a folder that belongs to you and that nobody else can write to; remove it";
            return Err(LabError::File { path: self.folder.clone(), source: io::Error::other(why) });
        }
        Ok(())
    }

    /// File of a rack.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Writes a rack's file; readers see all of it or nothing.
    pub fn write(&self, rack: &KeptRack) -> Result<(), LabError> {
        self.prepare()?;
        let path = self.file(&rack.name);
        let temporary = path.with_extension("json.new");
        let text =
            serde_json::to_string_pretty(rack).map_err(io::Error::from).map_err(LabError::file(&path))?;
        fs::write(&temporary, text).map_err(LabError::file(&temporary))?;
        fs::rename(&temporary, &path).map_err(LabError::file(&path))
    }

    /// Removes a rack's file, if it is there.
    pub fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.file(name));
    }

    /// The racks that run. Files of racks that have ended are removed.
    pub fn racks(&self) -> Vec<KeptRack> {
        let mut racks = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            match serde_json::from_str::<KeptRack>(&text) {
                Ok(rack) if rack.supervisor.is_alive() => racks.push(rack),
                _ => drop(fs::remove_file(&path)),
            }
        }
        racks.sort_by(|a, b| a.name.cmp(&b.name));
        racks
    }

    /// The rack that is meant: by name, or the only one.
    pub fn find(&self, name: Option<&str>) -> Result<KeptRack, LabError> {
        let racks = self.racks();
        let names = || racks.iter().map(|rack| rack.name.as_str()).collect::<Vec<_>>().join(", ");
        match (name, racks.as_slice()) {
            (_, []) => Err(LabError::NotThere(
                "no rack is running: start one with `p4rack up --keep examples/pl2-incast.toml`".to_owned(),
            )),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rack(name: &str, supervisor: Pid) -> KeptRack {
        KeptRack {
            name: name.to_owned(),
            scheme: "pl2-clock".to_owned(),
            supervisor,
            switch: supervisor,
            grpc_addr: "127.0.0.1:9559".parse().unwrap(),
            hosts: vec![KeptHost { name: "h1".into(), ip: [10, 0, 0, 1].into(), agent: supervisor }],
        }
    }

    fn here() -> Pid {
        Pid::of(std::process::id()).unwrap()
    }

    #[test]
    fn a_running_rack_is_found_alone_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::at(folder.path().join("p4rack"));
        let message = runtime.find(None).unwrap_err().to_string();
        assert!(message.contains("p4rack up --keep"), "{message}");
        runtime.write(&rack("a", here())).unwrap();
        assert_eq!(runtime.find(None).unwrap(), rack("a", here()));
        runtime.write(&rack("b", here())).unwrap();
        let message = runtime.find(None).unwrap_err().to_string();
        assert!(message.contains("a, b"), "{message}");
        assert_eq!(runtime.find(Some("b")).unwrap().name, "b");
        assert!(runtime.find(Some("c")).unwrap_err().to_string().contains("running: a, b"));
        runtime.remove("a");
        assert_eq!(runtime.find(None).unwrap().name, "b");
        let mode = fs::metadata(folder.path().join("p4rack")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_file_whose_process_is_gone_or_another_counts_for_nothing_and_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::at(folder.path());
        let other_start = Pid { start: here().start + 1, ..here() };
        runtime.write(&rack("reused-number", other_start)).unwrap();
        runtime.write(&rack("gone", Pid { pid: u32::MAX >> 2, start: 1 })).unwrap();
        fs::write(folder.path().join("torn.json"), "{\"name\"").unwrap();
        assert!(runtime.racks().is_empty());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = Runtime::at(folder.path()).write(&rack("a", here())).unwrap_err();
        assert!(error.to_string().contains("nobody else"), "{error}");
    }

    #[test]
    fn the_start_time_is_read_behind_any_name() {
        let tail = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(start_time(&format!("7 (a) b ({tail}) {tail}")), Some(4242));
        assert_eq!(start_time("7 (short) S 1"), None);
    }
}
