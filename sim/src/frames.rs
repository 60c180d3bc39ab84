//! Frames on their way, in buffers that are used again and again.

/// A buffer of a [`Frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId(u32);

/// All frames on links. Grows to the most that were ever there at once.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Frames {
    /// An empty buffer.
    #[inline]
    pub fn take(&mut self) -> FrameId {
        FrameId(self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::with_capacity(1600));
            (self.buffers.len() - 1) as u32
        }))
    }

    /// Gives a buffer back.
    #[inline]
    pub fn give_back(&mut self, id: FrameId) {
        self.free.push(id.0);
    }

    #[inline]
    pub fn get(&self, id: FrameId) -> &[u8] {
        &self.buffers[id.0 as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, id: FrameId) -> &mut Vec<u8> {
        &mut self.buffers[id.0 as usize]
    }

    /// A second frame with the same bytes.
    pub fn copy(&mut self, id: FrameId) -> FrameId {
        let copy = self.take();
        let source = std::mem::take(&mut self.buffers[id.0 as usize]);
        self.buffers[copy.0 as usize].clone_from(&source);
        self.buffers[id.0 as usize] = source;
        copy
    }

    /// Buffers in use.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.buffers.len() - self.free.len()
    }
}
