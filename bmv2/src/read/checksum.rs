//! Checksums, as the controls that verify and compute them, and the deparser.

use super::expr::constant;
use super::{NOWHERE, Reader, Result};
use p4rack_p4::ir::{Expr, ExternCall, HeaderRef, LValue, Stmt, Ty};

impl Reader<'_> {
    /// Statements that verify checksums, and statements that compute them.
    pub(super) fn checksums(&mut self) -> Result<[Vec<Stmt>; 2]> {
        let (mut verify, mut update) = (Vec::new(), Vec::new());
        for node in self.root.list_of("checksums")? {
            let name = node.get("calculation")?;
            let Some(calculation) = self.calculations.get(name.text()?).cloned() else {
                return name.wrong(format!("there is no calculation `{}`", name.text()?));
            };
            let var = self.field_var(&node.get("target")?)?;
            let ty = self.program.vars[var.0 as usize].ty;
            let cond = match node.find("if_cond") {
                Some(cond) => self.truth(&cond)?,
                None => constant(1u8, Ty::Bool),
            };
            self.count(&name, 2 * calculation.data.len())?;
            let wants = |key: &str| node.find(key).map_or(Ok(true), |flag| flag.flag());
            let extern_call = |call| Stmt::Extern { call, span: NOWHERE };
            if wants("verify")? {
                verify.push(extern_call(ExternCall::VerifyChecksum {
                    cond: cond.clone(),
                    data: calculation.data.clone(),
                    checksum: Expr::Var(var),
                    checksum_ty: ty,
                    algorithm: calculation.algorithm,
                    payload: calculation.payload,
                }));
            }
            if wants("update")? {
                update.push(extern_call(ExternCall::UpdateChecksum {
                    cond,
                    data: calculation.data,
                    dst: LValue::Var(var),
                    dst_ty: ty,
                    algorithm: calculation.algorithm,
                    payload: calculation.payload,
                }));
            }
        }
        Ok([verify, update])
    }

    /// Statements of the deparser.
    pub(super) fn deparser(&mut self) -> Result<Vec<Stmt>> {
        let deparsers = self.root.get("deparsers")?.list()?;
        let [deparser] = &deparsers[..] else {
            return self.root.get("deparsers")?.wrong("expected one deparser, as simple_switch has");
        };
        let mut out = Vec::new();
        for primitive in deparser.list_of("primitives")? {
            self.primitive(&primitive, &mut out)?;
        }
        for header in deparser.get("order")?.list()? {
            out.push(Stmt::Emit(HeaderRef::Fixed(self.header_named(&header)?)));
        }
        Ok(out)
    }
}
