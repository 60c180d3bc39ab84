//! A region of remote memory as the cold tier of [redb], an embedded key-value database.
//!
//! ```text
//!   program ─ redb ─ its cache of pages ─ ColdTier ─ rings, or a queue pair ═ RDMA ═▶ memory pool
//!                    (local memory: hot)                                              (remote: cold)
//! ```
//!
//! redb was chosen because its storage is a trait of five calls, it has a cache whose size a program sets, it writes pages when a
//! transaction commits, and it depends on `libc` alone. So hot pages stay in local memory without a line of code here.
//!
//! **Durability.** A commit ends when the pool has its pages: [`StorageBackend::sync_data`] waits for that. The memory is a lease
//! of the compute node: it outlives engines, but neither the pool nor the process that reserved it.

mod region;

use p4rack_hosts::remote::{Remote, Shape};
use redb::StorageBackend;
use region::Region;
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard};

/// A region of remote memory as redb's storage. See the crate's documentation.
pub struct ColdTier {
    // redb calls from any thread, and a set of rings belongs to one at a time.
    region: Mutex<Region>,
}

impl ColdTier {
    /// An empty storage. `remote` has to permit the operations of `shape`, and its region has to hold zeros. Errors: a size is
    /// 0, or the end of a write does not mean that it is in the memory.
    pub fn new(remote: Box<dyn Remote>, shape: Shape) -> io::Result<ColdTier> {
        Ok(ColdTier { region: Mutex::new(Region::new(remote, shape)?) })
    }

    fn region(&self) -> io::Result<MutexGuard<'_, Region>> {
        self.region.lock().map_err(|_| io::Error::other("a thread ended in the middle of a request"))
    }
}

impl fmt::Debug for ColdTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColdTier").finish_non_exhaustive()
    }
}

/// Errors of all calls: the pool or the engine is lost, no completion for ten seconds, or such an error of an earlier call.
impl StorageBackend for ColdTier {
    fn len(&self) -> io::Result<u64> {
        Ok(self.region()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.region()?.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.region()?.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.region()?.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.region()?.write(offset, data)
    }
}
