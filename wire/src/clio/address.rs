//! Virtual addresses of a process, and the sizes of its pages.
//!
//! ```text
//!  63          48 47    44 43                                    0
//! ├──────────────┼────────┼───────────────────────┬──────────────┤
//! │      0       │ class  │     number of the page│ byte in page │
//! └──────────────┴────────┴───────────────────────┴──────────────┘
//! ```
//!
//! The class names the page size, because a board has to know it before it looks the page up: so one look-up is enough. The border
//! between page number and byte depends on it. Address 0 is in a page that no board allocates.

use crate::ParseError;

/// Bits of an address.
pub const ADDRESS_BITS: u32 = 48;
/// Bits below the class.
pub const CLASS_SHIFT: u32 = 44;

/// Size of a page. The number of the variant is its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PageSize {
    /// 4 KB.
    K4 = 0,
    /// 64 KB.
    K64 = 1,
    /// 2 MB.
    M2 = 2,
    /// 4 MB, the paper's.
    M4 = 3,
    /// 16 MB.
    M16 = 4,
    /// 64 MB.
    M64 = 5,
    /// 1 GB.
    G1 = 6,
}

/// Number of page sizes.
pub const PAGE_SIZES: usize = PageSize::ALL.len();

impl PageSize {
    /// All, the smallest first, with their names.
    pub const ALL: [(PageSize, &'static str); 7] = [
        (PageSize::K4, "4K"),
        (PageSize::K64, "64K"),
        (PageSize::M2, "2M"),
        (PageSize::M4, "4M"),
        (PageSize::M16, "16M"),
        (PageSize::M64, "64M"),
        (PageSize::G1, "1G"),
    ];

    /// The page size with this class. Errors: there is none.
    #[inline]
    pub const fn of(class: u8) -> Result<PageSize, ParseError> {
        match class as usize {
            nth if nth < PAGE_SIZES => Ok(PageSize::ALL[nth].0),
            _ => Err(ParseError::Invalid { field: "page_size", value: class as u64 }),
        }
    }

    /// The page size of the page that holds `address`. Errors: more than 48 bits, or a class without a size.
    #[inline]
    pub const fn of_address(address: u64) -> Result<PageSize, ParseError> {
        if address >> ADDRESS_BITS != 0 {
            return Err(ParseError::Invalid { field: "address", value: address });
        }
        PageSize::of((address >> CLASS_SHIFT) as u8)
    }

    /// Pages that suit a memory: few enough for a small page table, small enough to waste little.
    pub const fn suiting(bytes: u64) -> PageSize {
        match bytes {
            0..0x10_0000 => PageSize::K4,
            0x10_0000..0x1000_0000 => PageSize::K64,
            _ => PageSize::M2,
        }
    }

    /// Its name, as in `4K`.
    pub const fn name(self) -> &'static str {
        PageSize::ALL[self as usize].1
    }

    /// Binary logarithm of its bytes.
    #[inline]
    pub const fn shift(self) -> u32 {
        [12, 16, 21, 22, 24, 26, 30][self as usize]
    }

    /// Its bytes.
    #[inline]
    pub const fn bytes(self) -> u64 {
        1 << self.shift()
    }

    /// Pages of this size in a process's address space: at most 2^32.
    #[inline]
    pub const fn pages_max(self) -> u64 {
        1 << (CLASS_SHIFT - self.shift())
    }

    /// Number, within its class, of the page that holds `address`, an address of this class.
    #[inline]
    pub const fn page_of(self, address: u64) -> u32 {
        ((address & ((1 << CLASS_SHIFT) - 1)) >> self.shift()) as u32
    }

    /// Address of the first byte of a page.
    #[inline]
    pub const fn address_of(self, page: u32) -> u64 {
        (self as u64) << CLASS_SHIFT | (page as u64) << self.shift()
    }

    /// Offset of an address in its page.
    #[inline]
    pub const fn offset_of(self, address: u64) -> u64 {
        address & (self.bytes() - 1)
    }

    /// Pages that `bytes` bytes fill from the start of a page on, the last one perhaps in part.
    #[inline]
    pub const fn pages(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.bytes())
    }

    /// Number of `bytes` bytes from `address` on that are in the page of `address`.
    #[inline]
    pub const fn bytes_in_page(self, address: u64, bytes: u64) -> u64 {
        let room = self.bytes() - self.offset_of(address);
        if bytes < room { bytes } else { room }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_stand_at_their_number_and_sizes_ascend() {
        for (nth, (size, name)) in PageSize::ALL.into_iter().enumerate() {
            assert_eq!((size as usize, PageSize::of(nth as u8)), (nth, Ok(size)));
            let bytes: u64 = name[..name.len() - 1].parse().unwrap();
            let unit = [("K", 10), ("M", 20), ("G", 30)].into_iter().find(|(unit, _)| name.ends_with(unit));
            assert_eq!(size.bytes(), bytes << unit.unwrap().1, "{name}");
            assert!(size.pages_max() <= 1 << 32);
        }
        assert!(PageSize::of(PAGE_SIZES as u8).is_err());
    }

    proptest! {
        #[test]
        fn addresses_and_pages_agree(class in 0..PAGE_SIZES as u8, page: u32, offset: u64, bytes in 1u64..1 << 32) {
            let size = PageSize::of(class).unwrap();
            let page = (u64::from(page) % size.pages_max()) as u32;
            let address = size.address_of(page) + offset % size.bytes();
            prop_assert_eq!(PageSize::of_address(address), Ok(size));
            prop_assert_eq!((size.page_of(address), size.offset_of(address)), (page, offset % size.bytes()));
            let inside = size.bytes_in_page(address, bytes);
            prop_assert!(inside >= 1 && inside <= bytes);
            prop_assert_eq!(size.page_of(address + inside - 1), page);
            prop_assert!(inside == bytes || size.offset_of(address + inside) == 0);
        }

        #[test]
        fn other_addresses_are_refused(address: u64) {
            let fits = address >> ADDRESS_BITS == 0 && address >> CLASS_SHIFT < PAGE_SIZES as u64;
            prop_assert_eq!(PageSize::of_address(address).is_ok(), fits);
        }
    }
}
