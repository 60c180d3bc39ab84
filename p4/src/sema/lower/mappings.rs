//! `@p4runtime_translation_mappings`: controllers' names of some values of a translated type.

use super::Lower;
use crate::ast::AnnotationToken;
use crate::diag::Diagnostic;
use crate::ir::{Annotation, ControllerValue, Ty};
use num_bigint::BigUint;

impl Lower<'_> {
    /// `@p4runtime_translation_mappings` of a type that is translated.
    pub(super) fn mappings(
        &mut self,
        annotations: &[Annotation],
        translation: &Option<(String, Option<u32>)>,
        ty: Ty,
    ) -> Vec<(ControllerValue, BigUint)> {
        let mut found: Vec<(ControllerValue, BigUint)> = Vec::new();
        let Some((_, sdn)) = translation else { return found };
        for annotation in annotations.iter().filter(|a| a.name == "p4runtime_translation_mappings") {
            let Some(pairs) = mapping_pairs(&annotation.tokens) else {
                self.diags.push(
                    Diagnostic::error(annotation.span, "`@p4runtime_translation_mappings` takes pairs").help(
                        "write `({ {\"name\", 1}, {\"other\", 2} })`: what controllers say, and the number",
                    ),
                );
                continue;
            };
            for (word, number) in pairs {
                let value = match (sdn, word.is_string) {
                    (None, true) => Ok(ControllerValue::Text(word.text.clone())),
                    (Some(width), false) => match unsigned(&word.text) {
                        Some(value) if value.bits() <= u64::from(*width) => {
                            Ok(ControllerValue::Number(value))
                        }
                        _ => Err(format!("expected a number of {width} bits")),
                    },
                    (None, false) => {
                        Err("controllers use strings of this type: expected a string".to_owned())
                    }
                    (Some(_), true) => {
                        Err("controllers use numbers of this type: expected a number".to_owned())
                    }
                };
                let stored = unsigned(&number.text).filter(|n| n.bits() <= u64::from(ty.width()));
                match (value, stored) {
                    (Err(why), _) => self.error(word.span, why),
                    (_, None) => {
                        self.error(number.span, format!("expected a number of {} bits", ty.width()));
                    }
                    (Ok(value), Some(stored)) => {
                        if found.iter().any(|(v, n)| *v == value || *n == stored) {
                            self.error(word.span, "each value and each number is mapped once");
                        } else {
                            found.push((value, stored));
                        }
                    }
                }
            }
        }
        found
    }
}

/// `{ {value, number}, … }`
fn mapping_pairs(tokens: &[AnnotationToken]) -> Option<Vec<(&AnnotationToken, &AnnotationToken)>> {
    let is = |token: &AnnotationToken, sign: &str| !token.is_string && token.text == sign;
    let [open, inner @ .., close] = tokens else { return None };
    if !is(open, "{") || !is(close, "}") {
        return None;
    }
    let (mut pairs, mut rest) = (Vec::new(), inner);
    while let [open, value, comma, number, close, more @ ..] = rest {
        if !(is(open, "{") && is(comma, ",") && is(close, "}")) {
            return None;
        }
        pairs.push((value, number));
        rest = match more {
            [comma, more @ ..] if is(comma, ",") => more,
            more => more,
        };
    }
    rest.is_empty().then_some(pairs)
}

/// A number as written: decimal, or with a base.
fn unsigned(text: &str) -> Option<BigUint> {
    let (digits, radix) = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (&text[2..], 16),
        Some("0b") => (&text[2..], 2),
        Some("0o") => (&text[2..], 8),
        _ => (text, 10),
    };
    // Longer ones fit nowhere.
    (digits.len() <= 700).then(|| BigUint::parse_bytes(digits.as_bytes(), radix)).flatten()
}
