//! Items in flight, by number.

use std::collections::VecDeque;

/// Items numbered in the order in which they were added, from which any may be taken. Its length is the distance from the oldest
/// item to the newest.
#[derive(Clone, Debug)]
pub struct Window<T> {
    items: VecDeque<Option<T>>,
    first: u64,
    count: usize,
}

impl<T> Default for Window<T> {
    fn default() -> Window<T> {
        Window { items: VecDeque::new(), first: 0, count: 0 }
    }
}

impl<T> Window<T> {
    /// Adds an item. Returns its number.
    pub fn push(&mut self, item: T) -> u64 {
        self.items.push_back(Some(item));
        self.count += 1;
        self.next() - 1
    }

    /// Removes and returns the item with this number, if present.
    pub fn take(&mut self, number: u64) -> Option<T> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let item = self.items.get_mut(place)?.take()?;
        self.count -= 1;
        while self.items.front().is_some_and(Option::is_none) {
            self.items.pop_front();
            self.first += 1;
        }
        Some(item)
    }

    /// The item with this number, if present.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.items.get_mut(place)?.as_mut()
    }

    /// All items with their numbers, the oldest first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        let numbered = (self.first..).zip(&mut self.items);
        numbered.filter_map(|(number, item)| item.as_mut().map(|item| (number, item)))
    }

    /// The oldest item's number: all earlier ones have been taken. The next item's number if there is none.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next item.
    pub fn next(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_taken_in_any_order_and_once() {
        let mut window = Window::default();
        assert_eq!((window.push('a'), window.push('b'), window.push('c')), (0, 1, 2));
        assert_eq!((window.take(1), window.take(1), window.first(), window.len()), (Some('b'), None, 0, 2));
        assert_eq!((window.take(0), window.first()), (Some('a'), 2));
        assert_eq!(window.iter_mut().map(|(number, item)| (number, *item)).collect::<Vec<_>>(), [(2, 'c')]);
        assert_eq!((window.take(2), window.first(), window.next()), (Some('c'), 3, 3));
        assert_eq!(
            (window.push('d'), window.take(7), window.take(0), window.is_empty()),
            (3, None, None, false)
        );
    }
}
