//! Promises of stores in cached regions.

use super::promise;
use crate::results::{MixResult, Promise, SchemeResult, StoreResult, Takeover};
use p4rack_report::text;

/// Beside those of every store: local memory is bounded, remote memory is used, and a killed client's memory is another one's.
pub(super) fn promises(scheme: &SchemeResult, figures: &StoreResult, out: &mut Vec<Promise>) {
    bounded(scheme, &figures.mixes, out);
    if let Some(takeover) = &figures.takeover {
        taken_over(scheme, takeover, out);
    }
}

/// Local memory of regions is bounded, and with less of it than the whole something is fetched.
fn bounded(scheme: &SchemeResult, mixes: &[MixResult], out: &mut Vec<Promise>) {
    let caches = || mixes.iter().filter_map(|mix| mix.cache.as_ref());
    let mut percents: Vec<u32> = caches().map(|cache| cache.local_percent).collect();
    percents.dedup();
    for percent in &percents {
        let of = caches().filter(|cache| cache.local_percent == *percent);
        let bounds = of.map(|cache| (cache.local_bytes, cache.limit_bytes));
        let Some((most, limit)) = bounds.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1))) else {
            continue;
        };
        let what = format!("local memory of a client with {percent} %");
        let promised = format!("at most {} B", text::count(limit));
        out.push(promise(scheme, &what, &promised, format!("{} B", text::count(most)), most <= limit));
    }
    let Some(least) = percents.iter().min().filter(|least| **least < 100) else { return };
    let fetched: u64 =
        caches().filter(|cache| cache.local_percent == *least).map(|cache| cache.fetched_bytes).sum();
    let what = format!("fetched from remote memory with {least} % local");
    out.push(promise(scheme, &what, "some", text::bytes(fetched), fetched > 0));
}

/// A killed client's extents come to another one, with nothing in them, and none ever had two owners.
fn taken_over(scheme: &SchemeResult, takeover: &Takeover, out: &mut Vec<Promise>) {
    let Takeover { host, by, extents, taken, .. } = takeover;
    let what = format!("extents of {host} at {by} after it was killed");
    let promised = format!("all {}", text::count(*extents));
    let is_all = *extents > 0 && taken == extents;
    out.push(promise(scheme, &what, &promised, text::count(*taken), is_all));
    for (what, count) in [
        (format!("bytes that were left in extents when {by} got them"), takeover.foreign_bytes),
        (format!("bytes in them that are not as {by} wrote them"), takeover.unlike_bytes),
        ("extents that two clients held at a time".to_owned(), takeover.owned_twice),
    ] {
        out.push(promise(scheme, &what, "0", text::count(count), count == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promises::judge;
    use crate::results::tests::good_cached;
    use crate::results::{CacheResult, Results};

    type Change = fn(&mut Results);

    fn store(results: &mut Results) -> &mut StoreResult {
        results.schemes[1].store.as_mut().unwrap()
    }

    fn cache(results: &mut Results, mix: usize) -> &mut CacheResult {
        store(results).mixes[mix].cache.as_mut().unwrap()
    }

    fn takeover(results: &mut Results) -> &mut Takeover {
        store(results).takeover.as_mut().unwrap()
    }

    fn broken(change: Change) -> Vec<String> {
        let mut results = good_cached();
        change(&mut results);
        judge(&results).iter().filter(|promise| !promise.holds).map(Promise::sentence).collect()
    }

    /// Each figure, made bad alone, breaks exactly the promise about it.
    #[test]
    fn each_bad_figure_breaks_its_own_promise() {
        let all = judge(&good_cached());
        assert!(all.iter().all(|promise| promise.holds), "{all:#?}");
        // Two mixes with each percentage, losses, wrong answers, memory of each, something fetched; and four of the takeover.
        assert_eq!(all.len(), 2 * (2 + 2 + 2 + 1) + 4);
        let cases: [(&str, Change); 11] = [
            ("clio: operations of mix B, 10 %", |r| store(r).mixes[1].ops_per_s = 0.0),
            ("clio: operations and confirmed writes lost: measured 1,", |r| store(r).lost = 1),
            ("clio: wrong answers: measured 2,", |r| store(r).wrong = 2),
            ("clio: local memory of a client with 10 %", |r| cache(r, 1).local_bytes = 410_001),
            ("clio: local memory of a client with 100 %", |r| cache(r, 0).limit_bytes = 3_999_999),
            ("clio: fetched from remote memory with 10 % local", |r| cache(r, 1).fetched_bytes = 0),
            ("clio: extents of c1 at c2 after it was killed: measured 2,", |r| takeover(r).taken = 2),
            ("clio: extents of c1 at c2", |r| (takeover(r).taken, takeover(r).extents) = (0, 0)),
            ("clio: bytes that were left in extents when c2 got them: measured 8,", |r| {
                takeover(r).foreign_bytes = 8;
            }),
            ("clio: bytes in them that are not as c2", |r| takeover(r).unlike_bytes = 1),
            ("clio: extents that two clients held at a time: measured 1,", |r| takeover(r).owned_twice = 1),
        ];
        for (expected, change) in cases {
            let failures = broken(change);
            assert!(failures.len() == 1 && failures[0].starts_with(expected), "{expected}: {failures:?}");
        }
        assert!(broken(|r| cache(r, 1).local_bytes = 410_000).is_empty(), "the limit itself");
        assert!(broken(|r| cache(r, 0).fetched_bytes = 0).is_empty(), "all may be local");
    }
}
