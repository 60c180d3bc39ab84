//! Annotations.

use super::Checker;
use crate::ast::{self, AnnotationBody, AnnotationToken};
use crate::ir::{Annotation, AnnotationValue, Structured};
use crate::sema::tree::Annos;
use crate::sema::value::Value;
use num_traits::ToPrimitive;
use std::rc::Rc;

impl Checker {
    /// Takes apart what the compiler knows; keeps the rest as text.
    pub(super) fn annos(&mut self, list: &[ast::Annotation]) -> Rc<Annos> {
        let mut annos = Annos::default();
        for annotation in list {
            let text = single_string(&annotation.body);
            match annotation.name.name.as_str() {
                "name" => match text {
                    Some(text) => annos.name = Some(text),
                    None => self.error(annotation.span, "`@name` takes one string"),
                },
                "id" => match self.anno_number(annotation) {
                    Some(id) if annos.id.is_none() => annos.id = Some(id),
                    Some(_) => self.error(annotation.span, "`@id` is given twice"),
                    None => self.error(annotation.span, "`@id` takes one number of at most 32 bits"),
                },
                // These mean something and are shown to the control plane as well.
                other => {
                    match other {
                        "hidden" => annos.hidden = true,
                        "optional" => annos.optional = true,
                        "tableonly" => annos.table_only = true,
                        "defaultonly" => annos.default_only = true,
                        "deprecated" => annos.deprecated = Some(text.unwrap_or_default()),
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

    fn anno_number(&mut self, annotation: &ast::Annotation) -> Option<u32> {
        match self.anno_numbers(annotation)[..] {
            [n] => Some(n),
            _ => None,
        }
    }

    /// Numbers between the brackets, separated by commas; names of constants are looked up.
    fn anno_numbers(&mut self, annotation: &ast::Annotation) -> Vec<u32> {
        let mut numbers = Vec::new();
        match &annotation.body {
            AnnotationBody::Tokens(tokens) => {
                for token in tokens.iter().filter(|t| t.text != ",") {
                    let name = ast::Ident { name: token.text.clone(), span: token.span };
                    let known = self.find(&ast::Name { global: false, ident: name }).cloned();
                    let value = match known {
                        Some(super::scope::Symbol::Const(e)) => {
                            e.value().and_then(Value::as_int).and_then(ToPrimitive::to_u32)
                        }
                        _ => number(&token.text),
                    };
                    match value {
                        Some(value) => numbers.push(value),
                        None => self.error(token.span, format!("expected a number, found `{}`", token.text)),
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

    fn keep(&mut self, annotation: &ast::Annotation) -> Annotation {
        let name = annotation.name.name.clone();
        let (body, structured) = match &annotation.body {
            AnnotationBody::Empty => (String::new(), None),
            AnnotationBody::Tokens(tokens) => (join(tokens), None),
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
        Annotation { name, body, structured }
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
        AnnotationBody::Tokens(tokens) if !tokens.is_empty() && tokens.iter().all(|t| t.is_string) => {
            Some(tokens.iter().map(|t| t.text.as_str()).collect())
        }
        AnnotationBody::List(items) => match &items[..] {
            [ast::Expr { kind: ast::ExprKind::String(s), .. }] => Some(s.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Tokens as text, strings in quotes.
fn join(tokens: &[AnnotationToken]) -> String {
    let mut out = String::new();
    for token in tokens {
        if token.is_string {
            out.push_str(&format!("\"{}\"", token.text));
        } else {
            out.push_str(&token.text);
        }
        if token.text == "," {
            out.push(' ');
        }
    }
    out
}

/// A number as written: decimal, or with a base.
fn number(text: &str) -> Option<u32> {
    let text = text.replace('_', "");
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0b") => (&lower[2..], 2),
        Some("0o") => (&lower[2..], 8),
        Some("0d") => (&lower[2..], 10),
        _ => (lower.as_str(), 10),
    };
    u32::from_str_radix(digits, radix).ok()
}
