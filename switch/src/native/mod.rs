//! A program's blocks as machine code.
//!
//! ```text
//!  ops ─ graph (basic blocks, who calls which action) ─ translate, packet ─→ cranelift ─→ a function an entry
//!                                                                                            │
//!                          calls: rare operations and table look-ups, shared with the interpreter
//! ```
//!
//! The interpreter ([`crate::exec`]) defines the meaning of each operation; tests run both and compare. The gain is the
//! dispatch: constants, widths and places of fields are in the instructions, values stay in processor registers within
//! a run of blocks. Rare operations are calls.

// Code that was generated at run time can only be entered through a cast, and accesses memory through raw
// pointers.
#![allow(unsafe_code)]

mod apply;
mod bounds;
mod call;
mod fixed;
mod graph;
mod known;
mod packet;
mod read;
mod registers;
mod translate;

use crate::code::ops::Vars;
use crate::code::plans::{Code, EntryId, MAX_ENTRIES};
use crate::exec::{Cx, Exit};
use crate::state::{RegisterState, State};
use crate::table::TableState;
use call::Runtime;
use cranelift_codegen::ir::{self, AbiParam, types};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module};
use graph::Graph;
use known::Ways;
use read::ReadWords;

/// Maximum operations of a program that is translated. Each takes some 10 µs.
const MAX_OPS: usize = 20_000;

/// A part of the pipeline. Takes the words of the variables, the interpreter's view of the packet, and the
/// data that calls need. Returns how it ended.
type Function = unsafe extern "C" fn(*mut u64, *mut Cx<'_>, *mut Runtime) -> Exit;

/// Maximum words of a program whose machine code clears them one by one: those that it reads, mostly a few. Otherwise all are
/// cleared before.
const MAX_CLEARED: usize = 1024;

/// Whether machine code itself clears the words that it needs, for a packet that carries no metadata.
fn clears(code: &Code) -> bool {
    code.words_to_clear.len() <= MAX_CLEARED
}

/// Input of the translation: the code, and the tables and registers that it uses.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub code: &'a Code,
    /// The tables, with the layout that they keep at run time.
    pub tables: &'a [TableState],
    /// Where the cells of each extern object are, if it is a register.
    pub registers: &'a [Option<RegisterState>],
}

/// Machine code of a program.
pub(crate) struct Native {
    /// One function per entry of the code. Indices of known entries need no bounds check.
    functions: [Function; MAX_ENTRIES],
    /// Whether the entry with which packets begin clears the variables itself, unless [`Cx::cleared`].
    pub clears: bool,
    /// Owns the memory. `None` only while being dropped.
    module: Option<JITModule>,
}

// SAFETY: after `compile` the module is not touched until it is dropped, and the code in its memory is read-only.
unsafe impl Send for Native {}
// SAFETY: as above; the functions themselves reach only their arguments.
unsafe impl Sync for Native {}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Native").finish_non_exhaustive()
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the functions are private to this value, which no longer runs any of them.
            unsafe { module.free_memory() };
        }
    }
}

impl Native {
    /// Translates a program. `None` if there is no code generator for this processor, or the program is too
    /// large.
    pub fn compile(source: Source<'_>) -> Option<Native> {
        let code = source.code;
        if code.ops.len() > MAX_OPS || cfg!(target_endian = "big") {
            return None;
        }
        let mut flags = settings::builder();
        for (name, value) in [("opt_level", "speed"), ("enable_verifier", "false"), ("is_pic", "false")] {
            flags.set(name, value).ok()?;
        }
        let count = code.entries.len();
        if count == 0 || count > MAX_ENTRIES {
            return None;
        }
        let isa = cranelift_native::builder().ok()?.finish(settings::Flags::new(flags)).ok()?;
        let names = cranelift_module::default_libcall_names();
        let mut module = JITModule::new(JITBuilder::with_isa(isa, names));
        let mut context = module.make_context();
        let mut scratch = FunctionBuilderContext::new();
        let entries = (0..).zip(&code.entries);
        let graphs: Vec<Graph> = entries.map(|(part, entry)| Graph::new(code, part, *entry)).collect();
        // The first translation only finds the blocks' successors, so that later ones know the facts where paths merge;
        // the second one, which words are ever read; the last one does not write the others.
        let (mut ways, mut read) = (ReadWords::new(code), ReadWords::new(code));
        let mut translate = |graph: &Graph,
                             ways: Option<&Ways>,
                             read: &mut ReadWords,
                             func: &mut ir::Function,
                             config: TargetFrontendConfig| {
            let pointer = AbiParam::new(config.pointer_type());
            func.signature.params.extend([pointer; 3]);
            func.signature.returns.push(AbiParam::new(types::I32));
            translate::translate(func, &mut scratch, source, (graph, ways), read, config);
        };
        let config = module.target_config();
        for graph in &graphs {
            translate(graph, None, &mut ways, &mut context.func, config);
            module.clear_context(&mut context);
        }
        let ways: Vec<Ways> = graphs.iter().map(|graph| ways.ways(graph.part)).collect();
        for (graph, ways) in graphs.iter().zip(&ways) {
            translate(graph, Some(ways), &mut read, &mut context.func, config);
            module.clear_context(&mut context);
        }
        read.complete();
        let mut ids = Vec::with_capacity(graphs.len());
        for (number, (graph, ways)) in graphs.iter().zip(&ways).enumerate() {
            translate(graph, Some(ways), &mut read, &mut context.func, config);
            let id = module
                .declare_function(&format!("entry {number}"), Linkage::Local, &context.func.signature)
                .ok()?;
            module.define_function(id, &mut context).ok()?;
            module.clear_context(&mut context);
            ids.push(id);
        }
        module.finalize_definitions().ok()?;
        let function = |id| {
            let address = module.get_finalized_function(id);
            // SAFETY: `translate` made a function of this type, for the C ABI of this machine.
            unsafe { std::mem::transmute::<*const u8, Function>(address) }
        };
        let made: Vec<Function> = ids.into_iter().map(function).collect();
        let functions = std::array::from_fn(|at| made.get(at).copied().unwrap_or(made[0]));
        Some(Native { functions, clears: clears(code), module: Some(module) })
    }

    /// Runs an entry of the program from which this code was generated.
    #[inline(always)]
    pub fn run(
        &self,
        code: &Code,
        state: &mut State,
        vars: &mut Vars,
        cx: &mut Cx<'_>,
        entry: EntryId,
    ) -> Exit {
        let words = vars.as_mut_ptr();
        let mut runtime = Runtime::new(code, state, vars, cx);
        // SAFETY: the code reads and writes the variables at 16-bit indices, which it has words for; the packet below
        // `cx.len` and 8 bytes of its padding; registers below the size that the program declares, with which
        // `state` was made; and output below the room given in `runtime`. Calls use `runtime`'s pointers, to which no
        // reference is alive during the run: `vars`, `cx` and `state` are not used here before it returns. It returns
        // nothing but the numbers of ends.
        let exit = unsafe { self.functions[entry](words, cx, &mut runtime) };
        runtime.finish(cx);
        exit
    }
}
