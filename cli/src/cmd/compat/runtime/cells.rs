//! Counters, meters and registers.

use super::handles::named;
use super::refusals::{Of, refused};
use super::words::{at_least, exactly, find, number};
use super::{Call, Done, Failure, mistake};
use p4rack_ctrl::items::{CounterItem, Counts, Item, MeterItem, Rates, RegisterItem};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::errors::unpack;
use p4rack_p4rt::p4::config::v1::Preamble;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::{CounterData, DirectCounterEntry, DirectMeterEntry, MeterConfig, TableEntry};
use p4rack_p4rt::schema::name_of;

/// BMv2's rates are per microsecond.
const PER_S: f64 = 1e6;

/// A counter or meter: an array, or one cell for each entry of a table.
enum Cells {
    Array(String),
    /// Name of the table.
    Direct(String),
}

/// `RATE:BURST` twice: committed, then peak.
fn rates(words: &[&str]) -> Done<Rates> {
    let wrong = |word: &str| Failure(format!("Error: Error while parsing rates: `{word}` is not RATE:BURST"));
    let pair = |word: &&str| {
        let (per_us, burst) = word.split_once(':').ok_or_else(|| wrong(word))?;
        let per_us: f64 = per_us
            .parse()
            .ok()
            .filter(|rate: &f64| rate.is_finite() && *rate >= 0.0)
            .ok_or_else(|| wrong(word))?;
        Ok(((per_us * PER_S).round() as i64, burst.parse::<i64>().map_err(|_| wrong(word))?))
    };
    match words.iter().map(pair).collect::<Done<Vec<_>>>()?[..] {
        [(cir, cburst), (pir, pburst)] => Ok(Rates { cir, cburst, pir, pburst, unit: None }),
        ref others => mistake(format!("Invalid number of rates, expected 2 but got {}", others.len())),
    }
}

