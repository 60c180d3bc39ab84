//! Calls of core and v1model externs.

use super::instance::algorithm;
use super::storage::{Place, Val, scalars, zero};
use super::{Binding, Lower, Stage};
use crate::ast::{Direction, Span};
use crate::ir::{
    Digest, Expr, ExternCall, HashAlgorithm, HeaderRef, InstanceId, InstanceKind, LValue, Stmt, Ty, VarId,
};
use crate::sema::tree::{Annos, EKind, FnDef, TCall, TExpr};
use crate::sema::types::{StructKind, Type};
use crate::sema::value::Value;
use num_traits::ToPrimitive;

/// Field lists that come from the data of old-style calls start here: programs cannot write such an index.
const ANONYMOUS_LIST: u32 = 1 << 16;

/// What v1model and core declare, and this compiler knows.
const V1MODEL_FUNCTIONS: &[&str] = &[
    "verify",
    "mark_to_drop",
    "random",
    "hash",
    "digest",
    "clone",
    "clone3",
    "clone_preserving_field_list",
    "resubmit",
    "resubmit_preserving_field_list",
    "recirculate",
    "recirculate_preserving_field_list",
    "truncate",
    "verify_checksum",
    "verify_checksum_with_payload",
    "update_checksum",
    "update_checksum_with_payload",
    "log_msg",
    "assert",
    "assume",
];

