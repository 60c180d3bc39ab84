//! Frames on their way, in buffers that are used again and again.

/// A buffer of a [`Frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId(u32);

/// What held a frame shorter than this is for short ones again.
const SHORT: usize = 256;

/// All frames on links. Grows to the most that were ever there at once.
///
/// Writing a long frame where a short one was clears what is new of the buffer, all of 1500 bytes that nobody reads: so
/// buffers are given back to their like.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffers: Vec<Vec<u8>>,
    free_short: Vec<u32>,
    free_long: Vec<u32>,
}

impl Frames {
    /// A buffer for a frame that will probably be short or long.
    #[inline]
    pub fn take(&mut self, short: bool) -> FrameId {
        let (first, second) = match short {
            true => (&mut self.free_short, &mut self.free_long),
            false => (&mut self.free_long, &mut self.free_short),
        };
        FrameId(first.pop().or_else(|| second.pop()).unwrap_or_else(|| {
            self.buffers.push(Vec::with_capacity(1600));
            (self.buffers.len() - 1) as u32
        }))
    }

    /// Gives a buffer back.
    #[inline]
    pub fn give_back(&mut self, id: FrameId) {
        let free = if self.get(id).len() < SHORT { &mut self.free_short } else { &mut self.free_long };
        free.push(id.0);
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
        let copy = self.take(self.get(id).len() < SHORT);
        let source = std::mem::take(&mut self.buffers[id.0 as usize]);
        self.buffers[copy.0 as usize].clone_from(&source);
        self.buffers[id.0 as usize] = source;
        copy
    }

    /// Buffers in use.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.buffers.len() - self.free_short.len() - self.free_long.len()
    }
}
