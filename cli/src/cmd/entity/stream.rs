//! `p4rack digest` and `p4rack packet`: messages of the stream channel.

use super::pairs::pairs;
use super::{Options, Verb, connect, report, show};
use crate::cmd::{complete, values};
use clap_complete::engine::ArgValueCompleter;
use p4rack_ctrl::items::{DigestItem, Item, show_data};
use p4rack_ctrl::reconcile::key_of;
use p4rack_ctrl::session::Event;
use p4rack_ctrl::values::{Format, parse};
use p4rack_ctrl::{CtrlError, Protocol, Session, bfrt};
use p4rack_lab::rows::Rows;
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::v1::{DigestList, PacketIn, PacketMetadata, PacketOut, update};
use p4rack_p4rt::schema::{Schema, name_of};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;

/// How long to wait for the rejection of a packet.
const REFUSAL: Duration = Duration::from_millis(100);

/// Message for features that BFRuntime does not have.
const PACKETS: &str =
    "BFRuntime carries no packets: give --grpc-addr instead of --bfrt-addr, or that of `p4rack gateway`";
const CONFIGURATION: &str =
    "over BFRuntime digests are not configured: `p4rack digest watch` alone receives them";
const LISTS: &str = "over BFRuntime digests are not configured: leave --max-timeout-ms, --max-list-size and \
    --ack-timeout-ms out; the device's flow_learn_timeout_usec says how long they wait for others";

/// Arguments of `p4rack digest`.
#[derive(clap::Args, Debug)]
pub struct DigestArgs {
    #[command(subcommand)]
    command: DigestCommand,
}

#[derive(clap::Subcommand, Debug)]
enum DigestCommand {
    /// List the program's digests
    List(Options),
    /// Show the configuration of active digests
    Read(Options),
    /// Subscribe to a digest, or change its configuration
    Write {
        #[command(flatten)]
        digest: Digest,
        #[command(flatten)]
        options: Options,
    },
    /// Unsubscribe from a digest
    Delete {
        /// Name of the digest
        #[arg(add = ArgValueCompleter::new(complete::digests))]
        name: String,
        #[command(flatten)]
        options: Options,
    },
    /// Subscribe to a digest; print and acknowledge its messages until Ctrl-C.
    /// Over BFRuntime, the switch decides how long they wait for others
    Watch {
        #[command(flatten)]
        digest: Digest,
        /// End after this many lists
        #[arg(long, value_parser = crate::numbers::number::<u64>)]
        count: Option<u64>,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(clap::Args, Debug)]
struct Digest {
    /// Name of the digest
    #[arg(add = ArgValueCompleter::new(complete::digests))]
    name: String,
    /// Maximum time that a message waits for others [default: 10]
    #[arg(long, value_name = "MS", value_parser = crate::numbers::number::<i64>)]
    max_timeout_ms: Option<i64>,
    /// Maximum messages per list; 0 for no limit [default: 100]
    #[arg(long, value_name = "N", value_parser = crate::numbers::number::<i32>)]
    max_list_size: Option<i32>,
    /// How long duplicates are suppressed without an acknowledgement [default: 1000]
    #[arg(long, value_name = "MS", value_parser = crate::numbers::number::<i64>)]
    ack_timeout_ms: Option<i64>,
}

impl Digest {
    fn item(&self) -> Item {
        Item::Digest(DigestItem {
            digest: self.name.clone(),
            max_timeout_ns: self.max_timeout_ms.unwrap_or(10).saturating_mul(1_000_000),
            max_list_size: self.max_list_size.unwrap_or(100),
            ack_timeout_ns: self.ack_timeout_ms.unwrap_or(1000).saturating_mul(1_000_000),
        })
    }

