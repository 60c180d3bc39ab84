//! A switch in reach by P4Runtime or by BFRuntime.

use crate::bfrt;
use crate::client::Client;
use crate::connect::ConnectOptions;
use crate::desired::{Desired, PortChange};
use crate::error::CtrlError;
use crate::protocol::Protocol;
use crate::reach::Reach;
use crate::session::Session;
use p4rack_p4rt::diff;
use p4rack_p4rt::p4::v1::{Entity, ForwardingPipelineConfig, Update};
use p4rack_p4rt::schema::Schema;

impl Reach for Client {
    async fn runs(&mut self, desired: &Desired) -> Result<bool, CtrlError> {
        runs(self, desired).await
    }

    async fn install(&mut self, desired: &Desired) -> Result<(), CtrlError> {
        self.set_pipeline(desired.config.clone()).await
    }

    async fn start(&mut self) -> Result<(), CtrlError> {
        Ok(())
    }

    fn held(&self, desired: &[Entity]) -> Result<Vec<Entity>, CtrlError> {
        Ok(desired.to_vec())
    }

    fn approached(&self, _: &[Entity], _: &mut [Entity]) -> Result<(), CtrlError> {
        Ok(())
    }

    async fn port_changes(&mut self, _: &Desired) -> Result<Option<Vec<PortChange>>, CtrlError> {
        Ok(None)
    }

    async fn change_ports(&mut self, _: &[PortChange]) -> Result<(), CtrlError> {
        Ok(())
    }

    async fn read(&mut self, entities: Vec<Entity>) -> Result<Vec<Entity>, CtrlError> {
        Client::read(self, entities).await
    }

    async fn write_phases(
        &mut self,
        schema: &Schema,
        phases: Vec<&[Update]>,
        total: usize,
    ) -> Result<(), CtrlError> {
        Client::write_phases(self, schema, phases.into_iter(), total).await
    }

    async fn write_together(&mut self, schema: &Schema, phases: Vec<&[Update]>) -> Result<(), CtrlError> {
        Client::write_together(self, schema, &phases).await
    }
}

impl Reach for bfrt::Link {
    async fn runs(&mut self, desired: &Desired) -> Result<bool, CtrlError> {
        bfrt::Link::runs(self, desired).await
    }

    async fn install(&mut self, desired: &Desired) -> Result<(), CtrlError> {
        self.remember().await;
        bfrt::Link::install(self, desired).await
    }

    async fn start(&mut self) -> Result<(), CtrlError> {
        bfrt::Link::start(self).await
    }

    fn held(&self, desired: &[Entity]) -> Result<Vec<Entity>, CtrlError> {
        bfrt::Link::held(self, desired)
    }

    fn approached(&self, desired: &[Entity], found: &mut [Entity]) -> Result<(), CtrlError> {
        bfrt::Link::approached(self, desired, found)
    }

    async fn port_changes(&mut self, desired: &Desired) -> Result<Option<Vec<PortChange>>, CtrlError> {
        let wanted = desired.bfrt.as_ref().map_or(&[][..], |program| &program.ports);
        bfrt::Link::port_changes(self, wanted).await.map(Some)
    }

    async fn change_ports(&mut self, changes: &[PortChange]) -> Result<(), CtrlError> {
        bfrt::Link::change_ports(self, changes).await
    }

    async fn read(&mut self, entities: Vec<Entity>) -> Result<Vec<Entity>, CtrlError> {
        bfrt::Link::read(self, entities).await
    }

    async fn write_phases(
        &mut self,
        schema: &Schema,
        phases: Vec<&[Update]>,
        total: usize,
    ) -> Result<(), CtrlError> {
        bfrt::Link::write_phases(self, schema, phases.into_iter(), total).await
    }

    async fn write_together(&mut self, schema: &Schema, phases: Vec<&[Update]>) -> Result<(), CtrlError> {
        let total = phases.iter().map(|phase| phase.len()).sum();
        bfrt::Link::write_phases(self, schema, phases.into_iter(), total).await
    }
}

/// Whether the switch already has the program.
async fn runs(client: &mut Client, desired: &Desired) -> Result<bool, CtrlError> {
    let Some(installed) = client.pipeline().await? else { return Ok(false) };
    Ok(is_same(&installed, desired))
}

/// Whether an installed program is the desired one. The cookie alone is not enough: the controller that installed the
/// program chose it, and may have reused an earlier one.
pub(crate) fn is_same(installed: &ForwardingPipelineConfig, desired: &Desired) -> bool {
    let (Some(there), Some(wanted)) = (&installed.p4info, &desired.config.p4info) else { return false };
    let is_ours = installed.cookie == desired.config.cookie;
    // A server that does not return the device config: its cookie has to suffice.
    let kept = installed.p4_device_config.is_empty() && is_ours;
    let same_text = kept || installed.p4_device_config == desired.config.p4_device_config;
    let same = same_text && (there == wanted || diff::differences(wanted, there).is_empty());
    if is_ours && !same {
        tracing::warn!("the switch's cookie is the program's, but it runs another one");
    }
    same
}

/// A connection of either protocol.
#[derive(Debug)]
pub enum Link {
    /// P4Runtime, to read.
    Client(Box<Client>),
    /// P4Runtime, as primary.
    Session(Box<Session>),
    /// BFRuntime.
    Bfrt(Box<bfrt::Link>),
}

impl Link {
    /// Connects to read.
    pub async fn to_read(target: ConnectOptions) -> Result<Link, CtrlError> {
        Ok(match target.protocol {
            Protocol::P4Runtime => Link::Client(Box::new(Client::connect(target).await?)),
            Protocol::BfRuntime => Link::Bfrt(Box::new(bfrt::Link::to_read(target).await?)),
        })
    }

    /// Connects to write.
    pub async fn to_write(target: ConnectOptions) -> Result<Link, CtrlError> {
        Ok(match target.protocol {
            Protocol::P4Runtime => Link::Session(Box::new(Session::connect(target).await?)),
            Protocol::BfRuntime => Link::Bfrt(Box::new(bfrt::Link::connect(target).await?)),
        })
    }

    /// Names of the program that runs.
    pub async fn schema(&mut self) -> Result<Schema, CtrlError> {
        match self {
            Link::Client(client) => client.schema().await,
            Link::Session(session) => session.schema().await,
            Link::Bfrt(link) => link.schema().await,
        }
    }

    /// Reads what the requests name.
    pub async fn read(&mut self, entities: Vec<Entity>) -> Result<Vec<Entity>, CtrlError> {
        match self {
            Link::Client(client) => client.read(entities).await,
            Link::Session(session) => session.read(entities).await,
            Link::Bfrt(link) => link.read(entities).await,
        }
    }

    /// Writes updates, each for itself.
    pub async fn write(&mut self, schema: &Schema, updates: &[Update]) -> Result<(), CtrlError> {
        match self {
            Link::Client(client) => client.write(schema, updates).await,
            Link::Session(session) => session.write(schema, updates).await,
            Link::Bfrt(link) => link.write(schema, updates).await,
        }
    }
}