impl Call<'_> {
    fn counter(&self, name: &str) -> Done<Cells> {
        let info = self.schema.info();
        let arrays = info.counters.iter().map(|one| (one.preamble.as_ref(), None));
        let direct =
            info.direct_counters.iter().map(|one| (one.preamble.as_ref(), Some(one.direct_table_id)));
        self.cells(Of::Counter.kind(), name, arrays.chain(direct))
    }

    fn meter(&self, name: &str) -> Done<Cells> {
        let info = self.schema.info();
        let arrays = info.meters.iter().map(|one| (one.preamble.as_ref(), None));
        let direct = info.direct_meters.iter().map(|one| (one.preamble.as_ref(), Some(one.direct_table_id)));
        self.cells(Of::Meter.kind(), name, arrays.chain(direct))
    }

    /// The one with this name among arrays, and among objects of tables.
    fn cells<'a>(
        &self,
        kind: &str,
        name: &str,
        all: impl Iterator<Item = (Option<&'a Preamble>, Option<u32>)>,
    ) -> Done<Cells> {
        let all: Vec<_> = all.collect();
        let (preamble, table) = find(kind, name, &all, |one| one.0)?;
        let Some(id) = table else { return Ok(Cells::Array(name_of(*preamble).to_owned())) };
        let table = self.schema.table_by_id(*id).map_err(|error| Failure(format!("Error: {error}")))?;
        Ok(Cells::Direct(name_of(table.preamble.as_ref()).to_owned()))
    }

    fn register(&self, name: &str) -> Done<String> {
        let registers = &self.schema.info().registers;
        let found = find(Of::Register.kind(), name, registers, |one| one.preamble.as_ref())?;
        Ok(name_of(found.preamble.as_ref()).to_owned())
    }

    pub(super) async fn cell_command(&mut self, name: &str, args: &[&str]) -> Done {
        match name {
            "counter_read" => self.counter_read(args).await,
            "counter_write" => self.counter_write(args).await,
            "counter_reset" => self.counter_reset(args).await,
            "meter_set_rates" => {
                let ([meter, index], rest) = at_least::<2>(args)?;
                let (cells, rates, index) =
                    (self.meter(meter)?, rates(rest)?, number::<u32>(index, "index")?);
                match cells {
                    Cells::Array(meter) => self.set_meter(meter, Some(index.into()), rates).await,
                    Cells::Direct(table) => self.set_direct_meter(&table, index, rates).await,
                }
            }
            "meter_array_set_rates" => {
                let ([meter], rest) = at_least::<1>(args)?;
                match self.meter(meter)? {
                    Cells::Array(meter) => self.set_meter(meter, None, rates(rest)?).await,
                    Cells::Direct(table) => self.set_direct_meters(&table, rates(rest)?).await,
                }
            }
            "meter_get_rates" => self.meter_get_rates(args).await,
            "register_read" => self.register_read(args).await,
            "register_write" => {
                let [register, index, value] = exactly::<3>(args)?;
                let (register, index) = (self.register(register)?, number::<u32>(index, "index")?);
                let done = self.set_register(register, Some(index.into()), value).await;
                done.map_err(|error| match error.0.strip_prefix("Error: ") {
                    Some(why) => Failure(format!("Error: Bad format for value, must be an integer: {why}")),
                    None => error,
                })
            }
            "register_reset" => {
                let [register] = exactly::<1>(args)?;
                let register = self.register(register)?;
                // `false` is 0, too.
                self.set_register(register, None, "false").await
            }
            _ => self.unknown(name),
        }
    }

    /// An item as a message.
    fn kind(&self, item: &Item) -> Done<EntityKind> {
        let entity = item.entity(&self.schema)?;
        entity.entity.ok_or_else(|| Failure("Error: the message is empty".to_owned()))
    }

    async fn put(&mut self, item: Item, what: Of) -> Done {
        let kind = self.kind(&item)?;
        self.write(Type::Modify, kind).await.map_err(refused(what))
    }

    async fn ask(&mut self, item: Item, what: Of) -> Done<Vec<Item>> {
        let kind = self.kind(&item)?;
        let found = self.read(kind).await.map_err(refused_read(what))?;
        let schema = self.schema.clone();
        let item = |kind| Item::of(&schema, &p4rack_p4rt::p4::v1::Entity { entity: Some(kind) });
        Ok(found.into_iter().map(item).collect::<Result<_, _>>()?)
    }

    async fn counter_read(&mut self, args: &[&str]) -> Done {
        let [name, index] = exactly::<2>(args)?;
        let index: u32 = number(index, "index")?;
        let counts = match self.counter(name)? {
            Cells::Array(counter) => {
                let asked = CounterItem { counter, index: Some(index.into()), ..Default::default() };
                let found = self.ask(Item::Counter(asked), Of::Counter).await?;
                found.into_iter().find_map(|item| match item {
                    Item::Counter(item) => item.counts,
                    _ => None,
                })
            }
            Cells::Direct(table) => {
                self.say(format!("this is the direct counter for table {table}"));
                let table = self.table(&table)?;
                let entry = self.entry(&table, index).await?;
                let asked = DirectCounterEntry { table_entry: Some(named(&entry)), data: None };
                let found = self
                    .read(EntityKind::DirectCounterEntry(asked))
                    .await
                    .map_err(refused_read(Of::Counter))?;
                found.into_iter().find_map(|kind| match kind {
                    EntityKind::DirectCounterEntry(entry) => entry.data.as_ref().map(Counts::from),
                    _ => None,
                })
            }
        };
        let Some(Counts { packets, bytes }) = counts else {
            return mistake(format!("the switch has sent no counts of {name}[{index}]"));
        };
        self.say(format!("{name}[{index}]= ({bytes} bytes, {packets} packets)"));
        Ok(())
    }

    async fn counter_write(&mut self, args: &[&str]) -> Done {
        let [name, index, packets, bytes] = exactly::<4>(args)?;
        let (index, packets, bytes): (u32, i64, i64) =
            (number(index, "index")?, number(packets, "packets")?, number(bytes, "bytes")?);
        let counts = Counts { packets, bytes };
        match self.counter(name)? {
            Cells::Array(counter) => {
                let cell =
                    CounterItem { counter, index: Some(index.into()), counts: Some(counts), entry: None };
                self.put(Item::Counter(cell), Of::Counter).await?;
            }
            Cells::Direct(table) => {
                self.say(format!("writing to direct counter for table {table}"));
                let table = self.table(&table)?;
                let entry = self.entry(&table, index).await?;
                let data = Some(CounterData::from(&counts));
                let cell = DirectCounterEntry { table_entry: Some(named(&entry)), data };
                self.write(Type::Modify, EntityKind::DirectCounterEntry(cell))
                    .await
                    .map_err(refused(Of::Counter))?;
            }
        }
        self.say(format!("{name}[{index}] has been updated"));
        Ok(())
    }

    async fn counter_reset(&mut self, args: &[&str]) -> Done {
        let [name] = exactly::<1>(args)?;
        match self.counter(name)? {
            Cells::Array(counter) => {
                let cells = CounterItem { counter, counts: Some(Counts::default()), ..Default::default() };
                self.put(Item::Counter(cells), Of::Counter).await
            }
            Cells::Direct(table) => {
                self.say(format!("this is the direct counter for table {table}"));
                let table = self.table(&table)?;
                let zero = |entry: &TableEntry| DirectCounterEntry {
                    table_entry: Some(named(entry)),
                    data: Some(CounterData::default()),
                };
                let entries = self.all_entries(&table).await?;
                let cells: Vec<_> = entries
                    .iter()
                    .map(|entry| (Type::Modify, EntityKind::DirectCounterEntry(zero(entry))))
                    .collect();
                self.write_all(cells).await.map_err(refused(Of::Counter))
            }
        }
    }

    async fn set_meter(&mut self, meter: String, index: Option<i64>, rates: Rates) -> Done {
        let cell = MeterItem { meter, index, rates: Some(rates), ..Default::default() };
        self.put(Item::Meter(cell), Of::Meter).await
    }

    async fn set_direct_meter(&mut self, table: &str, handle: u32, rates: Rates) -> Done {
        let table = self.table(table)?;
        let entry = self.entry(&table, handle).await?;
        let cell = direct_meter(&entry, rates);
        self.write(Type::Modify, cell).await.map_err(refused(Of::Meter))
    }

    /// Sets the rates of all present entries; later ones have their own.
    async fn set_direct_meters(&mut self, table: &str, rates: Rates) -> Done {
        let table = self.table(table)?;
        let entries = self.all_entries(&table).await?;
        let cells: Vec<_> = entries.iter().map(|entry| (Type::Modify, direct_meter(entry, rates))).collect();
        self.write_all(cells).await.map_err(refused(Of::Meter))
    }

    async fn meter_get_rates(&mut self, args: &[&str]) -> Done {
        let [name, index] = exactly::<2>(args)?;
        let index: u32 = number(index, "index")?;
        let rates = match self.meter(name)? {
            Cells::Array(meter) => {
                let asked = MeterItem { meter, index: Some(index.into()), ..Default::default() };
                let found = self.ask(Item::Meter(asked), Of::Meter).await?;
                found.into_iter().find_map(|item| match item {
                    Item::Meter(item) => {
                        item.rates.map(|rates| [(rates.cir, rates.cburst), (rates.pir, rates.pburst)])
                    }
                    _ => None,
                })
            }
            Cells::Direct(table) => {
                let table = self.table(&table)?;
                let entry = self.entry(&table, index).await?;
                let rates = self.direct_rates(&entry).await?;
                rates.map(|rates| [(rates.cir, rates.cburst), (rates.pir, rates.pburst)])
            }
        };
        let Some(rates) = rates else {
            self.say("WARNING: expected 2 rates but only received 0");
            return Ok(());
        };
        for (n, (rate, burst)) in rates.into_iter().enumerate() {
            self.say(format!("{n}: info rate = {:?}, burst size = {burst}", rate as f64 / PER_S));
        }
        Ok(())
    }

    /// Rates of an entry's meter, if they were set.
    pub(super) async fn direct_rates(&mut self, entry: &TableEntry) -> Done<Option<MeterConfig>> {
        let asked = DirectMeterEntry { table_entry: Some(named(entry)), ..Default::default() };
        let found = self.read(EntityKind::DirectMeterEntry(asked)).await.map_err(refused_read(Of::Meter))?;
        Ok(found.into_iter().find_map(|kind| match kind {
            EntityKind::DirectMeterEntry(entry) => entry.config,
            _ => None,
        }))
    }

    async fn register_read(&mut self, args: &[&str]) -> Done {
        let ([name], rest) = at_least::<1>(args)?;
        let index = match rest {
            [] => None,
            _ => Some(number::<u32>(exactly::<2>(args)?[1], "index")?),
        };
        let register = self.register(name)?;
        let asked = RegisterItem { register, index: index.map(i64::from), value: None };
        let found = self.ask(Item::Register(asked), Of::Register).await?;
        let values = found.into_iter().filter_map(|item| match item {
            Item::Register(item) => item.value,
            _ => None,
        });
        let values: Vec<String> = values.collect();
        if values.is_empty() {
            return mistake(format!("the switch has sent no values of {name}"));
        }
        match index {
            Some(index) => self.say(format!("{name}[{index}]= {}", values.join(", "))),
            None => self.say(format!("{name}= {}", values.join(", "))),
        }
        Ok(())
    }

    async fn set_register(&mut self, register: String, index: Option<i64>, value: &str) -> Done {
        self.put(
            Item::Register(RegisterItem { register, index, value: Some(value.to_owned()) }),
            Of::Register,
        )
        .await
    }
}

