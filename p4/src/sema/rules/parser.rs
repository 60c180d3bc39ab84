//! Parses a restriction.
//!
//! ```text
//! weakest   ;   ->   ||   &&   == != < <= > >=   ! -   ::   strongest
//! ```
//!
//! `->` and comparisons can't be chained without brackets.

use super::lexer::{Parsed, Token, fault, tokens};
use crate::ir::Comparison;
use num_bigint::BigInt;
use std::ops::Range;

/// Maximum nesting of brackets and signs.
const MAX_DEPTH: usize = 256;

/// An expression with its bytes in the text.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub kind: Kind,
    pub at: Range<usize>,
}

/// Kinds of expressions, before names and types are known.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Bool(bool),
    Number(BigInt),
    /// A key or parameter.
    Name(String),
    /// `key::field`
    Field(String, String),
    /// `::attribute`
    Attribute(String),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Implies(Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
}

/// The clauses of a text, separated by `;`, and by `&&` outside of brackets.
pub(super) fn clauses(text: &str) -> Parsed<Vec<Expr>> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let whole = parser.sequence(&Token::End)?;
    let mut clauses = Vec::new();
    split(whole, &mut clauses);
    Ok(clauses)
}

/// Takes conjunctions apart.
fn split(expr: Expr, out: &mut Vec<Expr>) {
    match expr.kind {
        Kind::All(parts) => parts.into_iter().for_each(|part| split(part, out)),
        _ => out.push(expr),
    }
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn token(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn place(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    fn bump(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.token(), Token::Sign(found) if *found == sign);
        if found {
            self.bump();
        }
        found
    }

    fn expected<T>(&self, what: &str) -> Parsed<T> {
        let found = match self.token() {
            Token::End => "the end".to_owned(),
            Token::Name(name) => format!("`{name}`"),
            Token::Number(number) => format!("`{number}`"),
            Token::Sign(sign) => format!("`{sign}`"),
        };
        fault(self.place(), format!("expected {what}, found {found}"))
    }

    /// Clauses separated by `;`, up to this token; a `;` at the end is allowed.
    fn sequence(&mut self, end: &Token) -> Parsed<Expr> {
        let mut parts = vec![self.implication()?];
        loop {
            let more = self.take(";");
            match self.token() {
                token if token == end => break,
                _ if more => parts.push(self.implication()?),
                _ if *end == Token::End => return self.expected("`;` or an operator"),
                _ => return self.expected("`)`"),
            }
        }
        let at = parts[0].at.start..parts.last().map_or(0, |last| last.at.end);
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Expr { kind: Kind::All(parts), at },
        })
    }

    fn implication(&mut self) -> Parsed<Expr> {
        let left = self.alternatives()?;
        if !self.take("->") {
            return Ok(left);
        }
        let right = self.alternatives()?;
        self.no_more(&["->"])?;
        Ok(binary(Kind::Implies, left, right))
    }

    /// Operands joined by one operator.
    fn chain(
        &mut self,
        sign: &str,
        operand: impl Fn(&mut Parser) -> Parsed<Expr>,
        join: impl Fn(Vec<Expr>) -> Kind,
    ) -> Parsed<Expr> {
        let first = operand(self)?;
        if !self.take(sign) {
            return Ok(first);
        }
        let (start, mut operands) = (first.at.start, vec![first]);
        loop {
            operands.push(operand(self)?);
            if !self.take(sign) {
                let end = operands.last().map_or(start, |last| last.at.end);
                return Ok(Expr { kind: join(operands), at: start..end });
            }
        }
    }

    fn alternatives(&mut self) -> Parsed<Expr> {
        self.chain("||", |parser| parser.chain("&&", Parser::comparison, Kind::All), Kind::Any)
    }

    fn comparison(&mut self) -> Parsed<Expr> {
        const SIGNS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let left = self.unary()?;
        let Some((_, comparison)) = SIGNS.into_iter().find(|(sign, _)| self.take(sign)) else {
            return Ok(left);
        };
        let right = self.unary()?;
        self.no_more(&SIGNS.map(|(sign, _)| sign))?;
        Ok(binary(|left, right| Kind::Compare(comparison, left, right), left, right))
    }

    /// Rejects another operator that would be ambiguous.
    fn no_more(&self, signs: &[&str]) -> Parsed<()> {
        match self.token() {
            Token::Sign(sign) if signs.contains(sign) => {
                fault(self.place(), format!("`{sign}` can't follow another one like it; use brackets"))
            }
            _ => Ok(()),
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return fault(self.place(), format!("nested deeper than {MAX_DEPTH}"));
        }
        let start = self.place().start;
        let made = if self.take("!") {
            self.unary().map(|inner| Kind::Not(Box::new(inner)))
        } else if self.take("-") {
            self.unary().map(|inner| Kind::Negative(Box::new(inner)))
        } else {
            self.primary()
        };
        self.depth -= 1;
        let end = self.tokens[self.at.saturating_sub(1)].1.end;
        made.map(|kind| Expr { kind, at: start..end })
    }

    fn primary(&mut self) -> Parsed<Kind> {
        if self.take("(") {
            let inner = self.sequence(&Token::Sign(")"))?;
            self.bump();
            return Ok(inner.kind);
        }
        if self.take("::") {
            return Ok(Kind::Attribute(self.name("the name of an attribute")?));
        }
        match self.token().clone() {
            Token::Number(number) => {
                self.bump();
                Ok(Kind::Number(number))
            }
            Token::Name(name) => {
                self.bump();
                Ok(match name.as_str() {
                    "true" => Kind::Bool(true),
                    "false" => Kind::Bool(false),
                    _ if self.take("::") => Kind::Field(name, self.name("the name of a field")?),
                    _ => Kind::Name(name),
                })
            }
            _ => self.expected("a key, number or condition"),
        }
    }

    fn name(&mut self, what: &str) -> Parsed<String> {
        match self.token().clone() {
            Token::Name(name) => {
                self.bump();
                Ok(name)
            }
            _ => self.expected(what),
        }
    }
}

fn binary(make: impl FnOnce(Box<Expr>, Box<Expr>) -> Kind, left: Expr, right: Expr) -> Expr {
    let at = left.at.start..right.at.end;
    Expr { kind: make(Box::new(left), Box::new(right)), at }
}
