//! Schemes: which protocols run, each in which variant.

use super::{Definition, Rack};
use serde::{Serialize, Serializer};
use std::fmt;

/// Maximum protocols in one pipeline.
pub const TOGETHER: usize = 4;

/// A scheme of a switch and the agents: variants of protocols that share a pipeline. Without any, plain
/// switching.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scheme([Option<&'static str>; TOGETHER]);

impl Scheme {
    /// Plain switching, without reservations.
    pub const L2: Scheme = Scheme([None; TOGETHER]);

    /// The scheme with one protocol's variant.
    pub const fn one(variant: &'static str) -> Scheme {
        let mut variants = [None; TOGETHER];
        variants[0] = Some(variant);
        Scheme(variants)
    }

    /// The scheme with these variants, in any order; at most [`TOGETHER`], further ones are dropped.
    pub fn of(variants: impl IntoIterator<Item = &'static str>) -> Scheme {
        let mut sorted: Vec<&'static str> = variants.into_iter().take(TOGETHER).collect();
        sorted.sort_unstable();
        let mut scheme = Scheme::L2;
        for (place, variant) in scheme.0.iter_mut().zip(sorted) {
            *place = Some(variant);
        }
        scheme
    }

    /// Names of its variants.
    pub fn variants(&self) -> impl Iterator<Item = &'static str> {
        self.0.into_iter().flatten()
    }

    /// Whether this protocol runs, in any variant.
    pub fn runs(&self, protocol: &dyn Definition) -> bool {
        self.variants().any(|variant| protocol.variants().contains(&variant))
    }

    /// Its name in files and on the command line.
    pub fn name(&self) -> String {
        if *self == Scheme::L2 { L2.to_owned() } else { self.variants().collect::<Vec<_>>().join("+") }
    }
}

/// Name of plain switching.
pub(crate) const L2: &str = "l2";

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Serialize for Scheme {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Rack {
    /// The scheme that the description asks for: all of its protocols, in their variants.
    pub fn scheme(&self) -> Scheme {
        Scheme::of(self.protocols.iter().map(|protocol| protocol.variant()))
    }
}
