//! BMv2, driven over P4Runtime, with its packets over gRPC.

use super::Frames;
use crate::cmd::bmv2::Bmv2;
use p4rack_conformance::random::Packet;
use p4rack_ctrl::CtrlError;
use p4rack_ctrl::bmv2::packets::Packets;
use p4rack_ctrl::connect::ConnectOptions;
use p4rack_ctrl::session::Session;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::{ForwardingPipelineConfig, Update, update};
use p4rack_p4rt::schema::Schema;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const DEVICE_ID: u64 = 1;
/// How long it may take to exit after it has closed a connection.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a program does not run.
pub enum Failed {
    /// The switch rejects it.
    Program,
    /// The switch itself does not run.
    Switch(String),
}

/// A BMv2 process that runs a program.
pub struct Theirs {
    runtime: Runtime,
    switch: Bmv2,
    session: Session,
    packets: Packets,
    schema: Schema,
}

impl Theirs {
    /// Starts BMv2 with a program.
    pub fn start(info: P4Info, json: Vec<u8>) -> Result<Theirs, Failed> {
        let fail = |error: &dyn std::fmt::Display| Failed::Switch(error.to_string());
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| fail(&error))?;
        let schema = Schema::new(info.clone()).map_err(|error| fail(&error))?;
        let switch = Bmv2::start_for_packets(DEVICE_ID).map_err(|error| fail(&error))?;
        let config = ForwardingPipelineConfig { p4info: Some(info), p4_device_config: json, cookie: None };
        let packets_addr = switch.packets_addr().unwrap_or_default().to_owned();
        let (session, packets) = runtime.block_on(async {
            let target = ConnectOptions::new(switch.addr(), DEVICE_ID);
            let mut session = Session::connect(target).await.map_err(|error| fail(&error))?;
            let set = session.set_pipeline(config).await;
            set.map_err(|_| Failed::Program)?;
            let packets = Packets::connect(&packets_addr, DEVICE_ID).await.map_err(|error| fail(&error))?;
            Ok((session, packets))
        })?;
        Ok(Theirs { runtime, switch, session, packets, schema })
    }

    /// Writes one update.
    pub fn write(&mut self, update: &Update) -> Result<(), String> {
        let done = self.runtime.block_on(self.session.write(&self.schema, std::slice::from_ref(update)));
        done.map_err(|error| self.said(error))
    }

    /// Undoes an insertion, or a change of a default action.
    pub fn undo(&mut self, update: &Update) {
        let mut back = update.clone();
        match back.entity.as_mut().and_then(|entity| entity.entity.as_mut()) {
            Some(EntityKind::TableEntry(entry)) if entry.is_default_action => entry.action = None,
            _ => back.set_type(update::Type::Delete),
        }
        // If this is rejected too, packets will show it.
        let _ = self.write(&back);
    }

    /// Sends a packet and returns its fate.
    pub fn send(&mut self, packet: &Packet) -> Result<Frames, String> {
        let sent = self.runtime.block_on(self.packets.send(packet.port, &packet.frame));
        let mut frames = sent.map_err(|error| self.said(error))?;
        frames.sort();
        Ok(frames)
    }

    /// The error, or how the process ended, if it has.
    fn said(&mut self, error: CtrlError) -> String {
        if matches!(error, CtrlError::Ended(_) | CtrlError::Refused { .. }) {
            std::thread::sleep(LAST_WORDS);
        }
        match self.switch.ended() {
            Some(how) => format!("BMv2 ended: {how}"),
            None => format!("BMv2: {error}"),
        }
    }
}
