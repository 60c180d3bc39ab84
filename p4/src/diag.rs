//! One error or warning: the mistake, its place, the reason, and a remedy.

use crate::ast::Span;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The program is rejected.
    Error,
    /// The program is accepted, but probably contains a mistake.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// A remark on a piece of source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Source location.
    pub span: Span,
    /// Remark on this piece of text.
    pub text: String,
}

/// One error or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The mistake, in one sentence without a full stop.
    pub message: String,
    /// Source location.
    pub span: Span,
    /// Remarks. A remark on [`Diagnostic::span`] itself is printed beside the carets.
    pub labels: Vec<Label>,
    /// Background that explains the rule.
    pub notes: Vec<String>,
    /// Remedies.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// A new error.
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, span, message.into())
    }

    /// A new warning.
    pub fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, span, message.into())
    }

    fn new(severity: Severity, span: Span, message: String) -> Diagnostic {
        Diagnostic { severity, message, span, labels: Vec::new(), notes: Vec::new(), help: Vec::new() }
    }

    /// Adds a remark on a piece of source text, this one or another.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a note.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Adds a suggestion.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }
}
