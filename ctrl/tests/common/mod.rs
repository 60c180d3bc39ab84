//! An embedded switch in this process, its server on localhost.
// A test that cannot go on should panic; not every test uses all of it.
#![allow(clippy::unwrap_used, dead_code)]

use p4rack_codegen::{Rack, Scheme};
use p4rack_ctrl::bmv2::Compiler;
use p4rack_ctrl::deploy::{Desired, Extent, Step};
use p4rack_ctrl::{ConnectOptions, CtrlError, Protocol};
use p4rack_netdev::{clock, wait::Poller};
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_switchd::core::{self, Event};
use p4rack_switchd::server::{ServerConfig, bind, serve_both};
use p4rack_wire::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;

/// Ends the data plane when dropped; the server follows.
pub struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A switch for the rack; every `lose`th packet-in is lost (0: none).
pub async fn start(rack: &Rack, lose: usize) -> (Running, ConnectOptions) {
    start_at(rack, lose, "127.0.0.1:0").await
}

/// The same at an address.
pub async fn start_at(rack: &Rack, lose: usize, addr: &str) -> (Running, ConnectOptions) {
    let listener = bind(addr.parse().unwrap()).await.unwrap();
    start_on(rack, lose, listener, None).await
}

/// A switch that speaks both protocols; how to reach it over P4Runtime and over BFRuntime.
pub async fn start_both(rack: &Rack) -> (Running, ConnectOptions, ConnectOptions) {
    let any = || bind("127.0.0.1:0".parse().unwrap());
    let (p4runtime, bfrt) = (any().await.unwrap(), any().await.unwrap());
    let addr = bfrt.local_addr().unwrap().to_string();
    let (running, target) = start_on(rack, 0, p4runtime, Some(bfrt)).await;
    let over_bfrt = ConnectOptions { protocol: Protocol::BfRuntime, ..ConnectOptions::new(addr, 0) };
    (running, target, over_bfrt)
}

async fn start_on(
    rack: &Rack,
    lose: usize,
    listener: TcpListener,
    bfrt: Option<TcpListener>,
) -> (Running, ConnectOptions) {
    let (handle, mut jobs, events, from_plane) = core::channel().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let config = Config {
        ports: rack.hosts.iter().map(|host| PortConfig::new(host.port, host.rate_bps)).collect(),
        cpu_port: Some(rack.switch.cpu_port),
        ..Config::default()
    };
    let stopped = stop.clone();
    std::thread::spawn(move || {
        let (mut switch, mut poller, mut frame) = (Switch::new(config), Poller::new(), Vec::new());
        poller.add(&jobs).unwrap();
        let mut count = 0;
        while !stopped.load(Ordering::Relaxed) {
            poller.wait(Some(clock::now() + Nanos::from_millis(1))).unwrap();
            jobs.run_pending(&mut switch, clock::now());
            while switch.poll_transmit(clock::now(), &mut frame).is_some() {}
            while switch.poll_cpu(&mut frame) {
                count += 1;
                if lose == 0 || count % lose != 0 {
                    events.send(Event::PacketIn { frame: frame.clone() });
                }
            }
        }
    });
    let addr = listener.local_addr().unwrap();
    let device_id = rack.switch.device_id;
    let server = ServerConfig { cpu_port: Some(rack.switch.cpu_port), ..ServerConfig::new(addr, device_id) };
    let gone = handle.clone();
    tokio::spawn(serve_both(listener, bfrt, handle, from_plane, server, async move { gone.gone().await }));
    let target = ConnectOptions::new(addr.to_string(), device_id);
    (Running(stop), target)
}

pub fn rack() -> Rack {
    Rack::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/pl2-incast.toml")).unwrap()
}

/// What the rack's switch should hold.
pub fn desired(rack: &Rack, scheme: Scheme) -> Desired {
    Desired::of_rack(rack, scheme, p4rack_codegen::rack::Target::Embedded, None, Compiler::Own).unwrap()
}

/// Deploys and collects the steps.
pub async fn deploy(rack: &Rack, scheme: Scheme, target: ConnectOptions) -> Result<Vec<Step>, CtrlError> {
    let mut steps = Vec::new();
    let desired = desired(rack, scheme);
    p4rack_ctrl::deploy::deploy(&desired, target, Extent::All, |step| steps.push(step)).await?;
    Ok(steps)
}
