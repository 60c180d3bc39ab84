//! Opens far memory as the settings say: in the program, and before that in the command, which thus finds errors early.

use super::{Files, Settings, Source};
use crate::mapping::{self, Faults, Mapping, MappingConfig, check_privileges, split, with_signals_blocked};
use crate::region::{RegionConfig, RemoteRegion};
use crate::{Access, OpenError};
use p4rack_codegen::Rack;
use p4rack_fabric::remote::{Service, Way};
use p4rack_hosts::memory::NotHere;
use p4rack_hosts::remote::{self, Attachment, Shape, UnderWay};
use p4rack_hosts::roce::tls::ClientTls;
use std::fmt;
use std::ops::Deref;
use std::path::Path;

/// Far memory of a process, which is never taken apart: the process ends with it.
pub type FarMemory = Box<dyn Deref<Target = Mapping> + Send + Sync>;

/// Why there is no far memory.
#[derive(Debug, thiserror::Error)]
pub enum FarError {
    /// A setting is wrong: its name, and the expected value.
    #[error("{0}")]
    Setting(String),
    /// The memory can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Less far memory than local memory.
    #[error(
        "the far memory has {far_bytes} bytes, and local memory may take {local_bytes}: serve or reserve more, or give less with --local"
    )]
    Small {
        /// Bytes of far memory.
        far_bytes: u64,
        /// Limit of local memory.
        local_bytes: u64,
    },
}

impl FarError {
    /// The reason that marks the place as wrong, if that is the cause.
    pub fn not_here(&self) -> Option<&NotHere> {
        match self {
            FarError::Open(error) => error.not_here(),
            _ => None,
        }
    }
}

/// Opens far memory, from the calling thread's network namespace.
pub fn open(settings: &Settings) -> Result<FarMemory, FarError> {
    check_privileges().map_err(OpenError::from)?;
    let (pages_bytes, region_bytes) = split(settings.local_bytes);
    let region = RegionConfig {
        policy: settings.policy.clone(),
        block_bytes: settings.block_bytes,
        // What a policy fetches behind a written block may never have been written.
        starts_zeroed: true,
        ..RegionConfig::new(region_bytes)
    };
    // System calls of the program use far memory as any other, so threads serve the faults.
    let config =
        MappingConfig { faults: Faults::ByThread, starts_zeroed: true, ..MappingConfig::new(pages_bytes) };
    let memory = match &settings.source.rack {
        Some(rack) => of_rack(rack, &settings.source, &region, &config)?,
        None => own(&settings.source, &region, &config)?,
    };
    match memory.bytes() {
        far_bytes if far_bytes < settings.local_bytes => {
            Err(FarError::Small { far_bytes, local_bytes: settings.local_bytes })
        }
        _ => Ok(memory),
    }
}

/// Another host's memory.
fn of_rack(
    rack: &Path,
    source: &Source,
    region: &RegionConfig,
    config: &MappingConfig,
) -> Result<FarMemory, FarError> {
    let set = source.set.iter().map(|set| set.parse()).collect::<Result<Vec<_>, _>>().map_err(setting)?;
    let rack = Rack::load_set(rack, &set).map_err(setting)?;
    let rack = rack.on(source.arch.parse().map_err(setting)?);
    let rack = rack.under(source.scheme.parse().map_err(setting)?).map_err(setting)?;
    let access = Access {
        host: &source.host,
        interface: source.interface.as_deref(),
        at: &source.at,
        way: Some(source.way.parse().map_err(setting)?),
        key: source.key,
        memory: source.memory.as_deref(),
        engine: source.engine.as_deref(),
        tls: source.tls.as_ref().map(client_tls),
        reserve_bytes: source.reserve_bytes,
    };
    Ok(Box::new(mapping::open(&rack, &access, region, config)?))
}

/// Memory of this process, by a way without a service.
fn own(source: &Source, region: &RegionConfig, config: &MappingConfig) -> Result<FarMemory, FarError> {
    let way: Way = source.way.parse().map_err(setting)?;
    if way.definition().service != Service::None {
        return Err(setting(format!("the way {way} leads to a host: name the rack's description")));
    }
    let under_way = UnderWay::of(32, 1_024);
    let shape = Shape { region_bytes: source.reserve_bytes, reads: under_way, writes: under_way };
    let mapping = with_signals_blocked(|| {
        let (remote, _held) = remote::open(way, Attachment::local(), shape).map_err(OpenError::from)?;
        let region = RemoteRegion::new(remote, region).map_err(OpenError::from)?;
        Mapping::new(Box::new(region), config).map_err(OpenError::from)
    })?;
    Ok(Box::new(Box::new(mapping)))
}

fn client_tls(files: &Files) -> ClientTls {
    let Files { cacert, identity, server_name } = files.clone();
    ClientTls { cacert, identity, server_name }
}

fn setting(error: impl fmt::Display) -> FarError {
    FarError::Setting(error.to_string())
}
