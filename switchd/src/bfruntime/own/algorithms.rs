//! Algorithms of hashes by name: cyclic redundancy checks, as catalogues of them have them.

use super::super::outcome::invalid;
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Checked, refuse};
use p4rack_p4::ir::{Crc, HashAlgorithm};
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::HashConfig;

const NAMED: &str = "pre_defined";
const OWN: &str = "user_defined";
const NAME: &str = "algorithm_name";
/// The device's algorithm of this name is not published; the switch has Castagnoli's check, as in programs.
const RANDOM: (&str, &str) = ("RANDOM", "crc_32c");
/// Name shown for a program's algorithm that is no check.
const XOR: &str = "XOR";

const fn crc(width: u32, polynomial: u64, reflected: bool, initial: u64, final_xor: u64) -> Crc {
    Crc { width, polynomial, reflected, initial, final_xor }
}

const ALL: [(&str, Crc); 41] = [
    ("crc_8", crc(8, 0x7, false, 0x0, 0x0)),
    ("crc_8_darc", crc(8, 0x39, true, 0x0, 0x0)),
    ("crc_8_i_code", crc(8, 0x1d, false, 0xfd, 0x0)),
    ("crc_8_itu", crc(8, 0x7, false, 0x55, 0x55)),
    ("crc_8_maxim", crc(8, 0x31, true, 0x0, 0x0)),
    ("crc_8_rohc", crc(8, 0x7, true, 0xff, 0x0)),
    ("crc_8_wcdma", crc(8, 0x9b, true, 0x0, 0x0)),
    ("crc_16", crc(16, 0x8005, true, 0x0, 0x0)),
    ("crc_16_bypass", crc(16, 0x8005, false, 0x0, 0x0)),
    ("crc_16_dds_110", crc(16, 0x8005, false, 0x800d, 0x0)),
    ("crc_16_dect", crc(16, 0x589, false, 0x1, 0x1)),
    ("crc_16_dect_r", crc(16, 0x589, false, 0x0, 0x1)),
    ("crc_16_dect_x", crc(16, 0x589, false, 0x0, 0x0)),
    ("crc_16_dnp", crc(16, 0x3d65, true, 0x0, 0xffff)),
    ("crc_16_en_13757", crc(16, 0x3d65, false, 0x0, 0xffff)),
    ("crc_16_genibus", crc(16, 0x1021, false, 0xffff, 0xffff)),
    ("crc_16_maxim", crc(16, 0x8005, true, 0x0, 0xffff)),
    ("crc_16_mcrf4xx", crc(16, 0x1021, true, 0xffff, 0x0)),
    ("crc_16_riello", crc(16, 0x1021, true, 0xb2aa, 0x0)),
    ("crc_16_t10_dif", crc(16, 0x8bb7, false, 0x0, 0x0)),
    ("crc_16_teledisk", crc(16, 0xa097, false, 0x0, 0x0)),
    ("crc_16_usb", crc(16, 0x8005, true, 0xffff, 0xffff)),
    ("x_25", crc(16, 0x1021, true, 0xffff, 0xffff)),
    ("xmodem", crc(16, 0x1021, false, 0x0, 0x0)),
    ("modbus", crc(16, 0x8005, true, 0xffff, 0x0)),
    ("kermit", crc(16, 0x1021, true, 0x0, 0x0)),
    ("crc_ccitt_false", crc(16, 0x1021, false, 0xffff, 0x0)),
    ("crc_aug_ccitt", crc(16, 0x1021, false, 0x1d0f, 0x0)),
    ("crc_32", crc(32, 0x4c11db7, true, 0xffffffff, 0xffffffff)),
    ("crc_32_bzip2", crc(32, 0x4c11db7, false, 0xffffffff, 0xffffffff)),
    ("crc_32c", crc(32, 0x1edc6f41, true, 0xffffffff, 0xffffffff)),
    ("crc_32d", crc(32, 0xa833982b, true, 0xffffffff, 0xffffffff)),
    ("crc_32_mpeg", crc(32, 0x4c11db7, false, 0xffffffff, 0x0)),
    ("posix", crc(32, 0x4c11db7, false, 0x0, 0xffffffff)),
    ("crc_32q", crc(32, 0x814141ab, false, 0x0, 0x0)),
    ("jamcrc", crc(32, 0x4c11db7, true, 0xffffffff, 0x0)),
    ("xfer", crc(32, 0xaf, false, 0x0, 0x0)),
    ("crc_64", crc(64, 0x42f0e1eba9ea3693, false, 0x0, 0x0)),
    ("crc_64_go_iso", crc(64, 0x1b, true, 0xffffffffffffffff, 0xffffffffffffffff)),
    ("crc_64_we", crc(64, 0x42f0e1eba9ea3693, false, 0xffffffffffffffff, 0xffffffffffffffff)),
    ("crc_64_jones", crc(64, 0xad93d23594c935a9, true, 0xffffffffffffffff, 0x0)),
];

