//! From the save of a program to the first packet that it has forwarded: a section of `p4rack bench p4runtime`.

use super::own_switch::OwnSwitch;
use super::{bmv2, connect};
use crate::numbers::median;
use p4rack_ctrl::bench::{Figure, PROGRAM};
use p4rack_ctrl::{ConnectOptions, CtrlError, Session};
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::v1::{PacketMetadata, PacketOut};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Number of saves.
const SAVES: u16 = 10;
/// How long to wait for a packet.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between packets.
const EVERY: Duration = Duration::from_millis(2);

/// Saves programs that answer packets with different tokens, which `p4rack p4 install --watch` installs on the embedded switch
/// at `addr`, while packets are sent all the time.
pub(super) fn measure(addr: &str) -> Result<Figure, String> {
    let folder = bmv2::private_folder()?;
    let file = folder.path().join("bench.p4");
    let save = |token: u16| {
        let text = PROGRAM.replace("= hdr.packet_out.token;", &format!("= {token};"));
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
    };
    save(0)?;
    let _watches = watch(&file, addr)?;
    connect::block_on(async {
        let text = |error: CtrlError| error.to_string();
        let mut session = Session::beside(ConnectOptions::new(addr, 1)).await.map_err(text)?;
        let mut times_ms = Vec::new();
        for token in 1..=SAVES {
            let started = Instant::now();
            save(token)?;
            first(&mut session, token).await.map_err(text)?;
            times_ms.push(started.elapsed().as_secs_f64() * 1e3);
        }
        let least = times_ms.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times_ms.iter().copied().fold(0.0, f64::max);
        let detail =
            format!("median of {SAVES} saves, {least:.0} to {most:.0} ms, the switch's entries kept");
        let value = median(times_ms).unwrap_or(f64::NAN);
        Ok(Figure { name: "save to first packet", value, unit: "ms", detail })
    })
}

/// Starts `p4rack p4 install --watch`, and waits until the program is installed.
fn watch(file: &Path, addr: &str) -> Result<OwnSwitch, String> {
    let fail = |error: std::io::Error| format!("starting `p4rack p4 install --watch`: {error}");
    let mut command = Command::new(std::env::current_exe().map_err(fail)?);
    command.args(["p4", "install", "--watch", "--grpc-addr", addr]).arg(file);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(fail)?;
    let output = child.stdout.take();
    let watches = OwnSwitch(child);
    let mut line = String::new();
    if let Some(output) = output {
        BufReader::new(output).read_line(&mut line).map_err(fail)?;
    }
    match line.contains("installed") {
        true => Ok(watches),
        false => Err(format!("`p4rack p4 install --watch` said: {}", line.trim_end())),
    }
}

/// Sends packets until one comes back with this token.
async fn first(session: &mut Session, token: u16) -> Result<(), CtrlError> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let metadata = vec![PacketMetadata { metadata_id: 1, value: vec![7] }];
        session.packet_out(PacketOut { payload: vec![0; 60], metadata }).await?;
        let until = tokio::time::Instant::now() + EVERY;
        while let Some(packet) = session.packet_in(until).await? {
            if packet.metadata.first().and_then(|field| bytes::to_u128(&field.value)) == Some(token.into()) {
                return Ok(());
            }
        }
    }
    Err(CtrlError::Timeout("the first packet".into(), PATIENCE.as_millis()))
}
