//! Sets of ports.

/// A set of ports, one bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ports(Vec<u64>);

impl Ports {
    /// An empty set, for `count` ports.
    pub fn none(count: usize) -> Ports {
        Ports(vec![0; count.div_ceil(64)])
    }

    /// All of `count` ports.
    pub fn all(count: usize) -> Ports {
        let mut ports = Ports::none(count);
        (0..count).for_each(|port| ports.add(port));
        ports
    }

    pub fn add(&mut self, port: usize) {
        self.0[port / 64] |= 1 << (port % 64);
    }

    pub fn remove(&mut self, port: usize) {
        self.0[port / 64] &= !(1 << (port % 64));
    }

    pub fn has(&self, port: usize) -> bool {
        self.0[port / 64] >> (port % 64) & 1 == 1
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Adds the intersection of `some` and `others`.
    pub fn add_common(&mut self, some: &Ports, others: &Ports) {
        for (word, (one, other)) in self.0.iter_mut().zip(some.0.iter().zip(&others.0)) {
            *word |= one & other;
        }
    }

    /// Calls `visit` for each port in ascending order, and removes those for which it returns false.
    pub fn retain(&mut self, mut visit: impl FnMut(usize) -> bool) {
        for (nth, word) in self.0.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                if !visit(nth * 64 + bit as usize) {
                    *word &= !(1 << bit);
                }
            }
        }
    }
}
