//! Frees all that a process has left.

use super::super::entry::Space;
use super::super::ranges::Kind;
use super::free::Free;
use super::{Stand, Step};
use p4rack_wire::clio::{PageSize, Status};

/// The end of a process: its ranges are freed one by one.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    free: Option<Free>,
}

impl End {
    pub fn step(&mut self, space: Space, step: &mut Step<'_>) -> Stand {
        if let Some(free) = &mut self.free {
            if free.step(step) == Stand::More {
                return Stand::More;
            }
            self.free = None;
        }
        let Some(process) = step.vm.processes.get_mut(space) else { return Stand::Ended(Status::Done, 0) };
        for (size, _) in PageSize::ALL {
            let ranges = &mut process.ranges[size as usize];
            ranges.forget_conflicts();
            let Some((range, kind)) = ranges.first() else { continue };
            // Where another call works on it: that will end.
            if kind == Kind::Taken {
                ranges.set(range.clone(), Some(Kind::Held));
                self.free = Some(Free::held(space, size, range));
            }
            return Stand::More;
        }
        if process.jobs > 0 {
            return Stand::More;
        }
        step.vm.processes.forget(space);
        Stand::Ended(Status::Done, 0)
    }
}
