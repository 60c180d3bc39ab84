//! Checks calls: the callee, the overload, type arguments and arguments.

use super::args::{unify, written_order};
use super::scope::{Symbol, TypeSym};
use super::typeref::bind;
use super::{Checker, Context};
use crate::ast::{Arg, Expr, ExprKind, Ident, Span, TypeRef};
use crate::diag::Diagnostic;
use crate::sema::tree::{Callee, EKind, FnDef, InstDecl, TCall, TExpr};
use crate::sema::types::{BlockKind, BlockTy, StructKind, Subst, Type};
use crate::sema::value::Value;
use num_traits::ToPrimitive;
use std::rc::Rc;

impl Checker {
    pub(super) fn call(&mut self, callee: &Expr, type_args: &[TypeRef], args: &[Arg], span: Span) -> TExpr {
        match &callee.kind {
            ExprKind::Name(name) => match self.lookup(name) {
                Symbol::Poison => {
                    self.type_args_and_values(args);
                    TExpr::bad(span)
                }
                Symbol::Functions(list) => {
                    let Some(def) = self.overload(&list, args, &name.ident.name, span) else {
                        return TExpr::bad(span);
                    };
                    let target = if def.body.is_some() {
                        Callee::Function(def.clone())
                    } else {
                        Callee::Extern(def.clone())
                    };
                    self.finish_call(target, &def, &Subst::new(), type_args, args, span)
                }
                Symbol::Action(action) => {
                    if let Some(first) = type_args.first() {
                        self.error(first.span, "an action has no type parameters");
                    }
                    self.call_action(&action, args, span)
                }
                Symbol::Type(sym) => {
                    let types: Vec<Type> = type_args.iter().map(|t| self.type_ref(t)).collect();
                    let ty = self.specialise(&sym, types, &name.ident.name, span);
                    self.nameless_instance(&ty, args, span)
                }
                other => {
                    self.error(
                        callee.span,
                        format!("`{}` is {}, which cannot be called", name.ident.name, other.a_what()),
                    );
                    TExpr::bad(span)
                }
            },
            ExprKind::Member { base, member } => {
                if let Some(sym) = self.as_type(base) {
                    return self.call_on_type(&sym, base, member, args, span);
                }
                let base = self.expr(base);
                if base.is_bad() {
                    self.type_args_and_values(args);
                    return TExpr::bad(span);
                }
                self.method(base, member, type_args, args, span)
            }
            ExprKind::TypeMember { ty, member } if member.name == "apply" => {
                let resolved = self.type_ref(ty);
                self.direct_apply(&resolved, args, span)
            }
            _ => {
                self.error(callee.span, "this cannot be called");
                TExpr::bad(span)
            }
        }
    }

    /// Checks the arguments of a call that is already in error.
    pub(super) fn type_args_and_values(&mut self, args: &[Arg]) {
        for arg in args {
            if let Some(value) = &arg.value {
                self.expr(value);
            }
        }
    }

    fn call_on_type(
        &mut self,
        sym: &TypeSym,
        base: &Expr,
        member: &Ident,
        args: &[Arg],
        span: Span,
    ) -> TExpr {
        let ty = self.specialise(sym, Vec::new(), "type", base.span);
        match member.name.as_str() {
            "apply" => self.direct_apply(&ty, args, span),
            "minSizeInBits" | "minSizeInBytes" | "maxSizeInBits" | "maxSizeInBytes" => {
                self.size_of(&ty, member, span)
            }
            _ if ty.is_poison() => TExpr::bad(span),
            _ => {
                let sizes = ["minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"];
                self.no_method(&ty, member, &[&["apply"], &sizes[..]].concat(), span)
            }
        }
    }

