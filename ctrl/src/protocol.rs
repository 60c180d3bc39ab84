//! Protocols between a controller and a switch.

/// How a switch is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// P4Runtime.
    #[default]
    P4Runtime,
    /// BFRuntime, the interface of Tofino's driver.
    BfRuntime,
}

impl Protocol {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::P4Runtime => "P4Runtime",
            Protocol::BfRuntime => "BFRuntime",
        }
    }
}
