//! Cells that keep their values when a program replaces another one.

use super::Running;
use crate::compile::InstanceShape;
use crate::meter::Meter;
use crate::objects::CounterData;
use crate::state::{InstanceState, RegisterState};
use crate::words::limbs_of;
use p4rack_p4::ir::InstanceKind;

/// Which cells keep their values when a program replaces another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All.
    All,
    /// Those with the initial values of the new program: nothing else has been written.
    Unwritten,
    /// None.
    Nothing,
}

impl Running {
    /// Takes over the cells that both programs have in common.
    pub(super) fn keep_cells(&mut self, mut before: Running, keep: Keep) {
        let all = match keep {
            Keep::All => true,
            Keep::Unwritten => false,
            Keep::Nothing => return,
        };
        for pipe in 0..self.state.pipes().min(before.state.pipes()) {
            self.keep_cells_of(pipe, &mut before, all);
        }
    }

    fn keep_cells_of(&mut self, pipe: usize, before: &mut Running, all: bool) {
        let (own, old) = (self.state.of_mut(pipe), before.state.of_mut(pipe));
        for (shape, state) in self.pipeline.instances.iter().zip(&mut own.instances) {
            let same = |other: &InstanceShape| other.name == shape.name && alike(&other.kind, &shape.kind);
            let Some(at) = before.pipeline.instances.iter().position(same) else { continue };
            match (state, &mut old.instances[at]) {
                // Packets wait during the copy, and cells may be many.
                (InstanceState::Counter(cells), InstanceState::Counter(old)) if all => {
                    std::mem::swap(cells, old);
                }
                (InstanceState::Meter { cells, .. }, InstanceState::Meter { cells: old, .. }) if all => {
                    std::mem::swap(cells, old);
                }
                (InstanceState::Counter(cells), InstanceState::Counter(old)) => {
                    let unwritten = |(cell, _): &(&mut CounterData, _)| **cell == CounterData::default();
                    cells.iter_mut().zip(old).filter(unwritten).for_each(|(cell, old)| *cell = *old);
                }
                (InstanceState::Meter { cells, .. }, InstanceState::Meter { cells: old, .. }) => {
                    for (cell, old) in cells.iter_mut().zip(old) {
                        keep_meter(cell, old);
                    }
                }
                (InstanceState::Register(new), InstanceState::Register(place)) => {
                    let words = |register: &RegisterState| {
                        register.first..register.first + register.size * register.words
                    };
                    let from = old.registers.get(words(place));
                    let Some((to, from)) = own.registers.get_mut(words(new)).zip(from) else { continue };
                    if all {
                        to.copy_from_slice(from);
                        continue;
                    }
                    let initial = match &shape.kind {
                        InstanceKind::Register { initial, .. } => limbs_of(initial, new.words),
                        _ => Vec::new(),
                    };
                    for (to, from) in to.chunks_mut(new.words.max(1)).zip(from.chunks(new.words.max(1))) {
                        if to == initial {
                            to.copy_from_slice(from);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// A meter without a new configuration is unchanged; a configured one has its old counts, which no client can write
/// with it.
fn keep_meter(cell: &mut Meter, old: &Meter) {
    if cell.config().is_none() || cell.config() == old.config() {
        *cell = *old;
    } else {
        cell.counts = old.counts;
    }
}

/// Whether cells of one object mean the same in the other.
fn alike(one: &InstanceKind, other: &InstanceKind) -> bool {
    use InstanceKind::{Counter, Meter, Register};
    match (one, other) {
        (Counter { size, unit, .. }, Counter { size: other_size, unit: other_unit, .. })
        | (Meter { size, unit, .. }, Meter { size: other_size, unit: other_unit, .. }) => {
            size == other_size && unit == other_unit
        }
        (Register { size, ty, .. }, Register { size: other_size, ty: other_ty, .. }) => {
            size == other_size && ty.width() == other_ty.width()
        }
        _ => false,
    }
}
