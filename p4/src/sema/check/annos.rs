//! Checks annotations.

use super::Checker;
use super::scope::{Symbol, TypeSym};
use crate::ast::{self, AnnotationBody, AnnotationToken};
use crate::diag::Diagnostic;
use crate::ir::{Annotation, AnnotationValue, Structured};
use crate::sema::tree::Annos;
use crate::sema::types::Type;
use crate::sema::value::Value;
use num_traits::ToPrimitive;
use std::rc::Rc;

impl Checker {
    /// Interprets the annotations that the compiler knows and keeps the rest as text.
    pub(super) fn annos(&mut self, list: &[ast::Annotation]) -> Rc<Annos> {
        let mut annos = Annos::default();
        for (at, annotation) in list.iter().enumerate() {
            let is_structured = |a: &ast::Annotation| {
                matches!(a.body, AnnotationBody::List(_) | AnnotationBody::KeyValues(_))
            };
            let mut before = list.iter().take(at).filter(|a| a.name.name == annotation.name.name);
            if before.any(|b| is_structured(b) || is_structured(annotation)) {
                self.error(annotation.span, format!("annotation `@{}` is given twice", annotation.name.name));
            }
            if annotation.name.name == "p4runtime_translation" {
                self.check_translation(annotation);
            }
            if matches!(annotation.body, AnnotationBody::Empty)
                && matches!(annotation.name.name.as_str(), "pkginfo" | "deprecated")
            {
                self.error(annotation.span, format!("`@{}` needs a body", annotation.name.name));
            }
            let text = single_string(&annotation.body);
            match annotation.name.name.as_str() {
                // If there are several, the first one counts.
                "name" => match text {
                    Some(text) => {
                        annos.name.get_or_insert(text);
                    }
                    None => self.error(annotation.span, "`@name` takes one string"),
                },
                "id" => match self.anno_number(annotation) {
                    Some(id) if annos.id.is_none() => annos.id = Some(id),
                    Some(_) => self.error(annotation.span, "`@id` is given twice"),
                    None => self.error(annotation.span, "`@id` takes one number of at most 32 bits"),
                },
                // These have a meaning for the compiler, and the control plane sees them too.
                other => {
                    match other {
                        "hidden" => annos.hidden = true,
                        "optional" => annos.optional = true,
                        "tableonly" => annos.table_only = true,
                        "defaultonly" => annos.default_only = true,
                        "deprecated" => {
                            if text.is_none() && !matches!(annotation.body, AnnotationBody::Empty) {
                                self.error(annotation.span, "`@deprecated` takes one string");
                            }
                            annos.deprecated = Some(text.unwrap_or_default());
                        }
                        "match" => self.check_match(annotation),
                        "field_list" => annos.field_lists.extend(self.anno_numbers(annotation)),
                        _ => {}
                    }
                    let rest = self.keep(annotation);
                    annos.rest.push(rest);
                }
            }
        }
        Rc::new(annos)
    }

    /// `@match(kind)` of a value set's field.
    fn check_match(&mut self, annotation: &ast::Annotation) {
        let AnnotationBody::Tokens(tokens) = &annotation.body else { return };
        let fine = matches!(&tokens[..], [kind] if self.match_kinds.contains(&kind.text));
        if !fine {
            self.error(annotation.span, "`@match` takes the name of a match kind");
        }
    }

    /// `("uri", W)`, `("uri", bit<W>)` or `("uri", string)`
    fn check_translation(&mut self, annotation: &ast::Annotation) {
        let AnnotationBody::Tokens(tokens) = &annotation.body else { return };
        let words: Vec<&str> = tokens.iter().map(|t| t.text.as_str()).collect();
        let fine = match &words[..] {
            [_, ",", "string"] => true,
            [_, ",", width] | [_, ",", "bit", "<", width, ">"] => number(width).is_some(),
            _ => false,
        };
        if !fine || !tokens.first().is_some_and(|t| t.is_string) {
            self.report(
                Diagnostic::error(annotation.span, "`@p4runtime_translation` takes a URI and a type")
                    .help("write `(\"uri\", bit<W>)` or `(\"uri\", string)`"),
            );
        }
    }

    fn anno_number(&mut self, annotation: &ast::Annotation) -> Option<u32> {
        match self.anno_numbers(annotation)[..] {
            [n] => Some(n),
            _ => None,
        }
    }

    /// Numbers between the brackets, separated by commas; constants may be named.
    fn anno_numbers(&mut self, annotation: &ast::Annotation) -> Vec<u32> {
        let mut numbers = Vec::new();
        match &annotation.body {
            AnnotationBody::Tokens(tokens) => {
                for words in tokens.split(|t| t.text == ",") {
                    let Some(first) = words.first() else { continue };
                    let value = match words {
                        [word] => number(&word.text).or_else(|| self.anno_constant(word)),
                        // `E.member`
                        [ty, dot, member] if dot.text == "." => self.anno_member(ty, member),
                        _ => None,
                    };
                    match value {
                        Some(value) => numbers.push(value),
                        None => self.error(first.span, format!("expected a number, found `{}`", first.text)),
                    }
                }
            }
            AnnotationBody::List(items) => {
                for item in items {
                    let value = self.expr(item);
                    match value.value().and_then(Value::as_int).and_then(ToPrimitive::to_u32) {
                        Some(value) => numbers.push(value),
                        None if value.is_bad() => {}
                        None => self.error(item.span, "expected a constant number"),
                    }
                }
            }
            _ => {}
        }
        numbers
    }

