//! Functions of numbers, approximated by a table of 16 bytes.

/// An approximation of a function:
///
/// ```text
///  x = 2^e · i/8       i: the four highest bits, from the first one on: 8 to 15; 0 if x is 0
///  table[i] · 2^(scale ± e · 2^shift)       minus if it is inverted
/// ```
///
/// With roots (shift −1) an odd e is made even: i is then 4 to 7.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// Whether the exponent is subtracted.
    pub inverts: bool,
    /// −1, 0 or 1.
    pub shift: i32,
    /// Added to the exponent.
    pub scale: i32,
    /// By number.
    pub table: [u8; Curve::ENTRIES],
}

impl Curve {
    /// Entries of a table.
    pub const ENTRIES: usize = 16;

    /// Its value for a number of at most 32 bits; bits beyond 64 are lost.
    pub fn at(&self, x: u64) -> u64 {
        let (mut e, mut index) = match x.checked_ilog2() {
            Some(e) => (e, (u128::from(x) << 3 >> e) as usize),
            None => (0, 0),
        };
        if self.shift < 0 && e % 2 == 1 {
            (e, index) = (e + 1, index / 2);
        }
        let e = match self.shift {
            0 => e,
            1.. => e * 2,
            _ => e / 2,
        } as i32;
        let exponent = self.scale + if self.inverts { -e } else { e };
        let entry = u64::from(self.table[index % Curve::ENTRIES]);
        match u32::try_from(exponent) {
            Ok(up) => entry.checked_shl(up).unwrap_or(0),
            Err(_) => entry.checked_shr(exponent.unsigned_abs()).unwrap_or(0),
        }
    }
}
