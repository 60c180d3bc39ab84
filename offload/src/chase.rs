//! Pointer chase: follows a linked structure until a key matches.

use crate::{Call, Offload, Step};
use p4rack_fabric::clio::board::View;
use p4rack_wire::ParseError;
use p4rack_wire::clio::Status;

p4rack_wire::header! {
    /// Arguments of a pointer chase.
    Chase = "clio_chase_t" {
        /// of the first node
        address / "address": u64 = 64;
        /// what the node's key is compared with
        key / "key": u64 = 64;
        /// where in a node its key is: 8 bytes, the lowest first
        key_offset / "keyOffset": u16 = 16;
        /// where in a node the address of the next one is: 8 bytes, the lowest first; 0 ends the list
        next_offset / "nextOffset": u16 = 16;
        /// where in a node its value is
        value_offset / "valueOffset": u16 = 16;
        /// bytes of the value
        value_bytes / "valueBytes": u16 = 16;
        /// nodes to look at
        depth / "depth": u16 = 16;
        /// 1: the value's place has the address of the value
        value_is_pointer / "valueIsPointer": u8 = 8;
        /// zero on sending, ignored on receipt
        reserved / "reserved": u8 = 8;
    }
}

/// Nodes after which other work of the board has its turn.
const SLICE: u64 = 64;

/// Follows `next` in the caller's memory until the key of a node matches, and returns the address of the node (8 bytes, the lowest
/// first) and its value.
///
/// Errors: [`NotFound`](Status::NotFound) at the end of the list, [`OffloadFailed`](Status::OffloadFailed) if `depth` nodes did not match
/// (a circle, perhaps), and those of an access.
#[derive(Clone, Copy, Debug, Default)]
pub struct PointerChase;

impl Offload for PointerChase {
    fn call(&mut self, call: &Call<'_>, view: &mut dyn View, results: &mut Vec<u8>) -> Result<Step, Status> {
        let chase = Chase::parse(call.arguments).map_err(|_: ParseError| Status::BadLength)?;
        let mut word = |at: u64, offset: u16| {
            let mut bytes = [0; 8];
            let at = at.checked_add(offset.into()).ok_or(Status::NoSuchAddress)?;
            view.read(call.caller, at, &mut bytes).map(|()| u64::from_le_bytes(bytes))
        };
        let [mut node, seen] = match call.progress.get() {
            [_, 0] => [chase.address, 0],
            progress => progress,
        };
        let depth = u64::from(chase.depth);
        for nth in seen..depth {
            if nth >= seen + SLICE {
                call.progress.set([node, nth]);
                return Ok(Step::Later);
            }
            if node == 0 {
                return Err(Status::NotFound);
            }
            if word(node, chase.key_offset)? == chase.key {
                let value = match chase.value_is_pointer {
                    0 => node.checked_add(chase.value_offset.into()).ok_or(Status::NoSuchAddress)?,
                    _ => word(node, chase.value_offset)?,
                };
                results.extend_from_slice(&node.to_le_bytes());
                let start = results.len();
                results.resize(start + usize::from(chase.value_bytes), 0);
                return view.read(call.caller, value, &mut results[start..]).map(|()| Step::Ended);
            }
            node = word(node, chase.next_offset)?;
        }
        Err(if node == 0 { Status::NotFound } else { Status::OffloadFailed })
    }
}
