//! Parses declarations: the top level, types, externs, functions and values.

use super::{Failed, Parsed, Parser};
use crate::ast::{
    Annotation, Decl, DeclKind, Direction, EnumMember, Field, FunctionProto, Ident, Name, Param, Program,
    Span, StructDecl, TypeRef, TypeRefKind,
};
use crate::diag::Diagnostic;
use crate::lexer::TokenKind;

/// Place of the declaration of a value or instance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclContext {
    /// In a parser, control or block.
    Local,
    /// In the initialiser of an instance, which implements abstract methods.
    Initialiser,
    /// At top level.
    TopLevel,
}

impl Parser<'_> {
    pub(super) fn program(&mut self) -> Program {
        let mut decls = Vec::new();
        while self.kind() != TokenKind::End {
            if self.eat(TokenKind::Semicolon) {
                continue;
            }
            let start = self.at;
            if self.top_level_decl(&mut decls).is_err() {
                self.recover(start);
                if self.kind() == TokenKind::CloseBrace {
                    self.error(|at| Diagnostic::error(at, "unmatched `}`"));
                    self.bump();
                }
            }
        }
        Program { decls }
    }

    fn top_level_decl(&mut self, decls: &mut Vec<Decl>) -> Parsed<()> {
        let start = self.span();
        let annotations = self.annotations()?;
        let kind = match self.kind() {
            TokenKind::Const => self.constant()?,
            TokenKind::Action => self.action()?,
            TokenKind::Parser => self.parser_decl()?,
            TokenKind::Control => self.control_decl()?,
            TokenKind::Package => self.package_decl()?,
            TokenKind::Extern => self.extern_decl()?,
            TokenKind::Header | TokenKind::HeaderUnion | TokenKind::Struct => self.struct_decl()?,
            TokenKind::Enum => self.enum_decl()?,
            TokenKind::Typedef | TokenKind::Type => self.typedef(decls)?,
            TokenKind::Error if self.kind_ahead(1) == TokenKind::OpenBrace => {
                self.bump();
                DeclKind::Error { members: self.members(false)? }
            }
            TokenKind::MatchKind if self.kind_ahead(1) == TokenKind::OpenBrace => {
                self.bump();
                DeclKind::MatchKind { members: self.members(true)? }
            }
            TokenKind::Table => {
                self.error(|at| Diagnostic::error(at, "a table can be declared only inside a control"));
                return Err(Failed);
            }
            TokenKind::CloseBrace => {
                self.error(|at| Diagnostic::error(at, "unmatched `}`"));
                return Err(Failed);
            }
            kind if !kind.is_name() && kind != TokenKind::Dot && !self.is_type_at(0) => {
                return self.expected("a declaration");
            }
            _ => self.value_decl(DeclContext::TopLevel)?,
        };
        decls.push(self.decl(start, annotations, kind));
        Ok(())
    }

    pub(super) fn decl(&self, start: Span, annotations: Vec<Annotation>, kind: DeclKind) -> Decl {
        Decl { annotations, kind, span: self.span_from(start) }
    }

    /// `const T X = e;`
    pub(super) fn constant(&mut self) -> Parsed<DeclKind> {
        self.expect(TokenKind::Const)?;
        let ty = self.type_ref()?;
        let (ty, name) = self.declarator(ty)?;
        self.declare_value(&name);
        self.expect(TokenKind::Assign)?;
        let value = self.free_expr()?;
        self.semicolon()?;
        Ok(DeclKind::Const { ty, name, value })
    }

    /// A declaration that starts with a type: a variable, an instance or a function.
    pub(super) fn value_decl(&mut self, place: DeclContext) -> Parsed<DeclKind> {
        let start = self.span();
        let ty = self.type_or_void()?;
        if self.kind() == TokenKind::OpenParen {
            return self.instance(ty);
        }
        if matches!(self.kind_ahead(1), TokenKind::OpenParen | TokenKind::Less) && self.kind().is_name() {
            if place == DeclContext::Local {
                let help = "move it out of the block it is in, or make it an action";
                self.error(|at| {
                    Diagnostic::error(at, "a function can be declared only at top level").help(help)
                });
            }
            return self.function(ty);
        }
        if matches!(ty.kind, TypeRefKind::Void) {
            self.error(|_| Diagnostic::error(start, "`void` can only be a return type"));
            return Err(Failed);
        }
        let (ty, name) = self.declarator(ty)?;
        self.declare_value(&name);
        if place != DeclContext::Local {
            self.error(|_| {
                Diagnostic::error(
                    name.span,
                    format!("`{}` is a variable, which is not allowed here", name.name),
                )
                .help("make it a `const`, or declare it in a parser, control, action or function")
            });
        }
        let init = if self.eat(TokenKind::Assign) { Some(self.free_expr()?) } else { None };
        self.semicolon()?;
        Ok(DeclKind::Variable { ty, name, init })
    }

    /// `name`, or `name[4]` for a stack in C's notation.
    pub(super) fn declarator(&mut self, mut ty: TypeRef) -> Parsed<(TypeRef, Ident)> {
        let name = self.name()?;
        while self.kind() == TokenKind::OpenBracket {
            let size = self.bracketed_size()?;
            self.grow(self.height)?;
            let span = ty.span;
            ty = TypeRef { kind: TypeRefKind::Stack { element: Box::new(ty), size: Box::new(size) }, span };
        }
        Ok((ty, name))
    }

    /// `(args) name;` or with `= { ... }`
    fn instance(&mut self, ty: TypeRef) -> Parsed<DeclKind> {
        let args = self.args()?;
        let (ty, name) = self.declarator(ty)?;
        let init = if self.eat(TokenKind::Assign) {
            let mut decls = Vec::new();
            self.scoped(|p| {
                p.braced(|p| {
                    let start = p.span();
                    let annotations = p.annotations()?;
                    let kind = p.nested(|p| p.value_decl(DeclContext::Initialiser))?;
                    decls.push(p.decl(start, annotations, kind));
                    Ok(())
                })
            })?;
            Some(decls)
        } else {
            None
        };
        self.declare_value(&name);
        self.semicolon()?;
        Ok(DeclKind::Instance { ty, args, name, init })
    }

    /// `name<T>(params)` up to the `;` or the body, in the innermost scope.
    fn signature(&mut self, ret: Option<TypeRef>) -> Parsed<FunctionProto> {
        let name = self.name()?;
        let type_params = self.type_params()?;
        let params = self.params()?;
        Ok(FunctionProto { ret, name, type_params, params })
    }

    fn function(&mut self, ret: TypeRef) -> Parsed<DeclKind> {
        if self.kind().is_name() {
            let name = self.text_of(self.span());
            self.scopes.declare_value(name);
        }
        self.scoped(|p| {
            let proto = p.signature(Some(ret))?;
            if p.kind() == TokenKind::Semicolon {
                p.error(|at| {
                    Diagnostic::error(at, format!("the function `{}` has no body", proto.name.name))
                        .help("a function that the target provides is declared with `extern`")
                });
                return Err(Failed);
            }
            let body = p.block()?;
            Ok(DeclKind::Function { proto, body })
        })
    }

    /// `(direction T name = default, ...)`; declares the names in the innermost scope.
    pub(super) fn params(&mut self) -> Parsed<Vec<Param>> {
        let open = self.expect(TokenKind::OpenParen)?;
        let params = self.separated(TokenKind::CloseParen, false, Self::param)?;
        self.expect_close(TokenKind::CloseParen, open)?;
        for param in &params {
            self.declare_value(&param.name);
        }
        Ok(params)
    }

    fn param(&mut self) -> Parsed<Param> {
        let annotations = self.annotations()?;
        let direction = match self.kind() {
            TokenKind::In => Direction::In,
            TokenKind::Out => Direction::Out,
            TokenKind::InOut => Direction::InOut,
            _ => Direction::None,
        };
        if direction != Direction::None {
            self.bump();
        }
        let ty = self.type_ref()?;
        let (ty, name) = self.declarator(ty)?;
        let default = if self.eat(TokenKind::Assign) { Some(self.expr()?) } else { None };
        Ok(Param { annotations, direction, ty, name, default })
    }

    /// `action a(params) { ... }`
    pub(super) fn action(&mut self) -> Parsed<DeclKind> {
        self.expect(TokenKind::Action)?;
        let name = self.name()?;
        self.declare_value(&name);
        self.scoped(|p| {
            let params = p.params()?;
            let body = p.block()?;
            Ok(DeclKind::Action { name, params, body })
        })
    }

    // Types.

    fn struct_decl(&mut self) -> Parsed<DeclKind> {
        let make = match self.kind() {
            TokenKind::Header => DeclKind::Header,
            TokenKind::HeaderUnion => DeclKind::HeaderUnion,
            _ => DeclKind::Struct,
        };
        self.bump();
        let name = self.name()?;
        self.declare_type(&name);
        self.scoped(|p| {
            let type_params = p.type_params()?;
            let mut fields = Vec::new();
            p.braced(|p| {
                let annotations = p.annotations()?;
                let ty = p.type_ref()?;
                let (ty, name) = p.declarator(ty)?;
                p.semicolon()?;
                fields.push(Field { annotations, ty, name });
                Ok(())
            })?;
            Ok(make(StructDecl { name, type_params, fields }))
        })
    }

    fn enum_decl(&mut self) -> Parsed<DeclKind> {
        self.expect(TokenKind::Enum)?;
        let plain = self.kind().is_name() && self.kind_ahead(1) == TokenKind::OpenBrace;
        let repr = if plain { None } else { Some(self.type_ref()?) };
        let name = self.name()?;
        self.declare_type(&name);
        let members = self.comma_braced(true, |p| {
            let annotations = p.annotations()?;
            let member = p.name()?;
            let value = if p.eat(TokenKind::Assign) { Some(p.expr()?) } else { None };
            match (&repr, &value) {
                (None, Some(value)) => {
                    let help = format!("give it a type: `enum bit<8> {} {{ ... }}`", name.name);
                    p.error(|_| {
                        Diagnostic::error(
                            value.span,
                            "only members of an enum with an underlying type have values",
                        )
                        .help(help)
                    });
                }
                (Some(_), None) => {
                    return p.expected("`= value`, for the enum has an underlying type");
                }
                _ => {}
            }
            Ok(EnumMember { annotations, name: member, value })
        })?;
        Ok(DeclKind::Enum { repr, name, members })
    }

    /// `{ a, b }` of an error or match_kind declaration.
    fn members(&mut self, trailing_comma: bool) -> Parsed<Vec<Ident>> {
        self.comma_braced(trailing_comma, Self::name)
    }

    /// `{ item, item }`, not empty.
    fn comma_braced<T>(
        &mut self,
        trailing_comma: bool,
        item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let open = self.expect(TokenKind::OpenBrace)?;
        let items = self.separated(TokenKind::CloseBrace, trailing_comma, item).and_then(|items| {
            if items.is_empty() {
                return self.expected("a name");
            }
            self.expect_close(TokenKind::CloseBrace, open)?;
            Ok(items)
        });
        if items.is_err() {
            // Such a list contains no braces, so it ends at the next one.
            while !matches!(self.kind(), TokenKind::CloseBrace | TokenKind::OpenBrace | TokenKind::End) {
                self.bump();
            }
            if self.eat(TokenKind::CloseBrace) {
                return Ok(Vec::new());
            }
        }
        items
    }

    /// `typedef T N;`, `typedef struct S { ... } N;`, `type T N;`
    fn typedef(&mut self, decls: &mut Vec<Decl>) -> Parsed<DeclKind> {
        let is_new = self.kind() == TokenKind::Type;
        self.bump();
        let start = self.span();
        let derived = match self.kind() {
            TokenKind::Header | TokenKind::HeaderUnion | TokenKind::Struct if !is_new => {
                Some(self.struct_decl()?)
            }
            TokenKind::Enum if !is_new => Some(self.enum_decl()?),
            _ => None,
        };
        let ty = match derived {
            None => self.type_ref()?,
            Some(kind) => {
                // The nested type becomes a declaration of its own.
                let ident = match &kind {
                    DeclKind::Header(d) | DeclKind::HeaderUnion(d) | DeclKind::Struct(d) => d.name.clone(),
                    DeclKind::Enum { name, .. } => name.clone(),
                    _ => return Err(Failed),
                };
                decls.push(self.decl(start, Vec::new(), kind));
                let span = ident.span;
                TypeRef {
                    kind: TypeRefKind::Named { name: Name { global: false, ident }, args: Vec::new() },
                    span,
                }
            }
        };
        let (ty, name) = self.declarator(ty)?;
        self.declare_type(&name);
        self.semicolon()?;
        Ok(if is_new { DeclKind::NewType { ty, name } } else { DeclKind::Typedef { ty, name } })
    }

    // Externs.

    fn extern_decl(&mut self) -> Parsed<DeclKind> {
        self.expect(TokenKind::Extern)?;
        let start = self.span();
        if self.kind().is_name() && matches!(self.kind_ahead(1), TokenKind::OpenBrace | TokenKind::Semicolon)
        {
            let name = self.name()?;
            return self.extern_object(name, Vec::new());
        }
        // `E<T> {` declares an object, `R<T> f(...);` a function; they differ only after the `>`.
        let ret = self.type_or_void()?;
        if self.kind() == TokenKind::OpenBrace {
            let TypeRefKind::Named { name: Name { global: false, ident }, args } = ret.kind else {
                return self.expected("a name");
            };
            let mut type_params = Vec::new();
            for arg in args {
                match arg.kind {
                    TypeRefKind::Named { name: Name { global: false, ident }, args } if args.is_empty() => {
                        type_params.push(ident);
                    }
                    _ => {
                        let span = arg.span;
                        self.error(|_| Diagnostic::error(span, "expected the name of a type parameter"));
                        return Err(Failed);
                    }
                }
            }
            return self.extern_object(ident, type_params);
        }
        if !self.kind().is_name() {
            return self.expected(if ret.span == start {
                "the function's name or `{`"
            } else {
                "the function's name"
            });
        }
        let name = self.text_of(self.span());
        self.scopes.declare_value(name);
        let proto = self.scoped(|p| p.signature(Some(ret)))?;
        self.semicolon()?;
        Ok(DeclKind::FunctionProto { proto, is_abstract: false })
    }

    fn extern_object(&mut self, name: Ident, type_params: Vec<Ident>) -> Parsed<DeclKind> {
        self.declare_type(&name);
        let mut methods = Vec::new();
        if !self.eat(TokenKind::Semicolon) {
            self.scoped(|p| {
                for param in &type_params {
                    p.declare_type(param);
                }
                p.braced(|p| {
                    methods.push(p.method(&name)?);
                    Ok(())
                })
            })?;
        }
        Ok(DeclKind::ExternObject { name, type_params, methods })
    }

    fn method(&mut self, owner: &Ident) -> Parsed<Decl> {
        let start = self.span();
        let annotations = self.annotations()?;
        let is_abstract = self.eat(TokenKind::Abstract);
        let is_constructor = self.kind().is_name() && self.kind_ahead(1) == TokenKind::OpenParen;
        let ret = if is_constructor {
            let found = self.text_of(self.span());
            if found != owner.name {
                self.error(|at| {
                    Diagnostic::error(at, format!("the method `{found}` has no return type")).help(format!(
                        "write `void {found}(...)`; a constructor would be called `{}`",
                        owner.name
                    ))
                });
                return Err(Failed);
            }
            None
        } else {
            Some(self.type_or_void()?)
        };
        let proto = self.scoped(|p| p.signature(ret))?;
        self.semicolon()?;
        let kind = DeclKind::FunctionProto { proto, is_abstract };
        Ok(self.decl(start, annotations, kind))
    }
}
