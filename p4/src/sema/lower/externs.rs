//! Calls of core and v1model externs.

use super::instance::algorithm;
use super::storage::{Place, Val, scalars, zero};
use super::{Binding, Lower, Stage};
use crate::ast::Span;
use crate::ir::{Digest, Expr, ExternCall, HashAlgorithm, HeaderRef, InstanceId, LValue, Stmt, Ty, VarId};
use crate::sema::tree::{EKind, FnDef, TCall, TExpr};
use crate::sema::types::{StructKind, Type};
use crate::sema::value::Value;
use num_traits::ToPrimitive;

/// Field lists that come from the data of old-style calls start here: programs cannot write such an index.
const ANONYMOUS_LIST: u32 = 1 << 16;

impl Lower<'_> {
    fn call_extern(&mut self, call: ExternCall) {
        self.emit(Stmt::Extern(call));
    }

    fn arg<'c>(&self, call: &'c TCall, index: usize) -> Option<&'c TExpr> {
        call.args.get(index).and_then(|a| a.as_ref())
    }

    fn scalar_arg(&mut self, call: &TCall, index: usize) -> (Expr, Ty) {
        match self.arg(call, index).map(|a| self.expr(a)) {
            Some(Val::Leaf(e, ty)) => (e, ty),
            _ => (zero(Ty::Bit(1)), Ty::Bit(1)),
        }
    }

    fn data_arg(&mut self, call: &TCall, index: usize) -> Vec<(Expr, Ty)> {
        let mut out = Vec::new();
        if let Some(arg) = self.arg(call, index) {
            let value = self.expr(arg);
            scalars(self, &value, &mut out);
        }
        out
    }

    /// A number or enum member that must be known.
    fn known_arg(&mut self, call: &TCall, index: usize, span: Span) -> Option<u64> {
        let arg = self.arg(call, index);
        match arg.and_then(|a| self.value(a)) {
            Some(Value::Int(i)) => i.to_u64(),
            Some(Value::Member(m)) => Some(u64::from(m)),
            _ => {
                self.unsupported(arg.map_or(span, |a| a.span), "an argument here that is not a constant");
                None
            }
        }
    }

    fn algorithm_arg(&mut self, call: &TCall, index: usize, span: Span) -> Option<HashAlgorithm> {
        let member = self.known_arg(call, index, span)?;
        algorithm(member)
    }

    pub(super) fn extern_function(&mut self, def: &FnDef, call: &TCall, span: Span) -> Val {
        self.try_function(def, call, span);
        Val::Opaque
    }

    fn try_function(&mut self, def: &FnDef, call: &TCall, span: Span) -> Option<()> {
        let name = def.name.as_str();
        let allowed = match name {
            "verify" => self.stage == Stage::Parser,
            "mark_to_drop" | "clone" | "clone3" | "clone_preserving_field_list" | "digest" | "truncate" => {
                matches!(self.stage, Stage::Ingress | Stage::Egress)
            }
            "resubmit" | "resubmit_preserving_field_list" => self.stage == Stage::Ingress,
            "recirculate" | "recirculate_preserving_field_list" => self.stage == Stage::Egress,
            "verify_checksum" | "verify_checksum_with_payload" => self.stage == Stage::Verify,
            "update_checksum" | "update_checksum_with_payload" => self.stage == Stage::Compute,
            _ => true,
        };
        if !allowed {
            let wanted = match name {
                "verify" => "a parser",
                "resubmit" | "resubmit_preserving_field_list" => "ingress",
                "recirculate" | "recirculate_preserving_field_list" => "egress",
                "verify_checksum" | "verify_checksum_with_payload" => "the checksum verification",
                "update_checksum" | "update_checksum_with_payload" => "the checksum computation",
                _ => "ingress and egress",
            };
            self.error(span, format!("`{name}` can only be called in {wanted}"));
            return None;
        }
        match (name, call.args.len()) {
            ("verify", 2) => {
                let (cond, _) = self.scalar_arg(call, 0);
                let (error, _) = self.scalar_arg(call, 1);
                self.emit(Stmt::Verify { cond, error });
            }
            ("mark_to_drop", _) => {
                let given = self.arg(call, 0).and_then(|a| self.place(a));
                if given.is_some_and(|place| !self.is_standard_metadata(&place)) {
                    self.unsupported(span, "`mark_to_drop` on a copy of the standard metadata");
                    return None;
                }
                self.call_extern(ExternCall::MarkToDrop);
            }
            ("random", 3) => {
                let ty = call.type_args.first().map(|t| self.ty(t))?;
                let (lo, _) = self.scalar_arg(call, 1);
                let (hi, _) = self.scalar_arg(call, 2);
                let (dst, dst_ty) = self.out_leaf(self.arg(call, 0), &ty, span)?;
                self.call_extern(ExternCall::Random { dst, dst_ty, lo, hi });
            }
            ("hash", 5) => {
                let algorithm = self.algorithm_arg(call, 1, span)?;
                let (base, _) = self.scalar_arg(call, 2);
                let data = self.data_arg(call, 3);
                let (max, max_ty) = self.scalar_arg(call, 4);
                let ty = call.type_args.first().map(|t| self.ty(t))?;
                let (dst, dst_ty) = self.out_leaf(self.arg(call, 0), &ty, span)?;
                self.call_extern(ExternCall::Hash { algorithm, dst, dst_ty, base, data, max, max_ty });
            }
            ("digest", 2) => {
                let ty = call.type_args.first().map(|t| self.ty(t))?;
                let (receiver, _) = self.scalar_arg(call, 0);
                let data = self.data_arg(call, 1);
                let digest = self.digest(&ty, span)?;
                self.call_extern(ExternCall::Digest { receiver, digest, data });
            }
            ("clone", 2) | ("clone_preserving_field_list" | "clone3", 3) => {
                let egress = self.known_arg(call, 0, span)? == 1;
                let (session, _) = self.scalar_arg(call, 1);
                let field_list = match name {
                    "clone" => None,
                    "clone3" => Some(self.anonymous_list(call, 2, span)?),
                    _ => Some(self.known_arg(call, 2, span)?.to_u32()?),
                };
                self.call_extern(ExternCall::Clone { egress, session, field_list });
            }
            ("resubmit_preserving_field_list", 1) => {
                let field_list = self.known_arg(call, 0, span)?.to_u32()?;
                self.call_extern(ExternCall::Resubmit { field_list });
            }
            ("resubmit", 1) => {
                let field_list = self.anonymous_list(call, 0, span)?;
                self.call_extern(ExternCall::Resubmit { field_list });
            }
            ("recirculate_preserving_field_list", 1) => {
                let field_list = self.known_arg(call, 0, span)?.to_u32()?;
                self.call_extern(ExternCall::Recirculate { field_list });
            }
            ("recirculate", 1) => {
                let field_list = self.anonymous_list(call, 0, span)?;
                self.call_extern(ExternCall::Recirculate { field_list });
            }
            ("truncate", 1) => {
                let (bytes, _) = self.scalar_arg(call, 0);
                self.call_extern(ExternCall::Truncate { bytes });
            }
            ("verify_checksum" | "verify_checksum_with_payload", 4) => {
                let (cond, _) = self.scalar_arg(call, 0);
                let data = self.data_arg(call, 1);
                let (checksum, checksum_ty) = self.scalar_arg(call, 2);
                let algorithm = self.algorithm_arg(call, 3, span)?;
                let payload = name.ends_with("payload");
                self.call_extern(ExternCall::VerifyChecksum {
                    cond,
                    data,
                    checksum,
                    checksum_ty,
                    algorithm,
                    payload,
                });
            }
            ("update_checksum" | "update_checksum_with_payload", 4) => {
                let (cond, _) = self.scalar_arg(call, 0);
                let data = self.data_arg(call, 1);
                let algorithm = self.algorithm_arg(call, 3, span)?;
                let ty = self.arg(call, 2).map(|a| self.ty(&a.ty))?;
                let (dst, dst_ty) = self.out_leaf(self.arg(call, 2), &ty, span)?;
                let payload = name.ends_with("payload");
                self.call_extern(ExternCall::UpdateChecksum { cond, data, dst, dst_ty, algorithm, payload });
            }
            ("log_msg", 1 | 2) => {
                let format = match self.arg(call, 0).and_then(|a| self.value(a)) {
                    Some(Value::Str(s)) => s,
                    _ => String::new(),
                };
                let args = self.data_arg(call, 1);
                self.call_extern(ExternCall::LogMsg { format, args });
            }
            ("assert" | "assume", 1) => {
                let (cond, _) = self.scalar_arg(call, 0);
                self.call_extern(ExternCall::Assert { cond, assume: name == "assume", span });
            }
            _ => self.unsupported(span, format!("extern function `{name}`")),
        }
        Some(())
    }

    /// Whether it is the packet's own rather than a copy.
    fn is_standard_metadata(&self, place: &Place) -> bool {
        let Place::Tuple(parts) = place else { return false };
        parts
            .iter()
            .zip(&self.prog.standard_metadata)
            .all(|(part, (_, var))| matches!(part, Place::Leaf(LValue::Var(v), _) if v == var))
    }

    /// Number of the digest of a type.
    fn digest(&mut self, ty: &Type, span: Span) -> Option<u32> {
        let (type_name, fields): (String, Vec<(String, Type)>) = match ty {
            Type::Struct(s) => {
                (s.name.clone(), s.fields.iter().map(|f| (f.name.clone(), f.ty.clone())).collect())
            }
            Type::Tuple(items) => {
                (String::new(), items.iter().enumerate().map(|(i, t)| (format!("f{i}"), t.clone())).collect())
            }
            other => {
                self.unsupported(span, format!("a digest of `{other}`"));
                return None;
            }
        };
        let mut flat = Vec::new();
        for (name, ty) in fields {
            flatten(&name, &ty, &mut flat);
        }
        if let Some(at) = self.prog.digests.iter().position(|d| d.type_name == type_name && d.fields == flat)
        {
            return Some(at as u32);
        }
        let annos = ty.as_struct().map(|s| s.annos.clone()).unwrap_or_default();
        let default = if type_name.is_empty() {
            format!("digest_{}", self.prog.digests.len())
        } else {
            type_name.clone()
        };
        let named = self.named(0, &default, &annos);
        let data = self.data_ty(ty);
        self.prog.digests.push(Digest { named, type_name, fields: flat, data });
        Some(self.prog.digests.len() as u32 - 1)
    }

    /// A field list of the variables named as data.
    fn anonymous_list(&mut self, call: &TCall, index: usize, span: Span) -> Option<u32> {
        let data = self.data_arg(call, index);
        let mut vars: Vec<VarId> = Vec::new();
        for (e, _) in data {
            match e {
                Expr::Var(v) => vars.push(v),
                Expr::Const { .. } => {}
                _ => {
                    self.unsupported(span, "data to preserve that is not a list of fields");
                    return None;
                }
            }
        }
        let id = ANONYMOUS_LIST + self.anonymous_lists;
        self.anonymous_lists += 1;
        self.prog.field_lists.push((id, vars));
        Some(id)
    }

    pub(super) fn extern_method(&mut self, object: &TExpr, def: &FnDef, call: &TCall, span: Span) -> Val {
        let Type::Extern(ext) = &object.ty else { return Val::Opaque };
        match (ext.def.name.as_str(), def.name.as_str()) {
            ("packet_in", _) => return self.packet_in(def, call, span).unwrap_or(Val::Opaque),
            ("packet_out", "emit") => {
                if let Some(arg) = self.arg(call, 0) {
                    let value = self.expr(arg);
                    self.emit_value(value, span);
                }
                return Val::Opaque;
            }
            _ => {}
        }
        let EKind::Local(id) = &object.kind else {
            self.unsupported(span, "a method of an object made in place");
            return Val::Opaque;
        };
        let Some(Binding::Extern(instance)) = self.find(*id).cloned() else {
            self.unsupported(span, format!("method `{}` of extern `{}`", def.name, ext.def.name));
            return Val::Opaque;
        };
        self.object_method(&ext.def.name, instance, def, call, span);
        Val::Opaque
    }

    fn object_method(
        &mut self,
        ext: &str,
        instance: InstanceId,
        def: &FnDef,
        call: &TCall,
        span: Span,
    ) -> Option<()> {
        let done = match (ext, def.name.as_str()) {
            ("counter", "count") => {
                let (index, _) = self.scalar_arg(call, 0);
                ExternCall::CounterCount { instance, index }
            }
            ("direct_counter", "count") => ExternCall::DirectCount { instance },
            ("meter", "execute_meter") => {
                let (index, _) = self.scalar_arg(call, 0);
                let ty = call.type_args.first().map(|t| self.ty(t))?;
                let (dst, _) = self.out_leaf(self.arg(call, 1), &ty, span)?;
                ExternCall::MeterExecute { instance, index, dst }
            }
            ("direct_meter", "read") => {
                let ty = self.arg(call, 0).map_or(Type::Bit(2), |a| self.ty(&a.ty));
                let (dst, _) = self.out_leaf(self.arg(call, 0), &ty, span)?;
                ExternCall::DirectMeterRead { instance, dst }
            }
            ("register", "read") => {
                let (index, _) = self.scalar_arg(call, 1);
                let ty = self.arg(call, 0).map_or(Type::Bit(1), |a| self.ty(&a.ty));
                let (dst, _) = self.out_leaf(self.arg(call, 0), &ty, span)?;
                ExternCall::RegisterRead { instance, index, dst }
            }
            ("register", "write") => {
                let (Some(index), Some(value)) = (self.arg(call, 0), self.arg(call, 1)) else { return None };
                let values = self.exprs(&[index, value]);
                let [Val::Leaf(index, _), Val::Leaf(value, _)] = &values[..] else { return None };
                ExternCall::RegisterWrite { instance, index: index.clone(), value: value.clone() }
            }
            (ext, method) => {
                self.unsupported(span, format!("method `{method}` of extern `{ext}`"));
                return None;
            }
        };
        self.call_extern(done);
        Some(())
    }

    fn packet_in(&mut self, def: &FnDef, call: &TCall, span: Span) -> Option<Val> {
        match def.name.as_str() {
            "extract" => {
                let varbit_bits = match call.args.len() {
                    2 => Some(self.scalar_arg(call, 1).0),
                    _ => None,
                };
                let place = match self.arg(call, 0) {
                    Some(arg) => self.place(arg)?,
                    None => {
                        let ty = call.type_args.first().map(|t| self.ty(t))?;
                        let name = self.temp_name("skipped");
                        self.alloc(&ty, &name)
                    }
                };
                let Place::Header(header, _) = place else { return None };
                self.emit(Stmt::Extract { header, varbit_bits });
                None
            }
            "lookahead" => {
                let ty = call.type_args.first().map(|t| self.ty(t))?;
                let (total, _) = ty.bit_size()?;
                let total = u32::try_from(total).ok()?;
                let mut offset = 0;
                self.lookahead(&ty, total, &mut offset, span)
            }
            "advance" => {
                let (bits, _) = self.scalar_arg(call, 0);
                self.emit(Stmt::Advance(bits));
                None
            }
            "length" => Some(Val::Leaf(Expr::PacketLength, Ty::Bit(32))),
            _ => None,
        }
    }

    fn lookahead(&mut self, ty: &Type, total: u32, offset: &mut u32, span: Span) -> Option<Val> {
        if let Some(scalar) = ty.scalar() {
            let value = Expr::Lookahead { total, offset: *offset, ty: scalar };
            *offset += scalar.width();
            return Some(Val::Leaf(value, scalar));
        }
        let mut all = |l: &mut Self, types: Vec<Type>| -> Option<Vec<Val>> {
            types.iter().map(|t| l.lookahead(t, total, offset, span)).collect()
        };
        match ty {
            Type::Struct(s) if s.kind != StructKind::Union => {
                let parts = all(self, s.fields.iter().map(|f| f.ty.clone()).collect())?;
                Some(if s.kind == StructKind::Header {
                    Val::HeaderLit(Some(parts), s.clone())
                } else {
                    Val::Tuple(parts)
                })
            }
            Type::Tuple(items) => Some(Val::Tuple(all(self, items.to_vec())?)),
            Type::Stack(element, n) => {
                Some(Val::Elements(all(self, vec![(**element).clone(); *n as usize])?))
            }
            other => {
                self.unsupported(span, format!("lookahead of `{other}`"));
                None
            }
        }
    }

    fn emit_value(&mut self, value: Val, span: Span) {
        match value {
            Val::Header(h, _) => self.emit(Stmt::Emit(h)),
            Val::Tuple(parts) | Val::Elements(parts) => {
                parts.into_iter().for_each(|p| self.emit_value(p, span))
            }
            Val::Stack(s, _) => {
                for h in self.prog.stacks[s.0 as usize].elements.clone() {
                    self.emit(Stmt::Emit(HeaderRef::Fixed(h)));
                }
            }
            Val::Union(members, _) => {
                for h in members {
                    self.emit(Stmt::Emit(HeaderRef::Fixed(h)));
                }
            }
            Val::HeaderLit(Some(_), ref ty) => {
                let ty = Type::Struct(ty.clone());
                let name = self.temp_name("emitted");
                let place = self.alloc(&ty, &name);
                self.assign(&place, value, span);
                let stored = self.read(&place);
                self.emit_value(stored, span);
            }
            Val::HeaderLit(None, _) | Val::InvalidUnion | Val::Leaf(..) | Val::Opaque => {}
        }
    }
}

fn flatten(name: &str, ty: &Type, out: &mut Vec<(String, Ty)>) {
    match ty {
        Type::Struct(s) => {
            for field in &s.fields {
                flatten(&format!("{name}.{}", field.name), &field.ty, out);
            }
        }
        other => out.push((name.to_owned(), other.scalar().unwrap_or(Ty::Bit(0)))),
    }
}
