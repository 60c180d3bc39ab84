//! Linux's swap to compressed memory, for a process whose memory has a limit: a device and a cgroup of this command's own, which go with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CONTROL: &str = "/sys/class/zram-control";
const GROUPS: &str = "/sys/fs/cgroup";
/// Time for the kernel to let go of a group whose process has ended.
const LEAVES: Duration = Duration::from_secs(10);

/// A device of swap and a group with a limit. Dropped, both are removed.
pub(super) struct Swap {
    group: Group,
    _device: Device,
}

impl Swap {
    /// Swap of this many bytes, and a group whose memory has a limit. The error names a missing requirement, and how to
    /// get it.
    pub(super) fn open(bytes: u64, limit_bytes: u64) -> Result<Swap, String> {
        if fs::read_to_string("/proc/swaps").unwrap_or_default().lines().count() > 1 {
            return Err(
                "a machine without other swap, which would take part, get it by: sudo swapoff -a".to_owned()
            );
        }
        let group = Group::new(limit_bytes)?;
        Ok(Swap { _device: Device::new(bytes)?, group })
    }

    /// Has a program start in the group.
    pub(super) fn limits(&self, program: &Command) -> Command {
        let mut command = Command::new("sh");
        let script = "echo $$ > \"$0\" && exec \"$@\"";
        command.args(["-c", script]).arg(self.group.0.join("cgroup.procs"));
        command.arg(program.get_program()).args(program.get_args());
        command
    }

    /// Pages that came back from swap, and that went there, since the machine started. Nothing but the group should use it.
    pub(super) fn pages(&self) -> Result<[u64; 2], String> {
        let text = read(Path::new("/proc/vmstat"))?;
        let of = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            value.ok_or_else(|| format!("/proc/vmstat: has no number {name}"))
        };
        Ok([of("pswpin ")?, of("pswpout ")?])
    }
}

/// Whether the kernel finds pages that are not used by generations.
pub(super) fn mglru() -> &'static str {
    match fs::read_to_string("/sys/kernel/mm/lru_gen/enabled") {
        Ok(enabled) if enabled.trim().trim_start_matches("0x").trim_start_matches('0').is_empty() => "off",
        Ok(_) => "on",
        Err(_) => "not in this kernel",
    }
}

/// A device of compressed memory that is swap.
struct Device {
    number: u32,
    is_on: bool,
}

impl Device {
    fn new(bytes: u64) -> Result<Device, String> {
        let control = Path::new(CONTROL);
        if !control.exists() {
            // Without the module the next step reports the missing requirement.
            let _ = ran("modprobe", &["zram"]);
        }
        let lacks = |why: String| format!("zram ({why}), get it by: sudo modprobe zram, and run it as root");
        let added = read(&control.join("hot_add")).map_err(lacks)?;
        let number = added.trim().parse().map_err(|_| lacks(format!("hot_add says {added:?}")))?;
        let mut device = Device { number, is_on: false };
        write(&device.setting("disksize"), &bytes.next_multiple_of(super::PAGE_BYTES).to_string())
            .and_then(|()| ran("mkswap", &[&device.path()]))
            .and_then(|()| ran("swapon", &[&device.path()]))
            .map_err(lacks)?;
        device.is_on = true;
        Ok(device)
    }

    fn path(&self) -> String {
        format!("/dev/zram{}", self.number)
    }

    fn setting(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/sys/block/zram{}/{name}", self.number))
    }

    fn remove(&self) -> Result<(), String> {
        if self.is_on {
            ran("swapoff", &[&self.path()])?;
        }
        write(&self.setting("reset"), "1")?;
        write(&Path::new(CONTROL).join("hot_remove"), &self.number.to_string())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            let path = self.path();
            eprintln!(
                "warning: {path} is still there: {error}; remove it by: sudo swapoff {path}; sudo zramctl -r {path}"
            );
        }
    }
}

/// A cgroup with a limit of memory.
struct Group(PathBuf);

impl Group {
    /// In this process's own group by cgroups of version 1; in the root of version 2, where groups with processes have no others in them.
    fn new(limit_bytes: u64) -> Result<Group, String> {
        let own = read(Path::new("/proc/self/cgroup"))?;
        let by_controller = own.lines().find_map(|line| {
            let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|one| one == "memory").then_some(group)
        });
        let (parent, limit) = match by_controller {
            Some(group) => (format!("{GROUPS}/memory{group}"), "memory.limit_in_bytes"),
            None => (GROUPS.to_owned(), "memory.max"),
        };
        let path = Path::new(&parent).join(format!("p4rack-far-bench-{}", std::process::id()));
        let lacks =
            |why: String| format!("a cgroup with a limit of memory ({why}), get it by running it as root");
        fs::create_dir(&path).map_err(|error| lacks(format!("{}: {error}", path.display())))?;
        let group = Group(path);
        write(&group.0.join(limit), &limit_bytes.to_string()).map_err(lacks)?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let begun = Instant::now();
        while let Err(error) = fs::remove_dir(&self.0) {
            if begun.elapsed() > LEAVES {
                eprintln!("warning: {}: {error}: remove it by rmdir", self.0.display());
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs a program of the system that says nothing if all is well.
fn ran(program: &str, arguments: &[&str]) -> Result<(), String> {
    let failed = |why: String| format!("{program} {}: {why}", arguments.join(" "));
    let found = p4rack_lab::process::on_path(program).ok_or_else(|| failed("is not installed".to_owned()))?;
    let output = Command::new(found).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}
