//! An adapter at an interface. One thread owns it and calls [`RocePort::turn`]; others reach it through a [`Handle`].
//!
//! Either the interface is the adapter's alone, or it is the system's too, such as the TAP interface of a host agent: then the
//! adapter has the system's address and takes only RoCEv2's frames.
//!
//! All queues are the adapter's, bounded there; the port holds nothing but one batch. If the port is too slow, the
//! kernel drops frames and counts them.

use crate::commands::{Commands, Handle};
use crate::frames::{FrameSocket, Vanished};
use crate::outlet::Counts;
use p4rack_fabric::Machine as _;
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::roce::{Adapter, BadConfig, Config, RegisteredMemory};
use p4rack_netdev::packet::{Frames, Options};
use p4rack_netdev::{Links, PacketSocket, Poller, clock, packet};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::roce::UDP_PORT;
use p4rack_wire::{MacAddr, Nanos, WireRate};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;

/// Bytes that a link carries between the Ethernet header and a packet's payload, and behind it: all headers, the iCRC, a tag.
const LINK_ROOM: u32 = 20 + 8 + 12 + 28 + 4 + 4 + TAG;
/// Bytes of a tag, which counts on a link that is the adapter's alone.
const TAG: u32 = 4;

/// How far a port may send ahead of its link's rate, to make up for the process's sleep.
const AHEAD: Nanos = Nanos::from_micros(200);

/// Why a port did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum RocePortError {
    /// A parameter makes no sense.
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// The interface could not be opened.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// The system has another address there.
    #[error(
        "the system has the address {system} on interface `{interface}`, and the adapter {adapter}: give it {system}, \
             and they share the interface, or name an interface without an address"
    )]
    OtherAddress {
        /// The interface.
        interface: String,
        /// The system's address.
        system: Ipv4Addr,
        /// The adapter's.
        adapter: Ipv4Addr,
    },
    /// An interface that the system uses is too narrow.
    #[error(
        "interface `{interface}` has an MTU of {has} bytes and the adapter's packets need {needs}: choose a smaller MTU \
             for the adapter, at both ends"
    )]
    TooNarrow {
        /// The interface.
        interface: String,
        /// Its MTU.
        has: u32,
        /// Maximum bytes of a packet.
        needs: u32,
    },
    /// The interface disappeared.
    #[error("interface `{0}` vanished: the other end was removed, or its namespace ended")]
    LinkGone(String),
    /// Waiting for frames failed.
    #[error("waiting for frames: {0}")]
    Wait(#[from] io::Error),
}

/// Deliberate loss of frames or packets, in both directions, to exercise retransmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Frames lost of a thousand.
    pub per_mille: u16,
    /// Which ones.
    pub seed: u64,
}

impl Loss {
    /// Whether the next one is lost.
    pub(crate) fn strikes(self, random: &mut SplitMix) -> bool {
        self.per_mille > 0 && random.next() % 1_000 < u64::from(self.per_mille)
    }
}

/// Counters of a port, in addition to those of its adapter and its socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames received and lost on purpose.
    pub lost_in: u64,
    /// Frames to be sent and lost on purpose.
    pub lost_out: u64,
    /// Errors while reading the link.
    pub read_errors: u64,
}

/// An adapter at an interface.
#[derive(Debug)]
pub struct RocePort<M> {
    adapter: Adapter<M>,
    link: FrameSocket,
    poller: Poller,
    link_number: usize,
    commands: Commands<Adapter<M>>,
    commands_number: usize,
    mac: MacAddr,
    loss: Loss,
    random: SplitMix,
    counters: PortCounters,
    /// A frame with a wrong iCRC was reported.
    icrc_reported: bool,
    /// The last batch was full: more frames may be waiting.
    more: bool,
    /// Rate of the link, if nothing more is to be sent, and when it is free.
    pace: Option<(WireRate, Nanos)>,
    frame: Vec<u8>,
}

impl<M: RegisteredMemory> RocePort<M> {
    /// Opens an interface of the calling thread's network namespace for an adapter with address `ip`. Takes exclusive use of the
    /// interface, unless the system has that address there.
    pub fn open(
        interface: &str,
        ip: Ipv4Addr,
        config: Config,
        memory: M,
        loss: Loss,
    ) -> Result<RocePort<M>, RocePortError> {
        let mtu = config.mtu.bytes();
        let adapter = Adapter::new(config, memory)?;
        let mut links = Links::open()?;
        let mac = links.get(interface)?.mac;
        let of_system = links.addresses()?.into_iter().filter(|(name, _)| name == interface);
        let of_system: Vec<Ipv4Addr> = of_system.map(|(_, ip)| ip).collect();
        let link = match of_system.iter().find(|system| **system == ip).or(of_system.first()) {
            None => take(links, interface, mtu)?,
            Some(system) => share(links, interface, (*system, ip), mtu)?,
        };
        let (mut poller, commands) = (Poller::new(), Commands::new()?);
        let (link_number, commands_number) = (poller.add(&link.socket)?, poller.add(&commands)?);
        Ok(RocePort {
            adapter,
            link,
            poller,
            link_number,
            commands,
            commands_number,
            mac,
            random: SplitMix(loss.seed),
            loss,
            counters: PortCounters::default(),
            icrc_reported: false,
            more: false,
            pace: None,
            frame: Vec::with_capacity(packet::MAX_FRAME),
        })
    }

    /// Sends no faster than the link carries. Frames then wait in the adapter, where hosts take turns, and not in a
    /// queue behind it.
    pub fn pace(&mut self, rate_bps: u64) {
        self.pace = Some((WireRate::new(rate_bps), clock::now()));
    }

    /// Access from other threads.
    pub fn handle(&self) -> Handle<Adapter<M>> {
        self.commands.handle()
    }

