//! Opening a client of a board, or of several.

use super::Handle;
use crate::Access;
use crate::c::{certificates, needed, tell, text};
use crate::clio::{Patience, Session, Wanted, boards};
use p4rack_codegen::Rack;
use p4rack_fabric::remote::Way;
use p4rack_hosts::roce::setup::Server;
use std::collections::HashMap;
use std::ffi::c_char;

/// Address of a board, and a client's request. Texts that may be null have defaults; see the header.
#[derive(Debug)]
#[repr(C)]
pub struct CallerOptions {
    /// Address of its set-up service, or several with commas in between, or null.
    pub board: *const c_char,
    /// Path of a rack's description, or null.
    pub rack: *const c_char,
    /// Name of the host with the board, or several with commas in between, or null.
    pub at: *const c_char,
    /// Certificate authority of the board, or null.
    pub ca: *const c_char,
    /// Our certificate, or null.
    pub cert: *const c_char,
    /// Its key, or null.
    pub key: *const c_char,
    /// Name in the board's certificate, or null.
    pub server_name: *const c_char,
    /// Bytes of the range of a process of its own, or 0.
    pub reserve_bytes: u64,
    /// Bytes that the process may have allocated, or 0.
    pub limit_bytes: u64,
    /// Bytes that other processes may share with it, or 0.
    pub share_limit_bytes: u64,
}

/// The boards, how long to wait for them, and what to ask for.
struct OpenRequest {
    servers: Vec<Server>,
    patience: Patience,
    wanted: Wanted,
}

/// A caller's request.
///
/// # Safety
/// The texts end with a zero or are null.
unsafe fn open_request(options: &CallerOptions) -> Result<OpenRequest, String> {
    // SAFETY: the caller promises it of each.
    let optional = |pointer| unsafe { text(pointer) }.transpose();
    // SAFETY: the caller promises it of each.
    let tls = unsafe { certificates(options.ca, options.cert, ("key", options.key), options.server_name)? };
    let (servers, patience) = match optional(options.rack)? {
        None => {
            // SAFETY: the caller promises it.
            let addrs = unsafe { needed(options.board, "board") }?.split(',');
            let server = |addr: &str| Server { addr: addr.trim().to_owned(), tls: tls.clone() };
            (addrs.map(server).collect(), Patience::default())
        }
        Some(path) => {
            // SAFETY: the caller promises it.
            let at = unsafe { needed(options.at, "at") }?;
            let rack = Rack::load(path).map_err(|error| error.to_string())?;
            let scheme = rack.by(Way::CLIO).scheme;
            let rack = if rack.scheme().way() == Some(Way::CLIO) { Ok(rack) } else { rack.under(scheme) };
            let rack = rack.map_err(|error| error.to_string())?;
            if options.board.is_null() {
                crate::open::on_some_host(&rack, at).map_err(|error| error.to_string())?;
            }
            let access = Access { memory: optional(options.board)?, tls, ..Access::new(at, at) };
            (boards(&rack, &access).map_err(|error| error.to_string())?, crate::patience(&rack))
        }
    };
    let wanted = Wanted {
        reserve_bytes: options.reserve_bytes,
        limit_bytes: Some(options.limit_bytes).filter(|bytes| *bytes > 0),
        share_limit_bytes: Some(options.share_limit_bytes).filter(|bytes| *bytes > 0),
    };
    Ok(OpenRequest { servers, patience, wanted })
}

/// Opens a client, or says why there is none.
///
/// # Safety
/// The texts of the options end with a zero or are null. `error` can be written for `error_length` bytes or is null.
unsafe fn opened(options: Option<&CallerOptions>, error: *mut c_char, error_length: usize) -> *mut Handle {
    let opened = || -> Result<Handle, String> {
        // SAFETY: the caller promises it.
        let OpenRequest { servers, patience, wanted } =
            unsafe { open_request(options.ok_or("options are NULL")?) }?;
        let session = Session::open_over(&servers, wanted, None, patience);
        let session = session.map_err(|error| error.to_string())?;
        let server = servers.into_iter().next().ok_or("no board is named")?;
        let (places, ended) = (HashMap::new(), HashMap::new());
        Ok(Handle { server, patience, session, kv: None, next: 0, places, ended })
    };
    match opened() {
        Ok(handle) => Box::into_raw(Box::new(handle)),
        Err(why) => {
            // SAFETY: the caller promises it.
            unsafe { tell(&why, error, error_length) };
            std::ptr::null_mut()
        }
    }
}

/// Opens a client of a board; see the header.
///
/// # Safety
/// `board` ends with a zero or is null. `error` can be written for `error_length` bytes or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_open(
    board: *const c_char,
    reserve_bytes: u64,
    error: *mut c_char,
    error_length: usize,
) -> *mut Handle {
    let none = std::ptr::null();
    let options = CallerOptions {
        board,
        rack: none,
        at: none,
        ca: none,
        cert: none,
        key: none,
        server_name: none,
        reserve_bytes,
        limit_bytes: 0,
        share_limit_bytes: 0,
    };
    // SAFETY: the caller promises it.
    unsafe { opened(Some(&options), error, error_length) }
}

/// Opens a client of a board with options; see the header.
///
/// # Safety
/// `options` are some or null; their texts end with a zero or are null. `error` can be written for `error_length` bytes or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_open_with(
    options: *const CallerOptions,
    error: *mut c_char,
    error_length: usize,
) -> *mut Handle {
    // SAFETY: the caller promises it.
    unsafe { opened(options.as_ref(), error, error_length) }
}

/// Ends a handle; see the header.
///
/// # Safety
/// It is null, or of [`p4rack_clio_open`] or [`p4rack_clio_open_with`] and not closed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_close(clio: *mut Handle) {
    if !clio.is_null() {
        // SAFETY: the caller promises it.
        drop(unsafe { Box::from_raw(clio) });
    }
}