    /// `C.apply(…)`: applies an instance of its own.
    pub(super) fn direct_apply(&mut self, ty: &Type, args: &[Arg], span: Span) -> TExpr {
        let Some((ty, ctor_args)) = self.construct(ty, &[], span) else {
            self.type_args_and_values(args);
            return TExpr::bad(span);
        };
        let Type::Block(block) = &ty else {
            self.error(span, format!("`{ty}` cannot be applied"));
            return TExpr::bad(span);
        };
        let block = block.clone();
        let id = self.new_local(&block.name, &ty);
        let (implemented, annos) = Default::default();
        let (name, ty) = (block.name.clone(), ty.clone());
        let inst = Rc::new(InstDecl { id, name, ty, args: ctor_args, implemented, annos, span });
        self.apply_block(Callee::DirectApply(inst), &block, args, span)
    }

    fn method(
        &mut self,
        base: TExpr,
        member: &Ident,
        type_args: &[TypeRef],
        args: &[Arg],
        span: Span,
    ) -> TExpr {
        let ty = base.ty.clone();
        let name = member.name.as_str();
        if matches!(name, "minSizeInBits" | "minSizeInBytes" | "maxSizeInBits" | "maxSizeInBytes")
            && !matches!(ty, Type::Extern(_) | Type::Block(_) | Type::Table(_))
        {
            self.count_args(name, 0, args, span);
            return self.size_of(&ty, member, span);
        }
        match &ty {
            Type::Struct(s) if s.kind != StructKind::Struct => match (name, s.kind) {
                ("isValid", _) => {
                    self.count_args(name, 0, args, span);
                    self.built_in(Callee::IsValid(base), Type::Bool, span)
                }
                ("setValid" | "setInvalid", StructKind::Header) => {
                    self.count_args(name, 0, args, span);
                    if !self.lvalue(&base, &format!("the header of `{name}`")) {
                        return TExpr::bad(span);
                    }
                    self.built_in(Callee::SetValid(base, name == "setValid"), Type::Void, span)
                }
                _ => self.no_method(&ty, member, &["isValid", "setValid", "setInvalid"], span),
            },
            Type::Stack(..) if ty.is_header_stack() => match name {
                "push_front" | "pop_front" => {
                    self.count_args(name, 1, args, span);
                    let Some(value) = args.first().and_then(|a| a.value.as_ref()) else {
                        return TExpr::bad(span);
                    };
                    if !self.lvalue(&base, &format!("the stack of `{name}`")) {
                        return TExpr::bad(span);
                    }
                    let Some(count) = self.const_int(value, "the number of elements") else {
                        return TExpr::bad(span);
                    };
                    match count.to_i32() {
                        Some(n) if n >= 1 => {
                            let n = if name == "push_front" { n } else { -n };
                            self.built_in(Callee::Shift(base, n), Type::Void, span)
                        }
                        _ => {
                            self.error(
                                value.span,
                                format!("the number of elements is positive, not {count}"),
                            );
                            TExpr::bad(span)
                        }
                    }
                }
                _ => self.no_method(&ty, member, &["push_front", "pop_front"], span),
            },
            Type::Table(table) => {
                if name != "apply" {
                    return self.no_method(&ty, member, &["apply"], span);
                }
                self.count_args(name, 0, args, span);
                if self.place != Context::Control {
                    self.error(span, format!("a table cannot be applied in {}", self.place.name()));
                    return TExpr::bad(span);
                }
                let call = no_args(Callee::Table(table.clone()));
                TExpr::new(EKind::Call(Box::new(call)), Type::Applied(table.clone()), span)
            }
            Type::Block(block) => {
                if name != "apply" {
                    return self.no_method(&ty, member, &["apply"], span);
                }
                let block = block.clone();
                self.apply_block(Callee::Apply(base), &block, args, span)
            }
            Type::Extern(ext) => {
                let ext = ext.clone();
                let list: Vec<Rc<FnDef>> =
                    ext.def.methods.iter().filter(|m| m.name == name).cloned().collect();
                if list.is_empty() {
                    let names: Vec<&str> = ext.def.methods.iter().map(|m| m.name.as_str()).collect();
                    return self.no_method(&ty, member, &names, span);
                }
                let Some(def) = self.overload(&list, args, name, span) else { return TExpr::bad(span) };
                let outer = bind(&ext.def.type_params, &ext.args);
                self.extracts_one_varbit(name, args);
                self.finish_call(Callee::Method(base, def.clone()), &def, &outer, type_args, args, span)
            }
            _ => {
                self.type_args_and_values(args);
                self.no_method(&ty, member, &[], span)
            }
        }
    }

