//! Memory that serialised requests will take when decoded. A few bytes may become a large message, so fields are counted
//! before decoding, and all of their memory is charged.

use crate::p4runtime::{Charge, SMALL_UPDATES, UPDATE_BYTES};
use p4rack_p4rt::bfrt_proto::Entity;
use p4rack_p4rt::google::rpc::Code;
use prost::Message;
use prost::bytes::{Buf, Bytes};
use prost::encoding::{self, DecodeContext, WireType};
use tonic::Status;

/// Memory of an update or entity beside its bytes, with [`PARTS`] parts: it exists as BFRuntime's message, as
/// P4Runtime's, and as work.
const BYTES: usize = 3 * UPDATE_BYTES;
/// Parts of an update that are charged with it.
const PARTS: usize = 16;
/// Memory of each further part.
const PART_BYTES: usize = 128;
/// `updates` in a `WriteRequest`.
const UPDATES: u32 = 3;
/// `entities` in a `ReadRequest`.
const ENTITIES: u32 = 3;
/// Entities that are decoded at a time.
pub const CHUNK: usize = 64;
/// Bytes of them.
pub const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of an entity that is decoded alone.
pub const LARGE_ENTITY: usize = 1 << 10;
/// Messages in messages; decoding refuses more.
const DEPTH: usize = 100;

/// A message whose fields may be messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Update,
    Entity,
    Entry,
    Handle,
    Attribute,
    Masks,
    Key,
    Data,
    Field,
    Groups,
    Group,
    Texts,
    /// Numbers of a byte each, which become four.
    Numbers,
    Config,
    Profile,
    Leaf,
}

impl Shape {
    /// The message in a field.
    fn of(self, field: u32) -> Shape {
        match (self, field) {
            (Shape::Update, 2) => Shape::Entity,
            (Shape::Entity, 1) => Shape::Entry,
            (Shape::Entity, 3) => Shape::Attribute,
            (Shape::Entity, 6) => Shape::Handle,
            (Shape::Attribute, 4) => Shape::Masks,
            (Shape::Entry | Shape::Handle, 2) => Shape::Key,
            (Shape::Entry, 3) => Shape::Data,
            (Shape::Data, 2) | (Shape::Group, 1) => Shape::Field,
            (Shape::Field, 5 | 6) | (Shape::Profile, 4) => Shape::Numbers,
            (Shape::Field, 7) => Shape::Groups,
            (Shape::Groups, 1) => Shape::Group,
            (Shape::Field, 9) => Shape::Texts,
            (Shape::Config, 3) => Shape::Profile,
            _ => Shape::Leaf,
        }
    }

    /// Parts of a message, as far as it is well-formed.
    fn parts(self, mut message: &[u8], depth: usize) -> usize {
        if self == Shape::Leaf || depth == 0 {
            return 0;
        }
        let mut parts = if self == Shape::Numbers { message.len() / 16 } else { 0 };
        while let Some((number, bytes)) = field(&mut message) {
            parts += 1 + bytes.map_or(0, |bytes| self.of(number).parts(bytes, depth - 1));
        }
        parts
    }
}

/// The next field: its number, and its bytes if it has some. `None` at the end, or where it is malformed.
fn field<'a>(message: &mut &'a [u8]) -> Option<(u32, Option<&'a [u8]>)> {
    let (number, kind) = encoding::decode_key(message).ok()?;
    if kind == WireType::LengthDelimited {
        let length = usize::try_from(encoding::decode_varint(message).ok()?).ok()?;
        let (bytes, rest) = message.split_at_checked(length)?;
        *message = rest;
        return Some((number, Some(bytes)));
    }
    encoding::skip_field(kind, number, message, DecodeContext::default()).ok()?;
    Some((number, None))
}

/// The updates of a `WriteRequest`, serialised; `None` where it is malformed.
pub fn updates(request: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = request;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            match field(&mut rest) {
                Some((UPDATES, Some(bytes))) => return Some(Some(bytes)),
                Some(_) => {}
                None => {
                    rest = &[];
                    return Some(None);
                }
            }
        }
        None
    })
}

/// The entities of a `ReadRequest`, decoded one by one, each with the length of its bytes.
#[derive(Debug)]
pub struct Entities(Bytes);

impl Entities {
    /// Those of a request.
    pub fn of(request: Bytes) -> Entities {
        Entities(request)
    }
}

impl Iterator for Entities {
    type Item = Result<(Entity, usize), Status>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut rest = &self.0[..];
            let (number, bytes) = field(&mut rest)?;
            let end = self.0.len() - rest.len();
            let entity = bytes.filter(|_| number == ENTITIES).map(|bytes| {
                let decoded = Entity::decode(bytes).map_err(|error| Status::internal(error.to_string()));
                decoded.map(|entity| (entity, bytes.len()))
            });
            self.0.advance(end);
            if entity.is_some() {
                return entity;
            }
        }
    }
}

