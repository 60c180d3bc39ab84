//! The parser: states with operations and transitions.

use super::expr::{cast, constant};
use super::objects::named;
use super::{Cursor, NOWHERE, Reader, Result};
use num_bigint::BigUint;
use num_traits::Zero;
use p4rack_p4::ir::{
    Expr, HeaderRef, MatchKind, Matcher, Named, Next, NextState, Parser, State, StateId, Stmt, Ty,
};
use std::collections::HashMap;

/// Bits that a look ahead reads.
const LOOK_MAX: u64 = 2048;

impl<'j> Reader<'j> {
    /// The states of the parser, the first one first.
    pub(super) fn parser(&mut self) -> Result<Parser> {
        let parsers = self.root.get("parsers")?.list()?;
        let parser = match &parsers[..] {
            [parser] => parser,
            _ => {
                return self
                    .root
                    .get("parsers")?
                    .wrong(format!("expected one parser, as simple_switch has; {}", super::AGAIN));
            }
        };
        let mut states = parser.get("parse_states")?.list()?;
        let first = parser.get("init_state")?;
        let mut start = None;
        for (at, state) in states.iter().enumerate() {
            if state.text_of("name")? == first.text()? {
                start = Some(at);
            }
        }
        let Some(start) = start else { return first.wrong(format!("there is no state `{}`", first.text()?)) };
        states.swap(0, start);
        let mut names: HashMap<&str, StateId> = HashMap::new();
        for (at, state) in states.iter().enumerate() {
            if names.insert(state.text_of("name")?, StateId(at as u32)).is_some() {
                return state.wrong("a second state with this name");
            }
        }
        let mut read = Vec::new();
        for state in &states {
            let mut stmts = Vec::new();
            for operation in state.list_of("parser_ops")? {
                self.parser_operation(&operation, &mut stmts)?;
            }
            let next = self.next(state, &names)?;
            read.push(State { name: state.text_of("name")?.to_owned(), stmts, next });
        }
        Ok(Parser { states: read })
    }

    fn parser_operation(&mut self, node: &Cursor<'j>, out: &mut Vec<Stmt>) -> Result<()> {
        let args = node.get("parameters")?;
        match node.text_of("op")? {
            op @ ("extract" | "extract_VL") => {
                let header = self.extracted(&args.at(0)?)?;
                let any = self.any_header(&header);
                let fields = &self.program.headers[any].fields;
                let is_variable = fields
                    .iter()
                    .any(|field| matches!(self.program.vars[field.var.0 as usize].ty, Ty::Varbit(_)));
                let varbit_bits = match op {
                    "extract_VL" => Some(self.low(&args.at(1)?, 32)?),
                    _ if is_variable => return self.old_length(node),
                    _ => None,
                };
                out.push(Stmt::Extract { header, varbit_bits });
            }
            "set" => {
                let (target, ty) = self.target(&args.at(0)?)?;
                let source = args.at(1)?;
                let value = match source.text_of("type")? {
                    "lookahead" => {
                        let (value, from) = look(&source)?;
                        let plain = Ty::Bit(ty.width());
                        cast(cast(value, from, plain), plain, ty)
                    }
                    _ => self.value(&source, ty)?,
                };
                out.push(Stmt::Assign { target, value, span: NOWHERE });
            }
            "verify" => {
                let cond = self.truth(&args.at(0)?)?;
                let error = match self.value(&args.at(1)?, Ty::Bit(32))? {
                    Expr::Const { value, ty } => constant(self.error_number(&value), ty),
                    other => other,
                };
                out.push(Stmt::Verify { cond, error });
            }
            "shift" => {
                let bytes = args.at(0)?.within(0, 1 << 16)?;
                out.push(Stmt::Advance(constant(8 * bytes, Ty::Bit(32))));
            }
            "advance" => out.push(Stmt::Advance(self.value(&args.at(0)?, Ty::Bit(32))?)),
            "primitive" => self.primitive(&args.at(0)?, out)?,
            other => return node.get("op")?.wrong(format!("there is no parser operation `{other}`")),
        }
        Ok(())
    }

    /// Headers whose length is an expression of their own fields were P4_14's.
    fn old_length(&self, node: &Cursor<'_>) -> Result<()> {
        node.wrong(
            "a header whose type says how long its variable field is (`length_exp`), as in programs in P4_14; translate \
             the program with p4c's `p4test --std p4-14 OLD.p4 --pp NEW.p4`",
        )
    }

    fn extracted(&self, node: &Cursor<'j>) -> Result<HeaderRef> {
        let value = node.get("value")?;
        match node.text_of("type")? {
            "regular" => Ok(HeaderRef::Fixed(self.header_named(&value)?)),
            "stack" => Ok(HeaderRef::Next(self.stack_named(&value)?)),
            "union_stack" => Ok(HeaderRef::Next(self.union_member(&value.at(0)?, &value.at(1)?)?)),
            other => node.wrong(format!("`{other}` can't be extracted")),
        }
    }

