//! The socket of the commands: JSON lines, one command at a time. A client's first line is the greeting; its answer says
//! whether commands may follow.

use super::list::COMMANDS;
use super::{Call, Facts, Runtime};
use p4rack_p4rt::p4::config::v1::{P4Info, Preamble};
use p4rack_p4rt::schema::{id_of, name_of};
use p4rack_switchd::daemon::Started;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Semaphore};

/// First line of a client. Other connections, such as a browser's, get no answer.
pub const GREETING: &str = "p4rack simple_switch_CLI 1";
/// Longest line of a client: a command, or the text of a program.
const LINE_MAX: u64 = 32 << 20;
/// The same of its first line.
const GREETING_MAX: u64 = 64;
/// Clients at the same time.
const CLIENTS: usize = 16;
/// Connections at the same time that have not sent the greeting; others wait.
const STRANGERS: usize = 16;
/// How long a client may take for its first line.
const GREETED: Duration = Duration::from_secs(5);

/// A client's line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// A command, with the text of the file that it names if it reads one.
    Run {
        /// The command's line.
        line: String,
        /// Text of its file.
        file: Option<String>,
    },
    /// Asks for the program's names.
    Names,
}

/// The answer to a line. That to the greeting has only an output: why no commands may follow, or nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// What the command prints.
    pub output: String,
    /// Text for the file that the command names, if it writes one.
    pub file: Option<String>,
    /// The program's names, if they were asked for.
    pub names: Option<Names>,
}

/// Names of a program's objects, for completion.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Names {
    /// Tables and their actions.
    pub tables: BTreeMap<String, Vec<String>>,
    /// Action profiles and the actions of their tables.
    pub profiles: BTreeMap<String, Vec<String>>,
    /// Counters.
    pub counters: Vec<String>,
    /// Meters.
    pub meters: Vec<String>,
    /// Registers.
    pub registers: Vec<String>,
    /// Parser value sets.
    pub value_sets: Vec<String>,
}

impl Names {
    fn of(info: &P4Info) -> Names {
        fn all<'a>(preambles: impl Iterator<Item = Option<&'a Preamble>>) -> Vec<String> {
            preambles.map(|preamble| name_of(preamble).to_owned()).collect()
        }
        let action = |id: u32| {
            let found = info.actions.iter().find(|action| id_of(action.preamble.as_ref()) == id);
            found.map(|action| name_of(action.preamble.as_ref()).to_owned())
        };
        let tables: BTreeMap<String, Vec<String>> = info
            .tables
            .iter()
            .map(|table| {
                let actions = table.action_refs.iter().filter_map(|reference| action(reference.id)).collect();
                (name_of(table.preamble.as_ref()).to_owned(), actions)
            })
            .collect();
        let profile_actions = |ids: &[u32]| {
            let of = info.tables.iter().filter(|table| ids.contains(&id_of(table.preamble.as_ref())));
            let names = of.filter_map(|table| tables.get(name_of(table.preamble.as_ref())));
            names.flatten().cloned().collect::<std::collections::BTreeSet<String>>().into_iter().collect()
        };
        let profiles = info
            .action_profiles
            .iter()
            .map(|profile| {
                (name_of(profile.preamble.as_ref()).to_owned(), profile_actions(&profile.table_ids))
            })
            .collect();
        let counters = all(info.counters.iter().map(|one| one.preamble.as_ref()));
        let meters = all(info.meters.iter().map(|one| one.preamble.as_ref()));
        Names {
            counters: [counters, all(info.direct_counters.iter().map(|one| one.preamble.as_ref()))].concat(),
            meters: [meters, all(info.direct_meters.iter().map(|one| one.preamble.as_ref()))].concat(),
            registers: all(info.registers.iter().map(|one| one.preamble.as_ref())),
            value_sets: all(info.value_sets.iter().map(|one| one.preamble.as_ref())),
            tables,
            profiles,
        }
    }
}

/// Serves commands on a thread of its own, until the process ends.
pub fn serve(listener: TcpListener, facts: Facts, started: Started) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let serve = move || {
        // Made here, because the caller is a task of another runtime.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(accept(listener, facts, started))
    };
    let thread = std::thread::Builder::new().name("commands".to_owned());
    let serve = move || {
        if let Err(error) = serve() {
            tracing::error!(%error, "commands of simple_switch_CLI aren't served");
        }
    };
    thread.spawn(serve).map(drop)
}

/// An address at which a server that listens on any address is reached from here.
fn reached(addr: SocketAddr) -> String {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, addr.port()).to_string()
}

async fn accept(listener: TcpListener, facts: Facts, started: Started) -> Result<(), String> {
    let listener = tokio::net::TcpListener::from_std(listener).map_err(|error| error.to_string())?;
    let Started { grpc_addr, handle, .. } = started;
    let runtime =
        Runtime::connect(facts, handle, reached(grpc_addr)).await.map_err(|error| error.to_string())?;
    let server = Arc::new(Server { runtime: Mutex::new(runtime), room: Semaphore::new(CLIENTS) });
    let strangers = Arc::new(Semaphore::new(STRANGERS));
    loop {
        // The semaphore is never closed.
        let stranger = strangers.clone().acquire_owned().await.ok();
        let accepted = listener.accept().await;
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let server = server.clone();
        tokio::spawn(async move {
            let greeted = greeted(stream).await;
            drop(stranger);
            let served = match greeted {
                Ok(stream) => server.client(stream).await,
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a client of simple_switch_CLI's port has gone");
            }
        });
    }
}

