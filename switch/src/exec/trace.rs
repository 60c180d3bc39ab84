//! Marks in traced programs.

use super::Cx;
use crate::compile::ops::Frame;
use crate::compile::plans::Code;
use crate::state::State;
use crate::trace::{Mark, RawEvent};

/// Tells what a mark stands for; changes nothing else.
#[inline(never)]
pub(super) fn record(code: &Code, state: &mut State, frame: &Frame, cx: &Cx<'_>, mark: u32) {
    let standard = &code.standard;
    let field = |slot: u16| frame[slot as usize];
    let instance_type = field(standard.instance_type) as u32;
    let event = match &code.marks[mark as usize] {
        Mark::Ingress => RawEvent::Ingress {
            port: field(standard.ingress_port) as u16,
            instance_type,
            bytes: cx.len,
            clone: cx.parse_only,
        },
        Mark::State(_) => RawEvent::State(mark),
        Mark::Parsed => RawEvent::Parsed { error: field(standard.parser_error), payload_at: cx.cursor },
        Mark::Extern(name) => RawEvent::Extern(name),
        Mark::Egress => RawEvent::Egress {
            port: field(standard.egress_port) as u16,
            instance_type,
            rid: field(standard.egress_rid) as u16,
        },
        Mark::Apply(plan) => {
            let plan = &code.applies[*plan as usize];
            let key = &frame[plan.key as usize..][..plan.words as usize];
            let table = &state.tables[plan.table as usize];
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
                hit: row.is_some(),
                found: found.map(|(action, args)| (action, args.to_vec())),
            }
        }
    };
    state.trace.push(event);
}