    /// Whether anything is said of its lists.
    fn is_configured(&self) -> bool {
        self.max_timeout_ms.or(self.ack_timeout_ms).is_some() || self.max_list_size.is_some()
    }
}

/// Runs `p4rack digest`.
pub fn digest(args: DigestArgs) -> ExitCode {
    connect::block_on(async {
        match args.command {
            DigestCommand::List(options) => {
                let all = async |schema: &Schema| {
                    let digests = schema.info().digests.iter();
                    let names = digests.map(|digest| name_of(digest.preamble.as_ref()).to_owned());
                    Ok::<Vec<String>, CtrlError>(names.collect())
                };
                let found = async { all(&options.client().await?.1).await };
                report(found.await, &options)
            }
            DigestCommand::Read(options) => {
                if let Err(error) = options.p4runtime(CONFIGURATION) {
                    return connect::fail(&error, options.json);
                }
                let all = async |schema: &Schema| {
                    let digests = schema.info().digests.iter();
                    let item = |name: &str| DigestItem { digest: name.into(), ..Default::default() };
                    Ok(digests.map(|digest| Item::Digest(item(name_of(digest.preamble.as_ref())))).collect())
                };
                show(options.read(all).await, &options, rows)
            }
            DigestCommand::Write { digest, options } => {
                let written = async {
                    options.p4runtime(CONFIGURATION)?;
                    options.write(Verb::Write, &[digest.item()]).await
                };
                report(written.await, &options)
            }
            DigestCommand::Delete { name, options } => {
                let item = Item::Digest(DigestItem { digest: name, ..Default::default() });
                let written = async {
                    options.p4runtime(CONFIGURATION)?;
                    options.write(Verb::Delete, &[item]).await
                };
                report(written.await, &options)
            }
            DigestCommand::Watch { digest, count, options } => {
                let watched = match options.target.for_switch(None).protocol {
                    Protocol::P4Runtime => watch_digest(&digest, count, &options).await,
                    Protocol::BfRuntime => learn(&digest, count, &options).await,
                };
                report(watched.map(|()| Vec::new()), &options)
            }
        }
    })
}

fn rows(items: &[Item]) -> Rows {
    let mut rows = Rows::new(&["digest", "max_timeout_ns", "max_list_size", "ack_timeout_ns"]);
    for item in items {
        let Item::Digest(digest) = item else { continue };
        let list = i64::from(digest.max_list_size);
        let numbers = [digest.max_timeout_ns, list, digest.ack_timeout_ns].map(|number| number.to_string());
        rows.push([vec![digest.digest.clone()], numbers.into()].concat());
    }
    rows
}

/// Prints the digests of the program that BFRuntime's client is bound to.
async fn learn(digest: &Digest, count: Option<u64>, options: &Options) -> Result<(), CtrlError> {
    if digest.is_configured() {
        options.p4runtime(LISTS)?;
    }
    let mut link = bfrt::Link::to_learn(options.target.for_switch(None)).await?;
    let schema = link.schema().await?;
    let wanted = schema.digest(&digest.name)?.preamble.as_ref().map(|preamble| preamble.id);
    let mut left = count;
    while left != Some(0) {
        let list = tokio::select! {
            list = link.digests() => list?,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        if Some(list.digest_id) == wanted {
            print_list(&schema, &list, options.json);
            left = left.map(|left| left - 1);
        }
    }
    Ok(())
}

async fn watch_digest(digest: &Digest, count: Option<u64>, options: &Options) -> Result<(), CtrlError> {
    let mut session = Session::connect(options.target.for_switch(None)).await?;
    let schema = session.schema().await?;
    let entity = digest.item().entity(&schema)?;
    let there = !session.read(vec![key_of(&entity)]).await?.is_empty();
    let kind = if there { update::Type::Modify } else { update::Type::Insert };
    let update = p4rack_p4rt::p4::v1::Update { r#type: kind as i32, entity: Some(entity) };
    session.write(&schema, &[update]).await?;
    let mut left = count;
    while left != Some(0) {
        let Some(event) = next(&mut session).await? else { return Ok(()) };
        if let Event::Digest(list) = event {
            session.acknowledge(&list).await?;
            print_list(&schema, &list, options.json);
            left = left.map(|left| left - 1);
        }
    }
    Ok(())
}

/// The next event; `None` on Ctrl-C.
pub(super) async fn next(session: &mut Session) -> Result<Option<Event>, CtrlError> {
    loop {
        tokio::select! {
            event = session.event(Instant::now() + Duration::from_secs(3600)) => match event? {
                Some(event) => return Ok(Some(event)),
                None => continue,
            },
            _ = tokio::signal::ctrl_c() => return Ok(None),
        }
    }
}

fn print_list(schema: &Schema, list: &DigestList, as_json: bool) {
    let digest = schema.digest_by_id(list.digest_id);
    let name = digest.map_or("?", |digest| name_of(digest.preamble.as_ref()));
    for data in &list.data {
        let value = show_data(data);
        if as_json {
            println!("{}", json!({ "digest": name, "list_id": list.list_id, "data": value }));
        } else {
            println!("{name} list {}: {value}", list.list_id);
        }
    }
}

/// Arguments of `p4rack packet`.
#[derive(clap::Args, Debug)]
pub struct PacketArgs {
    #[command(subcommand)]
    command: PacketCommand,
}

#[derive(clap::Subcommand, Debug)]
enum PacketCommand {
    /// List the metadata fields of packets from and to the controller
    List(Options),
    /// Send a packet through the switch
    #[command(visible_alias = "send")]
    Write {
        /// Bytes of the packet in hexadecimal; spaces and colons are ignored
        hex: String,
        /// Fields of packet_out; the default is 0
        #[arg(value_name = "FIELD=VALUE")]
        fields: Vec<String>,
        /// Number of times to send it
        #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u32>)]
        count: u32,
        #[command(flatten)]
        options: Options,
    },
    /// Print packets that the switch sends to the controller, until Ctrl-C
    Watch {
        /// End after this many packets
        #[arg(long, value_parser = crate::numbers::number::<u64>)]
        count: Option<u64>,
        #[command(flatten)]
        options: Options,
    },
}

/// Runs `p4rack packet`.
pub fn packet(args: PacketArgs) -> ExitCode {
    connect::block_on(async {
        match args.command {
            PacketCommand::List(options) => {
                let found = async {
                    options.p4runtime(PACKETS)?;
                    let (_, schema) = options.client().await?;
                    let mut fields = Vec::new();
                    for header in ["packet_in", "packet_out"] {
                        for field in schema.header_fields(header) {
                            fields.push(format!("{header} {} {} bits", field.name, field.bitwidth));
                        }
                    }
                    Ok(fields)
                };
                report(found.await, &options)
            }
            PacketCommand::Write { hex, fields, count, options } => {
                report(send(&hex, &fields, count, &options).await, &options)
            }
            PacketCommand::Watch { count, options } => {
                report(watch_packets(count, &options).await.map(|()| Vec::new()), &options)
            }
        }
    })
}

/// Bytes from hexadecimal digits.
fn frame(hex: &str) -> Result<Vec<u8>, CtrlError> {
    let digits: String = hex.chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
    let digits = digits.strip_prefix("0x").unwrap_or(&digits);
    match values::hex(digits) {
        Ok(bytes) if !bytes.0.is_empty() => Ok(bytes.0),
        _ => Err(CtrlError::Input(format!("`{hex}` is not an even number of hexadecimal digits"))),
    }
}

async fn send(hex: &str, fields: &[String], count: u32, options: &Options) -> Result<Vec<String>, CtrlError> {
    let payload = frame(hex)?;
    let mut given = pairs(fields)?;
    let mut session = Session::connect(options.p4runtime(PACKETS)?).await?;
    let schema = session.schema().await?;
    let mut metadata = Vec::new();
    for field in schema.header_fields("packet_out") {
        let value = match given.remove(&field.name) {
            Some(text) => parse(&text, field.bitwidth)
                .map_err(|why| CtrlError::Input(format!("packet_out {}: {why}", field.name)))?,
            None => vec![0],
        };
        metadata.push(PacketMetadata { metadata_id: field.id, value });
    }
    if let Some(unknown) = given.keys().next() {
        return Err(CtrlError::Input(format!(
            "packet_out has no field `{unknown}`; see `p4rack packet list`"
        )));
    }
    let bytes = payload.len();
    for _ in 0..count {
        session.packet_out(PacketOut { payload: payload.clone(), metadata: metadata.clone() }).await?;
    }
    let until = Instant::now() + REFUSAL;
    while session.packet_in(until).await?.is_some() {}
    Ok(vec![format!("sent {count} × {bytes} bytes")])
}

async fn watch_packets(count: Option<u64>, options: &Options) -> Result<(), CtrlError> {
    let mut session = Session::connect(options.p4runtime(PACKETS)?).await?;
    let schema = options.shown(session.schema().await?)?;
    let mut left = count;
    while left != Some(0) {
        let Some(event) = next(&mut session).await? else { return Ok(()) };
        if let Event::Packet(packet) = event {
            print_packet(&schema, &packet, options.json);
            left = left.map(|left| left - 1);
        }
    }
    Ok(())
}

fn print_packet(schema: &Schema, packet: &PacketIn, as_json: bool) {
    let fields = schema.header_fields("packet_in");
    let value = |metadata: &PacketMetadata| {
        let field = fields.iter().find(|field| field.id == metadata.metadata_id);
        let name = field.map_or_else(|| format!("#{}", metadata.metadata_id), |field| field.name.clone());
        let format = field.map_or(Format::Hex, Format::of);
        (name, format.show(&metadata.value))
    };
    let metadata: Vec<(String, String)> = packet.metadata.iter().map(value).collect();
    if as_json {
        let metadata: serde_json::Map<_, _> =
            metadata.into_iter().map(|(name, value)| (name, value.into())).collect();
        println!("{}", json!({ "metadata": metadata, "payload": bytes::hex(&packet.payload) }));
    } else {
        let metadata: String = metadata.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        println!("{metadata}{} bytes {}", packet.payload.len(), bytes::hex(&packet.payload));
    }
}

#[cfg(test)]
mod tests {
    use super::frame;

    #[test]
    fn frames_are_read_from_hexadecimal() {
        assert_eq!(frame("02:00 0aFF").unwrap(), [2, 0, 10, 255]);
        for wrong in ["", "0", "zz", "0é"] {
            assert!(frame(wrong).is_err(), "{wrong}");
        }
    }
}