    /// Has [`turn`](Self::turn) also wait for input on a descriptor. Returns its number for [`ready`](Self::ready).
    pub fn watch(&mut self, fd: impl AsFd) -> io::Result<usize> {
        self.poller.add(fd)
    }

    /// Whether there was input on a descriptor when the port last waited.
    pub fn ready(&self, number: usize) -> bool {
        self.poller.ready(number)
    }

    /// MAC address of the interface.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// The adapter. After requests, call [`turn`](Self::turn).
    pub fn adapter(&mut self) -> &mut Adapter<M> {
        &mut self.adapter
    }

    /// Counters of the port.
    pub fn counters(&self) -> PortCounters {
        PortCounters { read_errors: self.link.read_errors, ..self.counters }
    }

    /// Counters of the socket.
    pub fn socket_stats(&mut self) -> packet::Stats {
        self.link.socket.stats()
    }

    /// Counters of adapter, queue pairs, port and socket, drops and refusals included.
    pub fn counts(&mut self) -> Counts {
        let PortCounters { lost_in, lost_out, read_errors } = self.counters();
        let socket = self.link.socket.stats();
        Counts::default()
            .of("adapter", self.adapter.counters().iter())
            .of("requester", self.adapter.requester_counters().iter())
            .of("responder", self.adapter.responder_counters().iter())
            .of("port", [("lost_in", lost_in), ("lost_out", lost_out), ("read_errors", read_errors)])
            .of(
                "socket",
                [
                    ("received", socket.received),
                    ("kernel_drops", socket.kernel_drops),
                    ("too_long", socket.too_long),
                    ("sent", socket.sent),
                    ("send_full", socket.send_full),
                    ("send_refused", socket.send_refused),
                ],
            )
    }

    /// Waits until something happens, at most until `until`, and handles it: frames, timers, commands. Completions are the
    /// caller's to fetch.
    ///
    /// Errors: the interface is gone.
    pub fn turn(&mut self, until: Option<Nanos>) -> Result<(), RocePortError> {
        self.send();
        let (mut arrived, mut woken) = (self.more, true);
        if !self.more {
            self.poller.wait(until.into_iter().chain(self.adapter.next_call(self.free_at())).min())?;
            arrived = self.poller.ready(self.link_number);
            woken = self.poller.ready(self.commands_number);
        }
        if arrived {
            self.receive()?;
        }
        if woken {
            self.commands.clear();
            while let Some(command) = self.commands.next() {
                command(&mut self.adapter);
            }
        }
        let now = clock::now();
        if self.adapter.next_timeout().is_some_and(|due| due <= now) {
            self.adapter.handle_timeout(now);
        }
        self.send();
        Ok(())
    }

    fn receive(&mut self) -> Result<(), RocePortError> {
        let now = clock::now();
        let (adapter, counters) = (&mut self.adapter, &mut self.counters);
        let (loss, random) = (self.loss, &mut self.random);
        let received = self.link.receive(|frame| match loss.strikes(random) {
            true => counters.lost_in += 1,
            false => adapter.handle_link(frame, now, now),
        });
        self.more = received.map_err(|Vanished(interface)| RocePortError::LinkGone(interface))?;
        if !self.icrc_reported && self.adapter.counters().bad_icrc > 0 {
            self.icrc_reported = true;
            tracing::warn!(
                interface = self.link.socket.interface(),
                "a frame with a wrong iCRC came and was dropped; a switch that rewrites frames, such as one with Cowbird's \
                 engine, can't compute it: if one is in between, all adapters need --ignore-icrc"
            );
        }
        Ok(())
    }

    /// When the next frame may be sent.
    fn free_at(&self) -> Nanos {
        self.pace.map_or(Nanos::ZERO, |(_, free_at)| free_at.saturating_sub(AHEAD))
    }

    /// Sends the adapter's frames as far as the link has room.
    fn send(&mut self) {
        let now = clock::now();
        loop {
            if self.free_at() > now || self.adapter.poll_link(now, &mut self.frame).is_none() {
                break;
            }
            if let Some((rate, free_at)) = &mut self.pace {
                *free_at = (*free_at).max(now) + rate.time(overhead::wire_bytes(self.frame.len() as u64));
            }
            match self.loss.strikes(&mut self.random) {
                true => self.counters.lost_out += 1,
                false => self.link.socket.send(&mut self.frame),
            }
        }
        self.link.socket.flush();
    }
}

/// An interface of the adapter's own.
fn take(mut links: Links, interface: &str, mtu: u32) -> Result<FrameSocket, RocePortError> {
    let stayed = links.make_pipe(interface, mtu + LINK_ROOM)?;
    if !stayed.is_empty() {
        tracing::warn!(interface, ?stayed, "offloads that could not be switched off");
    }
    Ok(FrameSocket::open(links, interface, &Options::default())?)
}

/// An interface that stays the system's.
fn share(
    mut links: Links,
    interface: &str,
    (system, adapter): (Ipv4Addr, Ipv4Addr),
    mtu: u32,
) -> Result<FrameSocket, RocePortError> {
    let (has, needs) = (links.get(interface)?.mtu, mtu + LINK_ROOM - TAG);
    let interface_name = || interface.to_owned();
    if system != adapter {
        return Err(RocePortError::OtherAddress { interface: interface_name(), system, adapter });
    }
    if has < needs {
        return Err(RocePortError::TooNarrow { interface: interface_name(), has, needs });
    }
    let frames = Frames::Datagrams(SocketAddrV4::new(adapter, UDP_PORT));
    let options = Options { frames, promiscuous: false, ..Options::default() };
    Ok(FrameSocket::of(links, PacketSocket::open(interface, &options)?))
}