    fn next(&mut self, state: &Cursor<'j>, names: &HashMap<&str, StateId>) -> Result<Next> {
        let mut keys = Vec::new();
        for key in state.list_of("transition_key")? {
            self.count(&key, 1)?;
            let (value, ty) = match key.text_of("type")? {
                "lookahead" => look(&key)?,
                _ => self.exact(&key)?,
            };
            // Signed keys are compared as their bits.
            let plain = Ty::Bit(ty.width());
            keys.push((cast(value, ty, plain), plain));
        }
        let target = |transition: &Cursor<'_>| -> Result<NextState> {
            let Some(next) = transition.find("next_state") else { return Ok(NextState::Accept) };
            match names.get(next.text()?) {
                Some(state) => Ok(NextState::State(*state)),
                None => next.wrong(format!("there is no state `{}`", next.text()?)),
            }
        };
        let mut cases = Vec::new();
        let mut otherwise = NextState::Accept;
        for transition in state.list_of("transitions")? {
            let kind = match transition.find("type") {
                Some(kind) => kind.text()?,
                None => "hexstr",
            };
            // A case has a value for each key.
            self.count(&transition, keys.len())?;
            let value = transition.find("value");
            let is_default =
                value.as_ref().is_some_and(|value| value.text().is_ok_and(|text| text == "default"));
            match kind {
                "default" => otherwise = target(&transition)?,
                "hexstr" if is_default => otherwise = target(&transition)?,
                "hexstr" => {
                    cases.push((matchers(&transition, &keys)?, target(&transition)?));
                }
                "parse_vset" => {
                    let name = transition.get("value")?;
                    let Some(set) = self.value_sets.get(name.text()?).copied() else {
                        return name.wrong("there is no such value set");
                    };
                    let fields = &mut self.program.value_sets[set.0 as usize].fields;
                    let width: u32 = keys.iter().map(|(_, ty)| ty.width()).sum();
                    if fields.iter().map(|(_, ty, _)| ty.width()).sum::<u32>() != width {
                        return name.wrong("the value set has another width than the keys");
                    }
                    let is_same = |fields: &[(Named, Ty, MatchKind)]| {
                        fields.len() == keys.len()
                            && fields.iter().zip(&keys).all(|((_, a, _), (_, b))| a == b)
                    };
                    let is_used = !self.used_sets.insert(set.0);
                    if is_used && !is_same(fields) {
                        return name
                            .wrong("an earlier `select` uses this value set with keys of other widths");
                    }
                    if !is_same(fields) {
                        let field = |(at, (_, ty)): (usize, &(Expr, Ty))| {
                            (named(&format!("f{at}")), *ty, MatchKind::Exact)
                        };
                        *fields = keys.iter().enumerate().map(field).collect();
                    }
                    if transition.find("mask").is_some() {
                        return transition.wrong("a mask of a value set");
                    }
                    cases.push((vec![Matcher::ValueSet(set)], target(&transition)?));
                }
                other => return transition.wrong(format!("there is no type of transitions `{other}`")),
            }
        }
        if keys.is_empty() || cases.is_empty() {
            return Ok(match otherwise {
                NextState::State(state) => Next::Goto(state),
                _ => Next::Accept,
            });
        }
        // Without a matching case, BMv2 accepts the packet.
        cases.push((vec![Matcher::Any; keys.len()], otherwise));
        Ok(Next::Select { keys, cases })
    }
}

/// Bits ahead of the parser's position.
fn look(node: &Cursor<'_>) -> Result<(Expr, Ty)> {
    let value = node.get("value")?;
    let (offset, width) = (value.at(0)?.within(0, 1 << 16)? as u32, value.at(1)?.within(1, LOOK_MAX)? as u32);
    let ty = Ty::Bit(width);
    Ok((Expr::Lookahead { total: offset + width, offset, ty }, ty))
}

/// The matchers of a transition: its value has each key in whole bytes.
fn matchers(node: &Cursor<'_>, keys: &[(Expr, Ty)]) -> Result<Vec<Matcher>> {
    let bytes: u32 = keys.iter().map(|(_, ty)| ty.width().div_ceil(8)).sum();
    let value_node = node.get("value")?;
    let mut value = value_node.natural()?;
    if value.bits() > u64::from(8 * bytes) {
        return value_node.wrong(format!("expected {bytes} bytes, as the keys have"));
    }
    let mut mask = match node.find("mask") {
        Some(mask) => Some(mask.natural()?),
        None => None,
    };
    let mut out = Vec::new();
    for (_, ty) in keys.iter().rev() {
        let (width, bits) = (ty.width(), 8 * ty.width().div_ceil(8));
        let ones = super::expr::ones(width);
        let part = |number: &BigUint| number & &ones;
        out.push(match &mask {
            None => Matcher::Exact(part(&value)),
            Some(mask) if part(mask).is_zero() => Matcher::Any,
            Some(mask) if part(mask) == ones => Matcher::Exact(part(&value)),
            Some(mask) => Matcher::Mask { value: part(&value) & part(mask), mask: part(mask) },
        });
        value >>= bits;
        mask = mask.map(|mask| mask >> bits);
    }
    out.reverse();
    Ok(out)
}
