//! Declarations at top level, and those that may stand anywhere.

use super::scope::{Symbol, TypeSym, Writable};
use super::{Checker, Place};
use crate::ast::{self, Decl, DeclKind, Direction, FunctionProto, Ident, StructDecl};
use crate::diag::Diagnostic;
use crate::sema::tree::{ActionDef, FnDef, InstDecl, Param, TExpr};
use crate::sema::types::{
    BlockKind, BlockTy, EnumMemberTy, EnumTy, ExternDef, FieldTy, NewTy, StructKind, StructTy, Type,
};
use crate::sema::value::{self, Value};
use std::rc::Rc;

impl Checker {
    /// A declaration at top level.
    pub(super) fn top_level(&mut self, decl: &Decl) {
        self.place = Place::TopLevel;
        if self.common_decl(decl) {
            return;
        }
        match &decl.kind {
            DeclKind::Header(s) => self.struct_decl(decl, s, StructKind::Header),
            DeclKind::HeaderUnion(s) => self.struct_decl(decl, s, StructKind::Union),
            DeclKind::Struct(s) => self.struct_decl(decl, s, StructKind::Struct),
            DeclKind::Enum { repr, name, members } => self.enum_decl(decl, repr.as_ref(), name, members),
            DeclKind::Error { members } => {
                for member in members {
                    if self.out.errors.contains(&member.name) {
                        self.error(member.span, format!("error `{}` is declared twice", member.name));
                    } else {
                        self.out.errors.push(member.name.clone());
                    }
                }
            }
            DeclKind::MatchKind { members } => {
                for member in members {
                    if self.match_kinds.contains(&member.name) {
                        self.error(member.span, format!("match kind `{}` is declared twice", member.name));
                    } else {
                        self.match_kinds.push(member.name.clone());
                    }
                }
            }
            DeclKind::ExternObject { name, type_params, methods } => self.extern_decl(name, type_params, methods),
            DeclKind::FunctionProto { proto, is_abstract } => {
                let def = self.scoped(|c| c.prototype(decl, proto, *is_abstract));
                self.declare(&proto.name, Symbol::Functions(vec![Rc::new(def)]));
            }
            DeclKind::Function { proto, body } => {
                let def = self.function(decl, proto, body);
                self.declare(&proto.name, Symbol::Functions(vec![Rc::new(def)]));
            }
            DeclKind::ParserType { name, type_params, params } => {
                self.block_type(name, type_params, params, BlockKind::Parser);
            }
            DeclKind::ControlType { name, type_params, params } => {
                self.block_type(name, type_params, params, BlockKind::Control);
            }
            DeclKind::PackageType { name, type_params, params } => {
                self.block_type(name, type_params, params, BlockKind::Package);
            }
            DeclKind::Parser { .. } | DeclKind::Control { .. } => self.block(decl),
            DeclKind::Variable { name, .. } => {
                self.diags.push(
                    Diagnostic::error(name.span, format!("variable `{}` outside of a parser, control or function", name.name))
                        .help("declare it inside one, or make it `const`"),
                );
            }
            DeclKind::Table { name, .. } => {
                self.error(name.span, format!("table `{}` outside of a control", name.name));
            }
            DeclKind::ValueSet { name, .. } => {
                self.error(name.span, format!("value set `{}` outside of a parser", name.name));
            }
            DeclKind::Const { .. }
            | DeclKind::Typedef { .. }
            | DeclKind::NewType { .. }
            | DeclKind::Instance { .. }
            | DeclKind::Action { .. } => {}
        }
    }

