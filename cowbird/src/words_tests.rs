//! Tests of `words`, in a file of their own: the model includes that one, and they need real atomics.

use crate::sync::AtomicU64;
use crate::words::{get, put, read, write};
use proptest::prelude::*;

fn words(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

proptest! {
    /// A slice of bytes is the model.
    #[test]
    fn words_are_bytes(writes in prop::collection::vec((0..80usize, prop::collection::vec(any::<u8>(), 0..40)), 1..12)) {
        let (words, mut model) = (words(8), vec![0; 64]);
        for (at, bytes) in writes {
            let fits = at + bytes.len() <= 64;
            prop_assert_eq!(write(&words, at, &bytes).is_some(), fits);
            if fits {
                model[at..at + bytes.len()].copy_from_slice(&bytes);
            }
            let mut all = vec![0; 64];
            prop_assert_eq!(read(&words, 0, &mut all), Some(()));
            prop_assert_eq!(&all, &model);
            let mut part = vec![0; bytes.len()];
            prop_assert_eq!(read(&words, at, &mut part).is_some(), fits);
            if fits {
                prop_assert_eq!(part, bytes);
            }
        }
    }

    #[test]
    fn what_is_put_is_got(at in 0..4usize, bytes in prop::collection::vec(any::<u8>(), 0..32)) {
        let words = words(8);
        put(&words, at, &bytes);
        let mut back = vec![0; bytes.len()];
        get(&words, at, &mut back);
        prop_assert_eq!(back, bytes);
    }
}
