//! Named types that P4Info describes, collected as they are used.

use crate::ir::{DataTy, Program, Ty};
use num_bigint::BigUint;
use p4rack_p4rt::p4::config::v1 as pb;
use pb::p4_data_type_spec::TypeSpec;

pub(super) struct Types<'p> {
    program: &'p Program,
    info: pb::P4TypeInfo,
    /// Whether P4Info has a `type_info`, even an empty one.
    used: bool,
}

impl<'p> Types<'p> {
    pub fn new(program: &'p Program) -> Types<'p> {
        // p4c creates `type_info` wherever it meets something that could have a named type, and leaves it
        // empty if nothing has: each table, extern object, call of an extern function, action parameter and
        // header field.
        let used = program.uses_externs
            || program.instances.iter().any(|instance| !instance.named.hidden)
            || program.tables.iter().any(|table| !table.named.hidden);
        Types { program, info: pb::P4TypeInfo::default(), used }
    }

    pub fn finish(self) -> Option<pb::P4TypeInfo> {
        self.used.then_some(self.info)
    }

    /// Records the `type` or serializable enum of a field. Returns the reference to it and the field's width.
    pub fn field(&mut self, ty: Ty, name: Option<&str>) -> (Option<pb::P4NamedType>, i32) {
        self.used = true;
        let width = ty.width() as i32;
        let Some(name) = name else { return (None, width) };
        if let Some(new) = self.program.new_types.iter().find(|n| n.name == name) {
            self.data(&DataTy::NewType(name.to_owned()));
            // The controller sees the translated width; 0 for strings.
            let width = match &new.translation {
                Some((_, sdn)) => sdn.map_or(0, |w| w as i32),
                None => width,
            };
            return (Some(pb::P4NamedType { name: name.to_owned() }), width);
        }
        self.data(&DataTy::SerEnum(name.to_owned()));
        (None, width)
    }

    /// The type of an index, if it is a named `type`.
    pub fn index(&mut self, name: Option<&str>) -> Option<pb::P4NamedType> {
        self.field(Ty::Bit(32), name).0
    }

    /// The full specification of a type; records its named parts.
    pub fn data(&mut self, ty: &DataTy) -> pb::P4DataTypeSpec {
        self.used = true;
        let named = |name: &str| pb::P4NamedType { name: name.to_owned() };
        let spec = match ty {
            DataTy::Scalar(Ty::Bool) => TypeSpec::Bool(pb::P4BoolType {}),
            DataTy::Scalar(scalar) => TypeSpec::Bitstring(bits(*scalar)),
            DataTy::Error => {
                let members = self.program.errors.clone();
                self.info.error = Some(pb::P4ErrorTypeSpec { members });
                TypeSpec::Error(pb::P4ErrorType {})
            }
            DataTy::Enum(name) => {
                if let Some((_, members)) = self.program.enums.iter().find(|e| e.0 == *name) {
                    let member =
                        |m: &String| pb::p4_enum_type_spec::Member { name: m.clone(), ..Default::default() };
                    let members = members.iter().map(member).collect();
                    let spec = pb::P4EnumTypeSpec { members, ..Default::default() };
                    self.info.enums.insert(name.clone(), spec);
                }
                TypeSpec::Enum(named(name))
            }
            DataTy::SerEnum(name) => {
                self.ser_enum(name);
                TypeSpec::SerializableEnum(named(name))
            }
            DataTy::NewType(name) => {
                self.new_type(name);
                TypeSpec::NewType(named(name))
            }
            DataTy::Struct(name) => {
                if let Some(s) = self.program.data_structs.iter().find(|s| s.name == *name) {
                    let member = |(name, ty): &(String, DataTy)| pb::p4_struct_type_spec::Member {
                        name: name.clone(),
                        type_spec: Some(self.data(ty)),
                    };
                    let members = s.fields.iter().map(member).collect();
                    let spec = pb::P4StructTypeSpec { members, ..Default::default() };
                    self.info.structs.insert(name.clone(), spec);
                }
                TypeSpec::Struct(named(name))
            }
            DataTy::Header(name) => {
                if let Some(s) = self.program.data_structs.iter().find(|s| s.name == *name) {
                    let member = |(name, ty): &(String, DataTy)| pb::p4_header_type_spec::Member {
                        name: name.clone(),
                        type_spec: Some(bits(self.scalar(ty))),
                    };
                    let members = s.fields.iter().map(member).collect();
                    let spec = pb::P4HeaderTypeSpec { members, ..Default::default() };
                    self.info.headers.insert(name.clone(), spec);
                }
                TypeSpec::Header(named(name))
            }
            DataTy::Tuple(items) => {
                TypeSpec::Tuple(pb::P4TupleTypeSpec { members: items.iter().map(|t| self.data(t)).collect() })
            }
        };
        pb::P4DataTypeSpec { type_spec: Some(spec) }
    }

    /// The type in which a value is stored.
    fn scalar(&self, ty: &DataTy) -> Ty {
        match ty {
            DataTy::Scalar(ty) => *ty,
            DataTy::SerEnum(name) => {
                Ty::Bit(self.program.ser_enums.iter().find(|e| e.name == *name).map_or(0, |e| e.width))
            }
            DataTy::NewType(name) => {
                self.program.new_types.iter().find(|n| n.name == *name).map_or(Ty::Bit(0), |n| n.ty)
            }
            _ => Ty::Bit(0),
        }
    }

    fn ser_enum(&mut self, name: &str) {
        let Some(e) = self.program.ser_enums.iter().find(|e| e.name == name) else { return };
        let member =
            |(name, value): &(String, num_bigint::BigUint)| pb::p4_serializable_enum_type_spec::Member {
                name: name.clone(),
                value: padded(value, e.width),
                ..Default::default()
            };
        let spec = pb::P4SerializableEnumTypeSpec {
            underlying_type: Some(pb::P4BitTypeSpec { bitwidth: e.width as i32 }),
            members: e.members.iter().map(member).collect(),
            ..Default::default()
        };
        self.info.serializable_enums.insert(name.to_owned(), spec);
    }

    fn new_type(&mut self, name: &str) {
        use pb::p4_new_type_spec::Representation;
        use pb::p4_new_type_translation::SdnType;
        let Some(new) = self.program.new_types.iter().find(|n| n.name == name) else { return };
        let representation = match &new.translation {
            Some((uri, sdn)) => {
                let sdn_type = match sdn {
                    Some(w) => SdnType::SdnBitwidth(*w as i32),
                    None => SdnType::SdnString(pb::p4_new_type_translation::SdnString {}),
                };
                Representation::TranslatedType(pb::P4NewTypeTranslation {
                    uri: uri.clone(),
                    sdn_type: Some(sdn_type),
                })
            }
            None => Representation::OriginalType(self.data(&new.inner)),
        };
        let shown = super::annotations(&new.annotations, &[]);
        let spec = pb::P4NewTypeSpec {
            representation: Some(representation),
            annotations: shown.plain,
            structured_annotations: shown.structured,
            ..Default::default()
        };
        self.info.new_types.insert(name.to_owned(), spec);
    }
}

fn bits(ty: Ty) -> pb::P4BitstringLikeTypeSpec {
    use pb::p4_bitstring_like_type_spec::TypeSpec;
    let spec = match ty {
        Ty::Bool => TypeSpec::Bit(pb::P4BitTypeSpec { bitwidth: 1 }),
        Ty::Bit(w) => TypeSpec::Bit(pb::P4BitTypeSpec { bitwidth: w as i32 }),
        Ty::Int(w) => TypeSpec::Int(pb::P4IntTypeSpec { bitwidth: w as i32 }),
        Ty::Varbit(w) => TypeSpec::Varbit(pb::P4VarbitTypeSpec { max_bitwidth: w as i32 }),
    };
    pb::P4BitstringLikeTypeSpec { type_spec: Some(spec), ..Default::default() }
}

/// A value in as many bytes as its type takes.
pub(super) fn padded(value: &BigUint, width: u32) -> Vec<u8> {
    let bytes = value.to_bytes_be();
    let wanted = (width.div_ceil(8) as usize).max(1);
    let mut out = vec![0; wanted.saturating_sub(bytes.len())];
    out.extend(bytes);
    out
}
