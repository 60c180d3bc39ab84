//! The controls that verify and compute checksums, and the deparser: in BMv2 they are lists.

use super::{Result, Writer, visit};
use p4rack_p4::ir::{BinOp, Expr, ExternCall, HashAlgorithm, HeaderRef, LValue, Role, Stmt, Task, Ty};
use serde_json::{Value, json};

/// A checksum that is verified or computed.
struct Checksum<'s> {
    cond: Expr,
    data: &'s [(Expr, Ty)],
    target: Expr,
    algorithm: HashAlgorithm,
    payload: bool,
    updates: bool,
}

impl Writer {
    /// All checksums.
    pub(super) fn checksums(&mut self) -> Result<Vec<Value>> {
        let blocks = std::mem::take(&mut self.program.blocks);
        let mut out = Vec::new();
        for role in [Role::ingress(Task::Verify), Role::egress(Task::Compute)] {
            let stmts = visit::block(&blocks, role).map_or(&[][..], |block| block.stmts());
            self.checksum_stmts(stmts, None, &mut out)?;
        }
        self.program.blocks = blocks;
        Ok(out)
    }

    fn checksum_stmts(&mut self, stmts: &[Stmt], under: Option<&Expr>, out: &mut Vec<Value>) -> Result<()> {
        for stmt in stmts {
            match stmt {
                Stmt::Scope(body) => self.checksum_stmts(body, under, out)?,
                Stmt::If { cond, then, otherwise, span } => {
                    self.at = *span;
                    let both = and(under, cond.clone());
                    self.checksum_stmts(then, Some(&both), out)?;
                    let neither = and(under, Writer::not(cond));
                    self.checksum_stmts(otherwise, Some(&neither), out)?;
                }
                Stmt::Extern { call, span } => {
                    self.at = *span;
                    let checksum = match call {
                        ExternCall::VerifyChecksum { cond, data, checksum, algorithm, payload, .. } => {
                            Checksum {
                                cond: and(under, cond.clone()),
                                data,
                                target: checksum.clone(),
                                algorithm: *algorithm,
                                payload: *payload,
                                updates: false,
                            }
                        }
                        ExternCall::UpdateChecksum {
                            cond,
                            data,
                            dst: LValue::Var(dst),
                            algorithm,
                            payload,
                            ..
                        } => Checksum {
                            cond: and(under, cond.clone()),
                            data,
                            target: Expr::Var(*dst),
                            algorithm: *algorithm,
                            payload: *payload,
                            updates: true,
                        },
                        _ => return self.refuse("such call in a control for checksums"),
                    };
                    let number = out.len();
                    out.push(self.checksum(&checksum, number)?);
                }
                Stmt::Assign { span, .. } => {
                    self.at = *span;
                    return self.refuse("assignment in a control for checksums");
                }
                _ => return self.refuse("statement but calls and `if` in a control for checksums"),
            }
        }
        Ok(())
    }

    fn checksum(&mut self, checksum: &Checksum<'_>, number: usize) -> Result<Value> {
        let Expr::Var(target) = &checksum.target else {
            return self.refuse("checksum that is no field");
        };
        let calculation = self.calculation(checksum.algorithm, checksum.data, checksum.payload)?;
        let target = self.param(&Expr::Var(*target))?;
        let cond = match &checksum.cond {
            Expr::Const { value, .. } if *value == num_bigint::BigUint::from(1u8) => Value::Null,
            cond => self.truth(cond)?,
        };
        Ok(json!({
            "name": format!("cksum_{number}"),
            "id": number,
            "target": target["value"],
            "type": "generic",
            "calculation": calculation,
            "verify": !checksum.updates,
            "update": checksum.updates,
            "if_cond": cond,
        }))
    }

    /// The deparser.
    pub(super) fn deparser(&mut self) -> Result<Value> {
        let blocks = std::mem::take(&mut self.program.blocks);
        let stmts = visit::block(&blocks, Role::egress(Task::Deparse)).map_or(&[][..], |block| block.stmts());
        let (mut order, mut primitives) = (Vec::new(), Vec::new());
        self.emits(stmts, &mut order, &mut primitives)?;
        self.program.blocks = blocks;
        Ok(json!({ "name": "deparser", "id": 0, "order": order, "primitives": primitives }))
    }

    fn emits(&mut self, stmts: &[Stmt], order: &mut Vec<Value>, primitives: &mut Vec<Value>) -> Result<()> {
        for stmt in stmts {
            match stmt {
                Stmt::Scope(body) => self.emits(body, order, primitives)?,
                Stmt::Emit(HeaderRef::Fixed(header)) => order.push(self.places.header(*header)),
                Stmt::Emit(_) => return self.refuse("`emit` of a header that is chosen at run time"),
                Stmt::If { span, .. } => {
                    self.at = *span;
                    return self.refuse("condition in the deparser");
                }
                // Statements run before the first header is emitted.
                other if order.is_empty() => self.statement(other, primitives)?,
                _ => return self.refuse("statement behind an `emit`"),
            }
        }
        Ok(())
    }
}

fn and(under: Option<&Expr>, cond: Expr) -> Expr {
    let is_true = matches!(&cond, Expr::Const { value, .. } if *value == num_bigint::BigUint::from(1u8));
    match under {
        None => cond,
        Some(under) if is_true => under.clone(),
        Some(under) => Expr::Binary {
            op: BinOp::And,
            left: Box::new(under.clone()),
            right: Box::new(cond),
            ty: Ty::Bool,
        },
    }
}
