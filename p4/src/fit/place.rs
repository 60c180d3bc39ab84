//! Puts logical tables into stages, as compilers do: stage by stage, among the tables that may come next the one with
//! the longest chain of tables behind it.
//!
//! In the first generation each table names the one that runs next. So all tables within a branch are placed before
//! any table behind the branch.

use super::chip::Chip;
use super::flow::{Edge, Reason};
use super::memory::{self, Need};
use super::tree::{Kind, LogicalTable, Step, Tree};
use crate::ir::{InstanceId, Program};
use std::collections::{BTreeMap, BTreeSet};

/// More stages than any chip has: a node that is not placed by then never will be.
const MOST_STAGES: usize = 100;
/// Times that tables which share something are moved to one stage.
const ROUNDS: usize = 40;

/// One half of a pipeline.
pub(super) struct Thread<'t> {
    pub tree: &'t Tree,
    pub edges: &'t [Edge],
}

/// Where everything is.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// First and last stage of each node, by thread.
    pub stages: Vec<Vec<Option<(usize, usize)>>>,
    /// Resources used in each stage.
    pub used: Vec<Need>,
    /// Nodes that no stage has room for, by thread, and the scarce resource.
    pub misfits: Vec<(usize, usize, &'static str)>,
}

struct Item<'t> {
    thread: usize,
    number: usize,
    node: &'t LogicalTable,
    /// Stages that depend on it, one after the other.
    chain: usize,
    before: Vec<(usize, usize)>,
    group: usize,
    /// Nodes within its branches.
    inner: usize,
    entries: u64,
    objects: Vec<InstanceId>,
}

struct Group {
    parent: Option<usize>,
}

/// Places the nodes of the halves of a pipeline.
pub(super) fn place(program: &Program, chip: &Chip, threads: &[Thread<'_>]) -> Placement {
    let (items, groups) = items(program, threads);
    let shared = shared(&items);
    let mut least = vec![0; items.len()];
    let placed = |least: &[usize]| {
        let mut run = Run::new(program, chip, &items, &groups, least.to_vec());
        run.all();
        run
    };
    let mut run = placed(&least);
    let mut together = false;
    for _ in 0..ROUNDS {
        if run.done.iter().any(|done| !done) {
            break;
        }
        let mut moved = false;
        for set in &shared {
            let first = |item: &usize| run.at[*item].map(|(first, _)| first);
            let Some(latest) = set.iter().filter_map(first).max() else { continue };
            for item in set.iter().filter(|item| first(item).is_some_and(|first| first < latest)) {
                least[*item] = latest;
                moved = true;
            }
        }
        if !moved {
            together = true;
            break;
        }
        run = placed(&least);
    }
    if !together {
        // They depend on each other: each stage has its own.
        run = placed(&vec![0; items.len()]);
    }
    let mut placement = Placement {
        stages: threads.iter().map(|thread| vec![None; thread.tree.nodes.len()]).collect(),
        used: run.used.clone(),
        misfits: Vec::new(),
    };
    for (item, at) in items.iter().zip(&run.at) {
        placement.stages[item.thread][item.number] = *at;
    }
    placement.misfits =
        run.misfits.iter().map(|(item, what)| (items[*item].thread, items[*item].number, *what)).collect();
    placement
}

fn items<'t>(program: &Program, threads: &[Thread<'t>]) -> (Vec<Item<'t>>, Vec<Group>) {
    let (mut items, mut groups): (Vec<Item<'t>>, Vec<Group>) = (Vec::new(), Vec::new());
    for (at, thread) in threads.iter().enumerate() {
        let mut index = BTreeMap::new();
        groups.push(Group { parent: None });
        let root = groups.len() - 1;
        collect(program, thread.tree, &thread.tree.steps, at, root, &mut items, &mut groups, &mut index);
        let known = |edge: &&Edge| index.contains_key(&edge.from) && index.contains_key(&edge.to);
        let mut edges: Vec<(usize, usize, Reason)> = thread
            .edges
            .iter()
            .filter(known)
            .map(|edge| (index[&edge.from], index[&edge.to], edge.reason))
            .collect();
        for (from, to, reason) in &edges {
            items[*to].before.push((*from, reason.distance()));
            // A node within a branch may wait for a table before the branch: then the branch waits, too.
            if let Some((first, second)) = beside(&items, &groups, *from, *to) {
                items[second].before.push((first, 0));
            }
        }
        // Numbers follow the program, so all dependants of a node have larger ones.
        edges.sort_by_key(|(from, ..)| std::cmp::Reverse(items[*from].number));
        for (from, to, reason) in edges {
            items[from].chain = items[from].chain.max(items[to].chain + reason.distance());
        }
    }
    (items, groups)
}

#[allow(clippy::too_many_arguments)]
fn collect<'t>(
    program: &Program,
    tree: &'t Tree,
    steps: &[Step],
    thread: usize,
    group: usize,
    items: &mut Vec<Item<'t>>,
    groups: &mut Vec<Group>,
    index: &mut BTreeMap<usize, usize>,
) {
    for step in steps {
        let number = step.node();
        let node = &tree.nodes[number];
        let item = items.len();
        index.insert(number, item);
        let entries = match node.kind {
            Kind::Table(id) => {
                let table = &program.tables[id.0 as usize];
                if table.entries_const { (table.entries.len() as u64).max(1) } else { table.size }
            }
            _ => 0,
        };
        let objects: BTreeSet<InstanceId> =
            node.ops().filter_map(|op| op.object).filter(|object| !is_direct(program, *object)).collect();
        let mut objects: Vec<InstanceId> = objects.into_iter().collect();
        if let Kind::Table(id) = node.kind {
            objects.extend(program.tables[id.0 as usize].implementation);
        }
        items.push(Item {
            thread,
            number,
            node,
            chain: 0,
            before: Vec::new(),
            group,
            inner: 0,
            entries,
            objects,
        });
        for arm in step.arms().iter().filter(|arm| !arm.is_empty()) {
            groups.push(Group { parent: Some(item) });
            collect(program, tree, arm, thread, groups.len() - 1, items, groups, index);
        }
        items[item].inner = items.len() - item - 1;
    }
}

