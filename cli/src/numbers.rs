//! Numbers of options and arguments: decimal, or with a prefix 0x, 0o or 0b, with `_` between digits; and the median of measured ones.

use p4rack_codegen::rack::units::parse_number;
use p4rack_wire::quantiles::of_sorted;
use std::fmt::Display;
use std::ops::{Bound, RangeBounds};

/// Types of numbers, with their largest one.
pub trait Number: TryFrom<u64> + PartialOrd + Display + Copy + Send + Sync + 'static {
    /// The largest number.
    const MAX: Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Number for $number {
            const MAX: Self = <$number>::MAX;
        })*
    };
}

// P4Runtime's counts and priorities are signed, but never below 0.
numbers!(u8, u16, u32, u64, u128, usize, i32, i64);

/// A number that fits its type.
pub fn number<T: Number>(text: &str) -> Result<T, String> {
    T::try_from(parse_number(text)?).map_err(|_| format!("`{text}` is more than {}", T::MAX))
}

/// A number within a range.
pub fn within<T: Number>(
    range: impl RangeBounds<T> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let value = number::<T>(text)?;
        if range.contains(&value) {
            return Ok(value);
        }
        let start = match range.start_bound() {
            Bound::Included(least) => least.to_string(),
            Bound::Excluded(below) => format!("{below} (without it)"),
            Bound::Unbounded => "0".to_owned(),
        };
        let end = match range.end_bound() {
            Bound::Included(most) => format!("={most}"),
            Bound::Excluded(above) => above.to_string(),
            Bound::Unbounded => format!("={}", T::MAX),
        };
        Err(format!("{value} is not in {start}..{end}"))
    }
}

/// The median of values in any order; `None` if there are none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    of_sorted(&values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_bases_and_limits() {
        assert_eq!(
            (number("17"), number("0x11"), number("0b1_0001"), number("0o21")),
            (Ok(17u8), Ok(17u16), Ok(17u32), Ok(17u64))
        );
        assert_eq!((number::<i64>("0x7"), number::<i32>("0x8000_0000").is_err()), (Ok(7), true));
        assert_eq!(number::<u8>("0x100"), Err("`0x100` is more than 255".to_owned()));
        for wrong in ["", "0x", "-1", "x1", "1.5", "18446744073709551616"] {
            assert!(number::<u64>(wrong).is_err(), "{wrong}");
        }
        assert_eq!(within::<u16>(1..=0x10)("0x10"), Ok(16));
        assert_eq!(within::<u16>(1..=16)("17"), Err("17 is not in 1..=16".to_owned()));
        assert_eq!(within::<u8>(..8)("8"), Err("8 is not in 0..8".to_owned()));
    }
}
