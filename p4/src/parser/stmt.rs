//! Parses statements.

use super::decl::DeclContext;
use super::{Failed, Parsed, Parser};
use crate::ast::{
    Annotation, BinaryOp, Block, DeclKind, Expr, ExprKind, Span, Stmt, StmtKind, SwitchCase, TypeRef,
    TypeRefKind,
};
use crate::diag::Diagnostic;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `@annotation { statements }`
    pub(super) fn block(&mut self) -> Parsed<Block> {
        let annotations = self.annotations()?;
        self.block_after(annotations)
    }

    fn block_after(&mut self, annotations: Vec<Annotation>) -> Parsed<Block> {
        let mut stmts = Vec::new();
        let span = self.nested(|p| {
            p.scoped(|p| {
                p.braced(|p| {
                    stmts.push(p.statement_or_decl()?);
                    Ok(())
                })
            })
        })?;
        self.grow(self.height)?;
        Ok(Block { annotations, stmts, span })
    }

    fn statement(&self, start: Span, kind: StmtKind) -> Stmt {
        Stmt { kind, span: self.span_from(start) }
    }

    /// A statement that is legal in a parser state, before the transition.
    pub(super) fn parser_statement(&mut self) -> Parsed<Stmt> {
        let word = match self.kind() {
            TokenKind::Switch => "switch",
            TokenKind::Exit => "exit",
            TokenKind::Return => "return",
            TokenKind::For => "for",
            TokenKind::Break => "break",
            TokenKind::Continue => "continue",
            _ => return self.statement_or_decl(),
        };
        self.error(|at| Diagnostic::error(at, format!("`{word}` is not allowed in a parser state")));
        Err(Failed)
    }

    fn statement_or_decl(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        let annotations = self.annotations()?;
        let kind = match self.kind() {
            TokenKind::OpenBrace => StmtKind::Block(self.block_after(annotations)?),
            TokenKind::For => self.for_loop(annotations)?,
            TokenKind::Const => {
                let kind = self.constant()?;
                StmtKind::Decl(Box::new(self.decl(start, annotations, kind)))
            }
            TokenKind::Action | TokenKind::Table => {
                let found = self.found();
                self.error(|at| {
                    Diagnostic::error(at, format!("{found} cannot be declared inside a block"))
                        .help("move it in front of the `apply` block, or close the block above")
                });
                return Err(Failed);
            }
            _ if self.is_decl() => {
                if let Some(kind) = self.direct_apply(&annotations)? {
                    return Ok(self.statement(start, kind));
                }
                let kind = self.value_decl(DeclContext::Local)?;
                StmtKind::Decl(Box::new(self.decl(start, annotations, kind)))
            }
            _ if !annotations.is_empty() => {
                return self.expected("a declaration, a block or a loop after the annotation");
            }
            _ => return self.plain_statement(),
        };
        Ok(self.statement(start, kind))
    }

    /// Whether a variable or instance declaration, or `T.apply`, starts here.
    fn is_decl(&self) -> bool {
        if self.is_type_at(0) {
            let name_at = if self.kind() == TokenKind::Dot { 1 } else { 0 };
            // `E.member` is an expression.
            return self.kind_ahead(name_at + 1) != TokenKind::Dot || self.is_direct_apply(name_at + 1);
        }
        // Two names in a row: the first one must be a type's.
        self.kind().is_name() && self.kind_ahead(1).is_name()
    }

    /// Whether `.apply(` follows.
    fn is_direct_apply(&self, ahead: usize) -> bool {
        self.kind_ahead(ahead) == TokenKind::Dot
            && self.kind_ahead(ahead + 1) == TokenKind::Apply
            && self.kind_ahead(ahead + 2) == TokenKind::OpenParen
    }

    /// `T.apply(args);` or `T<A>.apply(args);` where `T` is a type. Consumes nothing if it returns `None`.
    fn direct_apply(&mut self, annotations: &[Annotation]) -> Parsed<Option<StmtKind>> {
        let at = self.at;
        let name_at = if self.kind() == TokenKind::Dot { 1 } else { 0 };
        let is_plain = self.is_direct_apply(name_at + 1);
        if !is_plain && self.kind_ahead(name_at + 1) != TokenKind::Less {
            return Ok(None);
        }
        let ty: TypeRef = self.type_ref()?;
        if !self.is_direct_apply(0) || !matches!(ty.kind, TypeRefKind::Named { .. }) {
            self.at = at;
            return Ok(None);
        }
        if !annotations.is_empty() {
            return self.expected("a declaration after the annotation");
        }
        self.bump();
        self.bump();
        let args = self.args()?;
        self.semicolon()?;
        Ok(Some(StmtKind::DirectApply { ty, args }))
    }

    /// A statement that is not a declaration: a branch of an `if`, or the body of a loop.
    fn nested_statement(&mut self) -> Parsed<Stmt> {
        if self.kind() == TokenKind::OpenBrace {
            // The block counts its level itself.
            return self.statement_or_decl();
        }
        self.nested(|p| match p.kind() {
            TokenKind::At | TokenKind::For => p.statement_or_decl(),
            _ if p.is_decl() => {
                let start = p.span();
                if let Some(kind) = p.direct_apply(&[])? {
                    return Ok(p.statement(start, kind));
                }
                p.error(|at| {
                    Diagnostic::error(at, "a declaration cannot be the body of a statement")
                        .help("put it into `{ ... }`")
                });
                Err(Failed)
            }
            _ => p.plain_statement(),
        })
    }

    fn plain_statement(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        self.height = 1;
        let kind = match self.kind() {
            TokenKind::Semicolon => {
                self.bump();
                StmtKind::Empty
            }
            TokenKind::If => return self.conditional(),
            TokenKind::Switch => self.switch()?,
            TokenKind::Return => {
                self.bump();
                let value = if self.kind() == TokenKind::Semicolon { None } else { Some(self.free_expr()?) };
                self.semicolon()?;
                StmtKind::Return(value)
            }
            TokenKind::Exit => self.single_word(StmtKind::Exit)?,
            TokenKind::Break => self.single_word(StmtKind::Break)?,
            TokenKind::Continue => self.single_word(StmtKind::Continue)?,
            TokenKind::Else => {
                self.error(|at| Diagnostic::error(at, "this `else` belongs to no `if`"));
                return Err(Failed);
            }
            _ => {
                let kind = self.assignment_or_call()?;
                self.semicolon()?;
                kind
            }
        };
        Ok(self.statement(start, kind))
    }

    fn single_word(&mut self, kind: StmtKind) -> Parsed<StmtKind> {
        self.bump();
        self.semicolon()?;
        Ok(kind)
    }

    /// `a = e`, `a += e` or a call, without the `;`
    fn assignment_or_call(&mut self) -> Parsed<StmtKind> {
        let begins = self.kind().is_name()
            || matches!(
                self.kind(),
                TokenKind::OpenParen | TokenKind::Dot | TokenKind::This | TokenKind::Error
            );
        if !begins {
            return self.expected("a statement");
        }
        let target = self.postfix(true)?;
        if let Some((op, tokens)) = self.assign_op() {
            if !is_lvalue(&target) {
                let span = target.span;
                self.error(|_| Diagnostic::error(span, "this cannot be assigned to"));
            }
            for _ in 0..tokens {
                self.bump();
            }
            let below = self.height;
            let value = self.expr()?;
            self.grow(below.max(self.height))?;
            return Ok(StmtKind::Assign { op, target, value });
        }
        if matches!(target.kind, ExprKind::Call { .. } | ExprKind::Construct { .. }) {
            return Ok(StmtKind::Call(target));
        }
        self.expected("`=` or a call")
    }

    /// The assignment operator at the cursor and its length in tokens.
    fn assign_op(&self) -> Option<(Option<BinaryOp>, u8)> {
        let op = match self.kind() {
            TokenKind::Assign => return Some((None, 1)),
            TokenKind::StarAssign => BinaryOp::Mul,
            TokenKind::SlashAssign => BinaryOp::Div,
            TokenKind::PercentAssign => BinaryOp::Mod,
            TokenKind::PlusAssign => BinaryOp::Add,
            TokenKind::MinusAssign => BinaryOp::Sub,
            TokenKind::PlusSatAssign => BinaryOp::AddSat,
            TokenKind::MinusSatAssign => BinaryOp::SubSat,
            TokenKind::ShlAssign => BinaryOp::Shl,
            TokenKind::AndAssign => BinaryOp::BitAnd,
            TokenKind::OrAssign => BinaryOp::BitOr,
            TokenKind::XorAssign => BinaryOp::BitXor,
            TokenKind::Greater if self.touches_next(0) && self.kind_ahead(1) == TokenKind::GreaterEq => {
                return Some((Some(BinaryOp::Shr), 2));
            }
            _ => return None,
        };
        Some((Some(op), 1))
    }

    /// `(e)`
    fn bracketed(&mut self) -> Parsed<Expr> {
        let open = self.expect(TokenKind::OpenParen)?;
        let expr = self.free_expr()?;
        self.expect_close(TokenKind::CloseParen, open)?;
        Ok(expr)
    }

    /// `if`. Loops over a chain of `else if` instead of recursing.
    fn conditional(&mut self) -> Parsed<Stmt> {
        let mut links = Vec::new();
        let mut below = 0;
        let mut last = None;
        while self.kind() == TokenKind::If {
            let start = self.bump();
            let cond = self.bracketed()?;
            below = below.max(self.height);
            let then = self.nested_statement()?;
            below = below.max(self.height);
            links.push((start, cond, then));
            if !self.eat(TokenKind::Else) {
                break;
            }
            if self.kind() != TokenKind::If {
                last = Some(Box::new(self.nested_statement()?));
                below = below.max(self.height);
                break;
            }
        }
        let mut chain: Option<Box<Stmt>> = last;
        while let Some((start, cond, then)) = links.pop() {
            self.grow(below)?;
            below += 1;
            let kind = StmtKind::If { cond, then: Box::new(then), otherwise: chain };
            chain = Some(Box::new(self.statement(start, kind)));
        }
        chain.map(|stmt| *stmt).ok_or(Failed)
    }

    fn switch(&mut self) -> Parsed<StmtKind> {
        self.expect(TokenKind::Switch)?;
        let expr = self.bracketed()?;
        let mut below = self.height;
        let mut cases = Vec::new();
        self.braced(|p| {
            let start = p.span();
            let label = if p.kind() == TokenKind::Default {
                let span = p.bump();
                Expr { kind: ExprKind::Default, span }
            } else {
                p.expr()?
            };
            below = below.max(p.height);
            p.expect(TokenKind::Colon)?;
            let has_body = matches!(p.kind(), TokenKind::OpenBrace | TokenKind::At);
            let body = if has_body { Some(p.block()?) } else { None };
            cases.push(SwitchCase { label, body, span: p.span_from(start) });
            Ok(())
        })?;
        self.grow(below.max(self.height))?;
        Ok(StmtKind::Switch { expr, cases })
    }

    /// `for (init; cond; update) body` and `for (T x in range) body`
    fn for_loop(&mut self, mut annotations: Vec<Annotation>) -> Parsed<StmtKind> {
        self.expect(TokenKind::For)?;
        let open = self.expect(TokenKind::OpenParen)?;
        self.scoped(|p| {
            let start = p.span();
            let variable_annotations = p.annotations()?;
            let ty = if p.is_decl() { Some(p.type_ref()?) } else { None };
            if p.kind().is_name() && p.kind_ahead(1) == TokenKind::In {
                annotations.extend(variable_annotations);
                if ty.is_none() {
                    let help = format!("write `for (bit<8> {} in ...)`", p.text_of(p.span()));
                    p.error(|at| Diagnostic::error(at, "the loop variable needs a type").help(help));
                }
                let name = p.name()?;
                p.declare_value(&name);
                p.bump();
                let over = p.keyset()?;
                let below = p.height;
                p.expect_close(TokenKind::CloseParen, open)?;
                let body = Box::new(p.nested_statement()?);
                p.grow(below.max(p.height))?;
                return Ok(StmtKind::ForIn { annotations, ty, name, over, body });
            }

            let mut init = Vec::new();
            if let Some(ty) = ty {
                init.push(p.loop_variable(start, variable_annotations, ty)?);
            } else if p.kind() != TokenKind::Semicolon {
                init.push(p.loop_step()?);
            }
            while !init.is_empty() && p.eat(TokenKind::Comma) {
                let start = p.span();
                let annotations = p.annotations()?;
                init.push(if p.is_decl() {
                    let ty = p.type_ref()?;
                    p.loop_variable(start, annotations, ty)?
                } else {
                    p.loop_step()?
                });
            }
            p.expect(TokenKind::Semicolon)?;
            let cond = p.free_expr()?;
            let below = p.height;
            p.expect(TokenKind::Semicolon)?;
            let update = p.separated(TokenKind::CloseParen, false, Self::loop_step)?;
            p.expect_close(TokenKind::CloseParen, open)?;
            let body = Box::new(p.nested_statement()?);
            p.grow(below.max(p.height))?;
            Ok(StmtKind::For { annotations, init, cond, update, body })
        })
    }

    fn loop_variable(&mut self, start: Span, annotations: Vec<Annotation>, ty: TypeRef) -> Parsed<Stmt> {
        let (ty, name) = self.declarator(ty)?;
        self.declare_value(&name);
        let init = if self.eat(TokenKind::Assign) { Some(self.free_expr()?) } else { None };
        let decl = self.decl(start, annotations, DeclKind::Variable { ty, name, init });
        Ok(self.statement(start, StmtKind::Decl(Box::new(decl))))
    }

    fn loop_step(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        let kind = self.assignment_or_call()?;
        Ok(self.statement(start, kind))
    }
}

/// Whether the form of an expression allows it on the left of `=`.
fn is_lvalue(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Name(_) | ExprKind::This => true,
        ExprKind::Member { base, .. }
        | ExprKind::Index { base, .. }
        | ExprKind::Slice { base, .. }
        | ExprKind::PlusSlice { base, .. } => is_lvalue(base),
        _ => false,
    }
}
