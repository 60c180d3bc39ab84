//! Installs programs and keeps track of the running one.
//!
//! ```text
//!  VERIFY                              checks the program
//!  VERIFY_AND_WARM_INIT_BEGIN          checks and prepares it; until the end, requests mean it, packets don't
//!  WARM_INIT_END                       starts the prepared program
//!  VERIFY_AND_WARM_INIT_BEGIN_AND_END  both: checks, prepares and starts it; requests mean it once it runs
//! ```

#[cfg(test)]
mod tests;

use super::DEVICE;
use super::clients::Clients;
use super::fixed::fixed_text;
use super::loaded::{Lasting, Loaded};
use super::stage::{Residence, Stage};
use crate::p4runtime::{Charge, Device, status};
use p4rack_bfrt::Schema;
use p4rack_entities::Candidate;
use p4rack_netdev::clock;
use p4rack_p4rt::bfrt_proto::forwarding_pipeline_config::Profile;
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::{Action, DevInitMode};
use p4rack_p4rt::bfrt_proto::{
    ForwardingPipelineConfig, GetForwardingPipelineConfigResponse, NonP4Config,
    SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse,
    SetForwardingPipelineConfigResponseType as Progress,
};
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{Keep, Switch};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

/// Maximum differences of schemas in a message.
const DIFFERENCES: usize = 5;
/// Number of pipes that a profile may name; all run the same program.
const NAMEABLE_PIPES: u32 = 4;
/// A preparation that no stream ends is over when no request has meant it for this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that is prepared: requests mean it, packets do not.
#[derive(Debug)]
struct Prepared {
    client: u32,
    /// The stream of the client that prepares it, if that ends with the preparation.
    stream: Option<u64>,
    loaded: Arc<Loaded>,
    /// Which cells keep their values when it starts.
    keep: Keep,
    /// When a request last meant it.
    used: Instant,
}

impl Prepared {
    fn is(&self, loaded: &Arc<Loaded>) -> bool {
        Arc::ptr_eq(&self.loaded, loaded)
    }
}

/// The running program, and one that is being installed.
#[derive(Debug, Default)]
struct State {
    loaded: Option<Arc<Loaded>>,
    prepared: Option<Prepared>,
}

impl State {
    /// Refuses an installation while another client with a stream prepares one.
    fn check_free(&self, client: u32) -> Result<(), Status> {
        match &self.prepared {
            Some(prepared) if prepared.client != client && prepared.stream.is_some() => {
                Err(Status::unavailable(
                    "another client is installing a program; try again after WARM_INIT_FINISHED",
                ))
            }
            _ => Ok(()),
        }
    }
}

/// The programs of the device.
#[derive(Clone, Debug)]
pub struct Programs {
    device: Arc<Device>,
    clients: Clients,
    lasting: Lasting,
    state: Arc<Mutex<State>>,
    /// How long a preparation without a stream may be unused.
    patience: Duration,
}

fn invalid(message: impl Into<String>) -> Status {
    status(Code::InvalidArgument, message)
}