    /// Reports a header whose length `extract` cannot know: one length is for one field.
    fn extracts_one_varbit(&mut self, method: &str, args: &[Arg]) {
        if method != "extract" || self.two_varbits.is_empty() {
            return;
        }
        let Some(header) = args.first().and_then(|arg| arg.value.as_ref()) else { return };
        if let Type::Struct(ty) = self.expr(header).ty
            && let Some(&(first, second)) = self.two_varbits.get(&ty.id)
        {
            self.report(
                Diagnostic::error(first, "a header that is extracted has at most one varbit field")
                    .label(second, "here is another"),
            );
        }
    }

    fn no_method(&mut self, ty: &Type, member: &Ident, names: &[&str], span: Span) -> TExpr {
        let mut d = Diagnostic::error(member.span, format!("`{ty}` has no method `{}`", member.name));
        if let Some(near) = super::scope::nearest(&member.name, names.iter().copied()) {
            d = d.help(format!("did you mean `{near}`?"));
        }
        self.report(d);
        TExpr::bad(span)
    }

    fn built_in(&mut self, target: Callee, ty: Type, span: Span) -> TExpr {
        TExpr::new(EKind::Call(Box::new(no_args(target))), ty, span)
    }

    fn count_args(&mut self, name: &str, wanted: usize, args: &[Arg], span: Span) {
        if args.len() != wanted {
            let plural = if wanted == 1 { "" } else { "s" };
            self.error(span, format!("`{name}` takes {wanted} argument{plural}, {} given", args.len()));
        }
    }

    fn size_of(&mut self, ty: &Type, member: &Ident, span: Span) -> TExpr {
        if ty.is_poison() {
            return TExpr::bad(span);
        }
        let Some((least, most)) = ty.bit_size() else {
            self.error(member.span, format!("`{ty}` has no size"));
            return TExpr::bad(span);
        };
        let bits = if member.name.starts_with("min") { least } else { most };
        let value = if member.name.ends_with("Bits") { bits } else { bits.div_ceil(8) };
        TExpr::constant(Value::int(value), Type::InfInt, span)
    }

    fn apply_block(&mut self, target: Callee, block: &Rc<BlockTy>, args: &[Arg], span: Span) -> TExpr {
        let wanted = match block.kind {
            BlockKind::Control => Context::Control,
            BlockKind::Parser => Context::Parser,
            BlockKind::Package => {
                self.error(span, "a package cannot be applied");
                return TExpr::bad(span);
            }
        };
        if self.place != wanted {
            let what = block.kind.name();
            self.error(span, format!("a {what} cannot be applied in {}", self.place.name()));
            return TExpr::bad(span);
        }
        let what = format!("{} `{}`", block.kind.name(), block.name);
        let Some(typed) = self.args(&what, &block.params, args, span) else { return TExpr::bad(span) };
        let mut subst = Subst::new();
        for (param, arg) in block.params.iter().zip(&typed) {
            if let Some(arg) = arg {
                unify(&param.ty, &arg.ty, &block.type_params, &mut subst);
            }
        }
        let order = written_order(&block.params, args);
        let Some(args) = self.fit_args(&block.params, typed, &subst) else { return TExpr::bad(span) };
        let call = TCall { target, type_args: vec![], args, order };
        TExpr::new(EKind::Call(Box::new(call)), Type::Void, span)
    }

    fn call_action(&mut self, action: &Rc<crate::sema::tree::ActionDef>, args: &[Arg], span: Span) -> TExpr {
        if !matches!(self.place, Context::Control | Context::Action) {
            self.error(span, format!("an action cannot be called in {}", self.place.name()));
        }
        let what = format!("action `{}`", action.name);
        let Some(typed) = self.args(&what, &action.params, args, span) else { return TExpr::bad(span) };
        let order = written_order(&action.params, args);
        let Some(args) = self.fit_args(&action.params, typed, &Subst::new()) else { return TExpr::bad(span) };
        let call = TCall { target: Callee::Action(action.clone()), type_args: vec![], args, order };
        TExpr::new(EKind::Call(Box::new(call)), Type::Void, span)
    }

