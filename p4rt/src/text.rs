//! Text format of messages: `*.p4info.txtpb` and entries as a text-format `WriteRequest`.

use crate::FILE_DESCRIPTOR_SET;
use crate::p4::config::v1::P4Info;
use crate::p4::v1::{
    GetForwardingPipelineConfigRequest, ReadRequest, SetForwardingPipelineConfigRequest,
    StreamMessageRequest, WriteRequest,
};
use crate::stratum::P4RoleConfig;
use prost_reflect::text_format::FormatOptions;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use thiserror::Error;

/// Why a text is not a valid message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}:{column}: {problem}\n  {text}\n  {marker}^")]
pub struct TextError {
    /// Line, from 1; the last line if the text ends too early.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The mistake.
    pub problem: String,
    /// The line itself.
    pub text: String,
    marker: String,
}

/// A message with a text form.
pub trait TextMessage: prost::Message + Default {
    /// Full name of the message in its package.
    const NAME: &'static str;
}

macro_rules! text_messages {
    ($($message:ty = $name:literal;)*) => { $(
        impl TextMessage for $message {
            const NAME: &'static str = $name;
        }
    )* };
}

text_messages! {
    P4Info = "p4.config.v1.P4Info";
    WriteRequest = "p4.v1.WriteRequest";
    ReadRequest = "p4.v1.ReadRequest";
    SetForwardingPipelineConfigRequest = "p4.v1.SetForwardingPipelineConfigRequest";
    GetForwardingPipelineConfigRequest = "p4.v1.GetForwardingPipelineConfigRequest";
    StreamMessageRequest = "p4.v1.StreamMessageRequest";
    P4RoleConfig = "stratum.P4RoleConfig";
}

/// Descriptors of all messages of this crate.
pub fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| {
        DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("made by the compiler of these very files")
    })
}

fn descriptor<M: TextMessage>() -> MessageDescriptor {
    pool().get_message_by_name(M::NAME).expect("the implementations name messages of these files")
}

/// A message as text, one field per line.
pub fn print<M: TextMessage>(message: &M) -> String {
    let mut dynamic = DynamicMessage::new(descriptor::<M>());
    dynamic.transcode_from(message).expect("same message, same encoding");
    let options = FormatOptions::new().pretty(true).print_message_fields_in_index_order(true);
    sorted(&dynamic.to_text_format_with_options(&options))
}

/// Names of all fields that are maps.
fn maps() -> &'static BTreeSet<String> {
    static MAPS: OnceLock<BTreeSet<String>> = OnceLock::new();
    MAPS.get_or_init(|| {
        let fields = pool().all_messages().flat_map(|message| message.fields().collect::<Vec<_>>());
        fields.filter(|field| field.is_map()).map(|field| field.name().to_owned()).collect()
    })
}

/// The text with the entries of each map in order, a line break behind each line: they are printed as a hash map has them.
fn sorted(text: &str) -> String {
    let mut out = Vec::new();
    let mut lines = text.lines();
    while let Some(first) = lines.next() {
        out.push(first);
        let name = first.trim_start().strip_suffix(": [{");
        if !name.is_some_and(|name| maps().contains(name)) {
            continue;
        }
        let indent = first.len() - first.trim_start().len();
        let mut entries = vec![Vec::new()];
        let (mut between, mut last) = ("", "");
        for line in lines.by_ref() {
            match line.get(indent..) {
                Some("}, {") => {
                    between = line;
                    entries.push(Vec::new());
                }
                Some("}]") => {
                    last = line;
                    break;
                }
                _ => entries.last_mut().expect("there is a first one").push(line),
            }
        }
        entries.sort();
        out.extend(entries.join(&between));
        out.push(last);
    }
    out.push("");
    out.join("\n")
}

/// Parses the text form of a message.
pub fn parse<M: TextMessage>(text: &str) -> Result<M, TextError> {
    let dynamic = DynamicMessage::parse_text_format(descriptor::<M>(), text).map_err(|error| {
        let offset = offset_in(&format!("{error:?}")).unwrap_or(text.len()).min(text.len());
        error_at(text, offset, error.to_string())
    })?;
    dynamic.transcode_to().map_err(|error| error_at(text, 0, error.to_string()))
}

/// The parser reports positions only in its debug form: the last `span: A..B` in it.
fn offset_in(debug: &str) -> Option<usize> {
    let digits = debug.rsplit_once("span: ")?.1;
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn error_at(text: &str, offset: usize, problem: String) -> TextError {
    let before = text.get(..offset).unwrap_or(text).trim_end_matches(['\n', '\r']);
    let before = if offset < text.len() { text.get(..offset).unwrap_or(before) } else { before };
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[line_start..].chars().count() + 1;
    let line_text = text[line_start..].lines().next().unwrap_or_default();
    TextError {
        line: before.matches('\n').count() + 1,
        column,
        problem,
        text: line_text.replace('\t', " "),
        marker: " ".repeat(column - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EntityKind;
    use crate::p4::v1::{self, update};

    #[test]
    fn a_request_survives_print_and_parse() {
        let entry = v1::TableEntry {
            table_id: 0x0200_0001,
            r#match: vec![v1::FieldMatch {
                field_id: 1,
                field_match_type: Some(v1::field_match::FieldMatchType::Exact(v1::field_match::Exact {
                    value: vec![0, b'"', 0xff],
                })),
            }],
            ..Default::default()
        };
        let request = WriteRequest {
            device_id: 1,
            updates: vec![v1::Update {
                r#type: update::Type::Insert as i32,
                entity: Some(v1::Entity { entity: Some(EntityKind::TableEntry(entry)) }),
            }],
            ..Default::default()
        };
        let text = print(&request);
        assert!(text.contains("table_id: 33554433"), "{text}");
        assert_eq!(parse::<WriteRequest>(&text), Ok(request));
    }

    #[test]
    fn maps_are_printed_in_order() {
        let spec = crate::p4::config::v1::P4StructTypeSpec::default;
        let names: Vec<String> = (0..20).map(|n| format!("s{n:02}")).collect();
        let type_info = crate::p4::config::v1::P4TypeInfo {
            structs: names.iter().rev().map(|name| (name.clone(), spec())).collect(),
            ..Default::default()
        };
        let info = P4Info { type_info: Some(type_info), ..Default::default() };
        let text = print(&info);
        let places: Vec<usize> = names.iter().map(|name| text.find(name.as_str()).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
        assert_eq!(parse::<P4Info>(&text), Ok(info));
    }

    #[test]
    fn comments_and_hexadecimal_are_read() {
        let request: WriteRequest = parse("# entries\ndevice_id: 0x2a").unwrap();
        assert_eq!(request.device_id, 42);
    }

    #[test]
    fn an_error_names_line_and_column() {
        let error = parse::<P4Info>("tables {\n  preamble { nam: \"t\" }\n}\n").unwrap_err();
        assert_eq!((error.line, error.column), (2, 14));
        assert_eq!(
            error.to_string(),
            "2:14: field 'nam' not found for message 'p4.config.v1.Preamble'\n    preamble { nam: \"t\" }\n               ^"
        );
    }

    #[test]
    fn an_early_end_is_reported_at_the_end() {
        let error = parse::<P4Info>("tables {\n  preamble {\n").unwrap_err();
        assert_eq!(error.line, 2, "{error}");
        let error = parse::<P4Info>("tables { match_fields { id: 99999999999999 } }").unwrap_err();
        assert_eq!((error.line, error.column), (1, 29), "{error}");
    }
}
