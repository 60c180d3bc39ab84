//! Findings of `p4rack doctor`.

use serde::Serialize;

/// Whether something is available.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The requirement, such as a program or a right.
    pub name: &'static str,
    /// Its purpose.
    #[serde(rename = "for")]
    pub purpose: &'static str,
    /// Whether it is required.
    pub needed: bool,
    /// Whether it is met.
    pub ok: bool,
    /// Its version, or the facts found.
    pub found: String,
    /// How to get it. `None`: it is met, or nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub get_it_by: Option<String>,
}
