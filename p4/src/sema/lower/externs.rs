//! Lowers calls of core.p4's externs and of externs that a program declares itself, and holds code that
//! the architectures share.

use super::storage::{Place, Val, scalars, zero};
use super::{Binding, Lower, Made, Object};
use crate::ast::{Direction, Span};
use crate::ir::{
    Digest, Expr, ExternCall, HeaderRef, Instance, InstanceId, InstanceKind, IntrinsicVar, LValue, Stmt,
    Task, Ty, VarId,
};
use crate::sema::tree::{Annos, EKind, FnDef, InstDecl, TCall, TExpr};
use crate::sema::types::{ExternTy, StructKind, Type};
use crate::sema::value::Value;
use num_traits::ToPrimitive;
use std::rc::Rc;

impl Lower<'_> {
    /// Emits a call, then copies its results.
    pub(crate) fn emit_extern(&mut self, call: ExternCall) {
        self.emit(Stmt::Extern { call, span: self.at });
        for (place, value) in std::mem::take(&mut self.copy_out) {
            self.assign(&place, value, Span::default());
        }
    }

    pub(crate) fn arg<'c>(&self, call: &'c TCall, index: usize) -> Option<&'c TExpr> {
        call.args.get(index).and_then(|a| a.as_ref())
    }

    pub(crate) fn scalar_arg(&mut self, call: &TCall, index: usize) -> (Expr, Ty) {
        match self.arg(call, index).map(|a| self.expr(a)) {
            Some(Val::Leaf(e, ty)) => (e, ty),
            _ => (zero(Ty::Bit(1)), Ty::Bit(1)),
        }
    }

    /// The scalars of an argument, in order.
    pub(crate) fn data_arg(&mut self, call: &TCall, index: usize) -> Vec<(Expr, Ty)> {
        let mut out = Vec::new();
        if let Some(arg) = self.arg(call, index) {
            let value = self.expr(arg);
            if matches!(value, Val::List(_)) {
                self.unsupported(arg.span, "a variable of type `list` here");
            }
            scalars(self, &value, &mut out);
        }
        out
    }

    /// A number or enum member that must be known at compile time.
    pub(crate) fn known_arg(&mut self, call: &TCall, index: usize, span: Span) -> Option<u64> {
        let arg = self.arg(call, index);
        match arg.and_then(|a| self.value(a)) {
            Some(Value::Int(i)) if i.to_u64().is_some() => i.to_u64(),
            Some(Value::Member(m)) => Some(u64::from(m)),
            _ => {
                let what = "an argument here that is not a constant of 64 bits";
                self.unsupported(arg.map_or(span, |a| a.span), what);
                None
            }
        }
    }

    pub(super) fn extern_function(&mut self, def: &FnDef, call: &TCall, span: Span) -> Val {
        self.prog.uses_externs |= self.role.task != Task::Parse;
        let name = def.name.as_str();
        let arch = self.arch;
        let known = arch.functions().iter().find(|known| known.name == name);
        let (allowed, place) = match (name, known) {
            // core.p4's externs.
            ("verify", _) if arch.verifies() => (self.role.task == Task::Parse, "a parser"),
            (_, Some(known)) => (known.callers.is_empty() || known.callers.contains(&self.role), known.place),
            _ => {
                let types = call.type_args.iter().map(|t| self.ty(t));
                let subst = def.type_params.iter().map(|v| v.id).zip(types);
                let ret = def.ret.subst(&subst.collect());
                return self.foreign(def.name.clone(), None, def, call, &ret, span);
            }
        };
        if !allowed {
            self.error(span, format!("`{name}` can only be called in {place}"));
            return Val::Opaque;
        }
        if known.is_some() {
            return arch.function(self, def, call, span).unwrap_or(Val::Opaque);
        }
        if call.args.len() == 2 {
            let (cond, _) = self.scalar_arg(call, 0);
            let (error, _) = self.scalar_arg(call, 1);
            self.emit(Stmt::Verify { cond, error });
        } else {
            self.unsupported(span, format!("extern function `{name}`"));
        }
        Val::Opaque
    }

    /// Number of the digest with this type.
    pub(crate) fn digest(&mut self, ty: &Type, span: Span) -> Option<u32> {
        let (type_name, flat) = self.digest_fields(ty, span)?;
        if let Some(at) = self.prog.digests.iter().position(|d| d.type_name == type_name && d.fields == flat)
        {
            return Some(at as u32);
        }
        let annos = ty.as_struct().map(|s| s.annos.clone()).unwrap_or_default();
        let default = if type_name.is_empty() {
            // As p4c numbers them: named ones don't count.
            format!("digest_{}", self.prog.digests.iter().filter(|d| d.type_name.is_empty()).count())
        } else {
            type_name.clone()
        };
        let named = self.named(0, &default, &annos);
        let data = self.data_ty(ty);
        self.prog.digests.push(Digest { named, type_name, fields: flat, data });
        Some(self.prog.digests.len() as u32 - 1)
    }

    /// A digest that is an object of its own.
    pub(crate) fn digest_object(&mut self, inst: &InstDecl, ty: &Type) -> Option<Made> {
        let (type_name, fields) = self.digest_fields(ty, inst.span)?;
        let named = self.named(self.frame, &inst.name, &inst.annos);
        self.shown.push(("extern object", named.name.clone(), inst.span));
        let data = self.data_ty(ty);
        self.prog.digests.push(Digest { named, type_name, fields, data });
        Some(Made::Digest(self.prog.digests.len() as u32 - 1))
    }

    /// Name of a digest's type, and its scalars.
    fn digest_fields(&mut self, ty: &Type, span: Span) -> Option<(String, Vec<(String, Ty)>)> {
        let (type_name, fields): (String, Vec<(String, Type)>) = match ty {
            Type::Struct(s) => {
                (s.name.clone(), s.fields.iter().map(|f| (f.name.clone(), f.ty.clone())).collect())
            }
            Type::Tuple(items) => {
                (String::new(), items.iter().enumerate().map(|(i, t)| (format!("f{i}"), t.clone())).collect())
            }
            // One value. A type without a name gives the digest none.
            Type::New(new) => (new.name.clone(), vec![(String::new(), ty.clone())]),
            Type::Enum(of) => (of.name.clone(), vec![(String::new(), ty.clone())]),
            other if other.scalar().is_some() => (String::new(), vec![(String::new(), other.clone())]),
            other => {
                self.unsupported(span, format!("a digest of `{other}`"));
                return None;
            }
        };
        let mut flat = Vec::new();
        for (name, ty) in fields {
            flatten(&name, &ty, &mut flat);
        }
        Some((type_name, flat))
    }

    /// Adds a field list under the first free number, from `first` on.
    pub(crate) fn add_field_list(&mut self, first: u32, vars: Vec<VarId>) -> u32 {
        let lists = &mut self.prog.field_lists;
        let id = first + lists.iter().filter(|(id, _)| *id >= first).count() as u32;
        lists.push((id, vars));
        id
    }

    /// The object that an argument of a constructor is, in the current frame.
    pub(crate) fn object_arg(&self, inst: &InstDecl, index: usize) -> Option<Rc<Object>> {
        match inst.args.get(index)?.as_ref()?.kind {
            EKind::Local(id) => match self.find(id) {
                Some(Binding::Extern(object)) => Some(object.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Runs where an object is declared.
    pub(crate) fn at_object<T>(&mut self, object: &Object, run: impl FnOnce(&mut Self) -> T) -> T {
        self.within(object.frame, run)
    }

    /// Name and kind of an object.
    pub(crate) fn object(&self, instance: InstanceId) -> Option<&Instance> {
        self.prog.instances.get(instance.0 as usize)
    }

    /// Intrinsic fields, in the order of their structs.
    pub(crate) fn intrinsics(&self) -> &[IntrinsicVar] {
        &self.prog.intrinsics
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
            self.unsupported(span, "a method of an object created in place");
            return Val::Opaque;
        };
        if let Some(Binding::Extern(object)) = self.find(*id).cloned() {
            let arch = self.arch;
            return arch.method(self, &object, def, call, span).unwrap_or(Val::Opaque);
        }
        let name = self.checked.locals.get(id.0 as usize).map_or("", |l| l.name.as_str());
        let object = self.full_name(self.block_frame(), name, &Annos::default());
        self.foreign_method(ext, object, def, call, span)
    }

    /// A call of a method of an object that is called by its name.
    pub(crate) fn foreign_method(
        &mut self,
        ext: &ExternTy,
        object: String,
        def: &FnDef,
        call: &TCall,
        span: Span,
    ) -> Val {
        let outer = ext.def.type_params.iter().map(|v| v.id).zip(ext.args.iter().map(|t| self.ty(t)));
        let own = def.type_params.iter().map(|v| v.id).zip(call.type_args.iter().map(|t| self.ty(t)));
        let ret = def.ret.subst(&outer.chain(own).collect());
        self.foreign(format!("{}.{}", ext.def.name, def.name), Some(object), def, call, &ret, span)
    }

    /// A temporary for a whole element of a register of structs, which is split after the read.
    pub(crate) fn element_out(&mut self, instance: InstanceId, arg: &TExpr) -> Option<LValue> {
        let target = self.place(arg)?;
        self.element_into(instance, target)
    }

    /// Same for an element that is split to this place.
    pub(crate) fn element_into(&mut self, instance: InstanceId, target: Place) -> Option<LValue> {
        let (InstanceKind::Register { ty, .. } | InstanceKind::DirectRegister { ty, .. }) =
            self.prog.instances.get(instance.0 as usize)?.kind
        else {
            return None;
        };
        let name = self.temp_name("element");
        let whole = self.new_var(name, ty);
        let mut above = ty.width();
        let value = split(&self.read(&target), &Expr::Var(whole), ty, &mut above);
        self.copy_out.push((target, value));
        Some(LValue::Var(whole))
    }

    /// Lowers a call of an extern that the program declares.
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
        self.emit_extern(ExternCall::Foreign { name, object, args, results, span });
        value
    }

    /// Storage for a result of a foreign extern; records its scalars.
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

    pub(super) fn lookahead(&mut self, ty: &Type, total: u32, offset: &mut u32, span: Span) -> Option<Val> {
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
            Val::HeaderLit(None, _) | Val::InvalidUnion | Val::Leaf(..) | Val::List(_) | Val::Opaque => {}
        }
    }
}

/// Scalars concatenated to one number, the first one highest.
pub(crate) fn concatenated(parts: Vec<(Expr, Ty)>) -> Option<Expr> {
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

/// Inverse of [`concatenated`]: splits a number into a value shaped like `shape`. `above` is one past the
/// highest bit left.
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
