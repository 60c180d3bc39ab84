//! Operations on lent memory of any kind, as the service's commands need them.

use p4rack_fabric::balloon::{Answer, Command};
use tonic::Status;

/// Memory that is lent in extents. A thread of its own has it.
pub(super) trait Lends: Send + Sync + 'static {
    /// Has a command executed by the memory's [`Node`](p4rack_fabric::balloon::Node). Errors: the thread is gone.
    fn execute(&self, command: Command) -> impl Future<Output = Result<Answer, Status>> + Send;
}
