//! Where time goes on an unloaded path: the components of EDM's Table 1 and the cycles of its §3.2.

use super::message::Operation;

/// A cycle of the testbed's clock, at 25 Gb/s also a block's time.
pub const CYCLE_PS: u64 = 2_560;
/// A crossing of the physical coding sublayer's encoder or decoder, in the scheme's own stack.
const PCS_PS: u64 = 2 * CYCLE_PS;
/// PMA, PMD and transceiver, at one end of a link.
const PMA_PS: u64 = 19_000;
/// One hop of cable.
const PROPAGATION_PS: u64 = 10_000;

/// Latencies of EDM's modules, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modules {
    /// Host: from message queue to a notification or a request (2 cycles).
    pub request_ps: u64,
    /// Host: a received grant, until it is in the grant queue (2).
    pub grant_in_ps: u64,
    /// Host: through the grant queue, which crosses clock domains (4).
    pub grant_queue_ps: u64,
    /// Host: from grant to the first block of data (3).
    pub data_out_ps: u64,
    /// Memory node: a received request, until its answer is in the grant queue (3).
    pub request_in_ps: u64,
    /// Host: received data, until it is in memory or with the application (3).
    pub data_in_ps: u64,
    /// Switch: recognising the kind of block (1).
    pub identify_ps: u64,
    /// Switch: from a demand to its grant, on top of the scheduler's own cycles.
    pub schedule_more_ps: u64,
    /// Switch: a grant's block (1).
    pub grant_out_ps: u64,
    /// Switch: data from ingress to egress (4).
    pub forward_ps: u64,
    /// From one end of a link to the other: two coding sublayers, two transceivers, the cable.
    pub link_ps: u64,
}

/// Cycles from a demand to its grant in the unloaded testbed: two until the demand is in its queue, two of an iteration. The
/// other counts of §3.2 leave no other number for Table 1's eleven cycles at the switch.
const SCHEDULE_CYCLES: u64 = 4;

/// Cycles of a way through a CXL switch, as the authors count them.
const CXL_CYCLES: u64 = 44;

impl Modules {
    /// The testbed's. A faster scheduler, of `scheduler_cycle_ps`, keeps the testbed's latency without load, as the
    /// paper's simulations do (§4.3).
    pub fn testbed(scheduler_cycle_ps: u64) -> Modules {
        Modules {
            request_ps: 2 * CYCLE_PS,
            grant_in_ps: 2 * CYCLE_PS,
            grant_queue_ps: 4 * CYCLE_PS,
            data_out_ps: 3 * CYCLE_PS,
            request_in_ps: 3 * CYCLE_PS,
            data_in_ps: 3 * CYCLE_PS,
            identify_ps: CYCLE_PS,
            schedule_more_ps: (SCHEDULE_CYCLES * CYCLE_PS)
                .saturating_sub(SCHEDULE_CYCLES.saturating_mul(scheduler_cycle_ps)),
            grant_out_ps: CYCLE_PS,
            forward_ps: 4 * CYCLE_PS,
            link_ps: 2 * PCS_PS + 2 * PMA_PS + PROPAGATION_PS,
        }
    }

    /// Hosts like the testbed's on Ethernet: the links and the pipeline of Table 1's raw Ethernet. Notifications pass the
    /// pipeline, and come back as grants.
    pub const PIPELINE: Modules = Modules {
        request_ps: 2 * CYCLE_PS,
        grant_in_ps: 2 * CYCLE_PS,
        grant_queue_ps: 4 * CYCLE_PS,
        data_out_ps: 3 * CYCLE_PS,
        request_in_ps: 3 * CYCLE_PS,
        data_in_ps: 3 * CYCLE_PS,
        identify_ps: 0,
        schedule_more_ps: 0,
        grant_out_ps: STACKS[2].forward_ps,
        forward_ps: STACKS[2].forward_ps,
        link_ps: 2 * 2 * MAC_PS + 2 * PMA_PS + PROPAGATION_PS,
    };

    /// Hosts with another of Table 1's stacks: the protocol takes its time before a message is sent and after it has come.
    pub const fn of_stack(stack: Stack) -> Modules {
        Modules {
            request_ps: stack.protocol_ps,
            data_out_ps: stack.protocol_ps,
            data_in_ps: stack.protocol_ps,
            forward_ps: stack.forward_ps,
            link_ps: Modules::PIPELINE.link_ps,
            ..Modules::CABLE_ONLY
        }
    }

