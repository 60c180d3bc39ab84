//! The steps of a deployment in words.

use p4rack_ctrl::deploy::Step;
use p4rack_p4rt::p4::v1::update;

/// A step in words.
pub fn line(step: &Step, connected: &str) -> String {
    match step {
        Step::Connected => connected.into(),
        Step::Installed => "installed the program".into(),
        Step::Missing => "another program or none is installed: this one would be".into(),
        Step::Kept => "the program was already installed".into(),
        Step::Compared { found, changes } if changes.is_empty() => {
            format!("compared {found} entities on the switch: nothing to change")
        }
        Step::Compared { found, changes } => {
            let count = |kind| changes.iter().filter(|update| update.r#type() == kind).count();
            format!(
                "compared {found} entities on the switch: {} to insert, {} to modify, {} to delete",
                count(update::Type::Insert),
                count(update::Type::Modify),
                count(update::Type::Delete)
            )
        }
        Step::Written { updates } => format!("wrote {updates} changes"),
        Step::Ports { changes, without } => {
            let done = match changes.len() {
                0 => "ports: nothing to change".to_owned(),
                count => format!("ports: {count} to add or change"),
            };
            match without.len() {
                0 => done,
                count => format!("{done}; {count} without a row: the chip does not have their rates"),
            }
        }
        Step::Verified { entities } => format!("the switch holds the {entities} entries"),
    }
}
