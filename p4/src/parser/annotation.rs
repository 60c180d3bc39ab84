//! Parses annotations.

use super::{Parsed, Parser, literal};
use crate::ast::{Annotation, AnnotationBody, AnnotationToken, Expr, Ident, Span};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Zero or more annotations.
    pub(super) fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while self.kind() == TokenKind::At {
            annotations.push(self.annotation()?);
        }
        Ok(annotations)
    }

    fn annotation(&mut self) -> Parsed<Annotation> {
        let start = self.expect(TokenKind::At)?;
        if !self.kind().is_word() {
            return self.expected("the annotation's name");
        }
        let name = self.ident();
        if name.name == "pragma" {
            return self.pragma(start);
        }
        let body = match self.kind() {
            TokenKind::OpenParen => {
                let open = self.bump();
                let tokens = self.annotation_tokens()?;
                self.expect_close(TokenKind::CloseParen, open)?;
                AnnotationBody::Tokens(tokens)
            }
            TokenKind::OpenBracket => {
                let open = self.bump();
                let body = if self.kind().is_name() && self.kind_ahead(1) == TokenKind::Assign {
                    AnnotationBody::KeyValues(self.separated(
                        TokenKind::CloseBracket,
                        true,
                        Self::key_value,
                    )?)
                } else {
                    AnnotationBody::List(self.separated(TokenKind::CloseBracket, true, Self::free_expr)?)
                };
                self.expect_close(TokenKind::CloseBracket, open)?;
                body
            }
            _ => AnnotationBody::Empty,
        };
        Ok(Annotation { name, body, span: self.span_from(start) })
    }

    /// `name = e`
    pub(super) fn key_value(&mut self) -> Parsed<(Ident, Expr)> {
        let name = self.name()?;
        self.expect(TokenKind::Assign)?;
        Ok((name, self.free_expr()?))
    }

    /// Tokens up to the bracket that closes the body, which is not consumed.
    fn annotation_tokens(&mut self) -> Parsed<Vec<AnnotationToken>> {
        let mut tokens = Vec::new();
        let mut depth = 0u32;
        loop {
            match self.kind() {
                TokenKind::End => return self.expected("`)`"),
                TokenKind::OpenParen => depth += 1,
                TokenKind::CloseParen if depth == 0 => return Ok(tokens),
                TokenKind::CloseParen => depth -= 1,
                _ => {}
            }
            tokens.push(self.annotation_token());
        }
    }

    fn annotation_token(&mut self) -> AnnotationToken {
        let is_string = self.kind() == TokenKind::String;
        let span = self.bump();
        let text = self.text_of(span);
        let text = if is_string { literal::string(text) } else { text.to_owned() };
        AnnotationToken { text, is_string, span }
    }

    /// `@pragma name tokens` up to the end of the line: P4_14's notation of an annotation.
    fn pragma(&mut self, start: Span) -> Parsed<Annotation> {
        let rest = self.text.get(start.lo as usize..).unwrap_or("");
        let line_end = start.lo as usize + rest.find('\n').unwrap_or(rest.len());
        let on_line = |p: &Self| p.kind() != TokenKind::End && (p.span().lo as usize) < line_end;
        if !on_line(self) || !self.kind().is_word() {
            return self.expected("the pragma's name");
        }
        let name = self.ident();
        let mut tokens = Vec::new();
        while on_line(self) {
            tokens.push(self.annotation_token());
        }
        let body = if tokens.is_empty() { AnnotationBody::Empty } else { AnnotationBody::Tokens(tokens) };
        Ok(Annotation { name, body, span: self.span_from(start) })
    }
}
