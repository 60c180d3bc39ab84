//! Counts a visitor in the memory of h1: run it on h2 of `examples/edm-kv.toml`, where h1 serves memory.

use p4rack_codegen::{Rack, Scheme};
use p4rack_memory::{Access, open};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rack = Rack::load("examples/edm-kv.toml")?.under(Scheme::EDM_TIMED_DST)?;
    let mut memory = open(&rack, &Access::new("h2", "h1"))?;
    println!("visitor {}", memory.fetch_add(0, 1)? + 1);
    Ok(())
}