impl Programs {
    /// The programs of this device.
    pub fn new(device: Arc<Device>, clients: Clients) -> Programs {
        let (lasting, state) = Default::default();
        Programs { device, clients, lasting, state, patience: PATIENCE }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a single assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program that requests refer to: the prepared one, or else the running one.
    pub async fn meant(&self) -> Result<Arc<Loaded>, Status> {
        let used = |prepared: &mut Prepared| {
            prepared.used = Instant::now();
            prepared.loaded.clone()
        };
        let prepared = self.state().prepared.as_mut().map(used);
        match prepared {
            Some(prepared) => Ok(prepared),
            None => self.loaded().await,
        }
    }

    /// The running program.
    pub async fn loaded(&self) -> Result<Arc<Loaded>, Status> {
        let none =
            || status(Code::FailedPrecondition, "no program is installed; SetForwardingPipelineConfig first");
        // No program comes before its tables are noted.
        let held = self.device.hold().await;
        let program = held.program().ok_or_else(none)?;
        let known = self.state().loaded.clone();
        if let Some(loaded) = known.filter(|loaded| Arc::ptr_eq(&loaded.program, program)) {
            return Ok(loaded);
        }
        let pipes = self.device.handle().call(|switch, _| switch.pipes()).await?;
        let pipes = u32::try_from(pipes).unwrap_or(1);
        let loaded = Arc::new(Loaded::new(program.clone(), &self.lasting, pipes, Stage::default())?);
        let mut state = self.state();
        // Another call may have been faster. Keep its result, because its tables may be in use.
        match &state.loaded {
            Some(other) if Arc::ptr_eq(&other.program, &loaded.program) => Ok(other.clone()),
            _ => {
                state.loaded = Some(loaded.clone());
                Ok(loaded)
            }
        }
    }

    /// Forgets the prepared program. Its switch is gone, so requests that still refer to it fail.
    async fn forget(&self, prepared: Prepared) {
        self.discard(&prepared.loaded).await;
        if let Some(running) = self.device.running().await {
            self.clients.moved(&prepared.loaded.program, &running);
        }
    }

    async fn discard(&self, loaded: &Loaded) {
        if let Some(switch) = loaded.stage.leave(Residence::Gone).await {
            // Its entries may be many.
            let _ = self.device.aside(move || drop(switch)).await;
        }
    }

    /// Handles the end of a stream: forgets its client's preparation.
    pub async fn leave(&self, stream: u64) {
        let gone = self.state().prepared.take_if(|prepared| prepared.stream == Some(stream));
        if let Some(gone) = gone {
            self.forget(gone).await;
            self.clients.notify(Progress::WarmInitFinished);
        }
    }

    /// Ends a preparation that no stream ends, once it is unused.
    async fn end_unused(self, loaded: Arc<Loaded>) {
        loop {
            let over = {
                let mut state = self.state();
                let Some(prepared) = state.prepared.as_ref().filter(|prepared| prepared.is(&loaded)) else {
                    return;
                };
                let over = prepared.used + self.patience;
                if over > Instant::now() { Err(over) } else { Ok(state.prepared.take()) }
            };
            match over {
                Err(over) => tokio::time::sleep_until(over).await,
                Ok(gone) => {
                    if let Some(gone) = gone {
                        self.forget(gone).await;
                        self.clients.notify(Progress::WarmInitFinished);
                    }
                    return;
                }
            }
        }
    }

    /// Whether a program runs or is prepared.
    async fn is_any(&self) -> bool {
        self.device.running().await.is_some() || self.state().prepared.is_some()
    }

    /// The schemas of the program and of the device.
    pub async fn get(&self) -> Result<GetForwardingPipelineConfigResponse, Status> {
        let loaded = if self.is_any().await { Some(self.meant().await?) } else { None };
        let arch = loaded.as_ref().map_or("tna", |loaded| &loaded.program.ir.arch);
        let non_p4_config = Some(NonP4Config { bfruntime_info: fixed_text(arch).into_bytes() });
        let config = loaded.iter().map(|loaded| {
            let program = &loaded.program;
            let profile_name = program.ir.pipelines.first().cloned().unwrap_or_default();
            let binary = program.config.p4_device_config.clone();
            ForwardingPipelineConfig {
                p4_name: program.name.clone(),
                bfruntime_info: program.bf_rt.clone().unwrap_or_default().into_bytes(),
                profiles: vec![Profile { profile_name, binary, ..Default::default() }],
            }
        });
        Ok(GetForwardingPipelineConfigResponse { config: config.collect(), non_p4_config })
    }

    /// Carries out a request: binds, checks or installs.
    pub async fn set(
        &self,
        mut request: SetForwardingPipelineConfigRequest,
        charge: Arc<Charge>,
    ) -> Result<SetForwardingPipelineConfigResponse, Status> {
        if request.device_id != DEVICE {
            let id = request.device_id;
            return Err(status(
                Code::NotFound,
                format!("there is no device {id}; this is device {DEVICE}; ask for that one"),
            ));
        }
        let action = Action::try_from(request.action).map_err(|_| invalid("there is no such action"))?;
        let client = request.client_id;
        // A client that only installs needs no stream.
        let stream = self.clients.stream_of(client);
        let keep = match request.dev_init_mode() {
            DevInitMode::Hitless => Keep::Unwritten,
            DevInitMode::FastReconfig => Keep::Nothing,
        };
        let answer = |what: Progress| SetForwardingPipelineConfigResponse {
            set_forwarding_pipeline_config_response_type: what as i32,
        };
        let one = match &mut request.config[..] {
            [] => None,
            [one] => Some(std::mem::take(one)),
            several => {
                let count = several.len();
                return Err(invalid(format!("{count} programs are given; the switch runs one, give that")));
            }
        };
        match (action, one) {
            (Action::ReconcileAndWarmInitEnd, _) => {
                Err(Status::unimplemented("RECONCILE_AND_WARM_INIT_END is not offered"))
            }
            (Action::WarmInitEnd, Some(_)) => {
                Err(invalid("WARM_INIT_END takes what was prepared; leave config empty"))
            }
            (Action::WarmInitEnd, None) => {
                let is_own = |prepared: &mut Prepared| {
                    prepared.client == client && (prepared.stream.is_none() || prepared.stream == stream)
                };
                let Some(prepared) = self.state().prepared.take_if(is_own) else {
                    let message = "this client has prepared nothing; VERIFY_AND_WARM_INIT_BEGIN first";
                    return Err(status(Code::FailedPrecondition, message));
                };
                self.start(prepared.loaded, None, prepared.keep, charge).await?;
                Ok(answer(Progress::WarmInitFinished))
            }
            (_, None) => Err(invalid("config is empty; name one program")),
            (Action::Bind, Some(config)) => {
                let loaded = self.meant().await?;
                if config.p4_name != loaded.program.name {
                    let (given, own) = (&config.p4_name, &loaded.program.name);
                    return Err(status(
                        Code::NotFound,
                        format!("there is no program `{given}`; `{own}` runs"),
                    ));
                }
                self.clients.bind(client, &loaded.program)?;
                Ok(SetForwardingPipelineConfigResponse::default())
            }
            (action, Some(config)) => {
                self.state().check_free(client)?;
                let charged = charge.clone();
                let verify = move || {
                    let verified = candidate(config);
                    drop(charged);
                    verified
                };
                let candidate = self.device.compile(verify).await??;
                // The state may have changed during the compilation.
                if self.clients.stream_of(client) != stream {
                    return Err(Status::cancelled("the client that sent the request has left"));
                }
                self.state().check_free(client)?;
                // As with the driver, ports have to be added again, and asked for again.
                if action != Action::Verify {
                    self.lasting.ports.clear();
                }
                match action {
                    Action::VerifyAndWarmInitBegin => {
                        self.prepare(client, stream, candidate, keep).await?;
                        Ok(answer(Progress::WarmInitStarted))
                    }
                    Action::VerifyAndWarmInitBeginAndEnd => {
                        self.install(client, candidate, keep, charge).await?;
                        Ok(answer(Progress::WarmInitFinished))
                    }
                    _ => Ok(SetForwardingPipelineConfigResponse::default()),
                }
            }
        }
    }

    /// A program in a switch of its own. It inherits the attributes of the one that requests refer to, if both have the same name.
    async fn beside(&self, candidate: Candidate) -> Result<Arc<Loaded>, Status> {
        let config = self.device.handle().call(|switch, _| switch.config().clone()).await?;
        let Candidate { program, pipeline } = candidate;
        let make = move || {
            let mut switch = Switch::new(config);
            // Sets its time.
            switch.poll_transmit(clock::now(), &mut Vec::new());
            switch.load(pipeline);
            switch
        };
        let switch = self.device.aside(make).await?;
        let pipes = u32::try_from(switch.pipes()).unwrap_or(1);
        let loaded = Loaded::new(Arc::new(program), &self.lasting, pipes, Stage::beside(switch))?;
        // One without BFRuntime has none.
        if let Some(meant) = self.meant().await.ok().filter(|meant| meant.program.name == loaded.program.name)
        {
            loaded.inherit(&meant, &self.device).await?;
        }
        Ok(Arc::new(loaded))
    }

    /// Prepares a program: from now on, requests mean it.
    async fn prepare(
        &self,
        client: u32,
        stream: Option<u64>,
        candidate: Candidate,
        keep: Keep,
    ) -> Result<(), Status> {
        let loaded = self.beside(candidate).await?;
        let (running, program) = (self.device.running().await, loaded.program.clone());
        let before = {
            let mut state = self.state();
            state.check_free(client)?;
            // The stream of a client that was bound to another program ends now; the preparation does not.
            let stream = stream.filter(|stream| !self.clients.loses(*stream, &program));
            if stream.is_none() {
                tokio::spawn(self.clone().end_unused(loaded.clone()));
            }
            state.prepared.replace(Prepared { client, stream, loaded, keep, used: Instant::now() })
        };
        self.clients.notify(Progress::WarmInitStarted);
        if let Some(running) = &running {
            self.clients.moved(running, &program);
        }
        if let Some(before) = before {
            self.discard(&before.loaded).await;
            self.clients.moved(&before.loaded.program, &program);
        }
        // Its stream may have ended in between.
        if let Some(stream) = stream
            && self.clients.stream_of(client) != Some(stream)
        {
            self.leave(stream).await;
        }
        Ok(())
    }

    /// Prepares and starts a program; the requesting client keeps its stream.
    async fn install(
        &self,
        client: u32,
        candidate: Candidate,
        keep: Keep,
        charge: Arc<Charge>,
    ) -> Result<(), Status> {
        let loaded = self.beside(candidate).await?;
        let before = {
            let mut state = self.state();
            state.check_free(client)?;
            state.prepared.take()
        };
        if let Some(before) = before {
            self.forget(before).await;
        }
        self.start(loaded, Some(client), keep, charge).await
    }

    /// Starts the prepared program, to completion even if the caller has gone. `releases` is a client that is no longer bound
    /// to a program of another name.
    async fn start(
        &self,
        loaded: Arc<Loaded>,
        releases: Option<u32>,
        keep: Keep,
        charge: Arc<Charge>,
    ) -> Result<(), Status> {
        let programs = self.clone();
        let work = tokio::spawn(async move {
            let program = loaded.program.clone();
            if let Some(client) = releases {
                programs.clients.release(client, &program.name);
            }
            let noted = programs.clone();
            let take = async move {
                let switch = loaded.stage.leave(Residence::Runs).await?;
                // Before any client can see that it runs.
                noted.state().loaded = Some(loaded);
                Some(switch)
            };
            match programs.device.take_over(program, take, keep, charge).await? {
                true => Ok(()),
                false => Err(status(Code::Aborted, "what was prepared is gone; begin again")),
            }
        });
        work.await.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
    }
}

/// Checks a configuration: the program compiles, is written for Tofino, can run on this switch, and matches the schema.
fn candidate(config: ForwardingPipelineConfig) -> Result<Candidate, Status> {
    let name = config.p4_name;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
        return Err(invalid(format!("p4_name is `{name}`; name the program with letters, digits and `_`")));
    }
    let wrong_pipe =
        |profile: &Profile| profile.pipe_scope.iter().find(|pipe| **pipe >= NAMEABLE_PIPES).copied();
    if let Some(pipe) = config.profiles.iter().find_map(wrong_pipe) {
        return Err(invalid(format!(
            "a profile's pipe_scope names pipe {pipe}; pipes are 0 to {}",
            NAMEABLE_PIPES - 1
        )));
    }
    let mut binaries =
        config.profiles.iter().map(|profile| &profile.binary).filter(|binary| !binary.is_empty());
    let Some(binary) = binaries.next() else {
        return Err(invalid("no profile has a binary; this switch runs P4_16 text, put the program there"));
    };
    if binaries.any(|other| other != binary) {
        return Err(invalid(
            "the profiles have different binaries; put the whole program's P4_16 text into one",
        ));
    }
    let text = std::str::from_utf8(binary).map_err(|_| {
        invalid("the profile's binary is not text; this switch runs P4_16 text, not a compiler's output")
    })?;
    let mut candidate = Candidate::received(text, &name)
        .map_err(|error| invalid(format!("the program can't be installed:\n{error}")))?;
    candidate.program.name = name;
    let Some(own) = &candidate.program.bf_rt else {
        let arch = &candidate.program.ir.arch;
        return Err(invalid(format!(
            "the program is one for {arch}, and BFRuntime is for tna and t2na; use P4Runtime"
        )));
    };
    if config.bfruntime_info.is_empty() {
        return Err(invalid(
            "bfruntime_info is empty; it is the text of bf-rt.json: `p4rack p4 bfrt-info` makes it",
        ));
    }
    let given =
        Schema::parse(&config.bfruntime_info).map_err(|error| invalid(format!("bfruntime_info: {error}")))?;
    let own = Schema::parse(own.as_bytes()).map_err(|error| status(Code::Internal, error.to_string()))?;
    let differences = own.differences(&given);
    if !differences.is_empty() {
        let more = match differences.len().saturating_sub(DIFFERENCES) {
            0 => String::new(),
            more => format!("\nand {more} more"),
        };
        let shown = differences[..differences.len().min(DIFFERENCES)].join("\n");
        return Err(invalid(format!("bfruntime_info is not the program's:\n{shown}{more}")));
    }
    Ok(candidate)
}
