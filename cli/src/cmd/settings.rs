//! `--set KEY=VALUE`: keys that override a file's.

use p4rack_codegen::setting::Setting;

/// Keys of the file that the command line sets.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Settings {
    /// Set a key, in place of the file's value: names and indexes with dots between them, and a value as in
    /// TOML, e.g. switch.port_rate="1 Gb/s" or host.0.port=3; a string's quotes may be left out. May be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
}

/// The same for commands that work without a rack description, too.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct RackSettings {
    /// Set a key of the rack description, in place of the file's value, e.g. switch.port_rate="1 Gb/s"; as `up` takes it. May be
    /// repeated
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "rack")]
    pub set: Vec<Setting>,
}
