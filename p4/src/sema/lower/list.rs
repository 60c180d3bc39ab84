//! Variables of type `list`, whose values differ in length: storage for the longest one, and how many count.

use super::Lower;
use super::storage::{ListId, Place, Val, constant};
use crate::ast::Span;
use crate::ir::{Expr, LValue, Stmt, Ty, VarId};
use crate::sema::types::Type;

/// Type of a list's length.
const LENGTH: Ty = Ty::Bit(32);

/// Storage of a list.
#[derive(Debug)]
pub(super) struct List {
    name: String,
    element: Type,
    /// How many of the elements count.
    length: VarId,
    elements: Vec<Place>,
    /// Whether statements read all elements; more would be missing there.
    is_read: bool,
}

impl Lower<'_> {
    pub(super) fn new_list(&mut self, element: &Type, name: &str) -> Place {
        let length = self.new_var(format!("{name}.$length$"), LENGTH);
        let (name, element) = (name.to_owned(), element.clone());
        self.lists.push(List { name, element, length, elements: Vec::new(), is_read: false });
        Place::List(ListId(self.lists.len() - 1))
    }

    /// Makes a list empty.
    pub(super) fn clear_list(&mut self, list: ListId) {
        self.set_length(self.lists[list.0].length, constant(0u8, LENGTH), Span::default());
    }

    pub(super) fn list_element(&self, list: ListId) -> &Type {
        &self.lists[list.0].element
    }

    /// Variables and places that a write to the list may change.
    pub(super) fn list_parts(&self, list: ListId) -> (VarId, &[Place]) {
        let list = &self.lists[list.0];
        (list.length, &list.elements)
    }

    /// The elements, as many as any value before has had, and how many of them count.
    pub(super) fn list_elements(&mut self, list: ListId) -> (Vec<Val>, VarId) {
        self.lists[list.0].is_read = true;
        let list = &self.lists[list.0];
        (list.elements.iter().map(|place| self.read(place)).collect(), list.length)
    }

    /// Stores a list of which all elements are given.
    pub(super) fn store_elements(&mut self, list: ListId, values: Vec<Val>, span: Span) {
        let length = constant(values.len() as u32, LENGTH);
        self.fill_list(list, values, length, span);
    }

    /// Copies a list.
    pub(super) fn copy_list(&mut self, to: ListId, from: ListId, span: Span) {
        if to != from {
            let (values, length) = self.list_elements(from);
            self.fill_list(to, values, Expr::Var(length), span);
        }
    }

    fn fill_list(&mut self, list: ListId, values: Vec<Val>, length: Expr, span: Span) {
        let stored = &self.lists[list.0];
        let (known, variable) = (stored.elements.len(), stored.length);
        if values.len() > known {
            if stored.is_read {
                self.unsupported(span, "a list that becomes longer than where it was read before");
                return;
            }
            let (name, element) = (stored.name.clone(), stored.element.clone());
            for at in known..values.len() {
                let place = self.alloc(&element, &format!("{name}[{at}]"));
                self.lists[list.0].elements.push(place);
            }
        }
        let places = self.lists[list.0].elements.clone();
        for (place, value) in places.iter().zip(values) {
            self.assign(place, value, span);
        }
        self.set_length(variable, length, span);
    }

    fn set_length(&mut self, variable: VarId, length: Expr, span: Span) {
        self.emit(Stmt::Assign { target: LValue::Var(variable), value: length, span });
    }
}