/// The item that is or has the one within, and the item that is or has the other, in the list that has both; `None` if
/// these are the two themselves, or one is within the other.
fn beside(items: &[Item<'_>], groups: &[Group], from: usize, to: usize) -> Option<(usize, usize)> {
    let way = |item: usize| {
        let mut way = vec![item];
        while let Some(parent) = way.last().and_then(|last| groups[items[*last].group].parent) {
            way.push(parent);
        }
        way.reverse();
        way
    };
    let (first, second) = (way(from), way(to));
    let pair = first.into_iter().zip(second).find(|(a, b)| a != b)?;
    (items[pair.0].group == items[pair.1].group && pair != (from, to)).then_some(pair)
}

fn is_direct(program: &Program, object: InstanceId) -> bool {
    use crate::ir::InstanceKind::{DirectCounter, DirectMeter, DirectRegister, DirectSmoother};
    let kind = &program.instances[object.0 as usize].kind;
    matches!(kind, DirectCounter { .. } | DirectMeter { .. } | DirectRegister { .. } | DirectSmoother { .. })
}

/// Items that must be in one stage, because they use one object or are one table.
fn shared(items: &[Item<'_>]) -> Vec<Vec<usize>> {
    let mut objects: BTreeMap<InstanceId, Vec<usize>> = BTreeMap::new();
    let mut tables: BTreeMap<(usize, u32), Vec<usize>> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        item.objects.iter().for_each(|object| objects.entry(*object).or_default().push(at));
        if let Kind::Table(id) = item.node.kind {
            tables.entry((item.thread, id.0)).or_default().push(at);
        }
    }
    objects.into_values().chain(tables.into_values()).filter(|set| set.len() > 1).collect()
}

/// A placement being made.
struct Run<'r, 't> {
    program: &'r Program,
    chip: &'r Chip,
    items: &'r [Item<'t>],
    groups: &'r [Group],
    /// The earliest stage of each item.
    least: Vec<usize>,
    at: Vec<Option<(usize, usize)>>,
    /// Entries that are still to place.
    left: Vec<u64>,
    done: Vec<bool>,
    /// Nodes within branches that are not placed.
    inner: Vec<usize>,
    /// Items of each group whose branches are not placed whole.
    open: Vec<usize>,
    used: Vec<Need>,
    /// Objects and tables that have their place.
    objects: BTreeSet<InstanceId>,
    tables: BTreeSet<(usize, u32)>,
    misfits: Vec<(usize, &'static str)>,
}

impl<'r, 't> Run<'r, 't> {
    fn new(
        program: &'r Program,
        chip: &'r Chip,
        items: &'r [Item<'t>],
        groups: &'r [Group],
        least: Vec<usize>,
    ) -> Run<'r, 't> {
        Run {
            program,
            chip,
            items,
            groups,
            least,
            at: vec![None; items.len()],
            left: items.iter().map(|item| item.entries).collect(),
            done: vec![false; items.len()],
            inner: items.iter().map(|item| item.inner).collect(),
            open: vec![0; groups.len()],
            used: Vec::new(),
            objects: BTreeSet::new(),
            tables: BTreeSet::new(),
            misfits: Vec::new(),
        }
    }

    fn all(&mut self) {
        while self.done.iter().any(|done| !done) && self.used.len() < MOST_STAGES {
            self.used.push(Need::default());
            let stage = self.used.len() - 1;
            let mut tried: BTreeSet<usize> = BTreeSet::new();
            let mut placed = false;
            while let Some(item) = self.best(stage, &tried) {
                tried.insert(item);
                placed |= self.put(item, stage);
            }
            if !placed && !tried.is_empty() && self.used[stage] == Need::default() {
                // Not even an empty stage has room.
                for item in tried {
                    let what = self.need(item, self.left[item]).excess().unwrap_or("tables");
                    self.misfits.push((item, what));
                    self.finish(item, stage);
                }
            }
        }
    }

    /// The next item to try in a stage.
    fn best(&self, stage: usize, tried: &BTreeSet<usize>) -> Option<usize> {
        let ready = |item: &usize| !self.done[*item] && !tried.contains(item) && self.may(*item, stage);
        let key = |item: &usize| {
            let it = &self.items[*item];
            (it.chain, it.inner == 0, std::cmp::Reverse(*item))
        };
        (0..self.items.len()).filter(ready).max_by_key(key)
    }

    /// Whether an item may be in this stage, as far as other items are concerned.
    fn may(&self, item: usize, stage: usize) -> bool {
        let it = &self.items[item];
        let group = &self.groups[it.group];
        let entered = group.parent.is_none_or(|parent| self.done[parent]);
        let free = self.chip.long_branches || self.open[it.group] == 0;
        let after = |(before, distance): &(usize, usize)| {
            self.done[*before] && self.at[*before].is_some_and(|(_, last)| last + distance <= stage)
        };
        entered && free && self.least[item] <= stage && it.before.iter().all(after)
    }

    /// Resources that an item takes with this many entries.
    fn need(&self, item: usize, entries: u64) -> Need {
        let it = &self.items[item];
        if let Kind::Table(id) = it.node.kind
            && self.tables.contains(&(it.thread, id.0))
        {
            return Need::default();
        }
        let mut need = memory::need(self.program, it.node, entries);
        for object in it.objects.iter().filter(|object| !self.objects.contains(object)) {
            need = need.and(memory::object(self.program, *object, None));
        }
        need
    }

    /// Puts as much of an item into a stage as there is room for.
    fn put(&mut self, item: usize, stage: usize) -> bool {
        let used = self.used[stage];
        let whole = self.need(item, self.left[item]);
        if used.and(whole).fits() {
            self.used[stage] = used.and(whole);
            self.finish(item, stage);
            return true;
        }
        // The largest part that fits.
        let (mut fits, mut too_many) = (0, self.left[item]);
        while too_many - fits > 256 {
            let middle = fits.midpoint(too_many);
            match used.and(self.need(item, middle)).fits() {
                true => fits = middle,
                false => too_many = middle,
            }
        }
        if fits < 512 {
            return false;
        }
        self.used[stage] = used.and(self.need(item, fits));
        self.left[item] -= fits;
        self.objects.extend(&self.items[item].objects);
        let first = self.at[item].map_or(stage, |(first, _)| first);
        self.at[item] = Some((first, stage));
        true
    }

    fn finish(&mut self, item: usize, stage: usize) {
        let it = &self.items[item];
        self.done[item] = true;
        let first = self.at[item].map_or(stage, |(first, _)| first);
        self.at[item] = Some((first, stage));
        self.objects.extend(&it.objects);
        if let Kind::Table(id) = it.node.kind {
            self.tables.insert((it.thread, id.0));
        }
        if self.inner[item] > 0 {
            self.open[it.group] += 1;
        }
        let mut parent = self.groups[it.group].parent;
        while let Some(outer) = parent {
            self.inner[outer] -= 1;
            if self.inner[outer] == 0 {
                self.open[self.items[outer].group] -= 1;
            }
            parent = self.groups[self.items[outer].group].parent;
        }
    }
}