/// A line with its end; `None` at the end of the stream. Errors: it is longer than `max_bytes`.
async fn line(stream: &mut (impl AsyncBufRead + Unpin), max_bytes: u64) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    stream.take(max_bytes).read_until(b'\n', &mut text).await?;
    match text.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a line without an end")),
    }
}

/// Reads a connection's first line. Errors: it is not the greeting.
async fn greeted(stream: TcpStream) -> io::Result<BufReader<TcpStream>> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let greeting = tokio::time::timeout(GREETED, line(&mut stream, GREETING_MAX)).await;
    let greeting = greeting.map_err(io::Error::other)??;
    match greeting.as_deref().map(str::trim_end) {
        Some(GREETING) => Ok(stream),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is no simple_switch_CLI")),
    }
}

async fn send(stream: &mut BufReader<TcpStream>, answer: &Answer) -> io::Result<()> {
    let mut text = serde_json::to_vec(answer)?;
    text.push(b'\n');
    stream.get_mut().write_all(&text).await
}

/// What clients share.
struct Server {
    runtime: Mutex<Runtime>,
    /// A permit for each client.
    room: Semaphore,
}

impl Server {
    /// Carries out the lines of a client that has sent the greeting.
    async fn client(&self, mut stream: BufReader<TcpStream>) -> io::Result<()> {
        let Ok(place) = self.room.try_acquire() else {
            let output = format!("too many clients: it serves {CLIENTS} at the same time; end another one");
            return send(&mut stream, &Answer { output, ..Answer::default() }).await;
        };
        let served = self.lines(stream).await;
        drop(place);
        if self.room.available_permits() == CLIENTS {
            self.runtime.lock().await.rest();
        }
        served
    }

    async fn lines(&self, mut stream: BufReader<TcpStream>) -> io::Result<()> {
        send(&mut stream, &Answer::default()).await?;
        while let Some(text) = line(&mut stream, LINE_MAX).await? {
            let answer = answer(serde_json::from_str(&text)?, &self.runtime).await;
            send(&mut stream, &answer).await?;
        }
        Ok(())
    }
}

async fn answer(request: Request, runtime: &Mutex<Runtime>) -> Answer {
    let mut runtime = runtime.lock().await;
    let schema = match runtime.schema().await {
        Ok(schema) => schema,
        Err(error) => return Answer { output: format!("Error: {error}\n"), ..Answer::default() },
    };
    let (line, given) = match request {
        Request::Run { line, file } => (line, file),
        Request::Names => {
            let names = Some(Names::of(schema.info()));
            return Answer { names, ..Answer::default() };
        }
    };
    let mut call = Call { runtime: &mut runtime, schema, out: String::new(), given, taken: None };
    if let Err(failure) = call.run(&line).await {
        call.say(failure.0);
    }
    Answer { output: call.out, file: call.taken, names: None }
}

/// Names that completion offers for a word, by what the command takes there.
impl Names {
    /// Candidates for word number `at` (the command is 0) of a line.
    pub fn candidates(&self, words: &[&str], at: usize) -> Vec<String> {
        use super::list::{Takes, named};
        let Some(command) = words.first().filter(|_| at > 0) else {
            return COMMANDS.iter().map(|command| command.name.to_owned()).collect();
        };
        let takes = named(command).map_or(Takes::Nothing, |command| command.takes);
        let second = words.get(1).copied().unwrap_or_default();
        match (takes, at) {
            (Takes::Table | Takes::TableAction, 1) => self.tables.keys().cloned().collect(),
            (Takes::TableAction, 2) => self.tables.get(second).cloned().unwrap_or_default(),
            (Takes::Profile | Takes::ProfileAction, 1) => self.profiles.keys().cloned().collect(),
            (Takes::ProfileAction, 2) => self.profiles.get(second).cloned().unwrap_or_default(),
            (Takes::Counter, 1) => self.counters.clone(),
            (Takes::Meter, 1) => self.meters.clone(),
            (Takes::Register, 1) => self.registers.clone(),
            (Takes::ValueSet, 1) => self.value_sets.clone(),
            (Takes::Command, 1) => COMMANDS.iter().map(|command| command.name.to_owned()).collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_by_what_their_command_takes() {
        let tables = BTreeMap::from([("I.routes".to_owned(), vec!["I.to".to_owned()])]);
        let names = Names { tables, registers: vec!["I.r".into()], ..Names::default() };
        assert!(names.candidates(&[], 0).contains(&"table_add".to_owned()));
        assert_eq!(names.candidates(&["table_add"], 1), ["I.routes"]);
        assert_eq!(names.candidates(&["table_add", "I.routes"], 2), ["I.to"]);
        assert_eq!(names.candidates(&["register_read"], 1), ["I.r"]);
        assert!(names.candidates(&["table_dump", "I.routes"], 2).is_empty());
    }

    #[tokio::test]
    async fn lines_have_an_end_and_a_limit() {
        let mut text = &b"12345678\n123456789\n"[..];
        assert_eq!(line(&mut text, 9).await.unwrap().unwrap(), "12345678\n");
        assert!(line(&mut text, 9).await.is_err());
        assert!(line(&mut &b"no end"[..], 9).await.is_err());
        assert_eq!(line(&mut &b""[..], 9).await.unwrap(), None);
    }

    #[test]
    fn a_server_for_all_addresses_is_reached_on_this_machine() {
        assert_eq!(reached(SocketAddr::from(([0, 0, 0, 0], 50051))), "127.0.0.1:50051");
        assert_eq!(reached(SocketAddr::from(([10, 0, 0, 1], 1))), "10.0.0.1:1");
    }
}
