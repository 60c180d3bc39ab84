//! A register for servers that keep no accounts of requests: their connections, with a share for each
//! tenant.

use super::entrance::{Caller, Register, Tenant, handles_max};
use super::shares::{Share, Shares};
use std::sync::Arc;
use tonic::{Request, Status};

/// Maximum connections, if the process may have as many sockets.
const CONNECTIONS: usize = 2048;
/// Tenants for which connections are reserved.
const TENANTS: u64 = 8;

/// The connections of a server.
#[derive(Debug)]
pub struct Visitors {
    shares: Arc<Shares<Tenant>>,
}

/// A connection.
#[derive(Debug)]
pub struct Visitor {
    caller: Caller,
    _share: Share<Tenant>,
}

impl Default for Visitors {
    fn default() -> Visitors {
        let connections = CONNECTIONS.min(handles_max() / 2) as u64;
        Visitors { shares: Shares::new("connections", connections, TENANTS) }
    }
}

impl Register for Visitors {
    type Entry = Arc<Visitor>;

    fn admit(self: &Arc<Visitors>, caller: Caller) -> Result<Arc<Visitor>, String> {
        let share = self.shares.take(&caller.tenant(), 1).map_err(|full| full.to_string())?;
        Ok(Arc::new(Visitor { caller, _share: share }))
    }
}

impl Visitor {
    /// Of the connection on which a request arrived. Errors: none is known.
    pub fn of<T>(request: &Request<T>) -> Result<Arc<Visitor>, Status> {
        let found = request.extensions().get::<Arc<Visitor>>();
        found
            .cloned()
            .ok_or_else(|| Status::internal("the connection of the request is unknown; please report it"))
    }

    /// The other end.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The tenant whose share it counts in.
    pub fn tenant(&self) -> Tenant {
        self.caller.tenant()
    }
}
