//! Modules that are checked and translated.

use super::host::{Host, MODULE, NAMES, linker};
use super::{CALL, Limits, MEMORY};
use wasmi::ValType;
use wasmi::{CompilationMode, Config, EnforcedLimits, Engine, ExternType, Instance, Linker, Module, Store};

/// First bytes of a module.
const MAGIC: &[u8] = b"\0asm";
/// Calls within calls, and bytes of values on the stack.
const DEPTH: usize = 512;
const STACK_BYTES: usize = 256 << 10;

/// Why a module is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It has too many bytes.
    #[error("the module has {found} bytes, and the board takes {max}: build it for size, and strip it")]
    TooLarge {
        /// Its bytes.
        found: usize,
        /// The limit.
        max: usize,
    },
    /// It isn't WebAssembly.
    #[error(
        "that is no WebAssembly module: it does not begin with \\0asm; text form has to be translated first (wat2wasm)"
    )]
    NotWasm,
    /// It is damaged, or uses unsupported features.
    #[error("the module is not valid: {0}")]
    Invalid(String),
    /// It imports something that the board doesn't have.
    #[error("the module imports `{module}.{name}`; it may import from `clio`: {}", NAMES.join(", "))]
    Import {
        /// Name of the import's module.
        module: String,
        /// Name of the import.
        name: String,
    },
    /// It lacks an export.
    #[error("the module has to export {0}")]
    Export(&'static str),
    /// It can't be instantiated: an import has another type, or it needs too much memory.
    #[error("the module can't be instantiated: {0}")]
    Instance(String),
}

/// A module that is checked and translated.
pub struct Program {
    engine: Engine,
    module: Module,
    linker: Linker<Host>,
    limits: Limits,
}

impl Program {
    /// Checks and translates a module. This is slow: do it outside of the board's thread.
    pub fn new(bytes: &[u8], limits: Limits) -> Result<Program, LoadError> {
        if bytes.len() > limits.module_bytes {
            return Err(LoadError::TooLarge { found: bytes.len(), max: limits.module_bytes });
        }
        if !bytes.starts_with(MAGIC) {
            return Err(LoadError::NotWasm);
        }
        let mut config = Config::default();
        config
            .consume_fuel(true)
            .allow_start_fn(false)
            .wasm_multi_memory(false)
            .wasm_custom_page_sizes(false)
            .ignore_custom_sections(true)
            .compilation_mode(CompilationMode::Eager)
            .enforced_limits(EnforcedLimits::strict())
            .set_max_recursion_depth(DEPTH)
            .set_max_stack_height(STACK_BYTES)
            .set_max_cached_stacks(1);
        let engine = Engine::new(&config);
        // First of all: the translator meets operators before they are validated, and panics at one behind a function's end.
        Module::validate(&engine, bytes).map_err(|error| LoadError::Invalid(error.to_string()))?;
        let module = Module::new(&engine, bytes).map_err(|error| LoadError::Invalid(error.to_string()))?;
        let is_known = |module: &str, name: &str| module == MODULE && NAMES.contains(&name);
        if let Some(import) = module.imports().find(|import| !is_known(import.module(), import.name())) {
            let (module, name) = (import.module().to_owned(), import.name().to_owned());
            return Err(LoadError::Import { module, name });
        }
        if !matches!(module.get_export(MEMORY), Some(ExternType::Memory(_))) {
            return Err(LoadError::Export("its memory as `memory`"));
        }
        let is_entry = |ty: ExternType| match ty {
            ExternType::Func(ty) => {
                (ty.params(), ty.results()) == (&[ValType::I32, ValType::I32], &[ValType::I32])
            }
            _ => false,
        };
        if !module.get_export(CALL).is_some_and(is_entry) {
            return Err(LoadError::Export("a function `call`: (function: i32, argument_bytes: i32) -> i32"));
        }
        let linker = linker(&engine).map_err(|error| LoadError::Instance(error.to_string()))?;
        let program = Program { engine, module, linker, limits };
        // Each call makes an instance. One made now finds wrong types of imports, places of data and sizes.
        let mut store = program.store(Host::new(&[], (0, 0), &limits));
        store.set_fuel(limits.fuel).map_err(|error| LoadError::Instance(error.to_string()))?;
        program.instance(&mut store).map_err(LoadError::Instance)?;
        Ok(program)
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn store(&self, host: Host) -> Store<Host> {
        let mut store = Store::new(&self.engine, host);
        store.limiter(Host::limiter);
        store
    }

    pub(super) fn instance(&self, store: &mut Store<Host>) -> Result<Instance, String> {
        self.linker.instantiate_and_start(store, &self.module).map_err(|error| error.to_string())
    }
}