    /// The overload whose parameters match the arguments in number and names.
    pub(super) fn overload(
        &mut self,
        list: &[Rc<FnDef>],
        args: &[Arg],
        name: &str,
        span: Span,
    ) -> Option<Rc<FnDef>> {
        if let [only] = list {
            return Some(only.clone());
        }
        let found: Vec<&Rc<FnDef>> =
            list.iter().filter(|def| super::construct::takes(&def.params, args)).collect();
        match &found[..] {
            [] => {
                let mut counts: Vec<String> = list.iter().map(|d| d.params.len().to_string()).collect();
                counts.dedup();
                self.report(
                    Diagnostic::error(
                        span,
                        format!("no `{name}` takes {} arguments of these types", args.len()),
                    )
                    .note(format!("it exists with {} arguments", counts.join(" or "))),
                );
                self.type_args_and_values(args);
                None
            }
            [first, ..] => {
                let mut exact: Vec<_> = found.iter().filter(|d| d.params.len() == args.len()).collect();
                // If several fit because of optional parameters, the types of the arguments decide.
                if found.len() > 1 && args.iter().all(|a| a.name.is_none()) {
                    let types = self.types_of(args)?;
                    let fits = |d: &&Rc<FnDef>| {
                        d.params
                            .iter()
                            .zip(&types)
                            .all(|(p, ty)| ty.as_ref().is_none_or(|ty| may_be(ty, &p.ty)))
                    };
                    let typed: Vec<_> = found.iter().filter(|d| fits(d)).collect();
                    match typed[..] {
                        [only] => return Some((*only).clone()),
                        [] => {}
                        _ => exact.retain(|d| fits(d)),
                    }
                }
                if exact.len() > 1 && args.iter().all(|a| a.name.is_none()) {
                    self.report(
                        Diagnostic::error(span, format!("several `{name}` take {} arguments", args.len()))
                            .help("name the arguments to tell them apart"),
                    );
                    return None;
                }
                Some(exact.first().map_or_else(|| (*first).clone(), |d| (**d).clone()))
            }
        }
    }

    /// Types of arguments; `None` if one is in error, which is reported.
    fn types_of(&mut self, args: &[Arg]) -> Option<Vec<Option<Type>>> {
        let types: Vec<_> = args.iter().map(|a| a.value.as_ref().map(|value| self.expr(value).ty)).collect();
        let bad = types.iter().flatten().any(Type::is_poison);
        (!bad).then_some(types)
    }