    /// Declarations that may stand at top level and inside blocks; false if it is of another kind.
    pub(super) fn common_decl(&mut self, decl: &Decl) -> bool {
        match &decl.kind {
            DeclKind::Const { ty, name, value } => self.const_decl(ty, name, value),
            DeclKind::Typedef { ty, name } => {
                let ty = self.type_ref(ty);
                self.declare(name, Symbol::Type(TypeSym::Plain(ty)));
            }
            DeclKind::NewType { ty, name } => {
                let inner = self.type_ref(ty);
                let annos = self.annos(&decl.annotations);
                let fine = matches!(inner.underlying(), Type::Bit(_) | Type::Int(_) | Type::Bool | Type::Varbit(_) | Type::Poison | Type::Var(_))
                    || matches!(inner, Type::New(_) | Type::Enum(_));
                if !fine {
                    self.error(ty.span, format!("`type` cannot be made of `{inner}`"));
                }
                let id = self.new_type_id();
                let new = Rc::new(NewTy { id, name: name.name.clone(), inner, annos });
                self.out.new_types.push(new.clone());
                self.declare(name, Symbol::Type(TypeSym::Plain(Type::New(new))));
            }
            DeclKind::Instance { ty, args, name, init } => {
                if let Some(inst) = self.instance(decl, ty, args, name, init.is_some()) {
                    let package = matches!(&inst.ty, Type::Block(b) if b.kind == BlockKind::Package);
                    if self.place == Place::TopLevel && name.name == "main" && !package {
                        self.error(name.span, format!("`main` is a package, not `{}`", inst.ty));
                    }
                    self.declare(name, Symbol::Instance(inst.clone()));
                    if self.place == Place::TopLevel {
                        if name.name == "main" {
                            self.out.main = Some(inst.clone());
                        }
                        self.out.instances.push(inst);
                    }
                } else {
                    self.declare(name, Symbol::Poison);
                }
            }
            DeclKind::Action { name, params, body } => {
                let global = self.place == Place::TopLevel;
                let action = self.action(decl, name, params, body, global);
                if global && name.name == "NoAction" && !action.params.is_empty() {
                    self.error(name.span, "`NoAction` is an action without parameters");
                }
                if global {
                    self.out.global_actions.push(action.clone());
                }
                self.declare(name, Symbol::Action(action));
            }
            _ => return false,
        }
        true
    }

    fn const_decl(&mut self, ty: &ast::TypeRef, name: &Ident, value: &ast::Expr) {
        if name.name == "NoAction" {
            self.error(name.span, "`NoAction` is an action without parameters");
        }
        let want = self.type_ref(ty);
        let typed = self.expr(value);
        let typed = self.coerce(typed, &want);
        let symbol = if want.is_poison() || typed.is_bad() {
            Symbol::Poison
        } else if !super::expr::is_constant(&typed) {
            self.error(value.span, format!("the value of constant `{}` is not known while compiling", name.name));
            Symbol::Poison
        } else {
            Symbol::Const(typed)
        };
        self.declare(name, symbol);
    }

    fn struct_decl(&mut self, decl: &Decl, s: &StructDecl, kind: StructKind) {
        let annos = self.annos(&decl.annotations);
        let id = self.new_type_id();
        let (vars, fields) = self.scoped(|c| {
            let vars = c.type_params(&s.type_params);
            let mut fields: Vec<FieldTy> = Vec::new();
            let mut varbits = 0;
            for field in &s.fields {
                let ty = c.type_ref(&field.ty);
                let annos = c.annos(&field.annotations);
                if let Some(old) = s.fields.iter().take(fields.len()).find(|f| f.name.name == field.name.name) {
                    c.report(
                        Diagnostic::error(field.name.span, format!("field `{}` is declared twice", field.name.name))
                            .label(field.name.span, "again here")
                            .label(old.name.span, "first declared here"),
                    );
                    continue;
                }
                let fine = c.field_fits(kind, &ty, field);
                varbits += usize::from(matches!(ty, Type::Varbit(_)));
                if varbits > 1 && matches!(ty, Type::Varbit(_)) && kind == StructKind::Header {
                    c.error(field.name.span, "a header has at most one varbit field");
                }
                let ty = if fine { ty } else { Type::Poison };
                fields.push(FieldTy { name: field.name.name.clone(), ty, annos });
            }
            (vars, fields)
        });
        let args = vars.iter().map(|v| Type::Var(v.clone())).collect();
        let ty = Rc::new(StructTy { id, name: s.name.name.clone(), kind, args, fields, annos });
        if vars.is_empty() {
            self.out.structs.push(Type::Struct(ty.clone()));
        }
        self.declare(&s.name, Symbol::Type(TypeSym::Struct(ty, vars)));
    }

