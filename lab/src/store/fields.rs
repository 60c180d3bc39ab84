//! Records of several fields. The first write of a record writes all of them; later operations read or write one, as YCSB's do with
//! `readallfields=false`.

use super::piped::Values;
use p4rack_wire::SplitMix;

/// The fields of a client's records.
#[derive(Debug)]
pub(super) struct Fields {
    values: Values,
    count: u32,
    seed: u64,
}

impl Fields {
    /// Records of `count` fields of `bytes` bytes each, with values made from a seed.
    pub(super) fn new(count: u32, bytes: usize, seed: u64) -> Fields {
        Fields { values: Values::new(bytes, seed), count: count.max(1), seed }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of a field.
    pub(super) fn bytes(&self) -> usize {
        self.values.bytes()
    }

    /// The field of a client's operation of this number: the same each time.
    pub(super) fn of(&self, number: u64) -> u32 {
        SplitMix(self.seed ^ number.rotate_left(32)).between(0, u64::from(self.count) - 1) as u32
    }

    /// A field's number among those of all records.
    fn value_key(&self, key: u32, field: u32) -> u32 {
        key.wrapping_mul(self.count).wrapping_add(field)
    }

    /// Appends another value of a record's field.
    pub(super) fn append(&mut self, key: u32, field: u32, out: &mut Vec<u8>) {
        self.values.append(self.value_key(key, field), out);
    }

    /// Whether a value is one of a record's field.
    pub(super) fn is_one(&self, key: u32, field: u32, value: &[u8]) -> bool {
        self.values.is_one(self.value_key(key, field), value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_known_by_record_and_field_and_all_fields_are_used() {
        let mut fields = Fields::new(10, 100, 7);
        let mut value = Vec::new();
        fields.append(3, 4, &mut value);
        assert_eq!(value.len(), 100);
        assert!(fields.is_one(3, 4, &value));
        assert!(
            !fields.is_one(3, 5, &value) && !fields.is_one(2, 4, &value) && !fields.is_one(3, 4, &[0; 100])
        );
        let used: std::collections::BTreeSet<u32> = (0..1_000).map(|number| fields.of(number)).collect();
        assert_eq!(used, (0..10).collect());
        assert_eq!(Fields::new(1, 100, 7).of(5), 0);
    }
}
