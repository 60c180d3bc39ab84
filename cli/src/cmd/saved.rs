//! Files that are followed: waits until one of them has been saved.
//!
//! Files are looked at by name, so one that an editor replaces is seen like one that is written in place.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tokio::time::sleep;

/// Interval between looks. A change is reported when the next look finds no further one: editors write in parts.
const LOOK: Duration = Duration::from_millis(30);
/// How long a file may be gone before that counts as a change: editors delete and rename.
const GONE: Duration = Duration::from_secs(1);

/// A version of a file: number, size, and time of its last change in seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Version {
    fn of(path: &Path) -> Option<Version> {
        let found = std::fs::metadata(path).ok().filter(|found| found.is_file())?;
        Some(Version {
            inode: found.ino(),
            bytes: found.size(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    fn time(&self) -> SystemTime {
        let (seconds, nanos) = self.changed;
        let since = Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanos).unwrap_or(0));
        SystemTime::UNIX_EPOCH + since
    }
}

/// Files, and the versions of them that have been seen.
#[derive(Debug, Default)]
pub struct Files {
    seen: BTreeMap<PathBuf, Option<Version>>,
}

impl Files {
    /// Follows these files from now on. They need not exist.
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Files {
        let mut files = Files::default();
        files.follow(paths);
        files
    }

    /// Follows these files instead. Changes since the last report count for those that were followed before.
    pub fn follow(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        let mut before = std::mem::take(&mut self.seen);
        let version = |path: PathBuf| {
            let version = before.remove(&path).unwrap_or_else(|| Version::of(&path));
            (path, version)
        };
        self.seen = paths.into_iter().map(version).collect();
    }

    /// Waits until a file has been saved. Returns when that was.
    pub async fn saved(&mut self) -> SystemTime {
        let mut gone_since = None;
        loop {
            let now = self.look();
            if now != self.seen {
                // Let a save that is under way end.
                sleep(LOOK).await;
                let is_gone = now
                    .iter()
                    .any(|(path, now)| now.is_none() && self.seen.get(path).is_some_and(Option::is_some));
                let waits = is_gone && gone_since.get_or_insert_with(Instant::now).elapsed() < GONE;
                if !waits && self.look() == now {
                    let changed = now.iter().filter(|(path, version)| self.seen.get(*path) != Some(*version));
                    let times = changed.filter_map(|(_, version)| version.as_ref().map(Version::time));
                    let at = times.max().unwrap_or_else(SystemTime::now);
                    self.seen = now;
                    return at;
                }
                continue;
            }
            gone_since = None;
            sleep(LOOK).await;
        }
    }

    fn look(&self) -> BTreeMap<PathBuf, Option<Version>> {
        self.seen.keys().map(|path| (path.clone(), Version::of(path))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tokio::time::timeout;

    const LIMIT: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_file_that_is_written_replaced_or_made_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other, absent] = ["one", "other", "absent"].map(|name| folder.path().join(name));
        fs::write(&one, "a").unwrap();
        let mut files = Files::of([one.clone(), absent.clone()]);
        fs::write(&one, "bb").unwrap();
        timeout(LIMIT, files.saved()).await.expect("written in place");
        fs::write(&other, "b").unwrap();
        fs::rename(&other, &one).unwrap();
        timeout(LIMIT, files.saved()).await.expect("replaced");
        fs::write(&absent, "").unwrap();
        timeout(LIMIT, files.saved()).await.expect("made");
        fs::remove_file(&one).unwrap();
        timeout(LIMIT, files.saved()).await.expect("deleted");
        assert!(timeout(LOOK * 8, files.saved()).await.is_err(), "nothing has changed since");
    }

    #[tokio::test]
    async fn a_file_that_is_gone_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "a").unwrap();
        let mut files = Files::of([path.clone()]);
        fs::remove_file(&path).unwrap();
        assert!(timeout(LOOK * 8, files.saved()).await.is_err(), "an editor may be about to write it");
        fs::write(&path, "b").unwrap();
        timeout(LIMIT, files.saved()).await.expect("it is back");
    }

    #[tokio::test]
    async fn files_that_are_followed_later_keep_their_changes() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        fs::write(&one, "a").unwrap();
        fs::write(&other, "a").unwrap();
        let mut files = Files::of([one.clone()]);
        fs::write(&one, "bb").unwrap();
        fs::write(&other, "bb").unwrap();
        files.follow([one, other]);
        timeout(LIMIT, files.saved()).await.expect("the change of the first");
        assert!(timeout(LOOK * 8, files.saved()).await.is_err(), "the other was changed before");
    }
}
