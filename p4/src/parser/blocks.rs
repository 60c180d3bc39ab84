//! Parses parsers, controls and packages.

use super::decl::DeclContext;
use super::{Parsed, Parser};
use crate::ast::{
    Annotation, Block, DeclKind, Expr, Ident, Param, ParserState, SelectCase, Span, Transition,
};
use crate::diag::Diagnostic;
use crate::lexer::TokenKind;

/// The head of a parser, control or package, shared by declarations and types.
struct Head {
    name: Ident,
    type_params: Vec<Ident>,
    params: Vec<Param>,
}

impl Parser<'_> {
    /// `name<T>(params)`. Declares the name as a type in the enclosing scope.
    fn head(&mut self) -> Parsed<Head> {
        let name = self.name()?;
        let type_params = self.type_params()?;
        let params = self.params()?;
        Ok(Head { name, type_params, params })
    }

    fn declare_next_as_type(&mut self) {
        if self.kind().is_name() {
            let name = self.text_of(self.span());
            self.scopes.declare_type(name);
        }
    }

    pub(super) fn package_decl(&mut self) -> Parsed<DeclKind> {
        self.expect(TokenKind::Package)?;
        self.declare_next_as_type();
        let Head { name, type_params, params } = self.scoped(Self::head)?;
        self.semicolon()?;
        Ok(DeclKind::PackageType { name, type_params, params })
    }

    fn ctor_params(&mut self) -> Parsed<Vec<Param>> {
        if self.kind() == TokenKind::OpenParen { self.params() } else { Ok(Vec::new()) }
    }

    pub(super) fn parser_decl(&mut self) -> Parsed<DeclKind> {
        self.expect(TokenKind::Parser)?;
        self.declare_next_as_type();
        self.scoped(|p| {
            let Head { name, type_params, params } = p.head()?;
            if p.eat(TokenKind::Semicolon) {
                return Ok(DeclKind::ParserType { name, type_params, params });
            }
            let ctor_params = p.ctor_params()?;
            let (mut locals, mut states) = (Vec::new(), Vec::new());
            p.braced(|p| {
                let start = p.span();
                let annotations = p.annotations()?;
                if p.kind() == TokenKind::State && p.kind_ahead(1).is_name() {
                    states.push(p.state(start, annotations)?);
                    return Ok(());
                }
                if !states.is_empty() {
                    return p.expected("a state or `}`");
                }
                let kind = match p.kind() {
                    TokenKind::Const => p.constant()?,
                    TokenKind::ValueSet => p.value_set()?,
                    kind if kind.is_name() || kind == TokenKind::Dot || p.is_type_at(0) => {
                        p.value_decl(DeclContext::Local)?
                    }
                    _ => return p.expected("a declaration or a state"),
                };
                locals.push(p.decl(start, annotations, kind));
                Ok(())
            })?;
            if states.is_empty() {
                p.error(|_| {
                    Diagnostic::error(name.span, format!("the parser `{}` has no states", name.name))
                        .help("it begins in `state start { ... }`")
                });
            }
            Ok(DeclKind::Parser { name, type_params, params, ctor_params, locals, states })
        })
    }

    /// `value_set<T>(n) name;`
    fn value_set(&mut self) -> Parsed<DeclKind> {
        self.expect(TokenKind::ValueSet)?;
        let open = self.expect(TokenKind::Less)?;
        let ty = self.type_ref()?;
        self.expect_close(TokenKind::Greater, open)?;
        let open = self.expect(TokenKind::OpenParen)?;
        let size = self.free_expr()?;
        self.expect_close(TokenKind::CloseParen, open)?;
        let name = self.name()?;
        self.declare_value(&name);
        self.semicolon()?;
        Ok(DeclKind::ValueSet { ty, size, name })
    }

    fn state(&mut self, start: Span, annotations: Vec<Annotation>) -> Parsed<ParserState> {
        self.expect(TokenKind::State)?;
        let name = self.name()?;
        let (mut body, mut transition) = (Vec::new(), None);
        self.scoped(|p| {
            p.braced(|p| {
                if p.kind() == TokenKind::Transition {
                    transition = Some(p.transition()?);
                    if p.kind() != TokenKind::CloseBrace {
                        return p.expected("`}` after the transition");
                    }
                    return Ok(());
                }
                body.push(p.parser_statement()?);
                Ok(())
            })
        })?;
        Ok(ParserState { annotations, name, body, transition, span: self.span_from(start) })
    }

    fn transition(&mut self) -> Parsed<Transition> {
        self.expect(TokenKind::Transition)?;
        if self.kind() != TokenKind::Select {
            let target = self.name()?;
            self.semicolon()?;
            return Ok(Transition::Direct(target));
        }
        let start = self.bump();
        let open = self.expect(TokenKind::OpenParen)?;
        let keys: Vec<Expr> = self.separated(TokenKind::CloseParen, true, Self::free_expr)?;
        self.expect_close(TokenKind::CloseParen, open)?;
        let mut cases = Vec::new();
        self.braced(|p| {
            let start = p.span();
            let keysets = p.keysets()?;
            p.expect(TokenKind::Colon)?;
            let state = p.name()?;
            p.semicolon()?;
            cases.push(SelectCase { keysets, state, span: p.span_from(start) });
            Ok(())
        })?;
        Ok(Transition::Select { keys, cases, span: self.span_from(start) })
    }

    pub(super) fn control_decl(&mut self) -> Parsed<DeclKind> {
        self.expect(TokenKind::Control)?;
        self.declare_next_as_type();
        self.scoped(|p| {
            let Head { name, type_params, params } = p.head()?;
            if p.eat(TokenKind::Semicolon) {
                return Ok(DeclKind::ControlType { name, type_params, params });
            }
            let ctor_params = p.ctor_params()?;
            let mut locals = Vec::new();
            let mut apply: Option<Block> = None;
            p.braced(|p| {
                if apply.is_some() {
                    return p.expected("`}` after the `apply` block");
                }
                let start = p.span();
                let annotations = p.annotations()?;
                let kind = match p.kind() {
                    TokenKind::Apply if matches!(p.kind_ahead(1), TokenKind::OpenBrace | TokenKind::At) => {
                        p.bump();
                        apply = Some(p.block()?);
                        return Ok(());
                    }
                    TokenKind::Const => p.constant()?,
                    TokenKind::Action => p.action()?,
                    TokenKind::Table => p.table()?,
                    kind if kind.is_name() || kind == TokenKind::Dot || p.is_type_at(0) => {
                        p.value_decl(DeclContext::Local)?
                    }
                    _ => return p.expected("a declaration or `apply`"),
                };
                locals.push(p.decl(start, annotations, kind));
                Ok(())
            })?;
            if apply.is_none() {
                p.error(|_| {
                    Diagnostic::error(name.span, format!("the control `{}` has no `apply` block", name.name))
                        .help("add `apply { }` at its end")
                });
            }
            let apply = apply.unwrap_or_default();
            Ok(DeclKind::Control { name, type_params, params, ctor_params, locals, apply })
        })
    }
}
