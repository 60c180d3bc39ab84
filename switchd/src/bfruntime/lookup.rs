//! Look-ups that need no entries: the target of a request, attributes, ids of names.

use super::DEVICE;
use super::fixed::PORTS;
use super::loaded::Loaded;
use super::outcome::invalid;
use super::settings::{ALL_PIPES, Scope, Scopes};
use p4rack_bfrt::{SchemaError, Table};
use p4rack_entities::{Checked, refuse};
use p4rack_p4::ir::TableId;
use p4rack_p4rt::bfrt_proto::{
    ByteCountAdj, Entity, ObjectId, PortStatusChg, StatePullIntvl, TableAttribute, TargetDevice, entity,
    object_id, table_attribute,
};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::Pipes;

/// Both directions, and all parsers.
const ALL: u32 = 0xff;

/// The part of the device that a request is for.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    device: TargetDevice,
    /// Pipes of the device.
    pipes: u32,
}

impl Target {
    /// The target of a request; by default the whole device.
    pub fn of(given: Option<&TargetDevice>, pipes: u32) -> Target {
        let all = TargetDevice { device_id: DEVICE, pipe_id: ALL_PIPES, direction: ALL, prsr_id: ALL };
        Target { device: given.copied().unwrap_or(all), pipes }
    }

    /// The target of an entry; by default that of its request. Errors: there is no such device or pipe.
    pub fn or(self, given: Option<&TargetDevice>) -> Checked<Target> {
        let target = Target { device: given.copied().unwrap_or(self.device), ..self };
        let TargetDevice { device_id, pipe_id, .. } = target.device;
        if device_id != DEVICE {
            return refuse(
                Code::NotFound,
                format!("there is no device {device_id}; this is device {DEVICE}; ask for that one"),
            );
        }
        if pipe_id != ALL_PIPES && pipe_id >= self.pipes {
            return invalid(format!(
                "there is no pipe {pipe_id}; name all, 0xffff, or one below {}",
                self.pipes
            ));
        }
        Ok(target)
    }

    /// The same, of one pipe.
    pub fn of_pipe(self, pipe_id: u32) -> Target {
        Target { device: TargetDevice { pipe_id, ..self.device }, ..self }
    }

    /// As a message.
    pub fn message(self) -> TargetDevice {
        self.device
    }

    /// The selected pipe; `None` selects all.
    pub fn pipe(self) -> Option<u32> {
        Some(self.device.pipe_id).filter(|pipe| *pipe != ALL_PIPES)
    }

    /// The pipes to write to; all if there are none. Each pipe has cells of its own, whatever their scope, unless it has
    /// sets of pipes.
    pub fn written(self, loaded: &Loaded, table_id: u32) -> Checked<Option<Pipes>> {
        if loaded.own.has_members(table_id) {
            return self.written_members(&loaded.settings.scopes(table_id));
        }
        let Some(pipe) = self.pipe() else { return Ok(None) };
        if loaded.fixed.has_pipes(table_id) {
            return Ok(Some(Pipes::of([pipe as usize])));
        }
        if loaded.fixed.has(table_id) {
            return invalid(format!(
                "the device's tables are of all pipes; name all, 0xffff, not pipe {pipe}"
            ));
        }
        if loaded.own.has_ports(table_id) {
            return Ok(None);
        }
        match loaded.settings.scope(table_id) {
            Scope::All | Scope::Single if !loaded.translation.has_keys(table_id) => {
                Ok(Some(Pipes::of([pipe as usize])))
            }
            scope => scope.pipes(pipe).map(Some),
        }
    }

    /// The same for members of a value set, which may be of one direction and one parser, too.
    fn written_members(self, scopes: &Scopes) -> Checked<Option<Pipes>> {
        let given = [
            ("direction", self.device.direction, scopes.given.gress_scope),
            ("prsr_id", self.device.prsr_id, scopes.given.prsr_scope),
        ];
        for (name, id, scope) in given {
            if id == ALL && Scope::read(scope.as_ref())? != Scope::All {
                return invalid(format!("entries have a scope of their own; name one, not all, as {name}"));
            }
        }
        match (self.pipe(), scopes.pipes) {
            (None, Scope::All) => Ok(None),
            (None, _) => invalid("entries have the scope of a pipe; name one, not all, as pipe_id"),
            (Some(pipe), scope) => scope.pipes(pipe).map(Some),
        }
    }

    /// The pipe to read from: any of those that have an entry.
    pub fn read(self) -> Option<Pipes> {
        self.pipe().map(|pipe| Pipes::of([pipe as usize]))
    }
}

impl Loaded {
    /// A table by number.
    pub fn table(&self, id: u32) -> Checked<&Table> {
        let missing = || refuse(Code::NotFound, format!("there is no table with id {id} (0x{id:08x})"));
        self.schema.table_by_id(id).map_or_else(missing, Ok)
    }

    /// A table whose keys have a mask.
    pub fn masked(&self, table: &Table) -> Checked<TableId> {
        let all = &self.program.ir.tables;
        match all.iter().position(|found| table.is_named(&found.named.name) && found.has_key_mask) {
            Some(at) => Ok(TableId(at as u32)),
            None => refuse(
                Code::Unimplemented,
                format!(
                    "table `{}`: the mask of its key is fixed; the program has to ask for another",
                    table.name
                ),
            ),
        }
    }

    /// A table's attribute; if the pipes meant have different ones, that of the first.
    pub fn attribute(&self, target: Target, asked: &TableAttribute) -> Checked<Entity> {
        use table_attribute::Attribute;
        let table = self.table(asked.table_id)?;
        let attribute = match &asked.attribute {
            Some(Attribute::EntryScope(_)) => {
                Attribute::EntryScope(self.settings.scopes(asked.table_id).message())
            }
            Some(Attribute::ByteCountAdj(_)) => {
                let byte_count_adjust =
                    self.settings.adjustment(asked.table_id, target.or(None)?.pipe().unwrap_or(0));
                Attribute::ByteCountAdj(ByteCountAdj { byte_count_adjust })
            }
            Some(Attribute::IntvlMs(_)) => Attribute::IntvlMs(StatePullIntvl { intvl_val: 0 }),
            Some(Attribute::PortStatusNotify(_)) if table.name == PORTS => {
                Attribute::PortStatusNotify(PortStatusChg { enable: self.fixed.ports().notifies() })
            }
            Some(Attribute::IdleTable(_)) => Attribute::IdleTable(self.settings.idle(asked.table_id)),
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