fn named(name: &str) -> Option<Crc> {
    let name = if name == RANDOM.0 { RANDOM.1 } else { name };
    ALL.iter().find(|(other, _)| *other == name).map(|(_, crc)| *crc)
}

/// An algorithm as an entry.
#[derive(Debug)]
pub(super) struct Chosen {
    /// `None`: unchanged; `Some(None)`: the program's.
    algorithm: Option<Option<Crc>>,
    rotate: Option<u32>,
    extend: Option<bool>,
}

impl Chosen {
    /// Changes a hash.
    pub fn put(self, config: &mut HashConfig) {
        config.algorithm = self.algorithm.unwrap_or(config.algorithm);
        config.rotate = self.rotate.unwrap_or(config.rotate);
        config.extend = self.extend.unwrap_or(config.extend);
    }
}

/// The check that is a program's algorithm, if it is one.
fn standard(own: HashAlgorithm) -> Option<Crc> {
    match own {
        HashAlgorithm::Crc(crc) => Some(crc),
        HashAlgorithm::Crc16 => named("crc_16"),
        HashAlgorithm::Crc32 => named("crc_32"),
        _ => None,
    }
}

/// The algorithm that an entry names or defines, for a hash that has an own one in the program.
pub(super) fn chosen(entry: &Entry, own: HashAlgorithm) -> Checked<Chosen> {
    let table = entry.table();
    let truth = |name: &str| match entry.get(name) {
        Some(Value::Bool(truth)) => Some(*truth),
        _ => None,
    };
    let number = |name: &str| entry.get(name).and_then(Value::number);
    let unset = |what: &str| {
        refuse(Code::Unimplemented, format!("table `{table}`: {what} is not offered by this switch"))
    };
    if truth("msb") == Some(true) {
        return unset("`msb`");
    }
    if number("seed").is_some_and(|seed| seed != 0) {
        return unset("`seed`");
    }
    let algorithm = match entry.action_name() {
        None => None,
        Some(NAMED) => match entry.get(NAME) {
            Some(Value::Text(name)) if name == XOR && standard(own).is_none() => Some(None),
            Some(Value::Text(name)) => match named(name) {
                Some(crc) => Some(Some(crc)),
                None => return unset(&format!("algorithm {name}")),
            },
            _ => Some(named(RANDOM.0)),
        },
        Some(_) => {
            let width = number("hash_bit_width").unwrap_or(64);
            let Some(width) = u32::try_from(width).ok().filter(|width| (8..=64).contains(width)) else {
                return invalid(format!("table `{table}`: `hash_bit_width` {width} is not 8 to 64"));
            };
            let Some(polynomial) = number("polynomial") else {
                return invalid(format!("table `{table}`: `polynomial` is not set"));
            };
            let [initial, final_xor] = ["init", "final_xor"].map(|name| number(name).unwrap_or(0));
            let most = u64::MAX >> (64 - width);
            if polynomial % 2 == 0 || [polynomial, initial, final_xor].into_iter().any(|value| value > most) {
                return invalid(format!(
                    "table `{table}`: `polynomial` is odd, and no number has more than {width} bits"
                ));
            }
            Some(Some(crc(width, polynomial, truth("reverse").unwrap_or(false), initial, final_xor)))
        }
    };
    let rotate = number("rotate").map(|by| u32::try_from(by).unwrap_or(u32::MAX));
    Ok(Chosen { algorithm, rotate, extend: truth("extend") })
}

/// A hash's algorithm as an entry.
pub(super) fn shown(table: &str, own: HashAlgorithm, config: Option<&HashConfig>) -> Entry {
    let entry = Entry::default_of(table)
        .data("rotate", config.map_or(0, |config| config.rotate))
        .data("seed", 0u32)
        .data("msb", false)
        .data("extend", config.is_some_and(|config| config.extend));
    let Some(algorithm) = config.and_then(|config| config.algorithm).or(standard(own)) else {
        return entry.action(NAMED).data(NAME, XOR);
    };
    match ALL.iter().find(|(_, other)| *other == algorithm) {
        Some((name, _)) => entry.action(NAMED).data(NAME, *name),
        None => entry
            .action(OWN)
            .data("reverse", algorithm.reflected)
            .data("polynomial", algorithm.polynomial)
            .data("init", algorithm.initial)
            .data("final_xor", algorithm.final_xor)
            .data("hash_bit_width", u64::from(algorithm.width)),
    }
}