    fn finish_call(
        &mut self,
        target: Callee,
        def: &Rc<FnDef>,
        outer: &Subst,
        type_args: &[TypeRef],
        args: &[Arg],
        span: Span,
    ) -> TExpr {
        self.check_place(def, span);
        let what = format!("`{}`", def.name);
        let Some(typed) = self.args(&what, &def.params, args, span) else { return TExpr::bad(span) };
        let mut subst = outer.clone();
        let mut explicit = Vec::new();
        if !type_args.is_empty() {
            if type_args.len() != def.type_params.len() {
                let n = def.type_params.len();
                let plural = if n == 1 { "" } else { "s" };
                self.error(
                    span,
                    format!("{what} takes {n} type argument{plural}, {} given", type_args.len()),
                );
                return TExpr::bad(span);
            }
            explicit = type_args.iter().map(|t| self.type_ref(t)).collect();
            if explicit.iter().any(Type::is_poison) {
                return TExpr::bad(span);
            }
        }
        for (var, ty) in def.type_params.iter().zip(&explicit) {
            if !matches!(ty, Type::DontCare) {
                subst.insert(var.id, ty.clone());
            }
        }
        for (param, arg) in def.params.iter().zip(&typed) {
            if let Some(arg) = arg {
                unify(&param.ty.subst(outer), &arg.ty, &def.type_params, &mut subst);
            }
        }
        for var in &def.type_params {
            let in_result = def.ret.is_open(std::slice::from_ref(var));
            if !in_result && super::construct::left_out(var, &def.params, &typed) && !def.params.is_empty() {
                subst.entry(var.id).or_insert(Type::DontCare);
            }
        }
        let known: Vec<Option<Type>> = def.type_params.iter().map(|v| subst.get(&v.id).cloned()).collect();
        for (var, ty) in def.type_params.iter().zip(&known) {
            match ty {
                None => {
                    self.report(
                        Diagnostic::error(
                            span,
                            format!("type parameter `{}` of {what} cannot be inferred", var.name),
                        )
                        .help(format!("write it: `{}<…>(…)`", def.name)),
                    );
                    return TExpr::bad(span);
                }
                Some(ty @ (Type::Block(_) | Type::Table(_))) => {
                    self.error(span, format!("`{ty}` cannot be given to {what}"));
                    return TExpr::bad(span);
                }
                Some(Type::InfInt) => {
                    self.report(
                        Diagnostic::error(
                            span,
                            format!("no width can be inferred for type parameter `{}` of {what}", var.name),
                        )
                        .help("give the number a width, such as `16w0`"),
                    );
                    return TExpr::bad(span);
                }
                Some(_) => {}
            }
        }
        if self.has_impossible_params(def, &typed, (&subst, outer), !type_args.is_empty(), span) {
            return TExpr::bad(span);
        }
        let order = written_order(&def.params, args);
        let Some(args) = self.fit_args(&def.params, typed, &subst) else { return TExpr::bad(span) };
        if let Some(text) = &def.annos.deprecated {
            let note = text.clone();
            self.report(Diagnostic::warning(span, format!("{what} is deprecated")).note(note));
        }
        if matches!(&target, Callee::Extern(_)) && def.name == "static_assert" {
            return self.static_assert(&args, span);
        }
        let types: Vec<Type> = known.into_iter().flatten().collect();
        self.check_core_rules(&target, def, &args, &types, span);
        let ret = def.ret.subst(&subst);
        TExpr::new(EKind::Call(Box::new(TCall { target, type_args: types, args, order })), ret, span)
    }

    /// Whether the type arguments make a parameter's type illegal.
    fn has_impossible_params(
        &mut self,
        def: &FnDef,
        args: &[Option<TExpr>],
        (subst, outer): (&Subst, &Subst),
        explicit: bool,
        span: Span,
    ) -> bool {
        for (param, arg) in def.params.iter().zip(args) {
            let ty = param.ty.subst(subst);
            if matches!(param.ty.subst(outer), Type::DontCare) {
                // An argument that is only read may have any type with a width, its own. A plain number has none, but
                // as an index it is clear without (`Register<bit<32>, _>(1)` with `read(0)`).
                let is_index = |ty: &Type| matches!(ty, Type::InfInt) && param.name == "index";
                let sized = arg.as_ref().is_none_or(|arg| arg.ty.scalar().is_some() || is_index(&arg.ty));
                if param.dir == crate::ast::Direction::In && sized {
                    continue;
                }
                self.error(span, format!("no type can be inferred for parameter `{}`", param.name));
                return true;
            }
            let opaque = matches!(ty, Type::Str | Type::InfInt) && ty != param.ty;
            if opaque && param.dir != crate::ast::Direction::None {
                let at = if explicit { span } else { param.span };
                let message = format!("parameter `{}` of type `{ty}` cannot have a direction", param.name);
                self.report(Diagnostic::error(at, message).label(span, "it has this type here"));
                return true;
            }
        }
        false
    }

    /// Reports calls that are legal only in other places.
    fn check_place(&mut self, def: &FnDef, span: Span) {
        let parser_only = matches!(def.name.as_str(), "verify") && def.body.is_none();
        if parser_only && self.place != Context::Parser {
            self.error(span, format!("`{}` can only be used in a parser", def.name));
        }
    }

