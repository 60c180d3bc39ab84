//! The seam between controllers and a switch's protocol: P4Runtime or BFRuntime, with P4Runtime's entities in both cases.

use crate::desired::{Desired, PortChange};
use crate::error::CtrlError;
use p4rack_p4rt::p4::v1::{Entity, Update};
use p4rack_p4rt::schema::Schema;

/// Operations on a switch that reconciliation needs.
pub(crate) trait Reach {
    /// Whether it has the program.
    async fn runs(&mut self, desired: &Desired) -> Result<bool, CtrlError>;
    /// Installs the program, or prepares it.
    async fn install(&mut self, desired: &Desired) -> Result<(), CtrlError>;
    /// Starts the program if it was prepared.
    async fn start(&mut self) -> Result<(), CtrlError>;
    /// The desired entities, in the form in which the switch can hold them.
    fn held(&self, desired: &[Entity]) -> Result<Vec<Entity>, CtrlError>;
    /// Gives what was read the desired values, where the switch can only approach them.
    fn approached(&self, desired: &[Entity], found: &mut [Entity]) -> Result<(), CtrlError>;
    /// Changes that make the desired ports exist; `None` if ports are not the controller's to add.
    async fn port_changes(&mut self, desired: &Desired) -> Result<Option<Vec<PortChange>>, CtrlError>;
    /// Changes ports.
    async fn change_ports(&mut self, changes: &[PortChange]) -> Result<(), CtrlError>;
    /// Reads what the requests name.
    async fn read(&mut self, entities: Vec<Entity>) -> Result<Vec<Entity>, CtrlError>;
    /// Writes phase after phase.
    async fn write_phases(
        &mut self,
        schema: &Schema,
        phases: Vec<&[Update]>,
        total: usize,
    ) -> Result<(), CtrlError>;
    /// Writes all phases in one transaction, where the protocol has that.
    async fn write_together(&mut self, schema: &Schema, phases: Vec<&[Update]>) -> Result<(), CtrlError>;
}
