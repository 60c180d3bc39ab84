//! Data that the control plane puts behind the device's header of each incoming packet, by port.

use crate::arch::Arch;
use crate::error::ControlError;
use crate::switch::Switch;

/// Ports of four pipes.
const PORTS: usize = 512;
/// Bytes of the second generation; the first has half as many.
const BYTES: usize = 16;

/// The data of all ports; empty while no port has any.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortData(Vec<[u8; BYTES]>);

impl PortData {
    /// Those of a port.
    #[inline(always)]
    pub fn of(&self, port: u16) -> &[u8] {
        self.0.get(usize::from(port)).map_or(&[], |data| data)
    }
}

impl Switch {
    /// Sets the metadata of a port that the parser reads, from the first bit on; the rest is 0. A program that is
    /// loaded starts with 0 for all ports. Fails if there are more than 8 bytes, 16 in the second generation.
    pub fn port_metadata_set(&mut self, port: u16, data: &[u8]) -> Result<(), ControlError> {
        let most = self.port_metadata_bytes()?;
        if data.len() > most {
            let (got, what) = (data.len(), format!("metadata of port {port}"));
            return Err(ControlError::Invalid(format!("{what}: {got} bytes, and {most} are possible")));
        }
        self.port_data.0.resize(PORTS, [0; BYTES]);
        let own = self.port_data.0.get_mut(usize::from(port));
        let own = own.ok_or_else(|| ControlError::NotFound(format!("port {port}")))?;
        *own = [0; BYTES];
        own[..data.len()].copy_from_slice(data);
        Ok(())
    }

    /// Metadata of a port: 8 bytes, 16 in the second generation.
    pub fn port_metadata(&self, port: u16) -> Result<Vec<u8>, ControlError> {
        let count = self.port_metadata_bytes()?;
        let own = self.port_data.of(port);
        Ok((0..count).map(|at| own.get(at).copied().unwrap_or(0)).collect())
    }

    /// Whether frames sent by a port come back.
    pub fn comes_back(&self, port: u16) -> bool {
        self.manager.find(port.into()).is_some_and(|at| self.manager.is_loop(at))
    }

    fn port_metadata_bytes(&self) -> Result<usize, ControlError> {
        match self.arch() {
            Some(Arch::Tna) => Ok(BYTES / 2),
            Some(Arch::SecondTna) => Ok(BYTES),
            _ => Err(ControlError::NotFound("metadata of ports (no such program is loaded)".into())),
        }
    }
}
