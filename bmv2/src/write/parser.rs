//! The parser: states with operations and transitions. A state of the program whose statements branch becomes
//! several states.

use super::expr::{argument, hex, mask};
use super::{Result, Writer, flow};
use crate::graph::{End, Graph};
use num_bigint::BigUint;
use num_traits::Zero;
use p4rack_p4::ir::{Expr, HeaderRef, LValue, Matcher, Next, NextState, Parser, StackId, Stmt, Ty, VarId};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The transitions of one case at most: ranges become masks.
const MASKS_MAX: usize = 4096;

impl Writer {
    /// The parser.
    pub(super) fn parser(&mut self) -> Result<Value> {
        let parser = self.program.parser().cloned().unwrap_or_default();
        self.in_parser = true;
        let names = state_names(&parser);
        let mut states = Vec::new();
        let mut needs_no_match = false;
        let no_match = unique("noMatch", &names);
        for (state, name) in parser.states.iter().zip(&names) {
            let graph = flow::graph(&state.stmts, &self.program, &self.reads, false);
            self.state(name, &graph, &state.next, &names, &no_match, &mut states)?;
            needs_no_match |= matches!(&state.next, Next::Select { .. });
        }
        if needs_no_match {
            let Some(error) = self.program.errors.iter().position(|error| error == "NoMatch") else {
                return self.refuse("`select` in a program without core.p4's errors");
            };
            let verify = json!([{ "type": "bool", "value": false }, hex(&BigUint::from(error), 32)]);
            let ops = vec![json!({ "op": "verify", "parameters": verify })];
            let id = self.next_state();
            states.push(state_json(&no_match, id, ops, Vec::new(), vec![default_transition(Value::Null)]));
        }
        self.in_parser = false;
        Ok(json!({ "name": "parser", "id": 0, "init_state": names.first(), "parse_states": states }))
    }

    fn next_state(&mut self) -> usize {
        self.next_state += 1;
        self.next_state - 1
    }

    /// The states that a state of the program becomes.
    fn state(
        &mut self,
        name: &str,
        graph: &Graph,
        next: &Next,
        names: &[String],
        no_match: &str,
        states: &mut Vec<Value>,
    ) -> Result<()> {
        let order = graph.order();
        let block_name = |id: usize| match order.iter().position(|other| *other == id) {
            Some(0) | None => name.to_owned(),
            Some(position) => unique(&format!("{name}_{position}"), names),
        };
        for id in &order {
            let block = &graph.blocks[*id];
            let mut ops = Vec::new();
            for stmt in &block.ops {
                self.operation(stmt, &mut ops)?;
            }
            self.at = block.span;
            let (keys, transitions) = match &block.end {
                End::Stop | End::Leave => self.transitions(next, names, no_match, &mut ops)?,
                End::Goto(to) => (Vec::new(), vec![default_transition(json!(block_name(*to)))]),
                End::Branch { cond, then, otherwise } => {
                    let temp = self.temp("branch_", Ty::Bool);
                    let cond = self.looked(cond, &mut ops)?;
                    self.set(&LValue::Var(temp), &cond, &mut ops)?;
                    let key = self.param(&Expr::Var(temp))?;
                    let yes = json!({
                        "type": "hexstr", "value": "0x01", "mask": null, "next_state": block_name(*then),
                    });
                    (vec![key], vec![yes, default_transition(json!(block_name(*otherwise)))])
                }
                End::Apply { .. } => return self.refuse("table in a parser"),
            };
            let number = self.next_state();
            states.push(state_json(&block_name(*id), number, ops, keys, transitions));
        }
        Ok(())
    }

    fn operation(&mut self, stmt: &Stmt, ops: &mut Vec<Value>) -> Result<()> {
        match stmt {
            Stmt::Assign { target, value, span } => {
                self.at = *span;
                let value = self.looked(value, ops)?;
                self.set(target, &value, ops)
            }
            Stmt::Extract { header, varbit_bits } => {
                let header = self.extracted(header)?;
                let mut parameters = vec![header];
                let mut op = "extract";
                if let Some(bits) = varbit_bits {
                    op = "extract_VL";
                    let bits = self.looked(bits, ops)?;
                    parameters.push(argument(self.data(&bits)?));
                }
                ops.push(json!({ "op": op, "parameters": parameters }));
                Ok(())
            }
            Stmt::Advance(bits) => {
                let bits = self.looked(bits, ops)?;
                let bits = self.param(&bits)?;
                ops.push(json!({ "op": "advance", "parameters": [bits] }));
                Ok(())
            }
            Stmt::Verify { cond, error } => {
                let cond = self.looked(cond, ops)?;
                let parameters = [self.truth(&cond)?, self.data(error)?];
                ops.push(json!({ "op": "verify", "parameters": parameters }));
                Ok(())
            }
            other => {
                let mut primitives = Vec::new();
                self.statement(other, &mut primitives)?;
                ops.extend(primitives.into_iter().map(operation_of));
                Ok(())
            }
        }
    }

