//! Connections, and the program that a switch runs: its names, binding to it, its installation and start.

use super::patience::Patience;
use super::{Bound, DEVICE, Link, Stream, program_error};
use crate::connect::{CONNECT, ConnectOptions};
use crate::desired::{BfrtProgram, Desired};
use crate::error::{CtrlError, refused};
use p4rack_bfrt::Schema;
use p4rack_bfrt::p4runtime::Translation;
use p4rack_p4rt::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use p4rack_p4rt::bfrt_proto::forwarding_pipeline_config::Profile;
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::bfrt_proto::subscribe::Notifications;
use p4rack_p4rt::bfrt_proto::{
    ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, SetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigResponseType as Progress, StreamMessageRequest, StreamMessageResponse,
    Subscribe, stream_message_request, stream_message_response,
};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::schema as p4;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// Largest message accepted: a compiler's output travels in one.
const RECEIVE_LIMIT: usize = 128 << 20;
/// Bits of a client's number that tell clients of a machine apart. A driver finds clients by 24 bits when it notifies them.
const OWN_BITS: u32 = 22;
/// Bit of a client's number that changes with its stream.
const OTHER_STREAM: u32 = 1 << OWN_BITS;
/// Bit of the number of a client's second one, which listens or reads beside it.
pub(super) const SECOND: u32 = 1 << (OWN_BITS + 1);
/// Name under which a driver without a program has its own tables.
const NO_PROGRAM: &str = "$SHARED";
/// Pause before a client tries again to bind in place of its former stream.
const BINDING: Duration = Duration::from_millis(50);

fn own_program(desired: &Desired) -> Result<&BfrtProgram, CtrlError> {
    let none = || {
        CtrlError::Program("the program has no BFRuntime schema: generate it for Tofino, --to tofino".into())
    };
    desired.bfrt.as_ref().ok_or_else(none)
}

impl Link {
    /// Connects to read, even if another client is bound to the program.
    pub async fn to_read(target: ConnectOptions) -> Result<Link, CtrlError> {
        let channel = target.channel().await?;
        let grpc = BfRuntimeClient::new(channel)
            .max_decoding_message_size(RECEIVE_LIMIT)
            .max_encoding_message_size(RECEIVE_LIMIT);
        // Clients of one machine have different ones, and so have those of one process with different election ids.
        let election = u32::try_from(target.election_id & 0xfff).unwrap_or(0) << (OWN_BITS - 12);
        let client_id = (std::process::id() ^ election) & ((1 << OWN_BITS) - 1);
        let (wanted, stream, news, bound) = Default::default();
        let (filling, before) = Default::default();
        Ok(Link { target, client_id, grpc, wanted, stream, news, bound, prepared: false, filling, before })
    }

    /// Connects and subscribes.
    pub async fn connect(target: ConnectOptions) -> Result<Link, CtrlError> {
        Link::subscribed(target, Notifications::default()).await
    }

    /// Connects and binds to the program that runs. If another client is bound to it, reads and writes beside that one, by the
    /// program's name.
    pub async fn bound_or_beside(target: ConnectOptions) -> Result<Link, CtrlError> {
        let mut link = Link::connect(target.clone()).await?;
        match link.schema().await {
            Err(error) if error.is_taken() => {
                let beside = Link::to_read(target).await?;
                // The stream of this one ends a moment later.
                Ok(Link { client_id: beside.client_id ^ SECOND, ..beside })
            }
            bound => bound.map(|_| link),
        }
    }

    /// Connects, and subscribes to hear of these.
    pub(super) async fn subscribed(target: ConnectOptions, news: Notifications) -> Result<Link, CtrlError> {
        let link = Link::to_read(target).await?;
        let stream = link.subscribe(link.client_id, news).await?;
        Ok(Link { stream: Some(stream), wanted: news, ..link })
    }

    /// Opens another stream in place of the own one: a switch ends one that is bound when a program of another name comes, and
    /// a driver lets a client begin one installation. The number is another one as well, as the switch may take its time to
    /// notice the end of the first stream.
    async fn renew(&mut self) -> Result<(), CtrlError> {
        (self.stream, self.bound) = (None, None);
        self.client_id ^= OTHER_STREAM;
        self.stream = Some(self.subscribe(self.client_id, self.wanted).await?);
        Ok(())
    }

