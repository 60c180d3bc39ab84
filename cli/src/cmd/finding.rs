//! What `p4rack doctor` finds.

use serde::Serialize;

/// Whether something is available.
#[derive(Debug, Serialize)]
pub struct Finding {
    pub name: &'static str,
    /// What it is needed for.
    #[serde(rename = "for")]
    pub purpose: &'static str,
    /// Whether it is required.
    pub needed: bool,
    pub ok: bool,
    /// Its version, or what was found.
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub get_it_by: Option<String>,
}