    fn field_fits(&mut self, kind: StructKind, ty: &Type, field: &ast::Field) -> bool {
        if ty.is_poison() {
            return false;
        }
        let what = format!("field `{}`", field.name.name);
        if !self.storable(ty, field.ty.span, &what) {
            return false;
        }
        let fits = match kind {
            StructKind::Struct => true,
            StructKind::Header => header_field(ty),
            StructKind::Union => ty.is_header() || matches!(ty, Type::Var(_)),
        };
        if !fits {
            let (owner, want) = match kind {
                StructKind::Union => ("header union", "only headers"),
                _ => ("header", "bits, integers, booleans, enums with an underlying type, and structs of these"),
            };
            self.report(
                Diagnostic::error(field.ty.span, format!("a {owner} cannot have a field of type `{ty}`"))
                    .note(format!("a {owner} holds {want}")),
            );
        }
        fits
    }

    fn enum_decl(&mut self, decl: &Decl, repr: Option<&ast::TypeRef>, name: &Ident, members: &[ast::EnumMember]) {
        let annos = self.annos(&decl.annotations);
        let repr_ty = repr.map(|r| self.type_ref(r));
        if let (Some(r), Some(ty)) = (repr, &repr_ty)
            && !ty.is_poison()
            && !ty.underlying().is_bits()
        {
            self.error(r.span, format!("an enum is made of `bit<n>` or `int<n>`, not `{ty}`"));
        }
        let mut list: Vec<EnumMemberTy> = Vec::new();
        for (number, member) in members.iter().enumerate() {
            let annos = self.annos(&member.annotations);
            if list.iter().any(|m| m.name == member.name.name) {
                self.error(member.name.span, format!("member `{}` is declared twice", member.name.name));
                continue;
            }
            let value = match (&member.value, &repr_ty) {
                (Some(e), Some(ty)) => {
                    let typed = self.expr(e);
                    let typed = self.coerce(typed, ty);
                    match typed.value() {
                        Some(Value::Int(i)) => i.clone(),
                        _ => {
                            if !typed.is_bad() {
                                self.error(e.span, "the value of an enum member must be known while compiling");
                            }
                            number.into()
                        }
                    }
                }
                (Some(e), None) => {
                    self.report(
                        Diagnostic::error(e.span, "only an enum with an underlying type gives its members values")
                            .help(format!("write `enum bit<8> {}`", name.name)),
                    );
                    number.into()
                }
                (None, Some(_)) => {
                    self.error(member.name.span, format!("member `{}` needs a value", member.name.name));
                    number.into()
                }
                (None, None) => number.into(),
            };
            list.push(EnumMemberTy { name: member.name.name.clone(), value, annos });
        }
        let id = self.new_type_id();
        let repr = repr_ty.map(|t| t.underlying().clone());
        let ty = Rc::new(EnumTy { id, name: name.name.clone(), repr, members: list, annos });
        self.out.enums.push(ty.clone());
        self.declare(name, Symbol::Type(TypeSym::Plain(Type::Enum(ty))));
    }

    fn extern_decl(&mut self, name: &Ident, type_params: &[Ident], methods: &[Decl]) {
        if name.name == "main" {
            self.error(name.span, "`main` is a package");
        }
        let id = self.new_type_id();
        let def = self.scoped(|c| {
            let vars = c.type_params(type_params);
            // Its own methods may mention it.
            let opaque = ExternDef { id, name: name.name.clone(), type_params: vars.clone(), ctors: vec![], methods: vec![] };
            c.declare(name, Symbol::Type(TypeSym::Extern(Rc::new(opaque))));
            let (mut ctors, mut list): (Vec<Rc<FnDef>>, Vec<Rc<FnDef>>) = (Vec::new(), Vec::new());
            for method in methods {
                let DeclKind::FunctionProto { proto, is_abstract } = &method.kind else { continue };
                let def = Rc::new(c.scoped(|c| c.prototype(method, proto, *is_abstract)));
                let same = |o: &Rc<FnDef>| {
                    o.name == def.name
                        && o.params.len() == def.params.len()
                        && o.params.iter().zip(&def.params).all(|(a, b)| a.name == b.name)
                };
                if proto.ret.is_some() && proto.name.name == name.name {
                    c.error(proto.name.span, format!("the constructor of `{}` has no return type", name.name));
                    continue;
                }
                if proto.ret.is_none() {
                    if proto.name.name != name.name {
                        c.error(proto.name.span, format!("method `{}` needs a return type", proto.name.name));
                        continue;
                    }
                    if ctors.iter().any(same) {
                        c.error(proto.name.span, "this constructor is declared twice");
                    }
                    ctors.push(def);
                } else {
                    if list.iter().any(same) {
                        c.error(proto.name.span, format!("method `{}` is declared twice", proto.name.name));
                    }
                    list.push(def);
                }
            }
            ExternDef { id, name: name.name.clone(), type_params: vars, ctors, methods: list }
        });
        self.declare(name, Symbol::Type(TypeSym::Extern(Rc::new(def))));
    }

