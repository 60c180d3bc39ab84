//! Connections, and the program that a switch runs: its names, binding to it, its installation and start.

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
    self as bfrt, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, StreamMessageResponse, Subscribe,
    stream_message_request, stream_message_response,
};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::schema as p4;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// Largest message accepted: a compiler's output travels in one.
const RECEIVE_LIMIT: usize = 128 << 20;
/// Bit of a client's number that changes with its stream.
const OTHER_STREAM: u32 = 1 << 30;

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
        // Clients of one machine have different ones.
        let client_id = std::process::id() ^ u32::try_from(target.election_id & 0xffff).unwrap_or(0) << 16;
        let wanted = Notifications::default();
        Ok(Link { target, client_id, grpc, wanted, stream: None, news: None, bound: None, prepared: false })
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
            Err(error) if error.is_taken() => Link::to_read(target).await,
            bound => bound.map(|_| link),
        }
    }

    /// Connects, and subscribes to hear of these.
    pub(super) async fn subscribed(target: ConnectOptions, news: Notifications) -> Result<Link, CtrlError> {
        let link = Link::to_read(target).await?;
        let stream = link.subscribe(link.client_id, news).await?;
        Ok(Link { stream: Some(stream), wanted: news, ..link })
    }

    /// Opens another stream in place of the one that is bound: a switch ends that when a program of another name comes. The
    /// number is another one as well, as the switch may take its time to notice the end of the first stream.
    async fn renew(&mut self) -> Result<(), CtrlError> {
        let client_id = self.client_id ^ OTHER_STREAM;
        let stream = self.subscribe(client_id, self.wanted).await?;
        (self.client_id, self.stream, self.bound) = (client_id, Some(stream), None);
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
        Ok(Stream { outgoing, incoming })
    }

    /// The program that the switch runs, if any, and the device's tables.
    async fn installed(&mut self) -> Result<(Option<ForwardingPipelineConfig>, Vec<u8>), CtrlError> {
        let request = GetForwardingPipelineConfigRequest { device_id: DEVICE, client_id: self.client_id };
        let answer = self.grpc.get_forwarding_pipeline_config(request).await;
        let answer = answer.map_err(refused("asking for the program"))?.into_inner();
        let fixed = answer.non_p4_config.map(|config| config.bfruntime_info).unwrap_or_default();
        Ok((answer.config.into_iter().next(), fixed))
    }

    /// Binds to the program that runs; `info` is its P4Info, made from its schema if there is none. Returns the names
    /// of P4Runtime's entities.
    async fn bind(&mut self, info: Option<&p4::Schema>) -> Result<p4::Schema, CtrlError> {
        let names = self.learn(info).await?;
        if self.stream.is_some() {
            let p4_name = self.bound()?.p4_name.clone();
            let named = ForwardingPipelineConfig { p4_name, ..Default::default() };
            if let Err(error) = self.set(Action::Bind, Some(named), "binding to the program").await {
                self.bound = None;
                return Err(error);
            }
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
        self.bound = Some(Bound { p4_name: config.p4_name, schema, translation, second });
        Ok(names)
    }

    async fn set(
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
        self.grpc.set_forwarding_pipeline_config(request).await.map_err(refused(call))?;
        Ok(())
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
            self.news = self.subscribe(!self.client_id, Notifications::default()).await.ok();
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
        // A driver does not return it: name and schema have to suffice.
        let same_binary = binary.is_none_or(|binary| *binary == desired.config.p4_device_config);
        if there.p4_name != wanted.name || !same_schema || !same_binary {
            return Ok(false);
        }
        self.bind(Some(&desired.schema)).await?;
        Ok(true)
    }

    /// Prepares the program, and binds to it. Later writes go to the new program. The old one runs until
    /// [`start`](Link::start), or stays if the session ends before that.
    pub async fn install(&mut self, desired: &Desired) -> Result<(), CtrlError> {
        let wanted = own_program(desired)?;
        let is_other = |bound: &Bound| bound.p4_name != wanted.name;
        if self.stream.is_some() && self.bound.as_ref().is_some_and(is_other) {
            self.renew().await?;
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
        self.set(Action::VerifyAndWarmInitBegin, Some(config), "preparing the program").await?;
        self.bind(Some(&desired.schema)).await?;
        self.prepared = true;
        Ok(())
    }

    /// Starts the program that was prepared, if one was, with all that was written to it.
    pub async fn start(&mut self) -> Result<(), CtrlError> {
        if !std::mem::take(&mut self.prepared) {
            return Ok(());
        }
        self.set(Action::WarmInitEnd, None, "starting the program").await?;
        self.finished().await
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

    /// Waits until the switch says that the program runs.
    async fn finished(&mut self) -> Result<(), CtrlError> {
        use bfrt::SetForwardingPipelineConfigResponseType::WarmInitFinished;
        loop {
            let message = timeout(CONNECT, self.message()).await;
            let message = message.map_err(|_| {
                CtrlError::Timeout("the end of the installation".into(), CONNECT.as_millis())
            })??;
            if let Some(stream_message_response::Update::SetForwardingPipelineConfigResponse(said)) =
                message.update
                && said.set_forwarding_pipeline_config_response_type() == WarmInitFinished
            {
                return Ok(());
            }
        }
    }
}
