//! How each architecture's blocks become code.

mod tna;
mod v1model;

use super::builder::Builder;
use crate::arch::Arch;
use crate::error::CompileError;

/// Translates the program's blocks to entries.
pub(super) fn compile(builder: &mut Builder<'_>) -> Result<(), CompileError> {
    match builder.arch {
        Arch::V1model => v1model::compile(builder),
        Arch::Tna | Arch::SecondTna => tna::compile(builder),
    }
}

/// Makes the decisions that depend on the bodies of actions, which are translated after the blocks.
pub(super) fn settle(builder: &mut Builder<'_>) {
    match builder.arch {
        Arch::V1model => {}
        Arch::Tna | Arch::SecondTna => tna::settle(builder),
    }
}

/// Translates dropping a packet.
pub(super) fn drop(builder: &mut Builder<'_>) {
    match builder.arch {
        Arch::V1model => v1model::drop(builder),
        // This architecture has no such call.
        Arch::Tna | Arch::SecondTna => {}
    }
}