    fn prototype(&mut self, decl: &Decl, proto: &FunctionProto, is_abstract: bool) -> FnDef {
        let annos = self.annos(&decl.annotations);
        let type_params = self.type_params(&proto.type_params);
        let ret = proto.ret.as_ref().map_or(Type::Void, |r| self.type_ref(r));
        let params = self.params(&proto.params, Place::Function);
        FnDef {
            name: proto.name.name.clone(),
            type_params,
            ret,
            params,
            body: None,
            annos,
            is_abstract,
            span: proto.name.span,
        }
    }

    fn function(&mut self, decl: &Decl, proto: &FunctionProto, body: &ast::Block) -> FnDef {
        self.scoped(|c| {
            let mut def = c.prototype(decl, proto, false);
            if let Some(p) = def.params.iter().find(|p| p.annos.optional) {
                c.error(p.span, format!("parameter `{}` cannot be optional here", p.name));
            }
            c.place = Place::Function;
            c.returns = Some(def.ret.clone());
            let stmts = c.block_scope(body);
            c.returns = None;
            if !matches!(def.ret, Type::Void | Type::Poison) && !super::stmt::always_returns(&stmts) {
                c.error(proto.name.span, format!("function `{}` may end without `return`", def.name));
            }
            def.body = Some(stmts);
            def
        })
    }

    fn action(
        &mut self,
        decl: &Decl,
        name: &Ident,
        params: &[ast::Param],
        body: &ast::Block,
        global: bool,
    ) -> Rc<ActionDef> {
        let annos = self.annos(&decl.annotations);
        let outer = self.place;
        let action = self.scoped(|c| {
            c.place = Place::Action;
            let params = c.params(params, Place::Action);
            c.returns = Some(Type::Void);
            let stmts = c.block_scope(body);
            c.returns = None;
            let id = c.new_local(&name.name, &Type::Void);
            ActionDef { id, name: name.name.clone(), params, body: stmts, annos, global, span: name.span }
        });
        self.place = outer;
        Rc::new(action)
    }

    /// Parameters, declared in the innermost scope.
    pub(super) fn params(&mut self, list: &[ast::Param], place: Place) -> Vec<Rc<Param>> {
        let mut params: Vec<Rc<Param>> = Vec::new();
        let mut data_before: Option<ast::Span> = None;
        for param in list {
            let annos = self.annos(&param.annotations);
            let ty = self.type_ref(&param.ty);
            if place == Place::Action {
                match (param.direction, data_before) {
                    (Direction::None, _) => data_before = Some(param.name.span),
                    (_, Some(_)) => self.error(
                        param.name.span,
                        "the parameters of an action that have no direction come after all others",
                    ),
                    _ => {}
                }
            }
            if annos.optional && !matches!(place, Place::TopLevel | Place::Function) {
                self.error(param.name.span, format!("parameter `{}` cannot be optional here", param.name.name));
            }
            if matches!(ty, Type::Block(_)) && place != Place::Package {
                self.error(param.ty.span, format!("a parameter cannot be of type `{ty}`: only packages take blocks"));
            }
            let opaque = matches!(ty, Type::Extern(_) | Type::Block(_) | Type::Str | Type::InfInt | Type::MatchKind);
            if matches!(ty, Type::Void) {
                self.error(param.ty.span, "a parameter cannot be `void`");
            } else if matches!(ty, Type::InfInt) && place == Place::Action {
                self.error(param.ty.span, "a parameter of an action cannot be `int`, which has no width");
            } else if opaque && param.direction != Direction::None {
                self.error(param.ty.span, format!("a parameter of type `{ty}` has no direction"));
            } else if matches!(ty, Type::Extern(_) | Type::Block(_)) && place == Place::Action {
                self.error(param.ty.span, format!("an action cannot take `{ty}`"));
            }
            let default = param.default.as_ref().map(|e| {
                if param.direction == Direction::Out || param.direction == Direction::InOut {
                    self.error(e.span, "only an `in` parameter can have a default value");
                }
                let typed = self.expr(e);
                let typed = self.coerce(typed, &ty);
                if !typed.is_bad() && !super::expr::is_constant(&typed) {
                    self.error(e.span, "a default value must be known while compiling");
                }
                typed
            });
            let id = self.new_local(&param.name.name, &ty);
            let writable = match param.direction {
                Direction::None => Writable::NoDirection,
                Direction::In => Writable::InParam,
                Direction::Out | Direction::InOut => Writable::Yes,
            };
            self.declare(&param.name, Symbol::Local { id, ty: ty.clone(), writable });
            self.writable.insert(id, writable);
            params.push(Rc::new(Param {
                id,
                name: param.name.name.clone(),
                ty,
                dir: param.direction,
                default,
                annos,
                span: param.name.span,
            }));
        }
        params
    }

