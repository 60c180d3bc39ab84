//! Encodes and decodes PL2's frames.

use super::Config;
use crate::common::{self, Reason, check_link};
use p4rack_wire::ethernet::{Ethernet, Vlan, overhead};
use p4rack_wire::pl2::{Control, Kind, PCP_CONTROL, PCP_SCHEDULED, Shim, VERSION};
use p4rack_wire::{EtherType, MacAddr};

const TAGGED: usize = Ethernet::BYTES + Vlan::BYTES;

/// Classification of a frame from the link.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming<'a> {
    /// A grant, with the destination it is for.
    Grant(MacAddr, Control),
    /// A copy of a grant to send to us, with the sender.
    Notify(MacAddr, Control),
    /// Data in our VLAN. The application's frame consists of addresses, EtherType and rest.
    Data { source: MacAddr, ether_type: EtherType, sequence: Option<u32>, rest: &'a [u8] },
    /// Anything else, for the application unchanged.
    Plain,
}

/// Classifies `frame`, or says why it is dropped.
pub(super) fn classify<'a>(frame: &'a [u8], config: &Config) -> Result<Incoming<'a>, Reason> {
    let ethernet = check_link(frame, &config.station, Vlan::BYTES + Shim::BYTES)?;
    if ethernet.ether_type == config.ether_type && !(config.numbered && is_data(&frame[Ethernet::BYTES..])) {
        return Err(Reason::BadKind);
    }
    if ethernet.ether_type != EtherType::VLAN {
        return Ok(Incoming::Plain);
    }
    let vlan = Vlan::parse(&frame[Ethernet::BYTES..]).map_err(|_| Reason::LinkTooShort)?;
    if !config.is_ours(vlan.vid) {
        return Ok(Incoming::Plain);
    }
    let rest = &frame[TAGGED..];
    if vlan.ether_type != config.ether_type {
        return match config.shim {
            true => Err(Reason::BadShim),
            false => {
                Ok(Incoming::Data { source: ethernet.src, ether_type: vlan.ether_type, sequence: None, rest })
            }
        };
    }
    let first = *rest.first().ok_or(Reason::LinkTooShort)?;
    if first >> 4 != VERSION {
        return Err(Reason::BadVersion);
    }
    match Kind::of_code(first & 0xf).ok_or(Reason::BadKind)? {
        Kind::Grt if ethernet.dst == config.station.mac => {
            let control = Control::parse(rest).map_err(|_| Reason::LinkTooShort)?;
            Ok(Incoming::Grant(ethernet.src, control))
        }
        Kind::Notify => Control::parse(rest)
            .map(|control| Incoming::Notify(ethernet.src, control))
            .map_err(|_| Reason::LinkTooShort),
        Kind::Data if config.numbered => {
            Ok(Incoming::Data { source: ethernet.src, ether_type: config.ether_type, sequence: None, rest })
        }
        Kind::Data if config.shim => {
            let shim = Shim::parse(rest).map_err(|_| Reason::LinkTooShort)?;
            Ok(Incoming::Data {
                source: ethernet.src,
                ether_type: shim.ether_type,
                sequence: Some(shim.sequence),
                rest: &rest[Shim::BYTES..],
            })
        }
        Kind::Data => Err(Reason::BadShim),
        _ => Err(Reason::BadKind),
    }
}

/// Whether a shim begins here.
fn is_data(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| *first == VERSION << 4 | Kind::Data as u8)
}

/// Writes an RSV for `destination`, padded to the minimum frame.
pub(super) fn write_rsv(out: &mut Vec<u8>, config: &Config, destination: MacAddr, rsv: &Rsv) {
    out.clear();
    out.resize(overhead::MIN_FRAME as usize, 0);
    Ethernet { dst: destination, src: config.station.mac, ether_type: EtherType::VLAN }.emit(out);
    let vlan = Vlan { pcp: PCP_CONTROL, dei: false, vid: config.vid, ether_type: config.ether_type };
    vlan.emit(&mut out[Ethernet::BYTES..]);
    let control = Control {
        version: VERSION,
        kind: Kind::Rsv as u8,
        demand: rsv.demand,
        cell: rsv.cell,
        unsolicited: rsv.unsolicited.into(),
        reserved: 0,
        id: rsv.id,
        send_wait: 0,
        recv_wait: 0,
    };
    control.emit(&mut out[TAGGED..]);
}

/// Contents of an RSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rsv {
    pub id: u32,
    pub cell: u8,
    pub demand: u8,
    /// Whether its burst follows immediately.
    pub unsolicited: bool,
}

/// Writes an application's frame of `len` bytes with the tag of a reservation's cell and, if there is a
/// sequence number, the shim. `frame` is the stored part, at least an Ethernet header; the rest is whatever
/// `out` held.
pub(super) fn write_data(
    out: &mut Vec<u8>,
    config: &Config,
    (frame, len): (&[u8], usize),
    sequence: Option<u32>,
    (cell, unsolicited): (u8, bool),
) {
    let (addresses, rest) = frame.split_at(12);
    let (ether_type, payload) = rest.split_at(2);
    let ether_type = EtherType(u16::from_be_bytes([ether_type[0], ether_type[1]]));
    let outer = if sequence.is_some() { config.ether_type } else { ether_type };
    let shim_bytes = if sequence.is_some() { Shim::BYTES } else { 0 };
    out.resize(len.max(frame.len()) + Vlan::BYTES + shim_bytes, 0);
    let (head, body) = out.split_at_mut(TAGGED);
    head[..12].copy_from_slice(addresses);
    head[12..14].copy_from_slice(&EtherType::VLAN.0.to_be_bytes());
    Vlan { pcp: PCP_SCHEDULED, dei: unsolicited, vid: config.vid + u16::from(cell), ether_type: outer }
        .emit(&mut head[Ethernet::BYTES..]);
    if let Some(sequence) = sequence {
        Shim { version: VERSION, kind: Kind::Data as u8, reserved: 0, ether_type, sequence }.emit(body);
    }
    body[shim_bytes..][..payload.len()].copy_from_slice(payload);
}

