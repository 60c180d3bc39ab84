//! Schemes of a rack: plain switching, and protocols beside it that share one pipeline.
//!
//! ```text
//!  description ─ Definition::read ─▶ Protocol ─┬─ check, claims     is it right, does it fit beside the others
//!                                              ├─ templates, headers, context, drop reasons ─▶ program
//!                                              ├─ parameters of entries, meters, sessions   ─▶ entries
//!                                              └─ constants, layers, ceilings               ─▶ hosts, reports
//! ```
//!
//! A *protocol* is spoken by hosts and switch beyond Ethernet: one module here, one folder of templates. A *scheme*
//! says which of a rack's protocols run, each in which of its variants. Nothing outside of a protocol's module knows
//! what is in it, but for callers that ask a rack for it by its type ([`Rack::protocol`]).

pub mod clio;
pub mod cowbird;
pub mod edm;
mod hosts;
pub mod l2;
pub(crate) mod parts;
pub mod pl2;
mod run;

pub use hosts::{NoParameters, endpoint_config, spoken_beside};
pub use pl2::sequence_ether_type;

pub use crate::rack::{
    Carried, Claim, Cost, Crossing, Definition, Denied, DropReason, EtherTypeState, Header, Protocol,
    ReasonCounter, Reservations, Scheme, Spacing, TOGETHER,
};

use crate::rack::{L2, Rack};
use std::any::Any;

/// The protocols that descriptions may name, in pipeline order.
pub static PROTOCOLS: &[&dyn Definition] =
    &[&pl2::Definition, &edm::Definition, &cowbird::Definition, &clio::Definition];

impl Scheme {
    /// Plain switching, and each protocol's variants on their own.
    pub fn all() -> Vec<Scheme> {
        let variants = PROTOCOLS.iter().flat_map(|protocol| protocol.variants());
        std::iter::once(Scheme::L2).chain(variants.map(|variant| Scheme::one(variant))).collect()
    }
}

impl std::str::FromStr for Scheme {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        if s == L2 {
            return Ok(Scheme::L2);
        }
        let known = || PROTOCOLS.iter().flat_map(|protocol| protocol.variants()).copied();
        let variants: Option<Vec<&'static str>> =
            s.split('+').map(|name| known().find(|variant| *variant == name)).collect();
        variants.filter(|variants| variants.len() <= TOGETHER).map(Scheme::of).ok_or_else(|| {
            let names: Vec<&str> = std::iter::once(L2).chain(known()).collect();
            let (last, others) = names.split_last().unwrap_or((&L2, &[]));
            format!("`{s}` is no scheme; there are {} and {last}", others.join(", "))
        })
    }
}

/// A scheme that a rack cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rack {rack}: {scheme} {problem}")]
pub struct SchemeError {
    /// The rack.
    pub rack: String,
    /// The scheme.
    pub scheme: Scheme,
    /// Why, and what to do; continues a sentence that starts with the scheme's name.
    pub problem: String,
}

impl Rack {
    /// The protocol of this type, if the rack has it.
    pub fn protocol<P: Protocol>(&self) -> Option<&P> {
        self.protocols.iter().find_map(|protocol| {
            let any: &dyn Any = protocol.as_ref();
            any.downcast_ref()
        })
    }

    /// The same rack with this scheme, if it can run it.
    pub fn under(&self, scheme: Scheme) -> Result<Rack, SchemeError> {
        let refuse = |problem| SchemeError { rack: self.name.clone(), scheme, problem };
        let as_variant = |variant| self.protocols.iter().find_map(|protocol| protocol.as_variant(variant));
        if let Some(absent) = scheme.variants().find(|variant| as_variant(variant).is_none()) {
            return Err(refuse(needs(absent)));
        }
        // In the rack's order, not in the scheme's.
        let protocols = self
            .protocols
            .iter()
            .flat_map(|protocol| scheme.variants().filter_map(|variant| protocol.as_variant(variant)).next());
        let rack = Rack { protocols: protocols.collect(), ..self.clone() };
        match rack.protocols.iter().find_map(|protocol| protocol.refuses(&rack)) {
            Some(problem) => Err(refuse(problem)),
            None => Ok(rack),
        }
    }

    /// Whether hosts and switch exchange times.
    pub fn exchanges_times(&self) -> bool {
        self.protocols.iter().any(|protocol| protocol.exchanges_times())
    }

    /// Reasons for which the program drops frames. A reason's position is its index in the counter.
    pub fn drop_reasons(&self) -> Vec<DropReason> {
        let protocols = self.protocols.iter().flat_map(|protocol| protocol.drop_reasons());
        l2::DROP_REASONS.iter().chain(protocols).copied().collect()
    }
}

/// Error about a variant's missing table.
fn needs(variant: &str) -> String {
    match PROTOCOLS.iter().find(|protocol| protocol.variants().contains(&variant)) {
        Some(protocol) => {
            format!("needs {}'s parameters: {}", protocol.section().to_uppercase(), protocol.add())
        }
        None => "is no protocol of the description's: add its table".to_owned(),
    }
}