impl Lower<'_> {
    fn call_extern(&mut self, call: ExternCall) {
        self.emit(Stmt::Extern(call));
        for (place, value) in std::mem::take(&mut self.copy_out) {
            self.assign(&place, value, Span::default());
        }
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
        self.prog.uses_externs |= self.stage != Stage::Parser;
        if !V1MODEL_FUNCTIONS.contains(&def.name.as_str()) {
            let subst = def.type_params.iter().map(|v| v.id).zip(call.type_args.iter().map(|t| self.ty(t)));
            let ret = def.ret.subst(&subst.collect());
            return self.foreign(def.name.clone(), None, def, call, &ret, span);
        }
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
                match given {
                    Some(copy) if !self.is_standard_metadata(&copy) => self.mark_copy(copy, span),
                    _ => self.call_extern(ExternCall::MarkToDrop),
                }
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

    /// `mark_to_drop` of a copy takes effect once that is copied back.
    fn mark_copy(&mut self, copy: Place, span: Span) {
        let Place::Tuple(fields) = copy else { return };
        let names = self.prog.standard_metadata.clone();
        for (field, (name, _)) in fields.iter().zip(&names) {
            let Place::Leaf(_, ty) = field else { continue };
            let value = match name.as_str() {
                "egress_spec" => Expr::DropPort,
                "mcast_grp" => zero(*ty),
                _ => continue,
            };
            self.assign(field, Val::Leaf(value, *ty), span);
        }
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
        if let Some(Binding::Extern(instance)) = self.find(*id).cloned() {
            self.object_method(&ext.def.name, instance, def, call, span);
            return Val::Opaque;
        }
        let name = self.checked.locals.get(id.0 as usize).map_or("", |l| l.name.as_str());
        let object = self.full_name(self.block_frame(), name, &Annos::default());
        let outer = ext.def.type_params.iter().map(|v| v.id).zip(ext.args.iter().map(|t| self.ty(t)));
        let own = def.type_params.iter().map(|v| v.id).zip(call.type_args.iter().map(|t| self.ty(t)));
        let ret = def.ret.subst(&outer.chain(own).collect());
        self.foreign(format!("{}.{}", ext.def.name, def.name), Some(object), def, call, &ret, span)
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
                let dst = if ty.scalar().is_some() {
                    self.out_leaf(self.arg(call, 0), &ty, span)?.0
                } else {
                    self.element_out(instance, self.arg(call, 0)?)?
                };
                ExternCall::RegisterRead { instance, index, dst }
            }
            ("register", "write") => {
                let (Some(index), Some(value)) = (self.arg(call, 0), self.arg(call, 1)) else { return None };
                let values = self.exprs(&[index, value]);
                let [Val::Leaf(index, _), value] = &values[..] else { return None };
                let mut parts = Vec::new();
                scalars(self, value, &mut parts);
                ExternCall::RegisterWrite { instance, index: index.clone(), value: concatenated(parts)? }
            }
            (ext, method) => {
                self.unsupported(span, format!("method `{method}` of extern `{ext}`"));
                return None;
            }
        };
        self.call_extern(done);
        Some(())
    }

    /// A temporary for a whole element of a register of structs, taken apart after the read.
    fn element_out(&mut self, instance: InstanceId, arg: &TExpr) -> Option<LValue> {
        let InstanceKind::Register { ty, .. } = self.prog.instances.get(instance.0 as usize)?.kind else {
            return None;
        };
        let target = self.place(arg)?;
        let name = self.temp_name("element");
        let whole = self.new_var(name, ty);
        let mut above = ty.width();
        let value = split(&self.read(&target), &Expr::Var(whole), ty, &mut above);
        self.copy_out.push((target, value));
        Some(LValue::Var(whole))
    }

    /// A call of an extern that the program declares.
    fn foreign(
        &mut self,
        name: String,
        object: Option<String>,
        def: &FnDef,
        call: &TCall,
        ret: &Type,
        span: Span,
    ) -> Val {
        let (mut args, mut results) = (Vec::new(), Vec::new());
        for (param, arg) in def.params.iter().zip(&call.args) {
            let Some(arg) = arg else { continue };
            if param.dir != Direction::Out {
                let value = self.expr(arg);
                scalars(self, &value, &mut args);
            }
            if matches!(param.dir, Direction::Out | Direction::InOut)
                && let Some(target) = self.place(arg)
            {
                let ty = self.ty(&arg.ty);
                let value = self.result(&ty, &mut results);
                self.copy_out.push((target, value));
            }
        }
        let ret = self.ty(ret);
        let value = self.result(&ret, &mut results);
        self.call_extern(ExternCall::Foreign { name, object, args, results, span });
        value
    }

    /// Storage for something that a foreign extern gives; its scalars are noted.
    fn result(&mut self, ty: &Type, results: &mut Vec<(LValue, Ty)>) -> Val {
        let name = self.temp_name("result");
        let place = self.alloc(ty, &name);
        let value = self.read(&place);
        let mut parts = Vec::new();
        scalars(self, &value, &mut parts);
        for (part, ty) in parts {
            if let Expr::Var(var) = part {
                results.push((LValue::Var(var), ty));
            }
        }
        value
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
            Val::Unions(stacks, ty) => {
                self.unions(&stacks, &ty).into_iter().for_each(|u| self.emit_value(u, span));
            }
            Val::Stack(s, _) => {
                for h in self.prog.stacks[s.0 as usize].elements.clone() {
                    self.emit(Stmt::Emit(HeaderRef::Fixed(h)));
                }
            }
            Val::Union(members, _) => {
                members.into_iter().for_each(|h| self.emit(Stmt::Emit(h)));
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

/// Scalars as one number, the first one highest.
fn concatenated(parts: Vec<(Expr, Ty)>) -> Option<Expr> {
    let bits = |(expr, ty): (Expr, Ty)| match ty {
        Ty::Bit(_) => (expr, ty),
        other => {
            let to = Ty::Bit(other.width());
            (Expr::Cast { expr: Box::new(expr), from: other, to }, to)
        }
    };
    if let [(only, _)] = &parts[..] {
        return Some(only.clone());
    }
    let all = parts.into_iter().map(bits).reduce(|(left, left_ty), (right, right_ty)| {
        let ty = Ty::Bit(left_ty.width() + right_ty.width());
        (Expr::Concat { left: Box::new(left), left_ty, right: Box::new(right), right_ty }, ty)
    });
    all.map(|(expr, _)| expr)
}

/// The reverse: a value shaped like another out of one number; `above` is the bit above what is left.
fn split(shape: &Val, whole: &Expr, from: Ty, above: &mut u32) -> Val {
    match shape {
        Val::Leaf(_, ty) if *ty == from => Val::Leaf(whole.clone(), *ty),
        Val::Leaf(_, ty) if ty.width() == 0 => Val::Leaf(super::storage::zero(*ty), *ty),
        Val::Leaf(_, ty) => {
            let (hi, lo) = (above.saturating_sub(1), above.saturating_sub(ty.width()));
            *above = lo;
            let bits = Ty::Bit(ty.width());
            let expr = Box::new(Expr::Slice { expr: Box::new(whole.clone()), from, hi, lo });
            Val::Leaf(if *ty == bits { *expr } else { Expr::Cast { expr, from: bits, to: *ty } }, *ty)
        }
        Val::Tuple(parts) => Val::Tuple(parts.iter().map(|p| split(p, whole, from, above)).collect()),
        Val::Elements(parts) => Val::Elements(parts.iter().map(|p| split(p, whole, from, above)).collect()),
        _ => Val::Opaque,
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
