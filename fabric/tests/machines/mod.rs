//! The promises of `Machine` and `HostMachine` to their drivers, for every machine.

mod balloon;
mod driver;
mod frames;
mod hostile;
mod memory;
mod plants;

use driver::{Rig, Step, check};
use p4rack_fabric::{
    Endpoint, HostMachine, Machine, balloon as lending, clio, cowbird, edm, ethernet, pl2, roce,
};
use proptest::prelude::*;

/// Holds a machine to its promises.
fn hold<R: Rig>(rig: impl Fn() -> R, steps: &[Step]) -> Result<(), TestCaseError> {
    check(rig, steps).map_err(|broken| TestCaseError::fail(format!("{}: {broken}", R::NAME)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Drivers that wake only when due and drivers that also wake and poll at other times get the same from every
    /// machine.
    #[test]
    fn every_machine_keeps_to_the_order_of_calls(steps in proptest::collection::vec(driver::step(), 1..40)) {
        for config in frames::configs() {
            hold(|| frames::Frames::new(config.clone()), &steps)?;
        }
        hold(memory::Compute::new, &steps)?;
        hold(memory::Memory::new, &steps)?;
        hold(memory::Adapters::new, &steps)?;
        hold(memory::Clients::new, &steps)?;
        hold(memory::Engine::new, &steps)?;
        hold(memory::Clio::new, &steps)?;
        hold(balloon::Service::new, &steps)?;
    }
}

/// Simulators give each thread some hosts.
#[test]
fn machines_can_be_sent_to_other_threads() {
    fn sent<M: Machine + Send + Clone>() {}
    fn of_host<M: HostMachine + Send + Clone>() {}
    of_host::<Endpoint>();
    of_host::<ethernet::Endpoint>();
    of_host::<pl2::Endpoint>();
    sent::<edm::host::compute::ComputeNode>();
    sent::<edm::host::memory::MemoryNode>();
    sent::<roce::Adapter<roce::Regions>>();
    sent::<cowbird::Engine>();
    sent::<clio::board::Board<Vec<u8>, u8>>();
    sent::<clio::lib::Client>();
    sent::<lending::Balloon>();
}
