//! Executes trace marks.

use super::context::Cx;
use crate::code::ops::{Slot, Vars};
use crate::code::plans::{ApplyPlan, Code, Mark};
use crate::state::State;
use crate::trace::RawEvent;
use p4rack_p4::ir::Intrinsic;

/// Records the event of a mark. Changes nothing else.
#[inline(never)]
pub(super) fn record(code: &Code, state: &mut State, vars: &Vars, cx: &Cx<'_>, mark: u32) {
    if !state.trace.is_recording() {
        return;
    }
    let field = |slot: Slot| vars[slot as usize];
    let intrinsic = |role: Intrinsic| field(code.intrinsics[role]);
    let words = |slot: Slot, words: u16| vars[slot as usize..][..words as usize].to_vec();
    let origin = intrinsic(Intrinsic::Origin) as u32;
    let at = &code.marks[mark as usize];
    match at {
        // Before parsing, the variables hold the previous packet; and a parser's extracts are the packet
        // itself.
        Mark::Ingress | Mark::State(_) | Mark::Parsed { .. } | Mark::Egress => state.trace.look(code, vars),
        _ => state.trace.compare(code, vars, cx.now),
    }
    let event = match at {
        Mark::Ingress => RawEvent::Ingress {
            port: intrinsic(Intrinsic::IngressPort) as u16,
            origin,
            bytes: cx.len,
            clone: cx.parse_only,
        },
        Mark::State(_) => RawEvent::State(mark),
        Mark::Parsed { error } => RawEvent::Parsed { error: field(*error), payload_at: cx.cursor },
        Mark::Extern(name) => RawEvent::Extern(name),
        Mark::Register { instance, index, value, words: count, write } => RawEvent::Register {
            instance: *instance,
            index: field(*index),
            value: words(*value, *count),
            write: *write,
        },
        Mark::Meter { at, color } => {
            RawEvent::Meter { at: at.map(|(instance, index)| (instance, field(index))), color: field(*color) }
        }
        Mark::Count { instance, index } => RawEvent::Count { instance: *instance, index: field(*index) },
        Mark::Number { what, value, words: count } => RawEvent::Number { what, value: words(*value, *count) },
        Mark::Egress => RawEvent::Egress {
            port: intrinsic(Intrinsic::EgressPort) as u16,
            origin,
            rid: intrinsic(Intrinsic::Replica) as u16,
        },
        Mark::Apply(plan) => applied(state, vars, &code.applies[*plan as usize]),
        Mark::Headers => RawEvent::Headers(state.trace.all(code, vars)),
        Mark::Fields => return,
    };
    state.trace.push(cx.now, event);
}

/// Records the result that a table is about to have.
fn applied(state: &State, vars: &Vars, plan: &ApplyPlan) -> RawEvent {
    let key = &vars[plan.key as usize..][..plan.words as usize];
    let table = &state.pipe.tables[plan.table as usize];
    let row = table.lookup(key);
    let indirect = row.and_then(|row| table.indirect(row)).is_some();
    let found = match row {
        _ if indirect => None,
        Some(row) => Some(table.action(row)),
        None => table.default.as_ref().map(|row| (row.call.action, &row.args[..])),
    };
    RawEvent::Table {
        table: plan.table,
        key: key.to_vec(),
        entry: row.map(|row| (row, table.age(row))),
        found: found.map(|(action, args)| (action, args.to_vec())),
    }
}
