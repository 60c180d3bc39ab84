//! Bounds that a description and the options of `p4rack switch run` share.

/// Numbers that the CPU port and the drop port may have: programs have nine bits for a port; 0 is what is there where they
/// set none.
pub const SPECIAL_PORTS: (u64, u64) = (1, 511);
/// Nanoseconds that a unit of the timestamps may have.
pub const TIME_UNIT_NS: (u64, u64) = (1, 1_000_000);

/// Full frames that the buffer holds at least: less and the smallest burst is lost.
const BUFFER_FRAMES: u64 = 8;
/// Bytes of a full frame in the buffer, with FCS.
const FRAME_BYTES: u64 = 1530;

/// What is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong with the value.
    pub message: String,
    /// What to write instead.
    pub help: &'static str,
}

/// Whether a buffer of so many bytes is large enough.
pub fn buffer(bytes: u64) -> Result<(), Refusal> {
    if bytes >= BUFFER_FRAMES * FRAME_BYTES {
        return Ok(());
    }
    let message = format!("{bytes} bytes don't hold {BUFFER_FRAMES} full frames");
    Err(Refusal { message, help: "write \"16 KiB\" or more" })
}

/// Whether the CPU port is another than the drop port.
pub fn cpu_port(cpu_port: u64, drop_port: u64) -> Result<(), Refusal> {
    if cpu_port != drop_port {
        return Ok(());
    }
    let message = format!("{cpu_port} is also the drop port");
    Err(Refusal { message, help: "give them different numbers, e.g. 510 and 511" })
}
