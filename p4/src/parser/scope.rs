//! Tracks which names are types, scope by scope: the grammar's TYPE_IDENTIFIER.

use std::collections::HashMap;

/// Declared names, from the top level inwards.
pub(super) struct Scopes<'a> {
    /// `true` for a type, `false` for a value that hides a type of that name.
    scopes: Vec<HashMap<&'a str, bool>>,
}

impl Default for Scopes<'_> {
    fn default() -> Self {
        Scopes { scopes: vec![HashMap::new()] }
    }
}

impl<'a> Scopes<'a> {
    pub(super) fn push(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(super) fn pop(&mut self) {
        self.scopes.pop();
    }

    pub(super) fn declare_type(&mut self, name: &'a str) {
        self.declare(name, true);
    }

    pub(super) fn declare_value(&mut self, name: &'a str) {
        self.declare(name, false);
    }

    fn declare(&mut self, name: &'a str, is_type: bool) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, is_type);
        }
    }

    /// Whether a name refers to a type from here.
    pub(super) fn is_type(&self, name: &str) -> bool {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied().unwrap_or(false)
    }

    /// Whether a name refers to a type at top level.
    pub(super) fn is_global_type(&self, name: &str) -> bool {
        self.scopes.first().and_then(|scope| scope.get(name)).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_names_hide_outer_ones_until_the_scope_ends() {
        let mut scopes = Scopes::default();
        scopes.declare_type("T");
        assert!(scopes.is_type("T") && !scopes.is_type("U"));
        scopes.push();
        scopes.declare_value("T");
        scopes.declare_type("U");
        assert!(!scopes.is_type("T") && scopes.is_type("U"));
        assert!(scopes.is_global_type("T") && !scopes.is_global_type("U"));
        scopes.pop();
        assert!(scopes.is_type("T") && !scopes.is_type("U"));
    }
}
