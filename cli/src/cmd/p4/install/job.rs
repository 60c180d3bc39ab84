//! Reads a program and its entries, and installs both.

use super::lost::Lost;
use p4rack_codegen::Arch;
use p4rack_codegen::rack::Target;
use p4rack_codegen::shell::quoted;
use p4rack_codegen::text::{fault as unread, read};
use p4rack_codegen::topology::{Program, Reading, files};
use p4rack_ctrl::connect::parse_election_id;
use p4rack_ctrl::deploy::Desired;
use p4rack_ctrl::install::{Installed, Preview, Rules, install, preview};
use p4rack_ctrl::telemetry::Telemetry;
use p4rack_ctrl::{Client, ConnectOptions, CtrlError, Session, provision};
use p4rack_p4::{Diagnostics, Options};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::Entity;
use p4rack_p4rt::schema::Schema;
use p4rack_p4rt::text;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to install, and where.
#[derive(Clone, Debug)]
pub struct Job {
    /// P4 text, or BMv2's JSON.
    pub program: PathBuf,
    /// Folders of included files, and macros.
    pub options: Options,
    /// Interface of the program, if its file lacks parts of it.
    pub p4info: Option<PathBuf>,
    /// Its entries.
    pub entries: Option<PathBuf>,
    /// Kind of switch, if it is known.
    pub to: Option<Target>,
    /// Whether the switch's entries go.
    pub clear: bool,
    /// The switch.
    pub target: ConnectOptions,
    /// Options of a command that reach it.
    pub target_words: Vec<String>,
    /// Whether to be primary under any election id where there is no primary.
    pub takes_over: bool,
}

/// A completed installation.
#[derive(Debug)]
pub struct Done {
    /// What the switch has now.
    pub desired: Desired,
    /// What was done.
    pub installed: Installed,
    /// Warnings about the program.
    pub warnings: Diagnostics,
    /// How long reading and compiling took.
    pub compiled_in: Duration,
    /// How long all of it took.
    pub installed_in: Duration,
}

/// A program that has been read.
struct Loaded {
    desired: Desired,
    arch: Arch,
    warnings: Diagnostics,
    took: Duration,
}

/// Reads a file of entries, which has some.
pub fn entries(file: &Path, schema: &Schema) -> Result<Vec<Entity>, CtrlError> {
    let entries = provision::entries_of(file, schema)?;
    if entries.is_empty() {
        return Err(CtrlError::Input(format!(
            "{}: has no entries; write some (docs/topology.md shows the formats), or leave --entries out",
            file.display()
        )));
    }
    Ok(entries)
}

