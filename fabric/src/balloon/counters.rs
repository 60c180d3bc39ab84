//! The service's counters.

use crate::common::counters;

counters! {
    /// Events at the service. Every drop has a reason.
    Counters {
        /// Requests that came.
        requests,
        /// Requests that were refused.
        refused,
        /// Dropped: too many replies wait for the driver.
        overflows,
        /// Reserves that were answered with the extent of an earlier one.
        repeated,
        /// Extents that were lent.
        lent,
        /// Extents that were returned by their holders.
        returned,
        /// Sessions that ended because they were not renewed.
        leases_ended,
        /// Sessions that ended because their compute node restarted.
        sessions_replaced,
        /// Extents whose keys were revoked.
        fenced,
        /// Extents that were zeroed and are free.
        freed,
        /// Extents that went with their memory node.
        lost,
        /// Extents that were found with the nodes when the service started, or a node joined.
        found,
        /// Grants that were given up: another place was looked for.
        regranted,
        /// Commands that were sent.
        commands,
        /// Commands that were sent again because no answer came.
        retries,
        /// Answers that came.
        answers,
        /// Answers to commands that nothing waits for: copies, late ones, and those of another instance.
        late,
        /// Commands that a node has refused.
        node_refusals,
        /// Joins that a node has refused: it has another number.
        same_nodes,
        /// Sessions that nodes reported, and that go on.
        adopted,
        /// Answers that no node gives.
        nonsense,
        /// Instances of nodes that joined.
        joins,
    }
}