    async fn subscribe(&self, client_id: u32, news: Notifications) -> Result<Stream, CtrlError> {
        let (outgoing, requests) = mpsc::channel(1);
        let subscribe = Subscribe { device_id: DEVICE, notifications: Some(news), ..Default::default() };
        let update = Some(stream_message_request::Update::Subscribe(subscribe));
        let first = StreamMessageRequest { client_id, update };
        outgoing.try_send(first).map_err(|error| CtrlError::Ended(error.to_string()))?;
        let opened = self.grpc.clone().stream_channel(ReceiverStream::new(requests)).await;
        let mut incoming = opened.map_err(refused("opening a session"))?.into_inner();
        let answer = timeout(CONNECT, incoming.message()).await;
        let answer =
            answer.map_err(|_| CtrlError::Timeout("the answer to Subscribe".into(), CONNECT.as_millis()))?;
        let subscribed = match answer.map_err(refused("subscribing"))?.and_then(|answer| answer.update) {
            Some(stream_message_response::Update::Subscribe(subscribed)) => subscribed,
            _ => return Err(CtrlError::Ended("it answered Subscribe with something else".into())),
        };
        let status = subscribed.status.unwrap_or_default();
        if status.code != Code::Ok as i32 {
            return Err(refused("subscribing")(Status::new(tonic::Code::from(status.code), status.message)));
        }
        Ok(Stream { _outgoing: outgoing, incoming, bound_to: None })
    }

    /// The program that the switch runs, if any, and the device's tables.
    pub(super) async fn installed(
        &mut self,
    ) -> Result<(Option<ForwardingPipelineConfig>, Vec<u8>), CtrlError> {
        let request = GetForwardingPipelineConfigRequest { device_id: DEVICE, client_id: self.client_id };
        let mut patience = Patience::default();
        let answer = loop {
            match self.grpc.get_forwarding_pipeline_config(request).await {
                Err(status) if patience.after(&status).await => {}
                answer => break answer.map_err(refused("asking for the program"))?.into_inner(),
            }
        };
        let fixed = answer.non_p4_config.map(|config| config.bfruntime_info).unwrap_or_default();
        if fixed.is_empty() {
            let addr = &self.target.addr;
            return Err(CtrlError::Program(format!(
                "the switch at {addr} describes no tables of the device: a driver does so if files are missing in \
                 share/bf_rt_shared of its installation"
            )));
        }
        Ok((answer.config.into_iter().find(|config| config.p4_name != NO_PROGRAM), fixed))
    }

    /// Binds to the program that runs; `info` is its P4Info, made from its schema if there is none. Returns the names
    /// of P4Runtime's entities.
    async fn bind(&mut self, info: Option<&p4::Schema>) -> Result<p4::Schema, CtrlError> {
        let names = self.learn(info).await?;
        let p4_name = self.bound()?.p4_name.clone();
        let Some(stream) = &self.stream else { return Ok(names) };
        if stream.bound_to.as_ref() == Some(&p4_name) {
            return Ok(names);
        }
        let named = ForwardingPipelineConfig { p4_name: p4_name.clone(), ..Default::default() };
        if let Err(error) = self.set(Action::Bind, Some(named), "binding to the program").await {
            self.bound = None;
            return Err(error);
        }
        if let Some(stream) = &mut self.stream {
            stream.bound_to = Some(p4_name);
        }
        Ok(names)
    }

    /// Takes the names of the program that runs, without binding to it.
    pub(super) async fn learn(&mut self, info: Option<&p4::Schema>) -> Result<p4::Schema, CtrlError> {
        let (config, fixed) = self.installed().await?;
        let none = || {
            let addr = &self.target.addr;
            CtrlError::Program(format!(
                "the switch at {addr} runs no program: run `p4rack deploy --to tofino` first"
            ))
        };
        let config = config.ok_or_else(none)?;
        let mut schema = Schema::parse(&config.bfruntime_info).map_err(program_error)?;
        let names = match info {
            Some(info) => info.clone(),
            None => p4::Schema::new(p4rack_bfrt::p4runtime::info(&schema)).map_err(program_error)?,
        };
        let mut translation = Translation::new(&schema, names.info()).map_err(program_error)?;
        schema.add(&fixed).map_err(program_error)?;
        // Only the device's own tables reveal its generation.
        let second = schema.tables().iter().any(|table| table.name.starts_with("tf2."));
        translation.set_device(second);
        let is_compiled = config.profiles.iter().any(|profile| !profile.context.is_empty());
        self.bound = Some(Bound { p4_name: config.p4_name, schema, translation, second, is_compiled });
        Ok(names)
    }