/// Bytes that PL2 adds to a data frame.
pub(super) fn added_bytes(config: &Config) -> u64 {
    Vlan::BYTES as u64 + if config.shim { Shim::BYTES as u64 } else { 0 }
}

/// Checks a frame of the application. Returns the destination address if it may be sent.
pub(super) fn check_app(frame: &[u8], config: &Config) -> Result<MacAddr, Reason> {
    let ethernet = common::check_app(frame, &config.station)?;
    let tagged_as_ours = ethernet.ether_type == EtherType::VLAN
        && Vlan::parse(&frame[Ethernet::BYTES..]).is_ok_and(|vlan| config.is_ours(vlan.vid));
    let is_own =
        ethernet.ether_type == config.ether_type && !(config.numbered && is_data(&frame[Ethernet::BYTES..]));
    if is_own || tagged_as_ours {
        return Err(Reason::AppReserved);
    }
    Ok(ethernet.dst)
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::*;

    const ME: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn config(shim: bool) -> Config {
        Config { shim, lanes: 2, ..Config::new(ME, Mode::Clock, 1_000_000_000) }
    }

    fn app_frame(dst: MacAddr, src: MacAddr, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 14];
        Ethernet { dst, src, ether_type: EtherType::IPV4 }.emit(&mut frame);
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn data_comes_back_as_it_went_in() {
        for sequence in [None, Some(7)] {
            let receiver = Config { shim: sequence.is_some(), ..config(true) };
            let mut sender = receiver.clone();
            sender.station.mac = PEER;
            let app = app_frame(ME, PEER, b"hello");
            let mut out = Vec::new();
            write_data(&mut out, &sender, (&app, app.len()), sequence, (3, true));
            assert_eq!(out.len() as u64, app.len() as u64 + added_bytes(&sender));
            let expected =
                Incoming::Data { source: PEER, ether_type: EtherType::IPV4, sequence, rest: b"hello" };
            assert_eq!(classify(&out, &receiver), Ok(expected));
            assert_eq!(out[14] & 0x10, 0x10, "DEI marks it unsolicited");
            assert_eq!(u16::from(out[15]), sender.vid + 3, "the VLAN names the cell");
        }
    }

    #[test]
    fn each_fault_has_its_reason() {
        let config = config(true);
        let mut rsv = Vec::new();
        let mut sender = config.clone();
        sender.station.mac = PEER;
        write_rsv(&mut rsv, &sender, ME, &Rsv { id: 1, cell: 2, demand: 4, unsolicited: false });
        assert_eq!(rsv.len(), 60);
        let with = |at: usize, value: u8| {
            let mut frame = rsv.clone();
            frame[at] = value;
            classify(&frame, &config).map(|_| ())
        };
        assert_eq!(with(18, 0x11), Err(Reason::BadKind), "an RSV is for the switch");
        assert_eq!(with(18, 0x22), Err(Reason::BadVersion));
        assert_eq!(with(18, 0x1f), Err(Reason::BadKind));
        assert_eq!(with(18, 0x12), Ok(()));
        assert_eq!(with(5, 9), Err(Reason::NotForUs));
        assert_eq!(with(11, 1), Err(Reason::OwnSource));
        assert_eq!(with(17, 0), Err(Reason::BadShim), "tagged data without shim");
        assert_eq!((with(15, 5), with(15, 6)), (Err(Reason::BadKind), Ok(())), "two lanes are four VLANs");
        assert_eq!(with(15, 99), Ok(()), "another VLAN is the application's");
        for len in 0..18 {
            assert_eq!(classify(&rsv[..len], &config), Err(Reason::LinkTooShort), "{len}");
        }
        assert_eq!(classify(&vec![0; 1527], &config), Err(Reason::LinkTooLong));
    }

    #[test]
    fn the_application_cannot_forge_control_frames() {
        let config = config(true);
        let mut frame = app_frame(PEER, ME, b"x");
        assert_eq!(check_app(&frame, &config), Ok(PEER));
        frame[12..14].copy_from_slice(&config.ether_type.0.to_be_bytes());
        assert_eq!(check_app(&frame, &config), Err(Reason::AppReserved));
        let mut tagged = Vec::new();
        let frame = app_frame(PEER, ME, b"x");
        write_data(&mut tagged, &config, (&frame, frame.len()), None, (0, false));
        assert_eq!(check_app(&tagged, &config), Err(Reason::AppReserved));
        assert_eq!(check_app(&app_frame(ME, PEER, b""), &config), Err(Reason::AppForeignSource));
        assert_eq!(check_app(&[0; 13], &config), Err(Reason::AppTooShort));
        assert_eq!(check_app(&app_frame(PEER, ME, &[0; 1501]), &config), Err(Reason::AppTooLong));
    }
}
