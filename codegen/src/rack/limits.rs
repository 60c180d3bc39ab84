//! Limits that descriptions share with the options of `p4rack switch run`.

/// Range of the CPU port and the drop port. Programs have nine bits for a port; 0 is its value if they set
/// none.
pub const SPECIAL_PORTS: (u64, u64) = (1, 511);
/// Range of the timestamps' unit in nanoseconds.
pub const TIME_UNIT_NS: (u64, u64) = (1, 1_000_000);

/// Range of the number of a rack's switches.
pub const TORS: (u64, u64) = (1, 2);

/// Minimum size of the buffer in full frames: with less, the smallest burst is lost.
const BUFFER_FRAMES: u64 = 8;
/// Maximum size of the buffer, 64 GiB. Shares of it in percent are computed with 64 bits.
const BUFFER_BYTES_MAX: u64 = 64 << 30;
/// Bytes of a full frame in the buffer, with FCS.
const FRAME_BYTES: u64 = 1530;

/// Why a value is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The value's problem.
    pub message: String,
    /// The values to write instead.
    pub help: &'static str,
}

/// Checks that a buffer of this size is large enough, and not larger than any switch's.
pub fn buffer(bytes: u64) -> Result<(), Refusal> {
    if bytes > BUFFER_BYTES_MAX {
        let message = format!("{bytes} bytes are more than a switch has");
        return Err(Refusal { message, help: "write at most \"64 GiB\"" });
    }
    if bytes >= BUFFER_FRAMES * FRAME_BYTES {
        return Ok(());
    }
    let message = format!("{bytes} bytes don't hold {BUFFER_FRAMES} full frames");
    Err(Refusal { message, help: "write \"16 KiB\" or more" })
}

/// Checks that the CPU port differs from the drop port.
pub fn cpu_port(cpu_port: u64, drop_port: u64) -> Result<(), Refusal> {
    if cpu_port != drop_port {
        return Ok(());
    }
    let message = format!("{cpu_port} is also the drop port");
    Err(Refusal { message, help: "give them different numbers, e.g. 510 and 511" })
}
