//! Checks entries and actions against `@entry_restriction` and `@action_restriction`.

use super::program::{Program, TableRef};
use super::{Checked, refuse};
use num_bigint::{BigInt, BigUint};
use num_traits::One;
use p4rack_p4::ir::{
    ActionId, Comparison, Key, KeyPart, MatchKind, Matcher, Number, Restriction, TableId, Test,
};
use p4rack_p4rt::google::rpc::Code;

/// Subject of a restriction.
enum Subject<'a> {
    Entry { keys: Vec<&'a Key>, matchers: &'a [Matcher], priority: i32 },
    Action { args: &'a [BigUint] },
}

impl Program {
    /// Whether entries of a table, or their actions, are restricted.
    pub(crate) fn restricts(&self, table: TableId) -> bool {
        let rules = &self.ir.rules;
        let of_table = |id: &ActionId| {
            let table = self.ir.tables.get(table.0 as usize);
            table.is_some_and(|table| table.actions.iter().any(|listed| listed.action == *id))
        };
        rules.entries.iter().any(|(id, _)| *id == table) || rules.actions.iter().any(|(id, _)| of_table(id))
    }
}

impl TableRef<'_> {
    /// Checks the keys and the priority of an entry.
    pub(crate) fn restrict(&self, matchers: &[Matcher], priority: i32) -> Checked<()> {
        let mut restrictions = self.program.ir.rules.entries.iter();
        let Some((_, restriction)) = restrictions.find(|(table, _)| *table == self.id) else { return Ok(()) };
        let keys = self.ir.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
        check(
            restriction,
            &Subject::Entry { keys, matchers, priority },
            format_args!("table {}: the entry is against its @entry_restriction", self.name()),
        )
    }

    /// Checks the arguments of an action.
    pub(crate) fn restrict_action(&self, action: ActionId, args: &[BigUint]) -> Checked<()> {
        let mut restrictions = self.program.ir.rules.actions.iter();
        let Some((_, restriction)) = restrictions.find(|(id, _)| *id == action) else { return Ok(()) };
        let name = &self.program.ir.actions[action.0 as usize].named.name;
        check(
            restriction,
            &Subject::Action { args },
            format_args!("table {}: action {name} is against its @action_restriction", self.name()),
        )
    }
}

fn check(restriction: &Restriction, subject: &Subject<'_>, what: std::fmt::Arguments<'_>) -> Checked<()> {
    match restriction.clauses.iter().find(|clause| !holds(&clause.test, subject)) {
        Some(clause) => refuse(Code::InvalidArgument, format!("{what} `{}`", clause.text)),
        None => Ok(()),
    }
}

fn holds(test: &Test, subject: &Subject<'_>) -> bool {
    match test {
        Test::Const(value) => *value,
        Test::Not(inner) => !holds(inner, subject),
        Test::All(parts) => parts.iter().all(|part| holds(part, subject)),
        Test::Any(parts) => parts.iter().any(|part| holds(part, subject)),
        Test::Same(left, right) => holds(left, subject) == holds(right, subject),
        Test::Compare(comparison, left, right) => {
            let order = number(left, subject).cmp(&number(right, subject));
            match comparison {
                Comparison::Equal => order.is_eq(),
                Comparison::NotEqual => order.is_ne(),
                Comparison::Less => order.is_lt(),
                Comparison::LessOrEqual => order.is_le(),
                Comparison::Greater => order.is_gt(),
                Comparison::GreaterOrEqual => order.is_ge(),
            }
        }
    }
}

fn number(number: &Number, subject: &Subject<'_>) -> BigInt {
    match (number, subject) {
        (Number::Const(value), _) => value.clone(),
        (Number::Negative(inner), _) => -self::number(inner, subject),
        (Number::Low(inner, width), _) => {
            let modulus = BigInt::one() << *width;
            ((self::number(inner, subject) % &modulus) + &modulus) % &modulus
        }
        (Number::Priority, Subject::Entry { priority, .. }) => (*priority).into(),
        (Number::Key(at, part), Subject::Entry { keys, matchers, .. }) => {
            match (keys.get(*at), matchers.get(*at)) {
                (Some(key), Some(matcher)) => key_part(key, matcher, *part).into(),
                _ => BigInt::ZERO,
            }
        }
        (Number::Argument(at), Subject::Action { args }) => args.get(*at).cloned().unwrap_or_default().into(),
        // The front end puts keys and priorities into restrictions of entries only, arguments into those of actions.
        (Number::Priority | Number::Key(..) | Number::Argument(_), _) => BigInt::ZERO,
    }
}

fn key_part(key: &Key, matcher: &Matcher, part: KeyPart) -> BigUint {
    let width = key.ty.width();
    let ones = || (BigUint::one() << width) - 1u8;
    let (low, high, mask) = match matcher {
        Matcher::Exact(value) => (value.clone(), value.clone(), ones()),
        Matcher::Mask { value, mask } => (value.clone(), value.clone(), mask.clone()),
        Matcher::Range { lo, hi } => (lo.clone(), hi.clone(), ones()),
        Matcher::Any | Matcher::ValueSet(_) => (BigUint::ZERO, ones(), BigUint::ZERO),
    };
    match part {
        KeyPart::Value | KeyPart::Low => low,
        KeyPart::High => high,
        KeyPart::Mask => mask,
        KeyPart::PrefixLength => mask.count_ones().into(),
    }
}
