//! Counts a visitor in the memory of h1: run it on h2 of `examples/edm-kv.toml`, where h1 serves memory.

use p4rack_codegen::{Rack, Scheme};
use p4rack_hosts::memory::{Client, Remote};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rack = Rack::load("examples/edm-kv.toml")?.under(Scheme::EDM_TIMED_DST)?;
    let host = rack.host("h2").ok_or("no h2")?;
    let mut client = Client::open(p4rack_memory::client(&rack, host, "eth0")?)?;
    let counter = Remote { node: p4rack_memory::memory_node(&rack, "h1")?, key: 1 };
    println!("visitor {}", client.fetch_add(counter, 0, 1)? + 1);
    Ok(())
}
