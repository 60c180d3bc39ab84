//! Shares of a limited resource for tenants.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A number of things that tenants share.
///
/// Half of them is divided evenly beforehand: that part is kept for each tenant until it is taken. The other half is taken
/// first come, first served. So a single tenant has all, one of two three quarters at most, one of many little more than
/// half; and each tenant always finds at least its part of the kept half.
#[derive(Debug)]
pub struct Shares<T> {
    what: &'static str,
    total: u64,
    /// How many tenants there are.
    tenants: u64,
    held: Mutex<BTreeMap<T, u64>>,
    refused: AtomicU64,
}

/// Things that a tenant holds. They are given back when this is dropped.
#[derive(Debug)]
pub struct Share<T: Ord> {
    shares: Arc<Shares<T>>,
    tenant: T,
    count: u64,
}

/// Reason of a refused request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{tenant} holds {held} of {total} {what} and asks for {asked} more, but may take {left}: the rest is in use or kept for \
     others; give some back first"
)]
pub struct Full {
    /// The tenant.
    pub tenant: String,
    /// The shared things, in the plural.
    pub what: &'static str,
    /// Number that the tenant requests.
    pub asked: u64,
    /// Number that it holds already.
    pub held: u64,
    /// Number that it may still take.
    pub left: u64,
    /// Number that is free, but kept for other tenants.
    pub kept: u64,
    /// How many there are.
    pub total: u64,
}

impl<T: Ord + Clone + Display> Shares<T> {
    /// `total` things, named in the plural, for a number of tenants.
    pub fn new(what: &'static str, total: u64, tenants: u64) -> Arc<Shares<T>> {
        let held = Mutex::default();
        Arc::new(Shares { what, total, tenants: tenants.max(1), held, refused: AtomicU64::new(0) })
    }

    /// Takes things for a tenant. Errors: it holds too many; this is counted.
    pub fn take(self: &Arc<Shares<T>>, tenant: &T, count: u64) -> Result<Share<T>, Full> {
        let mut held = self.held();
        let own = held.get(tenant).copied().unwrap_or_default();
        let left = self.left(&held, tenant);
        if count > left {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let (tenant, what, total) = (tenant.to_string(), self.what, self.total);
            let kept = total.saturating_sub(held.values().sum()).saturating_sub(left);
            return Err(Full { tenant, what, asked: count, held: own, left, kept, total });
        }
        held.insert(tenant.clone(), own + count);
        Ok(Share { shares: self.clone(), tenant: tenant.clone(), count })
    }

    /// Takes a tenant's remaining share, `count` at most.
    pub fn take_up_to(self: &Arc<Shares<T>>, tenant: &T, count: u64) -> Share<T> {
        let mut held = self.held();
        let count = count.min(self.left(&held, tenant));
        *held.entry(tenant.clone()).or_default() += count;
        Share { shares: self.clone(), tenant: tenant.clone(), count }
    }

    /// A tenant's remaining share.
    fn left(&self, held: &BTreeMap<T, u64>, tenant: &T) -> u64 {
        let kept = self.total / (2 * self.tenants);
        let mut others: Vec<u64> =
            held.iter().filter(|(other, _)| *other != tenant).map(|(_, count)| (*count).min(kept)).collect();
        // If there are more tenants than expected, nothing is kept for the further ones.
        others.sort_unstable_by(|a, b| b.cmp(a));
        let others_max = self.tenants - 1;
        let taken: u64 = others.into_iter().take(others_max as usize).sum();
        let all: u64 = held.values().sum();
        self.total.saturating_sub(all).saturating_sub(kept * others_max - taken)
    }
}

impl<T: Ord> Shares<T> {
    /// Requests that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<T, u64>> {
        // Each change is a single call of the map.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Ord> Drop for Share<T> {
    fn drop(&mut self) {
        let mut held = self.shares.held();
        if let Some(count) = held.get_mut(&self.tenant) {
            *count -= self.count;
            if *count == 0 {
                held.remove(&self.tenant);
            }
        }
    }
}

impl<T: Ord> Share<T> {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl<T: Ord> fmt::Display for Share<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.shares.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tenant_leaves_the_others_their_parts() {
        let shares = Shares::new("regions", 64, 4);
        let all = shares.take(&'a', 40).unwrap();
        let full = shares.take(&'a', 1).unwrap_err();
        assert_eq!((full.held, full.left), (40, 0));
        assert!(full.to_string().starts_with("a holds 40 of 64 regions and asks for 1 more"), "{full}");
        let others: Vec<_> = ['b', 'c', 'd'].iter().map(|one| shares.take(one, 8).unwrap()).collect();
        // The whole number is taken, with one tenant more than expected too.
        assert!(shares.take(&'e', 1).is_err() && shares.take(&'b', 1).is_err());
        assert_eq!(shares.refused(), 3);
        drop(all);
        assert!(shares.take(&'b', 32).is_ok());
        drop(others);
        assert!(shares.held().is_empty());
    }

    #[test]
    fn a_single_tenant_has_all_of_it() {
        let shares = Shares::new("sets", 4, 1);
        let all = shares.take(&1, 4).unwrap();
        assert!(shares.take(&1, 1).is_err() && all.count() == 4);
    }

    #[test]
    fn a_tenant_gets_what_is_left() {
        let shares = Shares::new("bytes", 10, 1);
        let (first, second) = (shares.take_up_to(&1, 7), shares.take_up_to(&1, 7));
        assert_eq!([first.count(), second.count(), shares.take_up_to(&2, 7).count()], [7, 3, 0]);
        drop(first);
        assert_eq!(shares.take_up_to(&2, 9).count(), 7);
        drop(second);
        assert!(shares.held().is_empty() && shares.refused() == 0);
    }

    #[test]
    fn what_a_tenant_takes_beyond_its_part_is_not_the_others() {
        let shares = Shares::new("sets", 64, 2);
        let _a = shares.take(&'a', 16).unwrap();
        let _b = shares.take(&'b', 48).unwrap();
        assert!(shares.take(&'a', 1).is_err());
    }
}
