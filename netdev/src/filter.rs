//! Classic BPF, in which sockets say what they take.

pub(crate) const WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
pub(crate) const HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
pub(crate) const BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
pub(crate) const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
pub(crate) const IF_ANY: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
pub(crate) const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// An instruction. A condition that does not hold leaves out `unless` of the next ones.
pub(crate) const fn step(code: u32, unless: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: unless, k }
}
