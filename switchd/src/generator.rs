//! The generator service: packet generators of the switch, next to P4Runtime.
//!
//! A generator injects arbitrary frames at any port, so only a client with full write access may set one.

use crate::core::Handle;
use crate::p4runtime::{Claim, Device, connection_of};
use p4rack_p4rt::p4rack::generator::v1::generator_server::Generator;
use p4rack_p4rt::p4rack::generator::v1::{
    Config, ListRequest, ListResponse, RemoveRequest, RemoveResponse, SetRequest, SetResponse,
    Status as State,
};
use p4rack_switch::{ControlError, GeneratorConfig, GeneratorStats};
use p4rack_wire::Nanos;
use prost::Message;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Serves the packet generators of a switch.
#[derive(Clone, Debug)]
pub struct GeneratorService {
    handle: Handle,
    device: Arc<Device>,
}

impl GeneratorService {
    /// A service for the switch behind `handle`. The device knows the primary.
    pub fn new(handle: Handle, device: Arc<Device>) -> GeneratorService {
        GeneratorService { handle, device }
    }
}

fn status(error: ControlError) -> Status {
    match error {
        ControlError::NotFound(_) => Status::not_found(error.to_string()),
        ControlError::ResourceExhausted { .. } => Status::resource_exhausted(error.to_string()),
        _ => Status::invalid_argument(error.to_string()),
    }
}

#[tonic::async_trait]
impl Generator for GeneratorService {
    async fn set(&self, request: Request<SetRequest>) -> Result<Response<SetResponse>, Status> {
        let SetRequest { config, device_id, election_id, role } = request.into_inner();
        let config = config.ok_or_else(|| Status::invalid_argument("the configuration is not set"))?;
        let port = u16::try_from(config.ingress_port)
            .map_err(|_| Status::invalid_argument(format!("there is no port {}", config.ingress_port)))?;
        let set = move |switch: &mut p4rack_switch::Switch, now: Nanos| {
            let wanted = GeneratorConfig {
                frame: config.frame,
                port,
                start: now.saturating_add(Nanos(config.delay_ns)),
                period: Nanos(config.period_ns),
                count: config.count,
            };
            switch.generator_set(config.number, wanted)
        };
        let claim = Claim { device_id, role: &role, election_id: election_id.as_ref() };
        self.device.as_primary(claim, set).await?.map_err(status)?;
        Ok(Response::new(SetResponse {}))
    }

    async fn remove(&self, request: Request<RemoveRequest>) -> Result<Response<RemoveResponse>, Status> {
        let RemoveRequest { number, device_id, election_id, role } = request.into_inner();
        let claim = Claim { device_id, role: &role, election_id: election_id.as_ref() };
        let remove = move |switch: &mut p4rack_switch::Switch, _: Nanos| switch.generator_remove(number);
        self.device.as_primary(claim, remove).await?.map_err(status)?;
        Ok(Response::new(RemoveResponse {}))
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        let connection = connection_of(&request)?;
        let (all, now) = self.handle.call(|switch, now| (switch.generators(), now)).await?;
        let generators = all.into_iter().map(|(number, config, stats)| message(number, config, stats, now));
        let answer = ListResponse { generators: generators.collect() };
        connection.answer(answer.encoded_len())?;
        Ok(Response::new(answer))
    }
}

fn message(number: u32, config: GeneratorConfig, stats: GeneratorStats, now: Nanos) -> State {
    let config = Config {
        number,
        frame: config.frame,
        ingress_port: config.port.into(),
        period_ns: config.period.0,
        count: config.count,
        delay_ns: config.start.saturating_sub(now).0,
    };
    State { config: Some(config), sent: stats.sent, skipped: stats.skipped, active: stats.active }
}
