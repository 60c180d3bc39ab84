//! Memory stays charged as long as it is used, and indivisible work completes even if its sender has gone.

use super::*;
use crate::core::{self, Jobs};
use crate::generator::GeneratorService;
use crate::p4runtime::limits::{CONNECTION_BYTES, Connection, Limits};
use crate::p4runtime::outbox::Stored;
use crate::telemetry::TelemetryService;
use p4rack_netdev::clock;
use p4rack_p4rt::p4::v1::SetForwardingPipelineConfigRequest;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4rack::generator::v1::{ListRequest, generator_server::Generator};
use p4rack_p4rt::p4rack::telemetry::v1::{GetStatsRequest, GetStatsResponse, telemetry_server::Telemetry};
use p4rack_p4rt::transport::Tenant;
use p4rack_switch::{Config, GeneratorConfig, PortConfig};
use prost::Message;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tonic::{Request, Response};

const PROGRAM: &str = include_str!("../../../tests/p4runtime/rig.p4");
const ELECTION: Option<Uint128> = Some(Uint128 { high: 0, low: 1 });
const CHARGED: usize = 1 << 20;

/// A device, its primary's connection, and a data plane that runs its jobs on request.
struct Bench {
    device: Arc<Device>,
    connection: Arc<Connection>,
    jobs: Jobs,
    switch: Switch,
    _answers: Stored<StreamMessageResponse>,
}

impl Bench {
    async fn new() -> Bench {
        let (handle, jobs, _, _) = core::channel().unwrap();
        let device = Arc::new(Device::new(handle, 1, None));
        let connection = Limits::new(Arc::default()).connect(&Tenant::LOCAL).unwrap();
        let (outbox, answers) = Outbox::new(Arc::new(connection.stream().unwrap()));
        let request = MasterArbitrationUpdate { device_id: 1, election_id: ELECTION, ..Default::default() };
        device.arbitrate(device.enter(outbox), &request, false).await.unwrap();
        let switch = Switch::new(Config { ports: vec![PortConfig::new(1, 0)], ..Config::default() });
        Bench { device, connection, jobs, switch, _answers: answers }
    }

    /// Begins to take a step towards a new program; the request is charged.
    fn set(&self, action: Action) -> JoinHandle<Result<(), Status>> {
        let compiled = p4rack_p4::compile(PROGRAM, "rig.p4", &p4rack_p4::Options::default()).unwrap();
        let config = v1::ForwardingPipelineConfig {
            p4info: Some(compiled.p4info),
            p4_device_config: PROGRAM.into(),
            cookie: None,
        };
        let request = SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: ELECTION,
            action: action.into(),
            config: (action != Action::Commit).then_some(config),
            ..Default::default()
        };
        let charge = self.connection.charge();
        charge.add(CHARGED).unwrap();
        let device = self.device.clone();
        tokio::spawn(async move { device.set_config(request, Arc::new(charge)).await })
    }

    /// Does the data plane's jobs until a call is answered.
    async fn answer<R>(&mut self, call: JoinHandle<Result<R, Status>>) -> Result<R, Status> {
        eventually("it is answered", || {
            self.jobs.run_pending(&mut self.switch, clock::now());
            call.is_finished()
        })
        .await;
        call.await.unwrap()
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.extensions_mut().insert(self.connection.clone());
        request
    }

    async fn stats(&mut self, reset: bool) -> Result<GetStatsResponse, Status> {
        let message = GetStatsRequest { reset, device_id: 1, election_id: ELECTION, ..Default::default() };
        let request = self.request(message);
        let service = TelemetryService::new(self.device.handle.clone(), self.device.clone());
        let asked = tokio::spawn(async move { service.get_stats(request).await });
        self.answer(asked).await.map(Response::into_inner)
    }
}

async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn abort(call: JoinHandle<Result<(), Status>>) {
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
}

#[test]
fn a_program_is_charged_until_it_is_checked_even_if_its_sender_has_gone() {
    // One thread works beside those that serve calls, and that one is busy.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    let (free, busy) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || busy.recv());
    runtime.block_on(async {
        let bench = Bench::new().await;
        let compiler = bench.device.compiler.clone();
        let setting = bench.set(Action::Verify);
        eventually("it is checked", || compiler.available_permits() == 0).await;
        abort(setting).await;
        assert_eq!(bench.connection.charged_bytes(), CHARGED);
        free.send(()).unwrap();
        eventually("it was checked", || compiler.available_permits() == 1).await;
        assert_eq!(bench.connection.charged_bytes(), 0);
    });
}

#[tokio::test]
async fn a_commit_that_has_begun_is_made_and_charged_even_if_its_sender_has_gone() {
    for action in [Action::Commit, Action::VerifyAndCommit, Action::ReconcileAndCommit] {
        let mut bench = Bench::new().await;
        bench.set(Action::VerifyAndSave).await.unwrap().unwrap();
        let programs = bench.device.programs.clone();
        let setting = bench.set(action);
        // It waits for the data plane, which does nothing yet.
        eventually("it is committed", || programs.try_read().is_err()).await;
        abort(setting).await;
        assert_eq!(bench.connection.charged_bytes(), CHARGED, "{action:?}");
        eventually("it was committed", || {
            bench.jobs.run_pending(&mut bench.switch, clock::now());
            programs.try_read().is_ok()
        })
        .await;
        assert!(bench.switch.is_loaded() && bench.device.running().await.is_some(), "{action:?}");
        eventually("nothing is charged", || bench.connection.charged_bytes() == 0).await;
    }
}

#[tokio::test]
async fn statistics_are_charged_until_they_have_left_and_are_not_lost_where_they_have_no_room() {
    let mut bench = Bench::new().await;
    bench.switch.handle_frame(1, &[0; 60], clock::now());
    for reset in [false, true] {
        assert!(bench.connection.answered(CONNECTION_BYTES));
        let refused = bench.stats(reset).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused}");
        bench.connection.written(CONNECTION_BYTES);
        let stats = bench.stats(reset).await.unwrap();
        assert_eq!(stats.ports[0].rx_frames, 1, "{reset}");
        assert_eq!(bench.connection.charged_bytes(), stats.encoded_len());
        bench.connection.written(stats.encoded_len());
        assert_eq!(bench.connection.charged_bytes(), 0);
    }
    assert_eq!(bench.stats(false).await.unwrap().ports[0].rx_frames, 0);
}

#[tokio::test]
async fn a_list_of_generators_is_charged_until_it_has_left() {
    let mut bench = Bench::new().await;
    let start = clock::now();
    let config =
        GeneratorConfig { frame: vec![0; 1000], port: 1, start, period: Nanos::from_millis(1), count: 1 };
    bench.switch.generator_set(1, config).unwrap();
    for has_room in [false, true] {
        assert!(has_room || bench.connection.answered(CONNECTION_BYTES));
        let request = bench.request(ListRequest::default());
        let service = GeneratorService::new(bench.device.handle.clone(), bench.device.clone());
        let asked = tokio::spawn(async move { service.list(request).await });
        match bench.answer(asked).await {
            Ok(list) => {
                assert!(has_room && list.get_ref().encoded_len() > 1000);
                assert_eq!(bench.connection.charged_bytes(), list.get_ref().encoded_len());
            }
            Err(refused) => {
                assert!(!has_room && refused.code() == tonic::Code::ResourceExhausted, "{refused}");
                bench.connection.written(CONNECTION_BYTES);
            }
        }
    }
}
