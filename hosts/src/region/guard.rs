//! Views of a region's bytes without a copy.

use super::RemoteRegion;
use p4rack_cache::region::{Frame, Mode};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A pinned block, or a part of it.
pub(super) struct Pinned<'a> {
    pub region: &'a RemoteRegion,
    pub frame: Frame,
    pub mode: Mode,
    pub bytes: NonNull<u8>,
    pub len: usize,
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.region.unpin(self.frame, self.mode);
    }
}

/// Bytes of a region that stay local and unchanged as long as this lives.
pub struct View<'a>(pub(super) Pinned<'a>);

/// Bytes of a region that stay local as long as this lives, and that it alone uses.
pub struct ViewMut<'a>(pub(super) Pinned<'a>);

impl Deref for View<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the frame is pinned for reading until `self` is dropped: it stays, and nothing writes it. See `local`.
        unsafe { std::slice::from_raw_parts(self.0.bytes.as_ptr(), self.0.len) }
    }
}

impl Deref for ViewMut<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: as `deref_mut`.
        unsafe { std::slice::from_raw_parts(self.0.bytes.as_ptr(), self.0.len) }
    }
}

impl DerefMut for ViewMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the frame is pinned for writing until `self` is dropped: it stays, and nothing else uses it. See `local`.
        unsafe { std::slice::from_raw_parts_mut(self.0.bytes.as_ptr(), self.0.len) }
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("len", &self.0.len).finish_non_exhaustive()
    }
}

impl fmt::Debug for ViewMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewMut").field("len", &self.0.len).finish_non_exhaustive()
    }
}