/// The meter of an entry.
fn direct_meter(entry: &TableEntry, Rates { cir, cburst, pir, pburst, .. }: Rates) -> EntityKind {
    let config = Some(MeterConfig { cir, cburst, pir, pburst, ..Default::default() });
    EntityKind::DirectMeterEntry(DirectMeterEntry {
        table_entry: Some(named(entry)),
        config,
        counter_data: None,
    })
}

/// As for writes: what the switch refuses to read.
fn refused_read(of: Of) -> impl FnOnce(p4rack_ctrl::CtrlError) -> Failure {
    move |error| match &error {
        p4rack_ctrl::CtrlError::Refused { status, .. } => {
            let first = unpack(status.details()).and_then(|all| all.into_iter().find_map(Result::err));
            let why = first.map_or_else(|| status.message().to_owned(), |error| error.message);
            of.refusal("INVALID_INDEX", why)
        }
        _ => Failure::from(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_per_microsecond() {
        let Rates { cir, cburst, pir, pburst, .. } = rates(&["0.0001:1", "2:500"]).unwrap();
        assert_eq!((cir, cburst, pir, pburst), (100, 1, 2_000_000, 500));
        for wrong in [&["1:1"][..], &["1", "2:2"], &["nan:1", "1:1"], &["-1:1", "1:1"], &["1:x", "1:1"]] {
            assert!(rates(wrong).is_err(), "{wrong:?}");
        }
    }
}
