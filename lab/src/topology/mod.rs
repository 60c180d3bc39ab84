//! Topologies on one machine: a namespace for all switches, one for each host, and commands on them.
//!
//! ```text
//!  wiring     namespaces and links
//!  hosts      commands on hosts
//!  running    processes: switches with their programs, agents
//!  workload   datagrams and requests between hosts
//!  prompt     lines such as `h1 ping h2`, from a terminal or a script
//!  run        up, lab, up --keep
//!
//!  sN: a process with a P4Runtime address of its own      hN: a namespace; nothing runs there but its commands
//!  veth: h1 eth0 ═ s1-eth1, s1-eth2 ═ s2-eth1
//! ```
//!
//! - **A switch is `p4rack switch run`**, as in racks. All switches share a namespace, so that one controller reaches all of them at
//!   loopback addresses, as in Mininet. They use no rings and no huge pages, since there may be many of them.
//! - **All or nothing.** Description, programs and entries are checked before anything starts. A switch gets its program, then all its
//!   entries in one Write that is rolled back as a whole. If anything fails, the processes end and the namespaces vanish with them.
//! - **Links.** Switch ports have the link's rate, and the kernel's token bucket limits the host. One switch of a link causes its
//!   delay and loss, in both directions, beside its core (`switchd::wire`).
//! - **Hosts are the kernel's**: their addresses are on the link. In racks whose protocol needs agents, hosts have agents.
//! - **Namespaces have no residents.** `exec` opens the descriptor that the supervisor holds.

mod hosts;
mod prompt;
mod run;
mod running;
mod wiring;
mod workload;

pub use hosts::Done;
pub use run::{Options, Outcome, Use, keep, supervise};
pub use workload::{Flow, Traffic, Values};
