//! Checks declarations at top level, and those that are legal anywhere.

use super::scope::{Symbol, TypeSym, Writable};
use super::{Checker, Context};
use crate::ast::{self, Decl, DeclKind, Direction, FunctionProto, Ident};
use crate::diag::Diagnostic;
use crate::sema::tree::{ActionDef, FnDef, InstDecl, Param};
use crate::sema::types::{BlockKind, BlockTy, Extent, ExternDef, NewTy, StructKind, Type};
use std::rc::Rc;

impl Checker {
    /// A declaration at top level.
    pub(super) fn top_level(&mut self, decl: &Decl) {
        self.place = Context::TopLevel;
        if self.common_decl(decl) {
            return;
        }
        match &decl.kind {
            DeclKind::Header(s) => self.struct_decl(decl, s, StructKind::Header),
            DeclKind::HeaderUnion(s) => self.struct_decl(decl, s, StructKind::Union),
            DeclKind::Struct(s) => self.struct_decl(decl, s, StructKind::Struct),
            DeclKind::Enum { repr, name, members } => self.enum_decl(repr.as_ref(), name, members),
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
            DeclKind::ExternObject { name, type_params, methods } => {
                self.extern_decl(name, type_params, methods)
            }
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
                    Diagnostic::error(
                        name.span,
                        format!(
                            "variable `{}` is declared outside of a parser, control or function",
                            name.name
                        ),
                    )
                    .help("declare it inside one, or make it `const`"),
                );
            }
            DeclKind::Table { name, .. } => {
                self.error(name.span, format!("table `{}` is declared outside of a control", name.name));
            }
            DeclKind::ValueSet { name, .. } => {
                self.error(name.span, format!("value set `{}` is declared outside of a parser", name.name));
            }
            DeclKind::Const { .. }
            | DeclKind::Typedef { .. }
            | DeclKind::NewType { .. }
            | DeclKind::Instance { .. }
            | DeclKind::Action { .. } => {}
        }
    }

    /// A declaration that is legal at top level and inside blocks. Returns false for other kinds.
    pub(super) fn common_decl(&mut self, decl: &Decl) -> bool {
        match &decl.kind {
            DeclKind::Const { ty, name, value } => {
                self.annos(&decl.annotations);
                self.const_decl(ty, name, value);
            }
            DeclKind::Typedef { ty, name } => {
                self.annos(&decl.annotations);
                let ty = self.type_ref(ty);
                self.declare(name, Symbol::Type(TypeSym::Plain(ty)));
            }
            DeclKind::NewType { ty, name } => {
                let inner = self.type_ref(ty);
                let annos = self.annos(&decl.annotations);
                let fine = matches!(
                    inner.underlying(),
                    Type::Bit(_) | Type::Int(_) | Type::Bool | Type::Varbit(_) | Type::Poison | Type::Var(_)
                ) || matches!(inner, Type::New(_) | Type::Enum(_));
                if !fine {
                    self.error(ty.span, format!("`type` cannot be made of `{inner}`"));
                }
                let inner = if self.type_fits(Extent::of(std::iter::once(&inner)), name.span, &name.name) {
                    inner
                } else {
                    Type::Poison
                };
                let id = self.new_type_id();
                let new = Rc::new(NewTy { id, name: name.name.clone(), inner, annos });
                self.out.new_types.push(new.clone());
                self.declare(name, Symbol::Type(TypeSym::Plain(Type::New(new))));
            }
            DeclKind::Instance { ty, args, name, init } => {
                if let Some(inst) = self.instance(decl, ty, args, name, init.as_deref()) {
                    let package = matches!(&inst.ty, Type::Block(b) if b.kind == BlockKind::Package);
                    if self.place == Context::TopLevel && name.name == "main" && !package {
                        self.error(name.span, format!("`main` is a package, not `{}`", inst.ty));
                    }
                    self.declare(name, Symbol::Instance(inst.clone()));
                    if self.place == Context::TopLevel {
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
                let global = self.place == Context::TopLevel;
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
            self.error(
                value.span,
                format!("the value of constant `{}` is not known at compile time", name.name),
            );
            Symbol::Poison
        } else {
            Symbol::Const(typed)
        };
        self.declare(name, symbol);
    }

    fn extern_decl(&mut self, name: &Ident, type_params: &[Ident], methods: &[Decl]) {
        if name.name == "main" {
            self.error(name.span, "`main` is a package");
        }
        let id = self.new_type_id();
        let def = self.scoped(|c| {
            let vars = c.type_params(type_params);
            // Its own methods may refer to it.
            let opaque = ExternDef {
                id,
                name: name.name.clone(),
                type_params: vars.clone(),
                ctors: vec![],
                methods: vec![],
            };
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
                    c.error(
                        proto.name.span,
                        format!("the constructor of `{}` has no return type", name.name),
                    );
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
        let params = self.params(&proto.params, Context::Function);
        FnDef { name: proto.name.name.clone(), type_params, ret, params, body: None, annos, is_abstract }
    }

    pub(super) fn function(&mut self, decl: &Decl, proto: &FunctionProto, body: &ast::Block) -> FnDef {
        self.scoped(|c| {
            let mut def = c.prototype(decl, proto, false);
            if let Some(p) = def.params.iter().find(|p| p.annos.optional) {
                c.error(p.span, format!("parameter `{}` cannot be optional here", p.name));
            }
            c.place = Context::Function;
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
            c.place = Context::Action;
            let params = c.params(params, Context::Action);
            c.returns = Some(Type::Void);
            let stmts = c.block_scope(body);
            c.returns = None;
            let id = c.new_local(&name.name, &Type::Void);
            ActionDef { id, name: name.name.clone(), params, body: stmts, annos, global, span: name.span }
        });
        self.place = outer;
        Rc::new(action)
    }

    /// Parameters; declares them in the innermost scope.
    pub(super) fn params(&mut self, list: &[ast::Param], place: Context) -> Vec<Rc<Param>> {
        let mut params: Vec<Rc<Param>> = Vec::new();
        let mut data_before: Option<ast::Span> = None;
        for param in list {
            let annos = self.annos(&param.annotations);
            let ty = self.type_ref(&param.ty);
            if place == Context::Action {
                match (param.direction, data_before) {
                    (Direction::None, _) => data_before = Some(param.name.span),
                    (_, Some(_)) => self.error(
                        param.name.span,
                        "the parameters of an action that have no direction come after all others",
                    ),
                    _ => {}
                }
            }
            if annos.optional && !matches!(place, Context::TopLevel | Context::Function | Context::Package) {
                self.error(
                    param.name.span,
                    format!("parameter `{}` cannot be optional here", param.name.name),
                );
            }
            if let Type::Block(block) = &ty
                && place != Context::Package
                && (place != Context::Constructor || block.body.is_some())
            {
                self.error(param.ty.span, format!("a parameter cannot be of type `{ty}`"));
            }
            let opaque =
                matches!(ty, Type::Extern(_) | Type::Block(_) | Type::Str | Type::InfInt | Type::MatchKind);
            if matches!(ty, Type::Void) {
                self.error(param.ty.span, "a parameter cannot be `void`");
            } else if matches!(ty, Type::InfInt) && place == Context::Action {
                self.error(param.ty.span, "a parameter of an action cannot be `int`, which has no width");
            } else if opaque && param.direction != Direction::None {
                self.error(param.ty.span, format!("a parameter of type `{ty}` has no direction"));
            } else if matches!(ty, Type::Extern(_) | Type::Block(_)) && place == Context::Action {
                self.error(param.ty.span, format!("an action cannot take `{ty}`"));
            }
            let default = param.default.as_ref().map(|e| {
                if param.direction == Direction::Out || param.direction == Direction::InOut {
                    self.error(e.span, "only an `in` parameter can have a default value");
                }
                let typed = self.expr(e);
                let typed = self.coerce(typed, &ty);
                let block = matches!(ty, Type::Block(_)) && self.known_at_instantiation(&typed);
                if !typed.is_bad() && !super::expr::is_constant(&typed) && !block {
                    self.error(e.span, "a default value must be known at compile time");
                }
                typed
            });
            let id = self.new_local(&param.name.name, &ty);
            let writable = match param.direction {
                Direction::None => Writable::NoDirection,
                Direction::In => Writable::InParam,
                Direction::Out | Direction::InOut => Writable::Yes,
            };
            self.declare(&param.name, Symbol::Local { id, ty: ty.clone() });
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
            let place = if kind == BlockKind::Package { Context::Package } else { Context::TopLevel };
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
        init: Option<&[Decl]>,
    ) -> Option<Rc<InstDecl>> {
        let annos = self.annos(&decl.annotations);
        let ty = self.type_ref(ty);
        let (ty, args) = self.construct(&ty, args, decl.span)?;
        let package = matches!(&ty, Type::Block(b) if b.kind == BlockKind::Package);
        if package && self.place != Context::TopLevel {
            self.error(name.span, "a package is instantiated at top level");
            return None;
        }
        if matches!(self.place, Context::Function | Context::Action) {
            self.error(name.span, format!("an instance cannot be created inside {}", self.place.name()));
            return None;
        }
        if self.place == Context::TopLevel
            && matches!(&ty, Type::Block(b) if b.kind != BlockKind::Package && b.body.is_none())
        {
            self.error(name.span, format!("`{ty}` has no body"));
            return None;
        }
        let id = self.new_local(&name.name, &ty);
        let implemented = self.implement(id, &ty, init, name);
        let (name, span) = (name.name.clone(), name.span);
        Some(Rc::new(InstDecl { id, name, ty, args, implemented, annos, span }))
    }
}