impl Job {
    /// All files that decide what is installed, and where included ones are looked for.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut all = files(&self.program, &self.options);
        all.extend([&self.entries, &self.p4info].into_iter().flatten().cloned());
        all
    }

    /// Name of the program's file, for messages.
    pub fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// A command that installs the same with other entries, as a shell takes it.
    pub fn command(&self, entries: &Path) -> String {
        let file = |path: &Path| path.display().to_string();
        let mut words = vec![self.name(), "--entries".to_owned(), file(entries)];
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        self.p4info.iter().for_each(|path| add("--p4info", file(path)));
        self.to.iter().for_each(|to| add("--to", to.name().to_owned()));
        self.options.include_dirs.iter().for_each(|folder| add("-I", file(folder)));
        self.options.defines.iter().for_each(|(name, value)| add("-D", format!("{name}={value}")));
        words.extend(self.clear.then(|| "--clear".to_owned()));
        let words: Vec<String> = words.iter().chain(&self.target_words).map(|word| quoted(word)).collect();
        format!("p4rack p4 install {}", words.join(" "))
    }

    /// What the embedded switch gets.
    pub fn desired(&self) -> Result<Desired, CtrlError> {
        self.load(false).map(|loaded| loaded.desired)
    }

    fn load(&self, is_for_bmv2: bool) -> Result<Loaded, CtrlError> {
        let began = Instant::now();
        let given = |path: &PathBuf| {
            let fault = |what: String| CtrlError::Input(format!("--p4info {}: {what}", path.display()));
            let text =
                read(path).map_err(|error| fault(unread(&error, "a P4Info in protobuf's text format")))?;
            text::parse::<P4Info>(&text).map_err(|error| fault(error.to_string()))
        };
        let p4info = self.p4info.as_ref().map(given).transpose()?;
        let reading = Reading { options: self.options.clone(), p4info, is_for_bmv2 };
        let program = Program::load_as(&self.program, &reading);
        let program = program.map_err(|error| CtrlError::Program(error.to_string()))?;
        let (arch, warnings) = (program.arch, program.warnings.clone());
        let mut desired = provision::of_program(program, None)?;
        if let Some(file) = &self.entries {
            desired.entities = entries(file, &desired.schema)?;
        }
        Ok(Loaded { desired, arch, warnings, took: began.elapsed() })
    }

    /// The program as the switch takes it: other switches for v1model than the embedded one don't compile.
    async fn load_for(&self, loaded: Loaded, client: &Client) -> Result<Loaded, CtrlError> {
        if self.to.is_some() || loaded.arch != Arch::V1model || Telemetry::of(client).is_served().await? {
            return Ok(loaded);
        }
        let again = self.load(true)?;
        Ok(Loaded { took: loaded.took + again.took, ..again })
    }

    fn rules<'p>(&self, previous: Option<&'p Desired>) -> Rules<'p> {
        Rules { clear: self.clear, previous }
    }

    /// What would be done.
    pub async fn preview(&self) -> Result<(Desired, Preview), CtrlError> {
        let loaded = self.load(self.to == Some(Target::Bmv2))?;
        let mut client = Client::connect(self.target.clone()).await?;
        let desired = self.load_for(loaded, &client).await?.desired;
        let preview = preview(&mut client, &desired, self.rules(None)).await?;
        Ok((desired, preview))
    }

    /// Installs the program and its entries. `previous` is what an earlier call has installed: entries that have left the file
    /// go. A program with mistakes is refused without a switch. `lost` is what a lost connection has left to do.
    pub async fn install(&self, previous: Option<&Desired>, lost: &mut Lost) -> Result<Done, CtrlError> {
        let began = Instant::now();
        let loaded = self.load(self.to == Some(Target::Bmv2))?;
        let mut session = self.connect().await?;
        let Loaded { desired, warnings, took, .. } = self.load_for(loaded, &session).await?;
        let rules = self.rules(previous);
        let installed = match install(&mut session, &desired, rules, &mut lost.unfinished).await {
            Ok(installed) => installed,
            Err(error) => return Err(lost.with_remedy(error, |file| self.command(file), (&desired, rules))),
        };
        lost.restored();
        Ok(Done { desired, installed, warnings, compiled_in: took, installed_in: began.elapsed() })
    }

    async fn connect(&self) -> Result<Session, CtrlError> {
        match Session::connect(self.target.clone()).await {
            Err(CtrlError::NoPrimary { highest, .. }) if self.takes_over => {
                let election_id = parse_election_id(&highest).map_err(CtrlError::Input)?;
                Session::connect(ConnectOptions { election_id, ..self.target.clone() }).await
            }
            connected => connected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_reaches_the_same_switch_with_the_same_program() {
        let mut job = Job {
            program: "next try.p4".into(),
            options: Options {
                include_dirs: vec!["my includes".into()],
                defines: vec![("N".into(), "1 + 1".into())],
            },
            p4info: Some("it's.txtpb".into()),
            entries: Some("old.entries".into()),
            to: Some(Target::Bmv2),
            clear: true,
            target: ConnectOptions::new("10.0.0.1:9559", 7),
            target_words: ["--grpc-addr", "10.0.0.1:9559", "--device-id", "7"].map(str::to_owned).to_vec(),
            takes_over: false,
        };
        assert_eq!(
            job.command(Path::new("/tmp/x.txtpb")),
            "p4rack p4 install 'next try.p4' --entries /tmp/x.txtpb --p4info 'it'\\''s.txtpb' --to bmv2 -I 'my includes' \
             -D 'N=1 + 1' --clear --grpc-addr 10.0.0.1:9559 --device-id 7"
        );
        job = Job {
            options: Options::default(),
            p4info: None,
            to: None,
            clear: false,
            target_words: Vec::new(),
            ..job
        };
        assert_eq!(
            job.command(Path::new("/tmp/x.txtpb")),
            "p4rack p4 install 'next try.p4' --entries /tmp/x.txtpb"
        );
    }
}
