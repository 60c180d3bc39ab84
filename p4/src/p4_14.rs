//! Recognises programs in P4_14, the language's first version, so that one message names the version, instead of many
//! about P4_16's syntax.

use crate::diag::Diagnostic;
use crate::lexer::{Token, TokenKind, lex};

/// Words that begin a declaration `WORD NAME {` in P4_14 alone.
const DECLARATIONS: &[&str] = &[
    "header_type",
    "field_list",
    "field_list_calculation",
    "calculated_field",
    "parser_exception",
    "counter",
    "meter",
    "register",
    "action_profile",
];
/// Blocks without parameters, `WORD NAME {`: the control flow's two, and the parser's first state.
const BLOCKS: &[(&str, &str)] = &[("control", "ingress"), ("control", "egress"), ("parser", "start")];
/// Words that begin an instance `WORD TYPE NAME;`.
const INSTANCES: &[&str] = &["header", "metadata"];

/// Message about a text that the parser has refused, if it is P4_14.
pub(crate) fn recognised(text: &str) -> Option<Diagnostic> {
    let (tokens, _) = lex(text);
    let word = |token: &Token| text.get(token.span.lo as usize..token.span.hi as usize).unwrap_or("");
    let mut depth = 0u32;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::OpenBrace => depth += 1,
            TokenKind::CloseBrace => depth = depth.saturating_sub(1),
            _ => {}
        }
        let begins = at == 0 || matches!(tokens[at - 1].kind, TokenKind::CloseBrace | TokenKind::Semicolon);
        if depth > 0 || !begins || !token.kind.is_word() {
            continue;
        }
        let [name, next, after] = [1, 2, 3].map(|ahead| tokens.get(at + ahead).unwrap_or(token));
        let is_block = name.kind.is_word() && next.kind == TokenKind::OpenBrace;
        let is_instance = name.kind.is_word()
            && next.kind.is_word()
            && matches!(after.kind, TokenKind::Semicolon | TokenKind::OpenBracket | TokenKind::OpenBrace);
        let first = word(token);
        let found = is_block && (DECLARATIONS.contains(&first) || BLOCKS.contains(&(first, word(name))))
            || is_instance && INSTANCES.contains(&first);
        if found {
            return Some(
                Diagnostic::error(token.span.to(name.span), "this is P4_14, and P4_16 is needed")
                    .help("p4c translates it: `p4test --std p4-14 OLD.p4 --pp NEW.p4`"),
            );
        }
    }
    None
}
