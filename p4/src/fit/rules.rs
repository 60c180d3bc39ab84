//! Rules that no program for the chip may break, and the violations found.

use crate::ast::Span;
use crate::diag::Diagnostic;
use std::collections::BTreeSet;

/// A limit of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Products, divisions and variable shifts.
    Arithmetic,
    /// One operation of an action upon another's result.
    OneOperation,
    /// Conditions in actions that read the packet.
    ConditionInAction,
    /// Conditions of a control that a gateway can't compute.
    Gateway,
    /// One access of a register per packet.
    OneAccess,
    /// A register, counter or meter is in one place: ingress or egress of one pipeline.
    OnePlace,
    /// Expressions of a stateful ALU.
    StatefulExpression,
    /// Comparisons of a stateful ALU.
    StatefulCompares,
    /// Values of the packet and results of a stateful ALU.
    StatefulOperands,
    /// Bodies that act on one register.
    StatefulActions,
    /// Widths of a register's elements.
    RegisterWidth,
    /// Default actions that need a hash.
    DefaultAction,
    /// A table may be applied once per packet.
    OneApply,
    /// Bytes that a parser may read.
    ParseDepth,
    /// A parser's state notes values that earlier states have read.
    ParseBack,
    /// Bits of headers and metadata.
    PacketBits,
    /// Keys that no stage holds.
    KeyWidth,
    /// Stages.
    Stages,
}

impl Rule {
    /// Its name in messages and reports.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Arithmetic => "arithmetic",
            Rule::OneOperation => "one-operation",
            Rule::ConditionInAction => "condition-in-action",
            Rule::Gateway => "gateway",
            Rule::OneAccess => "one-access",
            Rule::OnePlace => "one-place",
            Rule::StatefulExpression => "stateful-expression",
            Rule::StatefulCompares => "stateful-compares",
            Rule::StatefulOperands => "stateful-operands",
            Rule::StatefulActions => "stateful-actions",
            Rule::RegisterWidth => "register-width",
            Rule::DefaultAction => "default-action",
            Rule::OneApply => "one-apply",
            Rule::ParseDepth => "parse-depth",
            Rule::ParseBack => "parse-back",
            Rule::PacketBits => "packet-bits",
            Rule::KeyWidth => "key-width",
            Rule::Stages => "stages",
        }
    }
}

/// Something that the chip can't do.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The rule that it breaks.
    pub rule: Rule,
    /// The place, and why.
    pub diagnostic: Diagnostic,
}

/// Refusals, each once, and warnings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    refusals: Vec<Refusal>,
    warnings: Vec<Diagnostic>,
    seen: BTreeSet<(Rule, u32, u32)>,
}

impl Findings {
    /// Adds a refusal, unless this place has one of this rule.
    pub fn refuse(&mut self, rule: Rule, span: Span, why: impl Into<String>) {
        if self.seen.insert((rule, span.lo, span.hi)) {
            let diagnostic = Diagnostic::error(span, format!("{}: {}", rule.name(), why.into()));
            self.refusals.push(Refusal { rule, diagnostic });
        }
    }

    /// Adds a refusal that another place explains.
    pub fn refuse_beside(&mut self, rule: Rule, span: Span, why: String, other: (Span, &str)) {
        if self.seen.insert((rule, span.lo, span.hi)) {
            let diagnostic =
                Diagnostic::error(span, format!("{}: {why}", rule.name())).label(other.0, other.1);
            self.refusals.push(Refusal { rule, diagnostic });
        }
    }

    /// Adds a warning.
    pub fn warn(&mut self, warning: Diagnostic) {
        self.warnings.push(warning);
    }

    /// Refusals and warnings in source order.
    pub fn into_parts(mut self) -> (Vec<Refusal>, Vec<Diagnostic>) {
        self.refusals.sort_by_key(|refusal| refusal.diagnostic.span.lo);
        self.warnings.sort_by_key(|warning| warning.span.lo);
        (self.refusals, self.warnings)
    }
}