    fn anno_constant(&self, word: &AnnotationToken) -> Option<u32> {
        let ident = ast::Ident { name: word.text.clone(), span: word.span };
        match self.find(&ast::Name { global: false, ident })? {
            Symbol::Const(e) => e.value().and_then(Value::as_int).and_then(ToPrimitive::to_u32),
            _ => None,
        }
    }

    fn anno_member(&self, ty: &AnnotationToken, member: &AnnotationToken) -> Option<u32> {
        let ident = ast::Ident { name: ty.text.clone(), span: ty.span };
        match self.find(&ast::Name { global: false, ident })? {
            Symbol::Type(TypeSym::Plain(Type::Enum(e))) => {
                e.members.iter().find(|m| m.name == member.text).and_then(|m| m.value.to_u32())
            }
            _ => None,
        }
    }

    fn keep(&mut self, annotation: &ast::Annotation) -> Annotation {
        let name = annotation.name.name.clone();
        let (body, structured) = match &annotation.body {
            AnnotationBody::Empty => (String::new(), None),
            // Known to be pairs, whichever brackets are used.
            AnnotationBody::Tokens(tokens) if matches!(name.as_str(), "pkginfo" | "platform_property") => {
                (join(tokens), Some(Structured::KeyValues(pairs(tokens))))
            }
            AnnotationBody::Tokens(tokens) if HAVE_EXPRESSIONS.contains(&name.as_str()) => {
                (join(tokens), None)
            }
            AnnotationBody::Tokens(tokens) => (spaced(tokens), None),
            AnnotationBody::List(items) => {
                let values = items.iter().filter_map(|e| self.anno_value(e)).collect();
                (String::new(), Some(Structured::List(values)))
            }
            AnnotationBody::KeyValues(items) => {
                let values =
                    items.iter().filter_map(|(k, e)| Some((k.name.clone(), self.anno_value(e)?))).collect();
                (String::new(), Some(Structured::KeyValues(values)))
            }
        };
        let tokens = match &annotation.body {
            AnnotationBody::Tokens(tokens) => tokens.clone(),
            _ => Vec::new(),
        };
        Annotation { name, body, structured, tokens, span: annotation.span }
    }

    fn anno_value(&mut self, expr: &ast::Expr) -> Option<AnnotationValue> {
        let value = self.expr(expr);
        match value.value() {
            Some(Value::Str(s)) => Some(AnnotationValue::Str(s.clone())),
            Some(Value::Bool(b)) => Some(AnnotationValue::Bool(*b)),
            Some(Value::Int(i)) => match i.to_i64() {
                Some(i) => Some(AnnotationValue::Int(i)),
                None => {
                    self.error(expr.span, "a number in an annotation has at most 64 bits");
                    None
                }
            },
            _ if value.is_bad() => None,
            _ => {
                self.error(expr.span, "an annotation holds constant strings, numbers and booleans");
                None
            }
        }
    }
}

fn single_string(body: &AnnotationBody) -> Option<String> {
    match body {
        AnnotationBody::Tokens(tokens) if tokens.iter().any(|t| t.is_string) => {
            // Strings stand side by side, or are joined by `++`.
            let strings = tokens.iter().filter(|t| t.is_string).map(|t| t.text.as_str()).collect();
            let joined = |t: &AnnotationToken| t.is_string || matches!(t.text.as_str(), "++" | "+");
            tokens.iter().all(joined).then_some(strings)
        }
        AnnotationBody::List(items) => match &items[..] {
            [ast::Expr { kind: ast::ExprKind::String(s), .. }] => Some(s.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Annotations whose bodies the reference compiler reads as expressions. P4Info shows these in the usual form,
/// `a, b.c`; of all others, it shows the tokens with blanks in between, as no meaning is known.
const HAVE_EXPRESSIONS: &[&str] = &[
    "alias",
    "command_line",
    "controller_header",
    "field_list",
    "length",
    "match",
    "max_group_size",
    "max_member_weight",
    "noWarn",
    "p4runtime_translation",
    "selector_size_semantics",
    "synchronous",
];

/// Tokens as text, strings in quotes, a blank after each comma.
fn join(tokens: &[AnnotationToken]) -> String {
    let mut out = String::new();
    for token in tokens {
        out.push_str(&token.quoted());
        if token.text == "," && !token.is_string {
            out.push(' ');
        }
    }
    out
}

/// Tokens as text, strings in quotes, a blank between any two.
fn spaced(tokens: &[AnnotationToken]) -> String {
    tokens.iter().map(|token| token.quoted()).collect::<Vec<_>>().join(" ")
}

/// `k = v` separated by commas.
fn pairs(tokens: &[AnnotationToken]) -> Vec<(String, AnnotationValue)> {
    let mut pairs = Vec::new();
    for words in tokens.split(|t| t.text == "," && !t.is_string) {
        if let [key, equals, value] = words
            && equals.text == "="
        {
            let value = match number(&value.text) {
                Some(n) if !value.is_string => AnnotationValue::Int(i64::from(n)),
                _ => AnnotationValue::Str(value.text.clone()),
            };
            pairs.push((key.text.clone(), value));
        }
    }
    pairs
}

/// A number as written: decimal, or with a base, or with a width.
fn number(text: &str) -> Option<u32> {
    let text = text.replace('_', "");
    let lower = text.to_ascii_lowercase();
    let lower = match lower.split_once(['w', 's']) {
        Some((width, digits)) if width.parse::<u32>().is_ok() => digits.to_owned(),
        _ => lower,
    };
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0b") => (&lower[2..], 2),
        Some("0o") => (&lower[2..], 8),
        Some("0d") => (&lower[2..], 10),
        _ => (lower.as_str(), 10),
    };
    u32::from_str_radix(digits, radix).ok()
}