    /// Sets a field; other places need a primitive.
    fn set(&mut self, target: &LValue, value: &Expr, ops: &mut Vec<Value>) -> Result<()> {
        if let LValue::Var(var) = target
            && !matches!(self.target_ty(target), Ty::Varbit(_))
            && self.target_ty(target).width() > 0
            && !self.program.headers.iter().any(|header| header.valid == *var)
            && !self.program.stacks.iter().any(|stack| stack.next == *var)
        {
            let parameters = [self.param(&Expr::Var(*var))?, self.param(value)?];
            ops.push(json!({ "op": "set", "parameters": parameters }));
            return Ok(());
        }
        // Some statements complete the primitives that stand right before them, or replace them.
        let others = ops.iter().rposition(|op| primitive_of(op).is_none()).map_or(0, |other| other + 1);
        let mut primitives: Vec<Value> = ops.drain(others..).filter_map(|op| primitive_of(&op)).collect();
        let span = self.at;
        let stmt = Stmt::Assign { target: target.clone(), value: value.clone(), span };
        self.statement(&stmt, &mut primitives)?;
        ops.extend(primitives.into_iter().map(operation_of));
        Ok(())
    }

    fn extracted(&self, header: &HeaderRef) -> Result<Value> {
        match header {
            HeaderRef::Fixed(id) => Ok(json!({ "type": "regular", "value": self.places.header(*id) })),
            HeaderRef::Next(stack) if self.is_union_stack(*stack) => {
                let name = &self.places.stacks[stack.0 as usize];
                Ok(json!({ "type": "union_stack", "value": [name, self.member_name(*stack)] }))
            }
            HeaderRef::Next(stack) => {
                Ok(json!({ "type": "stack", "value": self.places.stacks[stack.0 as usize] }))
            }
            HeaderRef::Last(_) | HeaderRef::Index(..) => {
                self.refuse("`extract` to an element of a stack other than the next one")
            }
        }
    }

    /// Name of the member that a stack of unions' stack is of.
    fn member_name(&self, stack: StackId) -> String {
        let name = &self.program.stacks[stack.0 as usize].name;
        name.rsplit('.').next().unwrap_or_default().to_owned()
    }

    /// An expression whose looks ahead are done before, into fields.
    fn looked(&mut self, expr: &Expr, ops: &mut Vec<Value>) -> Result<Expr> {
        let mut expr = expr.clone();
        let mut looks: Vec<(u32, VarId)> = Vec::new();
        self.look(&mut expr, true, &mut looks, ops)?;
        Ok(expr)
    }

    /// Replaces looks ahead. Each length is read a single time; if fewer bits are left, the parser stops there.
    fn look(
        &mut self,
        expr: &mut Expr,
        always: bool,
        looks: &mut Vec<(u32, VarId)>,
        ops: &mut Vec<Value>,
    ) -> Result<()> {
        match expr {
            Expr::Lookahead { total, offset, ty } => {
                if !always {
                    return self.refuse("lookahead that depends on a condition");
                }
                if *total == 0 {
                    *expr = Expr::Const { value: BigUint::zero(), ty: *ty };
                    return Ok(());
                }
                let temp = match looks.iter().find(|(bits, _)| bits == total) {
                    Some((_, temp)) => *temp,
                    None => {
                        let temp = self.temp("lookahead_", Ty::Bit(*total));
                        let to = self.param(&Expr::Var(temp))?;
                        let what = json!({ "type": "lookahead", "value": [0, total] });
                        ops.push(json!({ "op": "set", "parameters": [to, what] }));
                        looks.push((*total, temp));
                        temp
                    }
                };
                let (from, lo) = (Ty::Bit(*total), *total - *offset - ty.width());
                let (to, hi) = (*ty, lo + ty.width().max(1) - 1);
                *expr = if to.width() == 0 {
                    Expr::Const { value: BigUint::zero(), ty: to }
                } else {
                    let part = Expr::Slice { expr: Box::new(Expr::Var(temp)), from, hi, lo };
                    let plain = Ty::Bit(to.width());
                    let part = if lo == 0 && from == plain { Expr::Var(temp) } else { part };
                    if to == plain { part } else { Expr::Cast { expr: Box::new(part), from: plain, to } }
                };
                Ok(())
            }
            Expr::Unary { expr, .. } | Expr::Cast { expr, .. } | Expr::Slice { expr, .. } => {
                self.look(expr, always, looks, ops)
            }
            Expr::Binary { op, left, right, .. } => {
                self.look(left, always, looks, ops)?;
                let short = matches!(op, p4rack_p4::ir::BinOp::And | p4rack_p4::ir::BinOp::Or);
                self.look(right, always && !short, looks, ops)
            }
            Expr::Concat { left, right, .. } => {
                self.look(left, always, looks, ops)?;
                self.look(right, always, looks, ops)
            }
            Expr::Ternary { cond, then, otherwise, .. } => {
                self.look(cond, always, looks, ops)?;
                self.look(then, false, looks, ops)?;
                self.look(otherwise, false, looks, ops)
            }
            Expr::Const { .. }
            | Expr::Var(_)
            | Expr::Field { .. }
            | Expr::Valid(_)
            | Expr::PacketLength
            | Expr::DropPort => Ok(()),
        }
    }

