//! What `p4rack doctor` finds.

use serde::Serialize;

/// Whether something is available.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// What was looked for, such as a program or a right.
    pub name: &'static str,
    /// What it is needed for.
    #[serde(rename = "for")]
    pub purpose: &'static str,
    /// Whether it is required.
    pub needed: bool,
    /// Whether it is there.
    pub ok: bool,
    /// Its version, or what was found.
    pub found: String,
    /// How to get it. `None`: it is there, or nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub get_it_by: Option<String>,
}
