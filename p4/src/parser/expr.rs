//! Expressions.
//!
//! ```text
//! ternary  c ? a : b
//! binary   || && (== !=) (< > <= >=) | ^ & (<< >>) (+ - |+| |-| ++) (* / %)     loosest first
//! unary    ! ~ - + (T)
//! postfix  .f [i] [hi:lo] [start+:width] (args) <types>(args)
//! ```

use super::{Failed, Parsed, Parser, Trial, literal};
use crate::ast::{Arg, BinaryOp, Expr, ExprKind, Ident, Name, Span, TypeRef, TypeRefKind, UnaryOp};
use crate::diag::Diagnostic;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// An expression.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(|p| {
            let start = p.span();
            let cond = p.binary(0)?;
            if p.kind() != TokenKind::Question {
                return Ok(cond);
            }
            let below = p.height;
            p.bump();
            let then = p.free_expr()?;
            let below = below.max(p.height);
            p.expect(TokenKind::Colon)?;
            let otherwise = p.expr()?;
            p.grow(below.max(p.height))?;
            let kind = ExprKind::Ternary {
                cond: Box::new(cond),
                then: Box::new(then),
                otherwise: Box::new(otherwise),
            };
            Ok(p.finish(start, kind))
        })
    }

    /// An expression in brackets or a value, where `>` means greater-than even inside `bit<(...)>`. Reports `=` behind
    /// it, and skips the text behind that.
    pub(super) fn free_expr(&mut self) -> Parsed<Expr> {
        let expr = self.freely(Self::expr)?;
        let below = self.height;
        while self.kind() == TokenKind::Assign {
            self.error(|at| {
                Diagnostic::error(at, "an expression can't assign").help("write `==` to compare")
            });
            self.bump();
            self.freely(Self::expr)?;
        }
        self.height = below;
        Ok(expr)
    }

    fn freely<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let outside = std::mem::replace(&mut self.in_angles, false);
        let result = parse(self);
        self.in_angles = outside;
        result
    }

    /// `e`, `e &&& m`, `a .. b`, `default` or `_`
    pub(super) fn keyset(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let constant = match self.kind() {
            TokenKind::Default => Some(ExprKind::Default),
            TokenKind::Underscore => Some(ExprKind::DontCare),
            _ => None,
        };
        if let Some(kind) = constant {
            self.bump();
            return Ok(self.finish(start, kind));
        }
        let first = self.free_expr()?;
        match self.kind() {
            TokenKind::Mask => {
                self.bump();
                let mask = self.free_expr()?;
                Ok(self.finish(start, ExprKind::Mask { value: Box::new(first), mask: Box::new(mask) }))
            }
            TokenKind::DotDot => {
                self.bump();
                let hi = self.free_expr()?;
                Ok(self.finish(start, ExprKind::Range { lo: Box::new(first), hi: Box::new(hi) }))
            }
            _ => Ok(first),
        }
    }

    /// The keysets before the `:` of a select case or table entry: `k` or `(k, k)`.
    pub(super) fn keysets(&mut self) -> Parsed<Vec<Expr>> {
        if self.kind() == TokenKind::OpenParen {
            let tuple = self.attempt(Trial::TupleKeyset, |p| {
                p.bump();
                let keysets = p.separated(TokenKind::CloseParen, true, Self::keyset)?;
                p.expect(TokenKind::CloseParen)?;
                if keysets.is_empty() || p.kind() != TokenKind::Colon { Err(Failed) } else { Ok(keysets) }
            })?;
            if let Some(keysets) = tuple {
                return Ok(keysets);
            }
        }
        Ok(vec![self.keyset()?])
    }

    /// `(a, name = b, _)`
    pub(super) fn args(&mut self) -> Parsed<Vec<Arg>> {
        let open = self.expect(TokenKind::OpenParen)?;
        let args = self.freely(|p| p.separated(TokenKind::CloseParen, false, Self::arg))?;
        self.expect_close(TokenKind::CloseParen, open)?;
        Ok(args)
    }

    fn arg(&mut self) -> Parsed<Arg> {
        let start = self.span();
        let name = if self.kind().is_name() && self.kind_ahead(1) == TokenKind::Assign {
            let name = self.ident();
            self.bump();
            Some(name)
        } else {
            None
        };
        let value = if self.eat(TokenKind::Underscore) { None } else { Some(self.expr()?) };
        Ok(Arg { name, value, span: self.span_from(start) })
    }

    fn finish(&self, start: Span, kind: ExprKind) -> Expr {
        Expr { kind, span: self.span_from(start) }
    }

    fn binary(&mut self, min_level: u8) -> Parsed<Expr> {
        let start = self.span();
        let mut left = self.unary()?;
        while let Some((op, level, tokens)) = self.binary_op() {
            if level < min_level {
                break;
            }
            let below = self.height;
            for _ in 0..tokens {
                self.bump();
            }
            let right = self.binary(level + 1)?;
            self.grow(below.max(self.height))?;
            let kind = ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) };
            left = self.finish(start, kind);
        }
        Ok(left)
    }

    /// The binary operator at the cursor, its precedence and its length in tokens.
    fn binary_op(&self) -> Option<(BinaryOp, u8, u8)> {
        let (op, level) = match self.kind() {
            TokenKind::OrOr => (BinaryOp::Or, 0),
            TokenKind::AndAnd => (BinaryOp::And, 1),
            TokenKind::EqEq => (BinaryOp::Eq, 2),
            TokenKind::NotEq => (BinaryOp::Ne, 2),
            TokenKind::Less => (BinaryOp::Lt, 3),
            TokenKind::LessEq => (BinaryOp::Le, 3),
            TokenKind::GreaterEq => (BinaryOp::Ge, 3),
            TokenKind::Greater if self.in_angles => return None,
            TokenKind::Greater if self.touches_next(0) => match self.kind_ahead(1) {
                TokenKind::Greater => return Some((BinaryOp::Shr, 7, 2)),
                // `>>=` is an assignment operator.
                TokenKind::GreaterEq => return None,
                _ => (BinaryOp::Gt, 3),
            },
            TokenKind::Greater => (BinaryOp::Gt, 3),
            TokenKind::Or => (BinaryOp::BitOr, 4),
            TokenKind::Xor => (BinaryOp::BitXor, 5),
            TokenKind::And => (BinaryOp::BitAnd, 6),
            TokenKind::Shl => (BinaryOp::Shl, 7),
            TokenKind::Plus => (BinaryOp::Add, 8),
            TokenKind::Minus => (BinaryOp::Sub, 8),
            TokenKind::PlusSat => (BinaryOp::AddSat, 8),
            TokenKind::MinusSat => (BinaryOp::SubSat, 8),
            TokenKind::PlusPlus => (BinaryOp::Concat, 8),
            TokenKind::Star => (BinaryOp::Mul, 9),
            TokenKind::Slash => (BinaryOp::Div, 9),
            TokenKind::Percent => (BinaryOp::Mod, 9),
            _ => return None,
        };
        Some((op, level, 1))
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let op = match self.kind() {
            TokenKind::Not => UnaryOp::Not,
            TokenKind::Tilde => UnaryOp::BitNot,
            TokenKind::Minus => UnaryOp::Neg,
            TokenKind::Plus => UnaryOp::Plus,
            TokenKind::OpenParen => return self.cast_or_postfix(),
            _ => return self.postfix(false),
        };
        self.bump();
        let expr = self.nested(Self::unary)?;
        self.grow(self.height)?;
        Ok(self.finish(start, ExprKind::Unary { op, expr: Box::new(expr) }))
    }

    fn cast_or_postfix(&mut self) -> Parsed<Expr> {
        let start = self.span();
        // `(Unknown) x`: no expression continues like this, so the name must be a type's.
        let unknown_type = self.kind_ahead(1).is_name()
            && self.kind_ahead(2) == TokenKind::CloseParen
            && matches!(
                self.kind_ahead(3),
                TokenKind::Ident
                    | TokenKind::Int
                    | TokenKind::String
                    | TokenKind::OpenBrace
                    | TokenKind::Invalid
            );
        if !unknown_type && !self.is_type_at(1) {
            return self.postfix(false);
        }
        let ty = self.attempt(Trial::Cast, |p| {
            p.bump();
            let ty = p.freely(Self::type_ref)?;
            p.expect(TokenKind::CloseParen)?;
            Ok(ty)
        })?;
        let Some(ty) = ty else { return self.postfix(false) };
        let below = self.height;
        let expr = self.nested(Self::unary)?;
        self.grow(below.max(self.height))?;
        Ok(self.finish(start, ExprKind::Cast { ty: Box::new(ty), expr: Box::new(expr) }))
    }

    /// A primary expression with its postfixes. In a `statement`, `<` can only start type arguments.
    pub(super) fn postfix(&mut self, statement: bool) -> Parsed<Expr> {
        let start = self.span();
        let mut expr = self.primary()?;
        loop {
            let below = self.height;
            let kind = match self.kind() {
                TokenKind::Dot => {
                    self.bump();
                    let member = self.name()?;
                    ExprKind::Member { base: Box::new(expr), member }
                }
                TokenKind::OpenBracket => self.index(expr)?,
                TokenKind::OpenParen if matches!(expr.kind, ExprKind::Call { .. }) => {
                    self.error(|at| Diagnostic::error(at, "the result of a call cannot be called"));
                    return Err(Failed);
                }
                TokenKind::OpenParen => {
                    let args = self.args()?;
                    ExprKind::Call { callee: Box::new(expr), type_args: Vec::new(), args }
                }
                TokenKind::Less
                    if statement || self.is_type_at(1) || self.kind_ahead(1) == TokenKind::Underscore =>
                {
                    let found = self.attempt(Trial::TypeArguments, |p| {
                        let type_args = p.freely(Self::type_args)?;
                        let below = p.height;
                        let args = p.args()?;
                        p.height = below.max(p.height);
                        Ok((type_args, args))
                    })?;
                    let Some((type_args, args)) = found else { return Ok(expr) };
                    ExprKind::Call { callee: Box::new(expr), type_args, args }
                }
                _ => return Ok(expr),
            };
            self.grow(below.max(self.height))?;
            expr = self.finish(start, kind);
        }
    }

    /// `[i]`, `[hi:lo]`, `[start+:width]`
    fn index(&mut self, base: Expr) -> Parsed<ExprKind> {
        let open = self.expect(TokenKind::OpenBracket)?;
        let first = Box::new(self.free_expr()?);
        let base = Box::new(base);
        let below = self.height;
        let kind = match self.kind() {
            TokenKind::Colon => {
                self.bump();
                ExprKind::Slice { base, hi: first, lo: Box::new(self.free_expr()?) }
            }
            TokenKind::PlusColon => {
                self.bump();
                ExprKind::PlusSlice { base, start: first, width: Box::new(self.free_expr()?) }
            }
            _ => ExprKind::Index { base, index: first },
        };
        self.height = below.max(self.height);
        self.expect_close(TokenKind::CloseBracket, open)?;
        Ok(kind)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        self.height = 1;
        let kind = match self.kind() {
            TokenKind::Int => return self.integer(),
            TokenKind::String => ExprKind::String(literal::string(self.text_of(start))),
            TokenKind::True => ExprKind::Bool(true),
            TokenKind::False => ExprKind::Bool(false),
            TokenKind::This => ExprKind::This,
            TokenKind::Dots => ExprKind::Dots,
            TokenKind::Invalid => ExprKind::Invalid,
            TokenKind::OpenBrace => return self.nested(|p| p.freely(Self::brace_expr)),
            TokenKind::OpenParen => {
                self.bump();
                let inner = self.free_expr()?;
                self.expect_close(TokenKind::CloseParen, start)?;
                return Ok(self.finish(start, inner.kind));
            }
            TokenKind::Error if self.kind_ahead(1) == TokenKind::Dot => {
                self.bump();
                self.bump();
                let member = self.name()?;
                return Ok(self.finish(start, ExprKind::ErrorMember(member)));
            }
            TokenKind::Dot => return self.name_or_specialised(true),
            kind if kind.is_name() => return self.name_or_specialised(false),
            _ if self.is_type_at(0) => {
                let found = self.found();
                self.error(|at| {
                    Diagnostic::error(at, format!("expected an expression, found the type {found}"))
                        .help("a cast has its type in brackets: `(bit<8>) value`")
                });
                return Err(Failed);
            }
            _ => return self.expected("an expression"),
        };
        self.bump();
        Ok(self.finish(start, kind))
    }

    fn integer(&mut self) -> Parsed<Expr> {
        let span = self.span();
        match literal::integer(self.text_of(span)) {
            Ok((value, width, radix)) => {
                self.bump();
                Ok(Expr { kind: ExprKind::Int { value, width, radix }, span })
            }
            Err(why) => {
                self.error(|at| Diagnostic::error(at, format!("malformed number: {why}")));
                Err(Failed)
            }
        }
    }

    /// `x`, `.x`, `T<A>(args)` or `T<A>.f`
    fn name_or_specialised(&mut self, global: bool) -> Parsed<Expr> {
        let start = self.span();
        let is_type = self.is_type_at(0);
        if global {
            self.bump();
        }
        let name = Name { global, ident: self.name()? };
        if is_type && !matches!(self.kind(), TokenKind::Less | TokenKind::OpenParen | TokenKind::Dot) {
            let text = &name.ident.name;
            let help = format!("a cast has its type in brackets: `({text}) value`");
            self.error(|_| {
                Diagnostic::error(name.ident.span, format!("expected a value, found the type `{text}`"))
                    .help(help)
            });
            return Err(Failed);
        }
        if !is_type || self.kind() != TokenKind::Less {
            return Ok(self.finish(start, ExprKind::Name(name)));
        }
        let args = self.freely(Self::type_args)?;
        let below = self.height;
        let ty = Box::new(TypeRef { kind: TypeRefKind::Named { name, args }, span: self.span_from(start) });
        let kind = match self.kind() {
            TokenKind::OpenParen => {
                let args = self.args()?;
                ExprKind::Construct { ty, args }
            }
            TokenKind::Dot => {
                self.bump();
                ExprKind::TypeMember { ty, member: self.name()? }
            }
            _ => return self.expected("`(` or `.` after the type"),
        };
        self.grow(below.max(self.height))?;
        Ok(self.finish(start, kind))
    }

    /// `{a, b}`, `{k = v}`, either with `...` at the end
    fn brace_expr(&mut self) -> Parsed<Expr> {
        let open = self.expect(TokenKind::OpenBrace)?;
        let named = self.kind().is_name() && self.kind_ahead(1) == TokenKind::Assign;
        let mut dots = false;
        let kind = if named {
            let mut items: Vec<(Ident, Expr)> = Vec::new();
            self.brace_items(&mut dots, |p| {
                items.push(p.key_value()?);
                Ok(())
            })?;
            ExprKind::KeyValues { items, dots }
        } else {
            let mut items = Vec::new();
            self.brace_items(&mut dots, |p| {
                items.push(p.expr()?);
                Ok(())
            })?;
            ExprKind::List { items, dots }
        };
        self.expect_close(TokenKind::CloseBrace, open)?;
        self.grow(self.height)?;
        Ok(self.finish(open, kind))
    }

    /// Items up to the `}`; sets `dots` if `...` is the last one.
    fn brace_items(&mut self, dots: &mut bool, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        self.separated(TokenKind::CloseBrace, true, |p| {
            if *dots {
                return p.expected("`}` after `...`");
            }
            if p.eat(TokenKind::Dots) {
                *dots = true;
                return Ok(());
            }
            item(p)
        })?;
        Ok(())
    }
}
