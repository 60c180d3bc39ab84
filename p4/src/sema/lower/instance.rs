//! Lowers instances: extern objects get a number; parsers and controls get a frame with their declarations.

use super::stmt::applications;
use super::storage::{Place, scalars};
use super::{Binding, BlockInst, Lower, Made, Object, type_name};
use crate::ast::{Direction, Span};
use crate::ir::{Instance, InstanceId, InstanceKind, MatchKind, Named, Ty, ValueSet, ValueSetId};
use crate::sema::tree::{BlockDef, Callee, EKind, InstDecl, Item, Param, TExpr, ValueSetDef};
use crate::sema::types::{BlockKind, BlockTy, ExternTy, StructKind, Subst, Type};
use crate::sema::value::Value;
use num_traits::ToPrimitive;
use std::rc::Rc;

/// Maximum bits of a register's element.
const MAX_ELEMENT_BITS: u32 = 2048;

impl Lower<'_> {
    /// Elaborates an instantiation in the current frame. `uses` holds the arguments of its applications,
    /// unless they are in another block.
    pub(super) fn instance(&mut self, inst: &Rc<InstDecl>, uses: &[&[Option<TExpr>]]) {
        if self.frames[self.frame].bound.contains_key(&inst.id) || self.exhausted() {
            return;
        }
        self.at = inst.span;
        let binding = match &self.ty(&inst.ty) {
            Type::Extern(ext) => match self.extern_instance(inst, ext) {
                Some(object) => Binding::Extern(Rc::new(object)),
                None => {
                    self.prog.uses_externs = true;
                    Binding::Opaque
                }
            },
            Type::Block(block) if block.kind == BlockKind::Package => Binding::Opaque,
            Type::Block(block) => {
                let path = self.full_name(self.frame, &inst.name, &inst.annos);
                let frame = self.new_frame(0, path, true);
                match self.block_instance(frame, block, &inst.args, uses, inst.span) {
                    Some(index) => Binding::Block(index),
                    None => Binding::Opaque,
                }
            }
            Type::Stack(..) => {
                self.unsupported(inst.span, "an array of instances");
                Binding::Opaque
            }
            _ => Binding::Opaque,
        };
        let foreign = matches!(binding, Binding::Opaque);
        self.bind(self.frame, inst.id, binding);
        self.implemented(inst, foreign);
    }

    /// Binds constructor arguments, decides the meaning of each parameter, and elaborates the declarations
    /// inside.
    fn block_instance(
        &mut self,
        frame: usize,
        block: &Rc<BlockTy>,
        ctor_args: &[Option<TExpr>],
        uses: &[&[Option<TExpr>]],
        span: Span,
    ) -> Option<usize> {
        let def = block.body.clone()?;
        if !self.may_nest(span) {
            return None;
        }
        self.frames[frame].subst = self.block_subst(block);
        self.bind_ctor(frame, block, ctor_args);
        let mut alias = Vec::new();
        for (i, param) in block.params.iter().enumerate() {
            let ty = self.ty(&param.ty);
            if matches!(ty, Type::Extern(_)) {
                let given = uses.first().and_then(|args| args.get(i)).and_then(|a| a.as_ref());
                let binding = match given.map(|a| &a.kind) {
                    Some(EKind::Local(id)) => self.find(*id).cloned().unwrap_or(Binding::Opaque),
                    _ => Binding::Opaque,
                };
                let differ = uses.iter().any(|u| !same_arg(u.get(i), uses.first().and_then(|f| f.get(i))));
                if differ && !matches!(binding, Binding::Opaque) {
                    self.unsupported(span, "an instance applied to different extern objects");
                }
                self.bind(frame, param.id, binding);
                alias.push(true);
                continue;
            }
            let shared = self.shared_place(uses, i, block);
            alias.push(shared.is_some());
            let place = match shared {
                Some(place) => place,
                None => {
                    let name = format!("{}.{}", self.frames[frame].path, param.name);
                    self.alloc(&ty, &name)
                }
            };
            self.bind(frame, param.id, Binding::Place(place));
        }
        self.inlining += 1;
        self.within(frame, |l| l.items(&def));
        self.inlining -= 1;
        self.blocks.push(BlockInst { frame, ty: block.clone(), alias });
        Some(self.blocks.len() - 1)
    }

    /// Substitution for the type parameters of a parser or control that is instantiated here.
    pub(super) fn block_subst(&self, block: &BlockTy) -> Subst {
        block.type_params.iter().map(|v| v.id).zip(block.args.iter().map(|t| self.ty(t))).collect()
    }

    /// Binds the parameters of a constructor.
    pub(super) fn bind_ctor(&mut self, frame: usize, block: &BlockTy, args: &[Option<TExpr>]) {
        for (param, arg) in block.ctor_params.iter().zip(args) {
            let Some(arg) = arg else {
                self.bind(frame, param.id, Binding::Opaque);
                continue;
            };
            let binding = match (&arg.kind, &arg.ty) {
                (EKind::Local(id), Type::Extern(_) | Type::Block(_)) => {
                    self.find(*id).cloned().unwrap_or(Binding::Opaque)
                }
                (EKind::New(inst), _) => {
                    let inst = inst.clone();
                    self.instance(&inst, &[]);
                    self.find(inst.id).cloned().unwrap_or(Binding::Opaque)
                }
                _ => match self.value(arg) {
                    Some(v) => Binding::Const(TExpr::constant(v, param.ty.clone(), arg.span)),
                    None => Binding::Const(self.closed(arg)),
                },
            };
            self.bind(frame, param.id, binding);
        }
    }

    /// Replaces known parts of a list by their values, so that it has the same value in any frame.
    fn closed(&self, e: &TExpr) -> TExpr {
        if let Some(v) = self.value(e) {
            return TExpr::constant(v, e.ty.clone(), e.span);
        }
        match &e.kind {
            EKind::List(items) => {
                let items = items.iter().map(|i| self.closed(i)).collect();
                TExpr::new(EKind::List(items), e.ty.clone(), e.span)
            }
            EKind::Local(id) => match self.find(*id) {
                Some(Binding::Const(known)) => known.clone(),
                _ => e.clone(),
            },
            _ => e.clone(),
        }
    }

    /// The storage that all applications pass for a parameter, if no copy is needed: it is the same
    /// everywhere and overlaps no other argument that is written.
    fn shared_place(&mut self, uses: &[&[Option<TExpr>]], index: usize, block: &BlockTy) -> Option<Place> {
        let first = uses.first()?;
        let arg = first.get(index)?.as_ref()?;
        let path = static_path(arg)?;
        for other in uses {
            let same = other.get(index).and_then(|a| a.as_ref()).and_then(static_path);
            if same.as_ref() != Some(&path) {
                return None;
            }
            for (j, (param, arg)) in block.params.iter().zip(other.iter()).enumerate() {
                let Some(arg) = arg else { continue };
                let writes = matches!(param.dir, Direction::Out | Direction::InOut)
                    || matches!(
                        block.params.get(index).map(|p| p.dir),
                        Some(Direction::Out | Direction::InOut)
                    )
                    || may_write(arg);
                if j != index && writes && mentions(arg, &path) {
                    return None;
                }
            }
        }
        self.place(arg)
    }

    /// Elaborates the declarations of a block.
    pub(super) fn items(&mut self, def: &BlockDef) {
        for (position, item) in def.items.iter().enumerate() {
            match item {
                Item::Var(id, ..) => {
                    if let Some(info) = self.checked.locals.get(id.0 as usize) {
                        let ty = self.ty(&info.ty);
                        self.declare(*id, &ty);
                    }
                }
                Item::Action(action) => {
                    self.frames[self.frame].declared.insert(action.id, position as u32 + 1);
                }
                _ => {}
            }
        }
        for item in &def.items {
            match item {
                Item::Var(..) | Item::Action(_) => {}
                Item::Inst(inst) => {
                    let mut uses = Vec::new();
                    applications(&def.apply, inst.id, &mut uses);
                    for state in &def.states {
                        applications(&state.body, inst.id, &mut uses);
                    }
                    self.instance(inst, &uses);
                }
                Item::Table(table) => self.table(table),
                Item::ValueSet(v) => self.value_set(v),
            }
        }
    }

    /// Initialises a block's variables, at each application.
    pub(super) fn initialise(&mut self, def: &BlockDef) {
        for item in &def.items {
            if let Item::Var(id, init, span) = item
                && let Some(info) = self.checked.locals.get(id.0 as usize)
            {
                let ty = self.ty(&info.ty.clone());
                self.variable(*id, &ty, init.as_ref(), *span);
            }
        }
    }

    fn extern_instance(&mut self, inst: &Rc<InstDecl>, ext: &Rc<ExternTy>) -> Option<Object> {
        let made = self.arch.object(self, inst, ext)?;
        Some(Object { inst: inst.clone(), ext: ext.clone(), made, frame: self.frame })
    }

    /// Adds an object with state that outlives the packet.
    pub(crate) fn add_instance(&mut self, inst: &InstDecl, kind: InstanceKind) -> Made {
        let named = self.named(self.frame, &inst.name, &inst.annos);
        self.shown.push(("extern object", named.name.clone(), inst.span));
        self.prog.instances.push(Instance { named, kind });
        Made::Instance(InstanceId(self.prog.instances.len() as u32 - 1))
    }

    /// A constructor argument that is a number, a truth value or a member of an enum.
    pub(crate) fn ctor_number(&mut self, inst: &InstDecl, index: usize) -> u64 {
        let arg = inst.args.get(index).and_then(|a| a.as_ref());
        match arg.and_then(|a| self.value(a)) {
            Some(Value::Int(n)) => n.to_u64().unwrap_or(0),
            Some(Value::Member(m)) => u64::from(m),
            Some(Value::Bool(b)) => u64::from(b),
            _ => {
                self.error(arg.map_or(inst.span, |a| a.span), "this must be known at compile time");
                0
            }
        }
    }

    /// A type argument of an extern.
    pub(crate) fn type_arg(&self, ext: &ExternTy, index: usize) -> Option<Type> {
        ext.args.get(index).map(|t| self.ty(t))
    }

    /// The name of a type argument, if P4Info shows it.
    pub(crate) fn type_arg_name(&self, ext: &ExternTy, index: usize) -> Option<String> {
        self.type_arg(ext, index).as_ref().and_then(type_name)
    }

    /// The type in which a register stores an element.
    pub(crate) fn register_ty(&mut self, element: &Type, span: Span) -> Option<Ty> {
        if let Some(scalar) = element.scalar().filter(|t| !matches!(t, Ty::Varbit(_))) {
            return Some(scalar);
        }
        let place = self.alloc(element, "$element");
        let mut parts = Vec::new();
        scalars(self, &self.read(&place), &mut parts);
        let fixed =
            matches!(place, Place::Tuple(_)) && parts.iter().all(|(_, t)| !matches!(t, Ty::Varbit(_)));
        let width: u64 = parts.iter().map(|(_, ty)| u64::from(ty.width())).sum();
        if !fixed || !has_plain_parts(element) {
            self.error(
                span,
                format!("a register cannot hold `{element}`: only bits, integers and structs of these"),
            );
            return None;
        }
        match u32::try_from(width) {
            Ok(width @ 1..=MAX_ELEMENT_BITS) => Some(Ty::Bit(width)),
            _ => {
                let limit = format!("an element has 1 to {MAX_ELEMENT_BITS} bits");
                self.error(span, format!("a register cannot hold `{element}` of {width} bits: {limit}"));
                None
            }
        }
    }

    /// The scalars of an element, with structs flattened.
    fn value_set_fields(
        &mut self,
        ty: &Type,
        named: Named,
        kind: MatchKind,
        span: Span,
        out: &mut Vec<(Named, Ty, MatchKind)>,
    ) {
        let inner = |name: &str| {
            if named.name.is_empty() { name.to_owned() } else { format!("{}.{name}", named.name) }
        };
        match ty {
            Type::Struct(s) if s.kind == StructKind::Struct => {
                for field in &s.fields {
                    let given = field.annos.rest.iter().find(|a| a.name == "match").map(|a| a.body.as_str());
                    let kind = match given.map(|name| (name, match_kind(name))) {
                        None => MatchKind::Exact,
                        Some((_, Some(kind))) => kind,
                        Some((name, None)) => {
                            self.error(span, format!("field `{}`: unknown match kind `{name}`", field.name));
                            MatchKind::Exact
                        }
                    };
                    let named = Named {
                        name: inner(&field.name),
                        id: field.annos.id,
                        annotations: field.annos.rest.clone(),
                        ..Named::default()
                    };
                    self.value_set_fields(&field.ty, named, kind, span, out);
                }
            }
            Type::Tuple(items) => {
                for (i, item) in items.iter().enumerate() {
                    let named = Named { name: inner(&format!("f{i}")), ..Named::default() };
                    self.value_set_fields(item, named, MatchKind::Exact, span, out);
                }
            }
            other => match other.scalar() {
                Some(ty) => out.push((named, ty, kind)),
                None => self.unsupported(span, format!("a value set of `{other}`")),
            },
        }
    }

    fn value_set(&mut self, v: &Rc<ValueSetDef>) {
        let size = match self.value(&v.size) {
            Some(Value::Int(n)) => n.to_u64().unwrap_or(0),
            _ => {
                self.error(v.size.span, "the size of a value set must be known at compile time");
                0
            }
        };
        let mut fields = Vec::new();
        let whole = Named::default();
        self.value_set_fields(&v.ty, whole, MatchKind::Exact, v.span, &mut fields);
        let named = self.named(self.frame, &v.name, &v.annos);
        self.prog.value_sets.push(ValueSet { named, size, fields });
        self.value_sets.insert((self.frame, v.id), ValueSetId(self.prog.value_sets.len() as u32 - 1));
    }
}