    /// The authors' benchmark of latency (Figure 7): 44 of the testbed's cycles from host to host through a switch, and
    /// nothing else.
    pub const CXL: Modules = Modules { forward_ps: CXL_CYCLES * CYCLE_PS, link_ps: 0, ..Modules::CABLE_ONLY };

    /// The published simulator's: hops of 10 ns, and nothing else takes time.
    pub const CABLE_ONLY: Modules = Modules {
        request_ps: 0,
        grant_in_ps: 0,
        grant_queue_ps: 0,
        data_out_ps: 0,
        request_in_ps: 0,
        data_in_ps: 0,
        identify_ps: 0,
        schedule_more_ps: 0,
        grant_out_ps: 0,
        forward_ps: 0,
        link_ps: PROPAGATION_PS,
    };
}

/// A network stack of Table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Name, as in the table.
    pub name: &'static str,
    /// The protocol's own processing, at a host, once a message.
    protocol_ps: u64,
    /// The switch's forwarding.
    forward_ps: u64,
}

/// A crossing of MAC, or of the coding sublayer, in stacks on top of MAC.
const MAC_PS: u64 = 3 * CYCLE_PS;

/// The stacks that EDM is compared with.
pub const STACKS: [Stack; 3] = [
    Stack { name: "TCP/IP in hardware", protocol_ps: 666_200, forward_ps: 400_000 },
    Stack { name: "RDMA (RoCEv2)", protocol_ps: 230_200, forward_ps: 400_000 },
    Stack { name: "raw Ethernet", protocol_ps: 0, forward_ps: 400_000 },
];

impl Stack {
    /// Without transceivers and cables.
    pub fn stack_ps(&self, operation: Operation) -> u64 {
        // From host to host: two stacks, a switch, and MAC and coding sublayer at the four ends of two links.
        ways(operation) * (2 * self.protocol_ps + self.forward_ps + 4 * 2 * MAC_PS)
    }

    /// In all.
    pub fn fabric_ps(&self, operation: Operation) -> u64 {
        self.stack_ps(operation) + ways(operation) * 2 * (2 * PMA_PS + PROPAGATION_PS)
    }
}

/// Ways from host to host that an operation takes.
fn ways(operation: Operation) -> u64 {
    match operation {
        Operation::Read => 2,
        Operation::Write => 1,
    }
}

/// EDM's part of Table 1: the stack and the total, from the latencies of its modules on an unloaded path.
pub fn edm_ps(operation: Operation) -> (u64, u64) {
    let m = Modules::testbed(CYCLE_PS);
    let scheduler = SCHEDULE_CYCLES * CYCLE_PS + m.schedule_more_ps;
    let switch = m.identify_ps + scheduler + m.grant_out_ps + m.identify_ps + m.forward_ps;
    let hosts = match operation {
        Operation::Read => m.request_ps + m.request_in_ps + m.grant_queue_ps + m.data_out_ps + m.data_in_ps,
        Operation::Write => m.request_ps + m.grant_in_ps + m.grant_queue_ps + m.data_out_ps + m.data_in_ps,
    };
    // Both take four links: request or notification and grant, and data twice.
    let links = 4 * m.link_ps;
    (hosts + switch + 8 * PCS_PS, hosts + switch + links)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Operation; 2] = [Operation::Read, Operation::Write];

    #[test]
    fn edm_is_table_1() {
        assert_eq!(BOTH.map(edm_ps), [(107_520, 299_520), (104_960, 296_960)]);
    }

    #[test]
    fn the_other_stacks_are_table_1() {
        // The table prints microseconds with two digits and adds rounded values; raw Ethernet's write has all digits.
        let printed =
            [(3_590, 3_790), (1_790, 1_890), (1_840, 2_030), (920, 1_020), (920, 1_110), (461, 557)];
        let ours =
            STACKS.iter().flat_map(|stack| BOTH.map(|one| (stack.stack_ps(one), stack.fabric_ps(one))));
        for ((stack_ps, fabric_ps), (stack_ns, fabric_ns)) in ours.zip(printed) {
            assert!((stack_ps / 1_000).abs_diff(stack_ns) <= 11, "{stack_ps} {stack_ns}");
            assert!((fabric_ps / 1_000).abs_diff(fabric_ns) <= 11, "{fabric_ps} {fabric_ns}");
        }
        assert_eq!(STACKS[2].stack_ps(Operation::Write), 461_440);
        assert_eq!(STACKS[2].fabric_ps(Operation::Write), 557_440);
    }
}