    /// Keys and transitions at the end of a state.
    fn transitions(
        &mut self,
        next: &Next,
        names: &[String],
        no_match: &str,
        ops: &mut Vec<Value>,
    ) -> Result<(Vec<Value>, Vec<Value>)> {
        let (keys, cases) = match next {
            Next::Accept | Next::Reject => return Ok((Vec::new(), vec![default_transition(Value::Null)])),
            Next::Goto(to) => {
                return Ok((Vec::new(), vec![default_transition(json!(names[to.0 as usize]))]));
            }
            Next::Select { keys, cases } => (keys, cases),
        };
        let mut fields = Vec::new();
        for (key, ty) in keys.iter().filter(|(_, ty)| ty.width() > 0) {
            fields.push(self.select_key(key, *ty, ops)?);
        }
        let target = |to: &NextState| match to {
            NextState::Accept | NextState::Reject => Value::Null,
            NextState::State(state) => json!(names[state.0 as usize]),
        };
        let mut transitions = Vec::new();
        let mut is_complete = false;
        for (matchers, to) in cases {
            if let [Matcher::ValueSet(set)] = &matchers[..] {
                let name = &self.program.value_sets[set.0 as usize].named.name;
                transitions.push(json!({
                    "type": "parse_vset", "value": name, "mask": null, "next_state": target(to),
                }));
                continue;
            }
            if matchers.iter().any(|matcher| matches!(matcher, Matcher::ValueSet(_))) {
                return self.refuse("value set for a part of the keys");
            }
            if matchers.iter().all(|matcher| *matcher == Matcher::Any) {
                transitions.push(default_transition(target(to)));
                is_complete = true;
                break;
            }
            let parts = keys.iter().zip(matchers).filter(|((_, ty), _)| ty.width() > 0);
            let parts: Vec<(u32, Vec<(BigUint, BigUint)>)> =
                parts.map(|((_, ty), matcher)| (ty.width(), masks(matcher, ty.width()))).collect();
            let Some(all) = product(&parts) else {
                return self.refuse(format!("range that takes more than {MASKS_MAX} masks"));
            };
            for (value, value_mask, bytes) in all {
                let is_exact = value_mask == exact_mask(&parts);
                let digits = |value: &BigUint| hex(value, 8 * bytes)["value"].clone();
                let value_mask = if is_exact { Value::Null } else { digits(&value_mask) };
                transitions.push(json!({
                    "type": "hexstr", "value": digits(&value), "mask": value_mask, "next_state": target(to),
                }));
            }
        }
        if !is_complete {
            transitions.push(default_transition(json!(no_match)));
        }
        if fields.is_empty() {
            transitions.retain(|transition| transition["type"] == "default");
        }
        Ok((fields, transitions))
    }

    /// A field that a transition reads.
    fn select_key(&mut self, key: &Expr, ty: Ty, ops: &mut Vec<Value>) -> Result<Value> {
        match key {
            Expr::Var(var)
                if !matches!(ty, Ty::Int(_))
                    && !self.program.stacks.iter().any(|stack| stack.next == *var) =>
            {
                return self.param(key);
            }
            Expr::Lookahead { total, offset, ty } if *total == offset + ty.width() => {
                return Ok(json!({ "type": "lookahead", "value": [offset, ty.width()] }));
            }
            Expr::Field { header: header @ HeaderRef::Last(stack), field, ty }
                if !matches!(ty, Ty::Int(_)) =>
            {
                if !self.is_union_stack(*stack) {
                    return self.field(header, *field);
                }
                let any = self.some_header(header);
                let field = &self.program.headers[any.0 as usize].fields[*field as usize].name;
                let name = &self.places.stacks[stack.0 as usize];
                return Ok(json!({
                    "type": "union_stack_field", "value": [name, self.member_name(*stack), field],
                }));
            }
            _ => {}
        }
        let key = self.looked(key, ops)?;
        let plain = if ty == Ty::Bool { ty } else { Ty::Bit(ty.width()) };
        let key = if ty == plain { key } else { Expr::Cast { expr: Box::new(key), from: ty, to: plain } };
        let temp = self.temp("select_", plain);
        self.set(&LValue::Var(temp), &key, ops)?;
        self.param(&Expr::Var(temp))
    }
}

