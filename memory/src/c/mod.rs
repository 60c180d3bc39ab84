//! The C interfaces, as the headers in `include/` declare and explain them.

pub mod clio;
pub mod cowbird;
pub mod memory;
pub mod region;
mod status;

pub use status::Status;

use p4rack_hosts::roce::tls::ClientTls;
use std::ffi::{CStr, c_char};
use std::path::PathBuf;

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

/// Certificates of a caller; `None` if set-ups are not encrypted. The key comes with its field's name. Errors: one of them is
/// missing.
///
/// # Safety
/// As [`text`], for each.
unsafe fn certificates(
    ca: *const c_char,
    cert: *const c_char,
    (key_field, key): (&str, *const c_char),
    server_name: *const c_char,
) -> Result<Option<ClientTls>, String> {
    // SAFETY: the caller promises it of each.
    let optional = |pointer| unsafe { text(pointer) }.transpose();
    let path = |pointer| optional(pointer).map(|path| path.map(PathBuf::from));
    let (cacert, cert, key) = (path(ca)?, path(cert)?, path(key)?);
    let server_name = optional(server_name)?.map(str::to_owned);
    if cert.is_some() != key.is_some() {
        return Err(format!("cert and {key_field} belong together: give both or neither"));
    }
    if cacert.is_none() && (cert.is_some() || server_name.is_some()) {
        return Err(format!(
            "ca is NULL; cert, {key_field} and server_name need the authority of the server's certificate"
        ));
    }
    Ok(cacert.map(|ca| ClientTls { cacert: Some(ca), identity: cert.zip(key), server_name }))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    #[test]
    fn certificates_are_complete_or_refused() {
        let [ca, cert, key, name] = [c"ca.pem", c"cert.pem", c"key.pem", c"pool"].map(CStr::as_ptr);
        // SAFETY: the texts are constants.
        let of = |ca, cert, key, name| unsafe { certificates(ca, cert, ("cert_key", key), name) };
        assert!(of(null(), null(), null(), null()).unwrap().is_none());
        let all = of(ca, cert, key, name).unwrap().unwrap();
        assert_eq!(all.cacert, Some("ca.pem".into()));
        assert_eq!(all.identity, Some(("cert.pem".into(), "key.pem".into())));
        assert_eq!(all.server_name.as_deref(), Some("pool"));
        assert!(of(ca, cert, null(), null()).unwrap_err().contains("cert and cert_key"));
        assert!(of(null(), null(), null(), name).unwrap_err().contains("ca is NULL"));
    }
}
