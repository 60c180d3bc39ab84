//! Preparations of programs: which program requests refer to until they end, and how they end.
#![allow(clippy::unwrap_used)] // a test that cannot go on should panic

use super::*;
use crate::core;
use crate::p4runtime::Limits;
use p4rack_netdev::wait::Poller;
use p4rack_p4rt::transport::Tenant;
use p4rack_switch::{Config, PortConfig};
use p4rack_wire::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};

const PROGRAM: &str = include_str!("../../../tests/bfruntime/rig.p4");

/// A switch in a thread, and its programs.
struct Bench {
    programs: Programs,
    stop: Arc<AtomicBool>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Bench {
    fn new(patience: Duration) -> Bench {
        let (handle, mut jobs, _events, _) = core::channel().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        std::thread::spawn(move || {
            let ports = vec![PortConfig::new(1, 0), PortConfig::new(2, 0)];
            let mut switch = Switch::new(Config { ports, ..Config::default() });
            let mut poller = Poller::new();
            poller.add(&jobs).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                poller.wait(Some(clock::now() + Nanos::from_millis(1))).unwrap();
                jobs.run_pending(&mut switch, clock::now());
            }
        });
        let device = Arc::new(Device::new(handle, 0, None));
        Bench { programs: Programs { patience, ..Programs::new(device, Clients::default()) }, stop }
    }

    fn charge() -> Arc<Charge> {
        Arc::new(Limits::new(Arc::default()).connect(&Tenant::LOCAL).unwrap().charge())
    }

    /// Prepares the program for a client without a stream.
    async fn prepare(&self) -> Arc<Loaded> {
        self.programs.prepare(5, None, program(), Keep::Nothing).await.unwrap();
        self.programs.meant().await.unwrap()
    }

    async fn start(&self) {
        let prepared = self.programs.state().prepared.take().unwrap();
        self.programs.start(prepared.loaded, None, prepared.keep, Bench::charge()).await.unwrap();
    }
}

fn program() -> Candidate {
    let compiled = p4rack_p4::compile(PROGRAM, "rig", &p4rack_p4::Options::default()).unwrap();
    let bfruntime_info = compiled.bf_rt().unwrap().to_string().into_bytes();
    let profiles = vec![Profile { binary: PROGRAM.into(), ..Default::default() }];
    candidate(ForwardingPipelineConfig { p4_name: "rig".into(), bfruntime_info, profiles }).unwrap()
}

#[tokio::test]
async fn work_for_what_is_gone_is_not_done_elsewhere() {
    let bench = Bench::new(PATIENCE);
    let device = bench.programs.device.clone();
    bench.prepare().await;
    bench.start().await;
    let first = bench.prepare().await;
    // A request has come so far when its client prepares another program.
    let held = first.hold(&device).await.unwrap();
    let second = bench.prepare().await;
    let refused = first.call(&device, |_, _| ()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Aborted, "{refused}");
    let job: crate::p4runtime::Job = Box::new(|_, _| std::ops::ControlFlow::Break(Vec::new()));
    let refused = first.make_small(&device, job, core::Isolation::Open, 1).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Aborted, "{refused}");
    drop(held);
    assert!(first.hold(&device).await.is_err());
    // Work for the other program runs on another thread, so this one goes on serving.
    let held = second.hold(&device).await.unwrap();
    let (own, there) = (std::thread::current().id(), |_: &mut Switch, _| std::thread::current().id());
    assert_ne!(second.call(&device, there).await.unwrap(), own);
    drop(held);
    bench.start().await;
    assert!(Arc::ptr_eq(&bench.programs.meant().await.unwrap(), &second));
}

#[tokio::test]
async fn a_preparation_without_a_stream_ends_when_it_is_unused() {
    let patience = Duration::from_millis(200);
    let bench = Bench::new(patience);
    let prepared = bench.prepare().await;
    for _ in 0..4 {
        tokio::time::sleep(patience / 2).await;
        assert!(Arc::ptr_eq(&bench.programs.meant().await.unwrap(), &prepared), "it is used");
    }
    let over = Instant::now() + Duration::from_secs(10);
    while bench.programs.state().prepared.is_some() {
        assert!(Instant::now() < over);
        tokio::time::sleep(patience / 10).await;
    }
    assert_eq!(bench.programs.meant().await.unwrap_err().code(), tonic::Code::FailedPrecondition);
    assert!(prepared.stage.enter().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_has_one_set_of_tables_from_the_moment_in_which_it_runs() {
    let bench = Bench::new(PATIENCE);
    bench.prepare().await;
    bench.start().await;
    for _ in 0..10 {
        let prepared = bench.prepare().await;
        let (programs, stop) = (bench.programs.clone(), Arc::new(AtomicBool::new(false)));
        let (stopped, own) = (stop.clone(), prepared.clone());
        let asks = tokio::spawn(async move {
            while !stopped.load(Ordering::Relaxed) {
                let loaded = programs.loaded().await.unwrap();
                let is_new = Arc::ptr_eq(&loaded.program, &own.program);
                assert!(!is_new || Arc::ptr_eq(&loaded, &own), "what was written to it is elsewhere");
            }
        });
        bench.start().await;
        stop.store(true, Ordering::Relaxed);
        asks.await.unwrap();
    }
}
