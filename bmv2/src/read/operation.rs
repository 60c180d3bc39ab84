//! Operations of expressions, with their operands.

use super::{Cursor, Result};
use num_bigint::BigInt;
use p4rack_p4::ir::BinOp;

pub(super) fn comparison(op: &str) -> Option<BinOp> {
    Some(match op {
        "==" => BinOp::Eq,
        "!=" => BinOp::Ne,
        "<" => BinOp::Lt,
        "<=" => BinOp::Le,
        ">" => BinOp::Gt,
        ">=" => BinOp::Ge,
        _ => return None,
    })
}

/// An operation with its operands.
pub(super) struct Operation<'j> {
    pub node: Cursor<'j>,
    pub op: &'j str,
}

impl<'j> Operation<'j> {
    pub fn right(&self) -> Result<Cursor<'j>> {
        self.node.get("right")
    }

    pub fn left(&self) -> Result<Cursor<'j>> {
        self.node.get("left")
    }

    /// An operand that is a constant.
    pub fn known(&self, side: &str) -> Option<BigInt> {
        let node = bare(self.node.find(side)?).ok()?;
        (node.text_of("type").ok()? == "hexstr").then(|| node.get("value").ok()?.hex().ok())?
    }
}

/// Takes off the wrapping of an expression that is only another one.
pub(super) fn bare(node: Cursor<'_>) -> Result<Cursor<'_>> {
    let mut node = node;
    while node.text_of("type")? == "expression" {
        let value = node.get("value")?;
        if value.find("type").is_none() {
            break;
        }
        node = value;
    }
    Ok(node)
}
