//! Clio's constants that Rust, Python and people share. P4 has none.

use super::Clio;
use crate::rack::Rack;
use serde_json::{Value, json};

pub(super) fn add(clio: &Clio, rack: &Rack, constants: &mut Value) {
    let boards = rack.hosts.iter().filter(|host| clio.is_board(host));
    let boards: Vec<Value> =
        boards.map(|host| json!({ "name": host.name, "ip": host.ip, "port": host.port })).collect();
    constants["clio"] = json!({ "udp_port": clio.udp_port, "boards": boards });
}
