//! P4Runtime, and BFRuntime's messages: code that both ends need to handle them.
//!
//! ```text
//!  p4, bfrt_proto, google, p4rack
//!                       messages (and, with feature `services`, gRPC stubs) made from proto/ by
//!                       tests/golden.rs and kept in generated/
//!  bytes                canonical byte strings
//!  raw                  serialised messages, read in place or sent as they are
//!  schema               P4Info by name and id
//!  values               numbers and addresses as people write them
//!  entity               table entries by name
//!  alias                short names of P4Info objects
//!  text                 text format
//!  nearest              the name that a misspelt one means
//!  diff                 whether two P4Infos mean the same
//!  errors               one error an update in a Write's status
//!  codec                with feature `services`: how the stubs read and write messages
//!  transport            with feature `services`: the entrance of gRPC servers, shares of callers, TLS
//! ```

#[allow(missing_docs, clippy::all, clippy::disallowed_types, clippy::disallowed_methods)]
mod generated {
    /// Package `bfrt_proto`: BFRuntime.
    pub mod bfrt_proto {
        include!("generated/bfrt_proto.rs");
    }
    /// Package `google`.
    pub mod google {
        /// Package `google.rpc`.
        pub mod rpc {
            include!("generated/google.rpc.rs");
        }
    }
    /// Package `p4`.
    pub mod p4 {
        /// Package `p4.v1`: P4Runtime.
        pub mod v1 {
            include!("generated/p4.v1.rs");
        }
        /// Package `p4.config`.
        pub mod config {
            /// Package `p4.config.v1`: P4Info.
            pub mod v1 {
                include!("generated/p4.config.v1.rs");
            }
        }
    }
    /// Package `stratum`: the content of a role's config.
    pub mod stratum {
        include!("generated/stratum.rs");
    }
    /// Package `p4rack`.
    pub mod p4rack {
        /// Package `p4rack.balloon`.
        pub mod balloon {
            /// Package `p4rack.balloon.v1`.
            pub mod v1 {
                include!("generated/p4rack.balloon.v1.rs");
            }
        }
        /// Package `p4rack.clio`.
        pub mod clio {
            /// Package `p4rack.clio.v1`.
            pub mod v1 {
                include!("generated/p4rack.clio.v1.rs");
            }
        }
        /// Package `p4rack.cowbird`.
        pub mod cowbird {
            /// Package `p4rack.cowbird.v1`.
            pub mod v1 {
                include!("generated/p4rack.cowbird.v1.rs");
            }
        }
        /// Package `p4rack.generator`.
        pub mod generator {
            /// Package `p4rack.generator.v1`.
            pub mod v1 {
                include!("generated/p4rack.generator.v1.rs");
            }
        }
        /// Package `p4rack.roce`.
        pub mod roce {
            /// Package `p4rack.roce.v1`.
            pub mod v1 {
                include!("generated/p4rack.roce.v1.rs");
            }
        }
        /// Package `p4rack.telemetry`.
        pub mod telemetry {
            /// Package `p4rack.telemetry.v1`.
            pub mod v1 {
                include!("generated/p4rack.telemetry.v1.rs");
            }
        }
        /// Package `p4rack.trace`.
        pub mod trace {
            /// Package `p4rack.trace.v1`.
            pub mod v1 {
                include!("generated/p4rack.trace.v1.rs");
            }
        }
    }
}

pub use generated::{bfrt_proto, google, p4, p4rack, stratum};
/// Kind and content of an [`Entity`](p4::v1::Entity): its `oneof`.
pub use p4::v1::entity::Entity as EntityKind;

/// All of `proto/` as a serialized `FileDescriptorSet`, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptors.bin");

/// Version of the P4Runtime standard that the messages follow.
pub const API_VERSION: &str = "1.5.0";

pub mod alias;
pub mod bytes;
#[cfg(feature = "services")]
pub mod codec;
pub mod diff;
pub mod entity;
pub mod errors;
pub mod nearest;
pub mod raw;
pub mod schema;
pub mod text;
#[cfg(feature = "services")]
pub mod transport;
pub mod values;
