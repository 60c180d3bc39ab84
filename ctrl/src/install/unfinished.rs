//! Contents of switches before interrupted installations.

use super::Rules;
use super::before::{Before, Own};
use super::plan::{Plan, key_of, keys};
use crate::desired::Desired;
use p4rack_p4rt::p4::v1::Entity;

/// Contents of switches before installations that were interrupted between the new program and its entities. The next
/// installation writes them. There is one part per P4Info, the latest first, however many attempts fail.
#[derive(Debug, Default)]
pub struct Unfinished(Vec<Before>);

impl Unfinished {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entities of it that a program can hold, with the desired ones.
    pub fn entities(&self, wanted: &Desired, rules: Rules<'_>) -> Vec<Entity> {
        let own = Own::of(&wanted.config, &wanted.schema);
        Plan::new(None, &self.0, (wanted, &own), rules).entities().to_vec()
    }

    /// All parts.
    pub(super) fn all(&self) -> &[Before] {
        &self.0
    }

    /// Adds what a switch held before one more try. What it held under the same P4Info before earlier ones comes after that.
    pub(super) fn add(&mut self, mut before: Before) {
        let earlier = self.0.iter().position(|earlier| earlier.config.p4info == before.config.p4info);
        if let Some(at) = earlier {
            let there = keys(&before.entities);
            let mut earlier = self.0.remove(at).entities;
            earlier.retain(|entity| !there.contains(&key_of(entity)));
            before.entities.extend(earlier);
        }
        self.0.retain(|earlier| !earlier.entities.is_empty());
        self.0.insert(0, before);
    }

    /// Forgets everything, once the switch has it.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries;
    use crate::items::Item;
    use p4rack_p4rt::p4::v1::ForwardingPipelineConfig;
    use p4rack_p4rt::schema::Schema;

    const PROGRAM: &str = include_str!("../../../examples/pod/route.p4");

    /// What a switch with this text held.
    fn before(text: &str, entities: &str) -> Before {
        let compiled = p4rack_p4::compile(text, "t.p4", &p4rack_p4::Options::default());
        let p4info = compiled.unwrap_or_else(|why| panic!("{why}")).p4info;
        let config = ForwardingPipelineConfig {
            p4info: Some(p4info.clone()),
            p4_device_config: text.into(),
            cookie: None,
        };
        let schema = Schema::new(p4info).unwrap();
        let entities = entries::read(entities, &schema).unwrap();
        let text = Own::of(&config, &schema);
        Before { config, schema, entities, own: Vec::new(), text, unreadable: Vec::new() }
    }

    fn route(last: usize, port: usize) -> String {
        format!("routes dst=10.0.{last}.0/24 --action to next_hop=02:00:00:00:00:01 port={port}\n")
    }

    #[test]
    fn failed_tries_leave_one_part_for_each_p4info() {
        let mut unfinished = Unfinished::default();
        for try_number in 0..20 {
            // A save that changes no interface.
            let text = format!("{PROGRAM}\n// {try_number}\n");
            unfinished
                .add(before(&text, &format!("{}{}", route(1, try_number + 1), route(try_number + 2, 9))));
        }
        let [part] = unfinished.all() else { panic!("{} parts", unfinished.all().len()) };
        let said: Vec<String> =
            part.entities.iter().map(|entity| Item::of(&part.schema, entity).unwrap().to_string()).collect();
        assert_eq!(said.len(), 21, "{said:#?}");
        assert!(said[0].contains("10.0.1.0/24") && said[0].contains("port=20"), "the latest: {said:#?}");
        // Other interfaces: parts that have nothing to bring don't stay.
        for size in 2000..2020 {
            let text = PROGRAM.replace("size = 1024;", &format!("size = {size};"));
            assert_ne!(text, PROGRAM);
            unfinished.add(before(&text, ""));
        }
        let counts: Vec<usize> = unfinished.all().iter().map(|part| part.entities.len()).collect();
        assert_eq!(counts, [0, 21]);
    }
}
