//! Writes the serialized `FileDescriptorSet` to the standard output.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(p4rack_p4rt::FILE_DESCRIPTOR_SET)
}