    /// Checks rules of packet_in and packet_out that their declarations cannot express.
    fn check_core_rules(
        &mut self,
        target: &Callee,
        def: &FnDef,
        args: &[Option<TExpr>],
        types: &[Type],
        span: Span,
    ) {
        let Callee::Method(base, _) = target else { return };
        let Type::Extern(ext) = &base.ty else { return };
        match (ext.def.name.as_str(), def.name.as_str()) {
            ("packet_in", "extract") => {
                let Some(ty) = types.first() else { return };
                let at = args.first().and_then(|a| a.as_ref()).map_or(span, |a| a.span);
                let Type::Struct(s) = ty else {
                    self.error(at, format!("`extract` fills a header, not `{ty}`"));
                    return;
                };
                if s.kind != StructKind::Header {
                    self.error(at, format!("`extract` fills a header, not `{ty}`"));
                    return;
                }
                let varbits = s.fields.iter().filter(|f| matches!(f.ty, Type::Varbit(_))).count();
                if varbits == 0 && args.len() == 2 {
                    self.error(at, format!("header `{ty}` has no varbit field to give a length for"));
                } else if varbits > 0 && args.len() == 1 {
                    self.report(
                        Diagnostic::error(at, format!("header `{ty}` has a varbit field"))
                            .help("give its length in bits as a second argument"),
                    );
                }
            }
            ("packet_in", "lookahead") => {
                let Some(ty) = types.first() else { return };
                if ty.bit_size().is_none_or(|(least, most)| least != most) {
                    self.error(span, format!("`lookahead` expects a type of fixed size, not `{ty}`"));
                }
            }
            ("packet_out", "emit") => {
                let Some(ty) = types.first() else { return };
                let at = args.first().and_then(|a| a.as_ref()).map_or(span, |a| a.span);
                if !emittable(ty) {
                    self.error(
                        at,
                        format!("`emit` takes headers, header stacks and structs of these, not `{ty}`"),
                    );
                }
            }
            _ => {}
        }
    }

    fn static_assert(&mut self, args: &[Option<TExpr>], span: Span) -> TExpr {
        let message = match args.get(1).and_then(|a| a.as_ref()).and_then(TExpr::value) {
            Some(Value::Str(s)) => format!(": {s}"),
            _ => String::new(),
        };
        match args.first().and_then(|a| a.as_ref()).and_then(TExpr::value) {
            Some(Value::Bool(true)) => TExpr::constant(Value::Bool(true), Type::Bool, span),
            Some(_) => {
                self.error(span, format!("static_assert failed{message}"));
                TExpr::bad(span)
            }
            None => {
                self.error(span, "the condition of static_assert is not known at compile time");
                TExpr::bad(span)
            }
        }
    }
}

fn no_args(target: Callee) -> TCall {
    TCall { target, type_args: vec![], args: vec![], order: vec![] }
}

/// Whether an argument of this type may be given where the other is wanted; only scalars are compared.
fn may_be(given: &Type, wanted: &Type) -> bool {
    let scalar =
        |ty: &Type| ty.underlying().is_bits() || matches!(ty, Type::Bool | Type::Enum(_) | Type::Error);
    match (given, wanted) {
        (Type::InfInt, Type::Enum(_) | Type::Bool | Type::Error | Type::New(_)) => false,
        (Type::Enum(e), Type::Bit(_) | Type::Int(_)) => e.repr.as_ref() == Some(wanted),
        (given, wanted) => !scalar(given) || !scalar(wanted) || given == wanted,
    }
}

/// Whether a deparser can emit a value of this type.
fn emittable(ty: &Type) -> bool {
    match ty {
        Type::Struct(s) if s.kind == StructKind::Struct => s.fields.iter().all(|f| emittable(&f.ty)),
        Type::Struct(_) | Type::Poison | Type::Var(_) => true,
        Type::Stack(e, _) => emittable(e),
        Type::Tuple(items) => items.iter().all(emittable),
        _ => false,
    }
}