    pub(super) async fn set(
        &mut self,
        action: Action,
        config: Option<ForwardingPipelineConfig>,
        call: &'static str,
    ) -> Result<(), CtrlError> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            client_id: self.client_id,
            action: action as i32,
            config: config.into_iter().collect(),
            ..Default::default()
        };
        let mut patience = Patience::default();
        loop {
            match self.grpc.set_forwarding_pipeline_config(request.clone()).await {
                Err(status) if patience.after(&status).await => {}
                answer => return answer.map(|_| ()).map_err(refused(call)),
            }
        }
    }

    /// Binds to whatever program runs. Returns the names of P4Runtime's entities.
    pub async fn schema(&mut self) -> Result<p4::Schema, CtrlError> {
        self.bind(None).await
    }

    /// The names of the running program, for a client that only reads; `None` if they haven't changed since the last
    /// call. A client hears of installations on its stream, but may read only while bound, so a second client listens.
    pub async fn schema_if_new(&mut self) -> Result<Option<p4::Schema>, CtrlError> {
        if self.bound.is_some() && !self.has_news().await {
            return Ok(None);
        }
        if self.news.is_none() {
            // Without a listener, the names are read each time.
            self.news = self.subscribe(self.client_id ^ SECOND, Notifications::default()).await.ok();
        }
        self.bind(None).await.map(Some)
    }

    /// Whether a program may have been installed since this was asked last.
    async fn has_news(&mut self) -> bool {
        let mut has_any = false;
        while let Some(news) = &mut self.news {
            match timeout(Duration::ZERO, news.incoming.message()).await {
                Err(_) => return has_any,
                Ok(Ok(Some(_))) => has_any = true,
                Ok(Ok(None) | Err(_)) => self.news = None,
            }
        }
        true
    }

    /// Whether the switch has the program; if so, binds to it.
    pub async fn runs(&mut self, desired: &Desired) -> Result<bool, CtrlError> {
        let wanted = own_program(desired)?;
        // A prepared program that was not started lacks something: it is prepared again.
        if self.prepared {
            return Ok(false);
        }
        let Some(there) = self.installed().await?.0 else { return Ok(false) };
        let own = Schema::parse(wanted.bf_rt.as_bytes()).map_err(program_error)?;
        let same_schema =
            Schema::parse(&there.bfruntime_info).is_ok_and(|given| own.differences(&given).is_empty());
        let binary = there.profiles.iter().map(|profile| &profile.binary).find(|binary| !binary.is_empty());
        // A driver that can't read its files returns none: name and schema have to suffice.
        let same_binary = binary.is_none_or(|binary| *binary == desired.config.p4_device_config);
        if there.p4_name != wanted.name || !same_schema || !same_binary {
            return Ok(false);
        }
        self.bind(Some(&desired.schema)).await?;
        Ok(true)
    }

    /// Prepares the program, and binds to it. Later writes go to the new program. On a driver the old one is gone from then on,
    /// with its entries and ports, and only [`start`](Link::start) ends the preparation.
    pub async fn install(&mut self, desired: &Desired) -> Result<(), CtrlError> {
        let wanted = own_program(desired)?;
        let (there, fixed) = self.installed().await?;
        // Only the device's own tables reveal its generation.
        wanted.check_context(String::from_utf8_lossy(&fixed).contains("\"tf2."))?;
        // A program's client stays bound to the next one of the same name: if that is another client, it is left alone.
        if !self.prepared
            && there.is_some_and(|there| there.p4_name == wanted.name)
            && let Err(error) = self.bind(None).await
            && error.is_taken()
        {
            return Err(error);
        }
        let profile = Profile {
            profile_name: "pipe".into(),
            context: wanted.context.clone(),
            binary: desired.config.p4_device_config.clone(),
            pipe_scope: vec![0, 1, 2, 3],
        };
        let config = ForwardingPipelineConfig {
            p4_name: wanted.name.clone(),
            bfruntime_info: wanted.bf_rt.clone().into_bytes(),
            profiles: vec![profile],
        };
        // A driver lets a client begin one installation. Updates that the old program refused may be accepted now.
        if self.filling.as_ref() == Some(&config) {
            return self.bind(Some(&desired.schema)).await.map(|_| ());
        }
        self.begin(config, &desired.schema).await
    }

    /// Begins an installation, and binds to the program.
    pub(super) async fn begin(
        &mut self,
        config: ForwardingPipelineConfig,
        names: &p4::Schema,
    ) -> Result<(), CtrlError> {
        let is_other = |stream: &Stream| stream.bound_to.as_ref().is_some_and(|name| *name != config.p4_name);
        self.filling = None;
        let is_new = self.prepared || self.stream.as_ref().is_none_or(is_other);
        if is_new {
            self.renew().await?;
        }
        // Notices of earlier installations.
        while let Ok(message) = timeout(Duration::ZERO, self.message()).await {
            message?;
        }
        self.set(Action::VerifyAndWarmInitBegin, Some(config.clone()), "preparing the program").await?;
        self.prepared = true;
        // A driver answers OK even if it can't install the program. It reports the begin before it answers.
        if !self.hears_of(Progress::WarmInitStarted).await? {
            return Err(CtrlError::Program(format!(
                "the switch took the program, and did not begin to install it within {} s; its log says why: were \
                 context.json and binary made for this chip, and can it write to its folder?",
                CONNECT.as_secs()
            )));
        }
        let until = Instant::now() + CONNECT;
        loop {
            match self.bind(Some(names)).await {
                // The former stream's client.
                Err(error) if is_new && error.is_taken() && Instant::now() < until => sleep(BINDING).await,
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        self.filling = Some(config);
        Ok(())
    }

    /// Starts the program that was prepared, if one was, with all that was written to it. Ports are added before that, those
    /// of other clients, too: they went with the program before.
    pub async fn start(&mut self) -> Result<(), CtrlError> {
        if !self.prepared {
            return Ok(());
        }
        self.add_former_ports().await?;
        self.end().await?;
        let ports: Vec<u32> = self.ports().await?.iter().map(|port| port.number).collect();
        self.rank_queues(&ports).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "queues keep the priorities that the switch gives them");
        });
        Ok(())
    }

    /// Ends an installation: the program runs.
    pub(super) async fn end(&mut self) -> Result<(), CtrlError> {
        self.set(Action::WarmInitEnd, None, "starting the program").await?;
        if !self.hears_of(Progress::WarmInitFinished).await? {
            return Err(CtrlError::Timeout("the end of the installation".into(), CONNECT.as_millis()));
        }
        (self.prepared, self.filling, self.before) = (false, None, None);
        Ok(())
    }

    /// The switch's next message. Errors: it ended the session.
    pub(super) async fn message(&mut self) -> Result<StreamMessageResponse, CtrlError> {
        let Some(stream) = &mut self.stream else { return std::future::pending().await };
        let message = stream.incoming.message().await.map_err(refused("waiting for the switch"))?;
        message.ok_or_else(|| CtrlError::Ended("it closed the stream".into()))
    }

    /// Waits until the session ends, and returns the reason.
    pub(crate) async fn ended(&mut self) -> CtrlError {
        loop {
            if let Err(error) = self.message().await {
                return error;
            }
        }
    }

    /// Whether the session has ended.
    pub(crate) async fn has_ended(&mut self) -> bool {
        timeout(Duration::ZERO, self.ended()).await.is_ok()
    }

    /// Waits until the switch reports a step of an installation. Returns whether it does in time.
    async fn hears_of(&mut self, step: Progress) -> Result<bool, CtrlError> {
        let until = Instant::now() + CONNECT;
        loop {
            let Ok(message) = timeout_at(until, self.message()).await else { return Ok(false) };
            if let Some(stream_message_response::Update::SetForwardingPipelineConfigResponse(said)) =
                message?.update
                && said.set_forwarding_pipeline_config_response_type() == step
            {
                return Ok(true);
            }
        }
    }
}