    fn block_type(&mut self, name: &Ident, type_params: &[Ident], params: &[ast::Param], kind: BlockKind) {
        let (vars, params) = self.scoped(|c| {
            let vars = c.type_params(type_params);
            let place = if kind == BlockKind::Package { Place::Package } else { Place::TopLevel };
            (vars, c.params(params, place))
        });
        let ty = BlockTy {
            id: self.new_type_id(),
            name: name.name.clone(),
            kind,
            args: vars.iter().map(|v| Type::Var(v.clone())).collect(),
            type_params: vars,
            params,
            ctor_params: Vec::new(),
            body: None,
        };
        self.declare(name, Symbol::Type(TypeSym::Block(Rc::new(ty))));
    }

    /// `T(args) name;`
    pub(super) fn instance(
        &mut self,
        decl: &Decl,
        ty: &ast::TypeRef,
        args: &[ast::Arg],
        name: &Ident,
        has_init: bool,
    ) -> Option<Rc<InstDecl>> {
        let annos = self.annos(&decl.annotations);
        if has_init {
            self.error(name.span, "abstract methods are not supported yet");
            return None;
        }
        let ty = self.type_ref(ty);
        let (ty, args) = self.construct(&ty, args, decl.span)?;
        let package = matches!(&ty, Type::Block(b) if b.kind == BlockKind::Package);
        if package && self.place != Place::TopLevel {
            self.error(name.span, "a package is instantiated at top level");
            return None;
        }
        if matches!(self.place, Place::Function | Place::Action) {
            self.error(name.span, format!("an instance cannot be made inside {}", self.place.name()));
            return None;
        }
        if self.place == Place::TopLevel && matches!(&ty, Type::Block(b) if b.kind != BlockKind::Package && b.body.is_none()) {
            self.error(name.span, format!("`{ty}` has no body"));
            return None;
        }
        let id = self.new_local(&name.name, &ty);
        Some(Rc::new(InstDecl { id, name: name.name.clone(), ty, args, annos, span: name.span }))
    }

    /// A constant that stands for a member of an enum.
    pub(super) fn enum_member(&mut self, e: &Rc<EnumTy>, member: &Ident, span: ast::Span) -> TExpr {
        let found = e.members.iter().enumerate().find(|(_, m)| m.name == member.name);
        match found {
            Some((number, m)) => {
                let value = match e.repr {
                    Some(_) => Value::Int(value::wrap(m.value.clone(), &Type::Enum(e.clone()))),
                    None => Value::Member(number as u32),
                };
                TExpr::constant(value, Type::Enum(e.clone()), span)
            }
            None => {
                let near = super::scope::nearest(&member.name, e.members.iter().map(|m| m.name.as_str()));
                let mut d = Diagnostic::error(member.span, format!("enum `{}` has no member `{}`", e.name, member.name));
                if let Some(near) = near {
                    d = d.help(format!("did you mean `{near}`?"));
                }
                self.report(d);
                TExpr::bad(span)
            }
        }
    }
}

/// What a header may be made of.
pub(super) fn header_field(ty: &Type) -> bool {
    match ty {
        Type::Struct(s) => s.kind == StructKind::Struct && s.fields.iter().all(|f| f.ty.is_poison() || header_field(&f.ty)),
        Type::Var(_) | Type::Varbit(_) | Type::Bool | Type::Bit(_) | Type::Int(_) => true,
        Type::Enum(e) => e.repr.is_some(),
        Type::New(n) => header_field(&n.inner),
        _ => false,
    }
}
