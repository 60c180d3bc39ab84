//! Figures of a program with far memory: a file that the library writes and that commands read while the program runs.
//!
//! ```text
//!  0      8          16                      1024
//!  ├ magic ┼ version ┼ figures, u64 each ┼ 0 ┼ what runs, JSON (the command's)
//! ```
//!
//! Numbers are little-endian. A read may see some figures older than others, each of which is whole.

use crate::mapping::MappingStatistics;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"p4rackfm";
/// Of the figures and their order.
const VERSION: u64 = 1;
/// Where the description of what runs begins.
const ABOUT: usize = 1_024;
/// Longest file, bytes.
const BYTES_MAX: u64 = 64 << 10;

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Figures of a program with far memory.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Figures {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Figures {
            /// How many there are.
            const COUNT: usize = [$(stringify!($name)),*].len();

            fn words(&self) -> [u64; Figures::COUNT] {
                [$(self.$name),*]
            }

            fn of_words(words: [u64; Figures::COUNT]) -> Figures {
                let [$($name),*] = words;
                Figures { $($name),* }
            }
        }
    };
}

figures! {
    /// When they were written, on the machine's monotonic clock; 0: far memory was not opened.
    at_ns,
    /// Process with far memory.
    pid,
    /// Bytes of far memory.
    bytes,
    /// Bytes in use.
    in_use_bytes,
    /// The most bytes that were in use.
    in_use_max_bytes,
    /// Heap objects that went far.
    objects,
    /// Mappings that went far.
    mappings,
    /// Large allocations that were refused because far memory was full.
    refused,
    /// Large allocations that got near memory because far memory was full.
    near,
    /// Bytes of local memory in use: pages, blocks and tables.
    local_bytes,
    /// The most bytes of local memory that were in use.
    local_max_bytes,
    /// Limit of local memory.
    local_limit_bytes,
    /// Pages in place, which are used without a fault.
    in_place,
    /// Faults that read.
    read_faults,
    /// Faults that wrote.
    write_faults,
    /// Pages filled with zeros.
    zeroed,
    /// Pages that came back from the copies of pages that had left their place.
    restored,
    /// Pages filled from the region.
    filled,
    /// Pages that lost their place.
    evicted,
    /// Lines of 64 bytes that had changed in pages that were written back.
    changed_lines,
    /// Accesses to blocks of the region that were here.
    blocks_here,
    /// Accesses to blocks of the region that were fetched.
    blocks_fetched,
    /// Bytes fetched from remote memory.
    fetched_bytes,
    /// Bytes written to remote memory.
    written_bytes,
}

impl Figures {
    /// The figures of a mapping.
    pub fn of(statistics: &MappingStatistics) -> Figures {
        let (pages, region) = (&statistics.pages, &statistics.region);
        let counters = &region.counters;
        Figures {
            bytes: statistics.bytes,
            local_bytes: statistics.local_bytes + region.local_bytes,
            local_max_bytes: statistics.local_bytes_max + region.local_bytes,
            local_limit_bytes: statistics.limit_bytes + region.local_bytes,
            in_place: statistics.in_place,
            read_faults: pages.read_faults,
            write_faults: pages.write_faults,
            zeroed: pages.zeroed,
            restored: pages.restored,
            filled: pages.filled,
            evicted: pages.evicted,
            changed_lines: pages.changed_lines,
            blocks_here: counters.from_host + counters.from_device,
            blocks_fetched: counters.waited(),
            fetched_bytes: region.fetched_bytes(),
            written_bytes: region.written_bytes(),
            ..Figures::default()
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let words = [VERSION].into_iter().chain(self.words()).flat_map(u64::to_le_bytes);
        MAGIC.into_iter().chain(words).collect()
    }

    fn parse(bytes: &[u8]) -> Result<Figures, String> {
        let (words, _) = bytes.strip_prefix(&MAGIC).ok_or("not figures of far memory")?.as_chunks::<8>();
        let (version, words) = words.split_first().ok_or("cut short")?;
        match u64::from_le_bytes(*version) {
            VERSION => {}
            other => return Err(format!("version {other}; expected {VERSION}")),
        }
        let words = words.first_chunk::<{ Figures::COUNT }>().ok_or("cut short")?;
        Ok(Figures::of_words(words.map(u64::from_le_bytes)))
    }
}

/// What runs, as the command that started it describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// File name of the program.
    pub program: String,
    /// Process of the command.
    pub pid: u32,
    /// The way to the memory.
    pub way: String,
    /// Host with the memory; empty for the program's own.
    pub at: String,
    /// Policy of the region.
    pub policy: String,
}

