//! Parses types, type arguments and type parameters.

use super::{Failed, Parsed, Parser};
use crate::ast::{Expr, Ident, Name, Span, TypeRef, TypeRefKind};
use crate::diag::Diagnostic;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// A type. Accepts any name where only a type can occur.
    pub(super) fn type_ref(&mut self) -> Parsed<TypeRef> {
        self.nested(|p| {
            let start = p.span();
            let mut ty = p.plain_type()?;
            while p.kind() == TokenKind::OpenBracket {
                let below = p.height;
                let size = p.bracketed_size()?;
                p.grow(below.max(p.height))?;
                let kind = TypeRefKind::Stack { element: Box::new(ty), size: Box::new(size) };
                ty = TypeRef { kind, span: p.span_from(start) };
            }
            Ok(ty)
        })
    }

    /// A type or `void`.
    pub(super) fn type_or_void(&mut self) -> Parsed<TypeRef> {
        if self.kind() == TokenKind::Void {
            let span = self.bump();
            self.height = 1;
            return Ok(TypeRef { kind: TypeRefKind::Void, span });
        }
        self.type_ref()
    }

    /// `[n]`
    pub(super) fn bracketed_size(&mut self) -> Parsed<Expr> {
        let open = self.expect(TokenKind::OpenBracket)?;
        let size = self.free_expr()?;
        self.expect_close(TokenKind::CloseBracket, open)?;
        Ok(size)
    }

    fn plain_type(&mut self) -> Parsed<TypeRef> {
        let start = self.span();
        self.height = 1;
        let simple = |kind| Ok(kind);
        let kind: Parsed<TypeRefKind> = match self.kind() {
            TokenKind::Bool => simple(TypeRefKind::Bool),
            TokenKind::Error => simple(TypeRefKind::Error),
            TokenKind::MatchKind => simple(TypeRefKind::MatchKind),
            TokenKind::StringType => simple(TypeRefKind::String),
            TokenKind::Bit => {
                self.bump();
                let width = if self.kind() == TokenKind::Less { Some(Box::new(self.width()?)) } else { None };
                return Ok(self.finish_type(start, TypeRefKind::Bit(width)));
            }
            TokenKind::IntType => {
                self.bump();
                let kind = if self.kind() == TokenKind::Less {
                    TypeRefKind::Int(Box::new(self.width()?))
                } else {
                    TypeRefKind::InfInt
                };
                return Ok(self.finish_type(start, kind));
            }
            TokenKind::Varbit => {
                self.bump();
                let width = self.width()?;
                return Ok(self.finish_type(start, TypeRefKind::Varbit(Box::new(width))));
            }
            TokenKind::Tuple => {
                self.bump();
                let args = self.type_args()?;
                return Ok(self.finish_type(start, TypeRefKind::Tuple(args)));
            }
            TokenKind::List if self.kind_ahead(1) == TokenKind::Less => {
                self.bump();
                let open = self.bump();
                let element = self.type_arg()?;
                self.expect_close(TokenKind::Greater, open)?;
                self.grow(self.height)?;
                return Ok(self.finish_type(start, TypeRefKind::List(Box::new(element))));
            }
            TokenKind::Void => {
                self.error(|at| Diagnostic::error(at, "`void` can only be a return type"));
                Err(Failed)
            }
            _ => {
                let name = self.type_name()?;
                let args = if self.kind() == TokenKind::Less { self.type_args()? } else { Vec::new() };
                return Ok(self.finish_type(start, TypeRefKind::Named { name, args }));
            }
        };
        let kind = kind?;
        self.bump();
        Ok(self.finish_type(start, kind))
    }

    fn finish_type(&self, start: Span, kind: TypeRefKind) -> TypeRef {
        TypeRef { kind, span: self.span_from(start) }
    }

    /// `N` or `.N`
    fn type_name(&mut self) -> Parsed<Name> {
        let global = self.eat(TokenKind::Dot);
        if !self.kind().is_name() {
            return self.expected("a type");
        }
        Ok(Name { global, ident: self.ident() })
    }

    /// `<8>`, `<N>`, `<(N + 1)>`
    fn width(&mut self) -> Parsed<Expr> {
        let open = self.expect(TokenKind::Less)?;
        let outside = std::mem::replace(&mut self.in_angles, true);
        let width = self.expr();
        self.in_angles = outside;
        let width = width?;
        self.expect_close(TokenKind::Greater, open)?;
        self.grow(self.height)?;
        Ok(width)
    }

    /// `<A, B>`
    pub(super) fn type_args(&mut self) -> Parsed<Vec<TypeRef>> {
        let open = self.expect(TokenKind::Less)?;
        let args = self.separated(TokenKind::Greater, false, Self::type_arg)?;
        self.expect_close(TokenKind::Greater, open)?;
        self.grow(self.height)?;
        Ok(args)
    }

    fn type_arg(&mut self) -> Parsed<TypeRef> {
        if self.kind() == TokenKind::Underscore {
            let span = self.bump();
            return Ok(TypeRef { kind: TypeRefKind::DontCare, span });
        }
        self.type_or_void()
    }

    /// `<T, U>` or nothing; declares the names in the innermost scope.
    pub(super) fn type_params(&mut self) -> Parsed<Vec<Ident>> {
        if self.kind() != TokenKind::Less {
            return Ok(Vec::new());
        }
        let open = self.bump();
        let params = self.separated(TokenKind::Greater, false, Self::name)?;
        if params.is_empty() {
            return self.expected("a type parameter");
        }
        self.expect_close(TokenKind::Greater, open)?;
        for param in &params {
            self.declare_type(param);
        }
        Ok(params)
    }

    /// Whether the token `ahead` begins something that can only be a type here, given the names
    /// declared so far.
    pub(super) fn is_type_at(&self, ahead: usize) -> bool {
        let token = self.token(ahead);
        match token.kind {
            TokenKind::Bool
            | TokenKind::Bit
            | TokenKind::IntType
            | TokenKind::Varbit
            | TokenKind::Tuple
            | TokenKind::StringType
            | TokenKind::MatchKind
            | TokenKind::Void => true,
            TokenKind::Error => self.kind_ahead(ahead + 1) != TokenKind::Dot,
            TokenKind::List if self.kind_ahead(ahead + 1) == TokenKind::Less => true,
            TokenKind::Dot => {
                let name = self.token(ahead + 1);
                name.kind.is_name() && self.scopes.is_global_type(self.text_of(name.span))
            }
            kind => kind.is_name() && self.scopes.is_type(self.text_of(token.span)),
        }
    }
}