/// A request before it is decoded.
#[derive(Debug)]
pub struct Weighed<M> {
    /// The request without its updates, entities or programs.
    pub head: M,
    /// Number of these.
    pub count: usize,
    parts: usize,
    /// Parts of the update or entity with most.
    most: usize,
}

impl<M: Message + Default> Weighed<M> {
    fn new(request: &[u8], repeated: u32, shape: Shape) -> Result<Weighed<M>, Status> {
        let (mut head, mut count, mut parts, mut most, mut rest) = (Vec::new(), 0, 0, 0, request);
        while !rest.is_empty() {
            let from = rest;
            let malformed = || Status::internal("the request is malformed");
            match field(&mut rest).ok_or_else(malformed)? {
                (number, Some(bytes)) if number == repeated => {
                    count += 1;
                    let own = shape.parts(bytes, DEPTH);
                    parts += own;
                    most = most.max(own);
                }
                _ => head.extend_from_slice(&from[..from.len() - rest.len()]),
            }
        }
        let head = M::decode(&head[..]).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Weighed { head, count, parts, most })
    }

    /// A `WriteRequest`.
    pub fn write(request: &[u8]) -> Result<Weighed<M>, Status> {
        Weighed::new(request, UPDATES, Shape::Update)
    }

    /// A `ReadRequest`.
    pub fn read(request: &[u8]) -> Result<Weighed<M>, Status> {
        Weighed::new(request, ENTITIES, Shape::Entity)
    }

    /// A `SetForwardingPipelineConfigRequest`. Errors: it has parts that no program needs.
    pub fn programs(request: &[u8]) -> Result<Weighed<M>, Status> {
        const MOST: usize = 1 << 10;
        let weighed: Weighed<M> = Weighed::new(request, 6, Shape::Config)?;
        if weighed.count + weighed.parts > MOST {
            let message = "the request has more programs, profiles and pipes than any device";
            return Err(Status::new(tonic::Code::from(Code::InvalidArgument as i32), message));
        }
        Ok(weighed)
    }

    /// Charges the memory for decoding it.
    pub fn charge(&self, charge: &Charge) -> Result<(), Status> {
        Self::charge_for(self.count, self.parts, charge)
    }

    /// Charges the memory for decoding one chunk of entities at a time.
    pub fn charge_chunk(&self, charge: &Charge) -> Result<(), Status> {
        // A part has two bytes.
        let parts = self.parts.min(CHUNK * LARGE_ENTITY / 2).max(self.most);
        Self::charge_for(self.count.min(CHUNK), parts, charge)
    }

    fn charge_for(count: usize, parts: usize, charge: &Charge) -> Result<(), Status> {
        let few = PARTS * count.max(SMALL_UPDATES);
        let many = if count > SMALL_UPDATES { BYTES * count } else { 0 };
        match many + PART_BYTES * parts.saturating_sub(few) {
            0 => Ok(()),
            bytes => charge.add(bytes),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test that cannot go on should panic
mod tests {
    use super::*;
    use p4rack_p4rt::bfrt_proto::data_field::{self, IntArray};
    use p4rack_p4rt::bfrt_proto::*;

    fn update(fields: usize, numbers: usize) -> Update {
        let val = vec![1; numbers];
        let one = DataField { field_id: 1, value: Some(data_field::Value::IntArrVal(IntArray { val })) };
        let data = TableData { action_id: 1, fields: vec![one; fields] };
        let entry = TableEntry { table_id: 1, data: Some(data), ..Default::default() };
        Update { r#type: 1, entity: Some(Entity { entity: Some(entity::Entity::TableEntry(entry)) }) }
    }

    fn parts(updates: Vec<Update>) -> (usize, usize) {
        let request = WriteRequest { client_id: 5, updates, p4_name: "p".into(), ..Default::default() };
        let weighed = Weighed::<WriteRequest>::write(&request.encode_to_vec()).unwrap();
        assert_eq!((weighed.head.client_id, &*weighed.head.p4_name), (5, "p"));
        assert!(weighed.head.updates.is_empty());
        (weighed.count, weighed.parts)
    }

    #[test]
    fn every_part_of_a_message_counts() {
        assert_eq!(parts(vec![Update::default(); 3]), (3, 0));
        let (_, one) = parts(vec![update(1, 0)]);
        assert_eq!(parts(vec![update(11, 0)]), (1, one + 10 * 3));
        assert_eq!(parts(vec![update(1, 1600)]), (1, one + 1600 / 16 + 1));
        assert!(Weighed::<WriteRequest>::write(&[0x1a, 9, 0]).is_err());
        let far = SetForwardingPipelineConfigRequest {
            config: vec![Default::default(); 2000],
            ..Default::default()
        };
        assert!(Weighed::<SetForwardingPipelineConfigRequest>::programs(&far.encode_to_vec()).is_err());
    }
}
