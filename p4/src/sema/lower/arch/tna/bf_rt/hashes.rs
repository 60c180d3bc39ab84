//! Tables that configure a hash: its fields, its algorithm, and a preview of its result.

use super::{Schema, bytes, common, key, number, singleton};
use crate::ir::{Instance, InstanceKind};
use p4rack_p4rt::p4::config::v1 as pb;
use serde_json::{Value, json};

/// First bytes of ids.
const CONFIGURE: u32 = 0x95;
const COMPUTE: u32 = 0x96;
const ALGORITHM: u32 = 0x97;

/// Numbers of fields.
mod field {
    pub const START_BIT: u32 = 65577;
    pub const LENGTH: u32 = 65578;
    pub const ORDER: u32 = 65579;
    pub const ROTATE: u32 = 65580;
    pub const SEED: u32 = 65581;
    pub const MSB: u32 = 65582;
    pub const EXTEND: u32 = 65583;
    pub const PRE_DEFINED: u32 = 65584;
    pub const USER_DEFINED: u32 = 65585;
}

/// Algorithms by name, in the driver's order.
const ALGORITHMS: &[&str] = &[
    "IDENTITY",
    "RANDOM",
    "XOR",
    "crc_8",
    "crc_8_darc",
    "crc_8_i_code",
    "crc_8_itu",
    "crc_8_maxim",
    "crc_8_rohc",
    "crc_8_wcdma",
    "crc_16",
    "crc_16_bypass",
    "crc_16_dds_110",
    "crc_16_dect",
    "crc_16_dect_r",
    "crc_16_dect_x",
    "crc_16_dnp",
    "crc_16_en_13757",
    "crc_16_genibus",
    "crc_16_maxim",
    "crc_16_mcrf4xx",
    "crc_16_riello",
    "crc_16_t10_dif",
    "crc_16_teledisk",
    "crc_16_usb",
    "x_25",
    "xmodem",
    "modbus",
    "kermit",
    "crc_ccitt_false",
    "crc_aug_ccitt",
    "crc_32",
    "crc_32_bzip2",
    "crc_32c",
    "crc_32d",
    "crc_32_mpeg",
    "posix",
    "crc_32q",
    "jamcrc",
    "xfer",
    "crc_64",
    "crc_64_go_iso",
    "crc_64_we",
    "crc_64_jones",
];

impl Schema<'_> {
    /// The tables of a hash; none of other objects.
    pub(super) fn hash(&self, instance: &Instance) -> Vec<Value> {
        let InstanceKind::Hash { width, fields, .. } = &instance.kind else { return Vec::new() };
        if fields.is_empty() {
            return Vec::new();
        }
        let table = |ending: &str, prefix, kind| {
            let name = format!("{}.{ending}", instance.named.name);
            self.object(&Some(pb::Preamble { name, ..Default::default() }), prefix, kind, 1)
        };
        let mut configure = table("configure", CONFIGURE, "DynHashConfigure");
        configure["key"] = json!([]);
        let parts = (1..).zip(fields).map(|(id, (name, ty))| group(id, name, ty.width()));
        configure["data"] = json!(parts.collect::<Vec<_>>());

        let mut algorithm = table("algorithm", ALGORITHM, "DynHashAlgorithm");
        algorithm["key"] = json!([]);
        algorithm["depends_on"] = json!([configure["id"]]);
        let common_field = |id, name, ty| singleton(common(id, name, ty, false), false);
        let zero = json!({ "type": "uint32", "default_value": 0 });
        let no = json!({ "type": "bool", "default_value": false });
        algorithm["data"] = json!([
            common_field(field::ROTATE, "rotate", zero.clone()),
            common_field(field::SEED, "seed", zero),
            common_field(field::MSB, "msb", no.clone()),
            common_field(field::EXTEND, "extend", no.clone()),
        ]);
        let named = json!({ "type": "string", "choices": ALGORITHMS, "default_value": "RANDOM" });
        let wide = json!({ "type": "uint64", "default_value": 0 });
        algorithm["action_specs"] = json!([
            choice(field::PRE_DEFINED, "pre_defined", &[("algorithm_name", named, false)]),
            choice(
                field::USER_DEFINED,
                "user_defined",
                &[
                    ("reverse", no, false),
                    ("polynomial", number("uint64"), true),
                    ("init", wide.clone(), false),
                    ("final_xor", wide, false),
                    ("hash_bit_width", number("uint64"), false),
                ],
            ),
        ]);

        let mut compute = table("compute", COMPUTE, "DynHashCompute");
        let keys = (1..).zip(fields);
        let keys = keys.map(|(id, (name, ty))| key(id, name, false, "Exact", bytes(ty.width() as i32)));
        compute["key"] = json!(keys.collect::<Vec<_>>());
        let mut value =
            singleton(common(super::field::HASH_VALUE, "hash_value", bytes(*width as i32), false), false);
        value["read_only"] = json!(true);
        compute["data"] = json!([value]);
        compute["depends_on"] = json!([configure["id"]]);
        vec![configure, algorithm, compute]
    }
}

/// Parts of a field, each with its place among all.
fn group(id: u32, name: &str, width: u32) -> Value {
    let part = |id, name, ty: Value, mandatory| singleton(common(id, name, ty, false), mandatory);
    let wide = |value: u32| json!({ "type": "uint64", "default_value": value });
    let container = [
        part(field::START_BIT, "start_bit", wide(0), false),
        part(field::LENGTH, "length", wide(width), false),
        part(field::ORDER, "order", number("uint64"), true),
    ];
    let group =
        json!({ "id": id, "name": name, "repeated": true, "annotations": [], "container": container });
    singleton(group, false)
}

/// One of the ways to name an algorithm.
fn choice(id: u32, name: &str, fields: &[(&str, Value, bool)]) -> Value {
    let parameter = |(id, (name, ty, mandatory)): (u32, &(&str, Value, bool))| {
        let mut data = common(id, name, ty.clone(), false);
        data["mandatory"] = json!(mandatory);
        data["read_only"] = json!(false);
        data
    };
    let data: Vec<Value> = (1..).zip(fields).map(parameter).collect();
    json!({ "id": id, "name": name, "action_scope": "TableAndDefault", "annotations": [], "data": data })
}