fn operation_of(primitive: Value) -> Value {
    json!({ "op": "primitive", "parameters": [primitive] })
}

/// The primitive that an operation calls.
fn primitive_of(operation: &Value) -> Option<Value> {
    if operation["op"] == "primitive" { Some(operation["parameters"][0].clone()) } else { None }
}

fn state_json(name: &str, id: usize, ops: Vec<Value>, keys: Vec<Value>, transitions: Vec<Value>) -> Value {
    json!({ "name": name, "id": id, "parser_ops": ops, "transitions": transitions, "transition_key": keys })
}

fn default_transition(to: Value) -> Value {
    json!({ "type": "default", "value": null, "mask": null, "next_state": to })
}

fn state_names(parser: &Parser) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for state in &parser.states {
        let short = state.name.split_once('.').map_or(state.name.as_str(), |(_, rest)| rest);
        let name = unique(short, &names);
        names.push(name);
    }
    names
}

/// A name that is not among these.
fn unique(wanted: &str, names: &[String]) -> String {
    let taken: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let mut name = wanted.to_owned();
    while taken.contains(name.as_str()) {
        name.push('_');
    }
    name
}

/// Values and masks that match what a matcher does.
fn masks(matcher: &Matcher, width: u32) -> Vec<(BigUint, BigUint)> {
    match matcher {
        Matcher::Any | Matcher::ValueSet(_) => vec![(BigUint::zero(), BigUint::zero())],
        Matcher::Exact(value) => vec![(value.clone(), mask(width))],
        Matcher::Mask { value, mask } => vec![(value & mask, mask.clone())],
        Matcher::Range { lo, hi } => {
            let mut out = Vec::new();
            let mut at = lo.clone();
            while at <= *hi {
                // The largest aligned block that begins here and ends within the range.
                let mut bits = at.trailing_zeros().unwrap_or(u64::from(width)).min(u64::from(width));
                while &at + (BigUint::from(1u8) << bits) - 1u8 > *hi {
                    bits -= 1;
                }
                let size = BigUint::from(1u8) << bits;
                out.push((at.clone(), mask(width) - (&size - 1u8)));
                at += size;
            }
            out
        }
    }
}

/// All combinations of the parts' values and masks, with the bytes of the whole key. `None` if there are too many.
fn product(parts: &[(u32, Vec<(BigUint, BigUint)>)]) -> Option<Vec<(BigUint, BigUint, u32)>> {
    let mut all = vec![(BigUint::zero(), BigUint::zero(), 0)];
    for (width, options) in parts {
        let bytes = width.div_ceil(8);
        if all.len() * options.len() > MASKS_MAX {
            return None;
        }
        let mut next = Vec::new();
        for (value, value_mask, before) in &all {
            for (part, part_mask) in options {
                let shift = 8 * bytes;
                next.push(((value << shift) | part, (value_mask << shift) | part_mask, before + bytes));
            }
        }
        all = next;
    }
    Some(all)
}

/// The mask of a key of which every bit is compared.
fn exact_mask(parts: &[(u32, Vec<(BigUint, BigUint)>)]) -> BigUint {
    parts.iter().fold(BigUint::zero(), |whole, (width, _)| (whole << (8 * width.div_ceil(8))) | mask(*width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_becomes_the_masks_that_cover_it() {
        for (lo, hi) in [(0u32, 255u32), (3, 17), (5, 5), (1, 254), (128, 255)] {
            let range = Matcher::Range { lo: lo.into(), hi: hi.into() };
            let masks = masks(&range, 8);
            for value in 0..=255u32 {
                let value = BigUint::from(value);
                let hits = masks.iter().filter(|(want, mask)| &value & mask == *want).count();
                let inside = BigUint::from(lo) <= value && value <= BigUint::from(hi);
                assert_eq!(hits, usize::from(inside), "{value} in {lo}..{hi}");
            }
        }
    }

    #[test]
    fn parts_of_a_key_fill_whole_bytes() {
        let parts = [(12, vec![(0xabau32.into(), mask(12))]), (2, vec![(3u32.into(), mask(2))])];
        assert_eq!(product(&parts), Some(vec![(0x000a_ba03u32.into(), 0x000f_ff03u32.into(), 3)]));
        assert_eq!(exact_mask(&parts), 0x000f_ff03u32.into());
    }
}
