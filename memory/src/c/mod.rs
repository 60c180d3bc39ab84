//! The C interfaces, as the headers in `include/` declare and explain them.

pub mod clio;
pub mod cowbird;
pub mod memory;
pub mod region;
mod status;

pub use status::Status;

use std::ffi::{CStr, c_char};

/// Text of a caller; `None` if it is a null pointer.
///
/// # Safety
/// It ends with a zero and outlives the call.
unsafe fn text<'a>(pointer: *const c_char) -> Option<Result<&'a str, String>> {
    // SAFETY: the caller promises it, and it is no null pointer.
    let text = (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) })?;
    Some(text.to_str().map_err(|_| "an argument is not UTF-8".to_owned()))
}

/// The same for a text that is needed.
///
/// # Safety
/// As [`text`].
unsafe fn needed<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, String> {
    // SAFETY: the caller promises it.
    unsafe { text(pointer) }.unwrap_or_else(|| Err(format!("{name} is NULL")))
}

/// Writes a text for the caller, cut off at `length` with its final zero.
///
/// # Safety
/// `into` can be written for `length` bytes or is null.
unsafe fn tell(what: &str, into: *mut c_char, length: usize) {
    if into.is_null() || length == 0 {
        return;
    }
    let bytes = &what.as_bytes()[..what.len().min(length - 1)];
    // SAFETY: the caller promises it, and the text with its zero is no longer than `length`.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), into.cast(), bytes.len());
        into.add(bytes.len()).write(0);
    }
}
