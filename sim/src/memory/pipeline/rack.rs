//! The rack that the program is generated for.

use super::Params;
use crate::message::mac_of;
use p4rack_codegen::rack::{Link, RESERVED_PERCENT, Rack, Station, Switch, Target, Topology};
use p4rack_codegen::scheme::edm::Edm;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The switch's shared buffer: large enough to show queues instead of dropping frames.
const BUFFER_BYTES: u64 = 64 << 20;

/// A rack whose hosts all have memory.
pub(super) fn rack(params: &Params) -> Result<Rack, String> {
    let name = |nth: u16| format!("n{}", nth + 1);
    let station = |nth: u16| Station {
        name: name(nth),
        mac: mac_of(nth.into()),
        ip: Ipv4Addr::new(10, 0, ((nth + 1) >> 8) as u8, ((nth + 1) & 255) as u8),
        prefix: 16,
        foreign_percent: None,
    };
    let edm = Edm {
        chunk_bytes: params.chunk_bytes,
        window: params.window,
        demands: params.demands,
        message_bytes_max: 1 << 24,
        headroom_percent: params.headroom_percent,
        classes: params.classes,
        ahead: params.ahead,
        shares: params.shares,
        control_percent: 100,
        ..Edm::new(params.mode, (0..params.nodes).map(name).collect())
    };
    let topology = Topology {
        name: "memory".to_owned(),
        switches: vec![
            Switch::new(Target::Embedded, params.rate_bps).with_buffer(BUFFER_BYTES, RESERVED_PERCENT),
        ],
        hosts: (0..params.nodes).map(station).collect(),
        links: (0..params.nodes).map(|nth| Link::to_port(nth.into(), nth + 1)).collect(),
        protocols: vec![Arc::new(edm)],
        workload: None,
    };
    Rack::build(topology).map_err(|error| {
        let problems = error.errors.iter().map(|one| format!("{}; {}", one.message, one.help));
        problems.collect::<Vec<_>>().join("; ")
    })
}
