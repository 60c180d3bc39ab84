//! Client for a switch's packet generators.

use crate::client::Client;
use crate::connect::ConnectOptions;
use crate::error::{CtrlError, refused};
use p4rack_p4rt::p4rack::generator::v1::generator_client::GeneratorClient;
use p4rack_p4rt::p4rack::generator::v1::{Config, ListRequest, RemoveRequest, SetRequest, Status};
use tonic::transport::Channel;

/// Configures a switch's packet generators.
#[derive(Clone, Debug)]
pub struct Generators {
    client: GeneratorClient<Channel>,
    target: ConnectOptions,
}

impl Generators {
    /// Connects. Without a session, generators can only be listed.
    pub async fn connect(target: &ConnectOptions) -> Result<Generators, CtrlError> {
        Ok(Generators { client: GeneratorClient::new(target.channel().await?), target: target.clone() })
    }

    /// Uses an existing connection. Only the primary of the default role may set and remove generators.
    pub fn of(client: &Client) -> Generators {
        Generators { client: GeneratorClient::new(client.channel.clone()), target: client.target().clone() }
    }

    /// Adds a generator, or replaces and restarts it.
    pub async fn set(&mut self, config: Config) -> Result<(), CtrlError> {
        let ConnectOptions { device_id, role, .. } = self.target.clone();
        let election_id = Some(self.target.election());
        let answer = self.client.set(SetRequest { config: Some(config), device_id, election_id, role }).await;
        answer.map(|_| ()).map_err(refused("setting a packet generator"))
    }

    /// Removes a generator.
    pub async fn remove(&mut self, number: u32) -> Result<(), CtrlError> {
        let ConnectOptions { device_id, role, .. } = self.target.clone();
        let election_id = Some(self.target.election());
        let answer = self.client.remove(RemoveRequest { number, device_id, election_id, role }).await;
        answer.map(|_| ()).map_err(refused("removing a packet generator"))
    }

    /// All generators with their statistics.
    pub async fn list(&mut self) -> Result<Vec<Status>, CtrlError> {
        let answer = self.client.list(ListRequest {}).await;
        Ok(answer.map_err(refused("listing packet generators"))?.into_inner().generators)
    }
}
