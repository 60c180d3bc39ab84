//! Look-ups that need no entries: the target of a request, attributes, ids of names.

use super::loaded::Loaded;
use super::{DEVICE, PIPES};
use p4rack_bfrt::{SchemaError, Table};
use p4rack_entities::{Checked, refuse};
use p4rack_p4rt::bfrt_proto::{
    ByteCountAdj, Entity, EntryScope, IdleTable, Mode, ObjectId, StatePullIntvl, TableAttribute,
    TargetDevice, entity, mode, object_id, table_attribute,
};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;

/// All pipes.
const ALL_PIPES: u32 = 0xffff;
/// Both directions, and all parsers.
const ALL: u32 = 0xff;

/// The part of the device that a request is for.
#[derive(Clone, Copy, Debug)]
pub struct Target(TargetDevice);

impl Target {
    /// The target of a request; by default the whole device.
    pub fn of(given: Option<&TargetDevice>) -> Target {
        let all = TargetDevice { device_id: DEVICE, pipe_id: ALL_PIPES, direction: ALL, prsr_id: ALL };
        Target(given.copied().unwrap_or(all))
    }

    /// The target of an entry; by default that of its request. Errors: there is no such device or pipe.
    pub fn or(self, given: Option<&TargetDevice>) -> Checked<Target> {
        let target = given.map_or(self, |given| Target(*given));
        let TargetDevice { device_id, pipe_id, .. } = target.0;
        if device_id != DEVICE {
            return refuse(
                Code::NotFound,
                format!("there is no device {device_id}; this is device {DEVICE}"),
            );
        }
        if pipe_id != ALL_PIPES && pipe_id >= PIPES {
            let message = format!("there is no pipe {pipe_id}; name all, 0xffff, or one below {PIPES}");
            return refuse(Code::InvalidArgument, message);
        }
        Ok(target)
    }

    /// Entries are in all pipes, so they are written in all.
    pub fn check_write(self) -> Checked<()> {
        if self.0.pipe_id == ALL_PIPES {
            return Ok(());
        }
        let message =
            format!("entries have the scope of all pipes; write to pipe 0xffff, not {}", self.0.pipe_id);
        refuse(Code::InvalidArgument, message)
    }
}

impl Loaded {
    /// A table by number.
    pub fn table(&self, id: u32) -> Checked<&Table> {
        let missing = || refuse(Code::NotFound, format!("there is no table with id {id} (0x{id:08x})"));
        self.schema.table_by_id(id).map_or_else(missing, Ok)
    }

    /// A table's attribute.
    pub fn attribute(&self, asked: &TableAttribute) -> Checked<Entity> {
        use table_attribute::Attribute;
        let table = self.table(asked.table_id)?;
        let mode = || {
            let scope = Some(mode::Scope::Predef(mode::PredefinedMode::All as i32));
            Some(Mode { scope, args: 0 })
        };
        let attribute = match &asked.attribute {
            Some(Attribute::EntryScope(_)) => Attribute::EntryScope(EntryScope {
                gress_scope: mode(),
                pipe_scope: mode(),
                prsr_scope: mode(),
            }),
            Some(Attribute::ByteCountAdj(_)) => {
                Attribute::ByteCountAdj(ByteCountAdj { byte_count_adjust: 0 })
            }
            Some(Attribute::IntvlMs(_)) => Attribute::IntvlMs(StatePullIntvl { intvl_val: 0 }),
            Some(Attribute::IdleTable(_)) => {
                Attribute::IdleTable(IdleTable { enable: true, ..Default::default() })
            }
            Some(_) => {
                let message = format!("table `{}`: this attribute is not offered by this switch", table.name);
                return refuse(Code::Unimplemented, message);
            }
            None => {
                return refuse(
                    Code::InvalidArgument,
                    format!("table `{}`: the attribute is not set", table.name),
                );
            }
        };
        let attribute = TableAttribute { table_id: asked.table_id, attribute: Some(attribute) };
        Ok(Entity { entity: Some(entity::Entity::TableAttribute(attribute)) })
    }

    /// The id of the named object.
    pub fn object_id(&self, asked: &ObjectId) -> Checked<Entity> {
        use object_id::table_object::Names;
        let unknown = |error: SchemaError| UpdateError::new(Code::NotFound, error.to_string());
        let id = match &asked.object {
            None => return refuse(Code::InvalidArgument, "the object is not named"),
            Some(object_id::Object::TableObject(named)) => {
                let table = self.schema.table(&named.table_name).map_err(unknown)?;
                match &named.names {
                    None => table.id,
                    Some(Names::ActionName(name)) => table.action(&name.action).map_err(unknown)?.id,
                    Some(Names::KeyFieldName(name)) => table.key(&name.field).map_err(unknown)?.id,
                    Some(Names::DataFieldName(name)) => {
                        let named = Some(&name.action).filter(|action| !action.is_empty());
                        let action = named.map(|action| table.action(action).map_err(unknown)).transpose()?;
                        table.field(action, &name.field).map_err(unknown)?.id
                    }
                }
            }
            Some(object_id::Object::LearnObject(named)) => {
                let learn = self.schema.learns().iter().find(|learn| learn.name == named.learn_name);
                let Some(learn) = learn else {
                    return refuse(Code::NotFound, format!("there is no digest `{}`", named.learn_name));
                };
                match &named.data_field_name {
                    None => learn.id,
                    Some(name) => match learn.fields.iter().find(|field| field.name == name.field) {
                        Some(field) => field.id,
                        None => {
                            let message = format!("digest `{}` has no field `{}`", learn.name, name.field);
                            return refuse(Code::NotFound, message);
                        }
                    },
                }
            }
        };
        Ok(Entity { entity: Some(entity::Entity::ObjectId(ObjectId { id, ..asked.clone() })) })
    }
}