/// Where a file is until it is whole: a command that is killed may leave it.
pub fn unnamed(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Makes a file without figures yet, in place of an older one. Its lock ends with the returned file.
pub fn create(path: &Path, about: &About) -> io::Result<File> {
    // It gets its name when it is whole and locked: files without a lock are removed.
    let unnamed = unnamed(path);
    let mut file = OpenOptions::new()
        .write(true)
        .read(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&unnamed)?;
    file.lock_shared()?;
    let mut bytes = Figures::default().bytes();
    bytes.resize(ABOUT, 0);
    bytes.extend(serde_json::to_vec(about)?);
    file.write_all(&bytes)?;
    std::fs::rename(&unnamed, path)?;
    Ok(file)
}

/// Opens a file for reading. Errors: it is not a regular file.
fn open(path: &Path) -> io::Result<File> {
    // A pipe would wait for its other end.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file")),
    }
}

/// Reads a file. Errors: it can't be read, or is no file of figures of this version.
pub fn read(path: &Path) -> io::Result<(About, Figures)> {
    let mut bytes = Vec::new();
    open(path)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let figures = Figures::parse(&bytes).map_err(wrong)?;
    let about = bytes.get(ABOUT..).ok_or_else(|| wrong("cut short".to_owned()))?;
    Ok((serde_json::from_slice(about)?, figures))
}

/// Whether a process still writes a file, or the command that made it still runs.
pub fn is_held(path: &Path) -> io::Result<bool> {
    Ok(open(path)?.try_lock().is_err())
}

/// The library's end of a file.
#[derive(Debug)]
pub struct Writer(File);

impl Writer {
    /// Opens a file that the command has made. Errors: it is not there, or can't be written.
    pub fn open(path: &Path) -> io::Result<Writer> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        file.lock_shared()?;
        Ok(Writer(file))
    }

    /// Writes the figures. A failure leaves the old ones: the program's work does not depend on them.
    pub fn write(&self, figures: &Figures) {
        let _ = self.0.write_all_at(&figures.bytes(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> About {
        let (way, at, policy) = ("tcp".to_owned(), "h1".to_owned(), "runs".to_owned());
        About { program: "a".to_owned(), pid: 7, way, at, policy }
    }

    #[test]
    fn figures_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1");
        let made = create(&path, &about()).unwrap();
        assert_eq!(read(&path).unwrap(), (about(), Figures::default()));
        let figures = Figures { at_ns: 1, written_bytes: u64::MAX, ..Figures::default() };
        let writer = Writer::open(&path).unwrap();
        writer.write(&figures);
        assert_eq!(read(&path).unwrap(), (about(), figures));
        drop(made);
        assert!(is_held(&path).unwrap(), "the library still writes it");
        drop(writer);
        assert!(!is_held(&path).unwrap());
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1");
        create(&path, &about()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let refusal = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(&path).unwrap_err().to_string()
        };
        assert_eq!(refusal(b"text"), "not figures of far memory");
        assert_eq!(refusal(&whole[..100]), "cut short");
        assert_eq!(refusal(&whole[..ABOUT - 1]), "cut short");
        let mut newer = whole.clone();
        newer[8] = 2;
        assert_eq!(refusal(&newer), "version 2; expected 1");
        assert!(refusal(&whole[..ABOUT + 1]).contains("EOF"));
    }
}