/// Whether a type consists of structs and tuples of scalars.
fn has_plain_parts(ty: &Type) -> bool {
    match ty {
        Type::Struct(s) => s.kind == StructKind::Struct && s.fields.iter().all(|f| has_plain_parts(&f.ty)),
        Type::Tuple(items) => items.iter().all(has_plain_parts),
        Type::Stack(element, _) => has_plain_parts(element),
        other => other.scalar().is_some(),
    }
}

/// The match kind with this name.
pub(super) fn match_kind(name: &str) -> Option<MatchKind> {
    Some(match name {
        "exact" => MatchKind::Exact,
        "lpm" => MatchKind::Lpm,
        "ternary" => MatchKind::Ternary,
        "range" => MatchKind::Range,
        "optional" => MatchKind::Optional,
        "selector" => MatchKind::Selector,
        _ => return None,
    })
}

/// The value of `@max_group_size`; 0 if absent.
pub(crate) fn max_group_size(inst: &InstDecl) -> u64 {
    let given = inst.annos.rest.iter().find(|a| a.name == "max_group_size");
    given.and_then(|a| a.body.trim().parse().ok()).unwrap_or(0)
}

/// Path of a place that needs no evaluation: a variable, then fields and constant indices.
fn static_path(e: &TExpr) -> Option<Vec<u32>> {
    match &e.kind {
        EKind::Local(id) => Some(vec![id.0]),
        EKind::Field(base, index) => {
            let mut path = static_path(base)?;
            path.push(*index as u32);
            Some(path)
        }
        EKind::Index(base, index) => {
            let mut path = static_path(base)?;
            path.push(index.value()?.as_int()?.to_u32()?);
            Some(path)
        }
        _ => None,
    }
}

