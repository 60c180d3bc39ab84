//! Stored frames. Buffers are reused, so that a steady stream allocates nothing.

/// A frame in a [`Pool`]. Each holder passes it on or gives it back, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId(u32);

/// A frame with the scheme's note.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored<N> {
    /// The stored part of the frame.
    pub bytes: Vec<u8>,
    /// Length of the whole frame.
    pub len: usize,
    /// The scheme's note; the default when the frame is stored.
    pub note: N,
    holders: u32,
}

/// Reference-counted frames, bounded by the queue limits of its users.
#[derive(Clone, Debug)]
pub(crate) struct Pool<N> {
    slots: Vec<Stored<N>>,
    free: Vec<u32>,
    /// Maximum bytes stored per frame.
    snap: usize,
}

impl<N: Default> Pool<N> {
    /// An empty pool that stores `snap` bytes per frame.
    pub fn new(snap: usize) -> Pool<N> {
        Pool { slots: Vec::new(), free: Vec::new(), snap }
    }

    /// Stores the concatenation of `parts`, with one holder.
    pub fn store(&mut self, parts: &[&[u8]]) -> FrameId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Stored::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.bytes.clear();
        slot.len = 0;
        for part in parts {
            let room = self.snap.saturating_sub(slot.len).min(part.len());
            slot.bytes.extend_from_slice(&part[..room]);
            slot.len += part.len();
        }
        (slot.holders, slot.note) = (1, N::default());
        FrameId(index)
    }

    /// Adds a holder.
    pub fn hold(&mut self, id: FrameId) {
        self.slots[id.0 as usize].holders += 1;
    }

    /// Removes a holder; the last one frees the frame.
    pub fn release(&mut self, id: FrameId) {
        let slot = &mut self.slots[id.0 as usize];
        debug_assert!(slot.holders > 0, "frame given back twice");
        slot.holders = slot.holders.saturating_sub(1);
        if slot.holders == 0 {
            self.free.push(id.0);
        }
    }

    /// The stored part of the frame.
    pub fn bytes(&self, id: FrameId) -> &[u8] {
        &self.slots[id.0 as usize].bytes
    }

    /// Length of the whole frame.
    pub fn len(&self, id: FrameId) -> usize {
        self.slots[id.0 as usize].len
    }

    /// The frame itself.
    #[inline]
    pub fn get_mut(&mut self, id: FrameId) -> &mut Stored<N> {
        &mut self.slots[id.0 as usize]
    }

    /// Number of frames with holders.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_lives_until_its_last_holder_gives_it_back() {
        let mut pool = Pool::<u32>::new(usize::MAX);
        let first = pool.store(&[b"ab", b"c"]);
        pool.hold(first);
        pool.release(first);
        assert_eq!((pool.bytes(first), pool.held()), (&b"abc"[..], 1));
        pool.get_mut(first).note = 7;
        pool.release(first);
        let second = pool.store(&[b"d"]);
        assert_eq!((second, pool.held()), (first, 1), "the buffer is used again");
        assert_eq!(pool.get_mut(second).note, 0, "its note is not");
    }

    #[test]
    fn no_more_than_its_snap_length_is_kept() {
        let mut pool = Pool::<()>::new(3);
        for (parts, kept, len) in [(&[&b"ab"[..], b"cd", b"e"][..], &b"abc"[..], 5), (&[b"ab"], b"ab", 2)] {
            let id = pool.store(parts);
            assert_eq!((pool.bytes(id), pool.len(id)), (kept, len));
        }
    }
}
