//! Parses tables.

use super::{Parsed, Parser};
use crate::ast::{
    ActionListEntry, DeclKind, Expr, ExprKind, KeyElement, Name, TableEntry, TableProperty, TablePropertyKind,
};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `table t { ... }`
    pub(super) fn table(&mut self) -> Parsed<DeclKind> {
        self.expect(TokenKind::Table)?;
        let name = self.name()?;
        self.declare_value(&name);
        let mut properties = Vec::new();
        self.braced(|p| {
            properties.push(p.table_property()?);
            Ok(())
        })?;
        Ok(DeclKind::Table { name, properties })
    }

    fn table_property(&mut self) -> Parsed<TableProperty> {
        let start = self.span();
        let annotations = self.annotations()?;
        let is_const = self.eat(TokenKind::Const);
        let kind = match self.kind() {
            TokenKind::Key => {
                let mut elements = Vec::new();
                self.braced_property(|p| {
                    elements.push(p.key_element()?);
                    Ok(())
                })?;
                TablePropertyKind::Key(elements)
            }
            TokenKind::Actions => {
                let mut actions = Vec::new();
                self.braced_property(|p| {
                    actions.push(p.action_list_entry()?);
                    Ok(())
                })?;
                TablePropertyKind::Actions(actions)
            }
            TokenKind::Entries => {
                let mut entries = Vec::new();
                self.braced_property(|p| {
                    entries.push(p.table_entry()?);
                    Ok(())
                })?;
                TablePropertyKind::Entries(entries)
            }
            kind if kind.is_name() => {
                let name = self.ident();
                self.expect(TokenKind::Assign)?;
                let value = self.expr()?;
                self.semicolon()?;
                TablePropertyKind::Other { name, value }
            }
            _ => return self.expected("a table property such as `key`, `actions` or `default_action`"),
        };
        Ok(TableProperty { annotations, is_const, kind, span: self.span_from(start) })
    }

    /// `name = { item item }`, with an optional `;` that many programs write after it.
    fn braced_property(&mut self, item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        self.bump();
        self.expect(TokenKind::Assign)?;
        self.braced(item)?;
        Ok(())
    }

    fn key_element(&mut self) -> Parsed<KeyElement> {
        let expr = self.expr()?;
        self.expect(TokenKind::Colon)?;
        let match_kind = self.name()?;
        let annotations = self.annotations()?;
        self.semicolon()?;
        Ok(KeyElement { expr, match_kind, annotations })
    }

    /// `name` or `.name`
    fn action_name(&mut self) -> Parsed<Name> {
        let global = self.eat(TokenKind::Dot);
        Ok(Name { global, ident: self.name()? })
    }

    fn action_list_entry(&mut self) -> Parsed<ActionListEntry> {
        let start = self.span();
        let annotations = self.annotations()?;
        let name = self.action_name()?;
        let args = if self.kind() == TokenKind::OpenParen { Some(self.args()?) } else { None };
        let span = self.span_from(start);
        self.semicolon()?;
        Ok(ActionListEntry { annotations, name, args, span })
    }

    fn table_entry(&mut self) -> Parsed<TableEntry> {
        let start = self.span();
        let is_const = self.eat(TokenKind::Const);
        let priority = if self.kind() == TokenKind::Priority && self.kind_ahead(1) == TokenKind::Assign {
            self.bump();
            self.bump();
            let priority = self.free_expr()?;
            self.expect(TokenKind::Colon)?;
            Some(priority)
        } else {
            None
        };
        let keysets = self.keysets()?;
        self.expect(TokenKind::Colon)?;
        let action = self.action_ref()?;
        let annotations = self.annotations()?;
        let span = self.span_from(start);
        self.semicolon()?;
        Ok(TableEntry { annotations, is_const, priority, keysets, action, span })
    }

    /// `a` or `a(1, 2)`
    fn action_ref(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let name = self.action_name()?;
        let name = Expr { kind: ExprKind::Name(name), span: self.span_from(start) };
        if self.kind() != TokenKind::OpenParen {
            return Ok(name);
        }
        let args = self.args()?;
        let kind = ExprKind::Call { callee: Box::new(name), type_args: Vec::new(), args };
        Ok(Expr { kind, span: self.span_from(start) })
    }
}
