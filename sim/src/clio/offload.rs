//! Clio-KV at a simulated board: the real store, and how often it accesses memory.

use super::memory::SimMemory;
use super::rack::End;
use p4rack_fabric::clio::board::{Board, Call, Space, View};
use p4rack_offload::{Kv, Offload};
use p4rack_wire::clio::Status;

/// Accesses to memory of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub reads: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// A view that counts.
struct Counted<'a, V> {
    view: &'a mut V,
    used: Used,
}

impl<V: View> View for Counted<'_, V> {
    fn read(&mut self, space: Space, address: u64, into: &mut [u8]) -> Result<(), Status> {
        self.used.reads += 1;
        self.used.read_bytes += into.len() as u64;
        self.view.read(space, address, into)
    }

    fn write(&mut self, space: Space, address: u64, bytes: &[u8]) -> Result<(), Status> {
        self.used.written_bytes += bytes.len() as u64;
        self.view.write(space, address, bytes)
    }
}

/// The store of a board, with its own process.
#[derive(Debug)]
pub(super) struct BoardStore {
    own: Space,
    kv: Kv,
}

impl BoardStore {
    pub fn new(own: Space, kv: Kv) -> BoardStore {
        BoardStore { own, kv }
    }

    /// Executes a call. Returns its status, its results, and the resources that it used.
    pub fn serve(
        &mut self,
        board: &mut Board<SimMemory, End>,
        call: &Call<End>,
    ) -> (Result<(), Status>, Vec<u8>, Used) {
        let mut results = Vec::new();
        let mut view = board.view(self.own, call);
        let mut counted = Counted { view: &mut view, used: Used::default() };
        let called = p4rack_offload::Call {
            caller: call.caller,
            id: call.id(),
            function: call.function(),
            arguments: call.arguments(),
            progress: call.progress(),
        };
        // The store ends each call in one step.
        let ended = self.kv.call(&called, &mut counted, &mut results).map(|_| ());
        (ended, results, counted.used)
    }
}