/// Whether evaluating it may change a variable: it calls something with `out` or `inout` parameters, or a table.
fn may_write(e: &TExpr) -> bool {
    match &e.kind {
        EKind::Call(call) => {
            let params = match &call.target {
                Callee::Function(def) | Callee::Extern(def) | Callee::Method(_, def) => &def.params[..],
                _ => return e.has_effects(),
            };
            let writes = |param: &Rc<Param>| matches!(param.dir, Direction::Out | Direction::InOut);
            params.iter().any(writes) || call.args.iter().flatten().any(may_write)
        }
        EKind::Field(e, _)
        | EKind::Slice(e, ..)
        | EKind::Unary(_, e)
        | EKind::Cast(e)
        | EKind::StackPart(e, _) => may_write(e),
        EKind::Binary(_, a, b) | EKind::Index(a, b) => may_write(a) || may_write(b),
        EKind::Ternary(a, b, c) => [a, b, c].into_iter().any(|e| may_write(e)),
        EKind::List(items) => items.iter().any(may_write),
        _ => e.has_effects(),
    }
}

/// Whether an expression may touch the place, a part of it, or a place that contains it.
fn mentions(e: &TExpr, path: &[u32]) -> bool {
    if let Some(other) = static_path(e) {
        let shorter = other.len().min(path.len());
        return other[..shorter] == path[..shorter];
    }
    match &e.kind {
        EKind::Const(_) | EKind::Invalid | EKind::Default => false,
        EKind::Local(_) => true,
        EKind::Field(e, _)
        | EKind::Slice(e, ..)
        | EKind::Unary(_, e)
        | EKind::Cast(e)
        | EKind::StackPart(e, _) => mentions(e, path),
        EKind::Binary(_, a, b) | EKind::Index(a, b) => mentions(a, path) || mentions(b, path),
        EKind::Ternary(a, b, c) => [a, b, c].iter().any(|e| mentions(e, path)),
        EKind::List(items) => items.iter().any(|e| mentions(e, path)),
        _ => true,
    }
}

fn same_arg(a: Option<&Option<TExpr>>, b: Option<&Option<TExpr>>) -> bool {
    let local = |e: Option<&Option<TExpr>>| match e {
        Some(Some(TExpr { kind: EKind::Local(id), .. })) => Some(*id),
        _ => None,
    };
    local(a) == local(b)
}
