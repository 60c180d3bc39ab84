//! Help of `--scheme`: the schemes of the generator's registry.

use p4rack_codegen::Scheme;
use p4rack_codegen::rack::KvServer;
use p4rack_fabric::remote::Way;

/// Help of an option that takes a scheme; `default` describes the default.
pub(super) fn help(default: &str) -> String {
    format!("Scheme: {}, or protocols joined by + [default: {default}]", names())
}

/// Help of an option that takes the runs that `up` compares.
pub(super) fn help_of_runs(default: &str) -> String {
    let (ways, servers) = (Way::names(), KvServer::names());
    format!(
        "Scheme: {}, or protocols joined by +; for a log store {ways}; for another store also {servers}; may be repeated [default: \
         {default}]",
        names()
    )
}

fn names() -> String {
    Scheme::all().iter().map(Scheme::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use p4rack_codegen::scheme::PROTOCOLS;

    #[test]
    fn help_names_every_variant_of_every_protocol() {
        let help = super::help("as described");
        for variant in PROTOCOLS.iter().flat_map(|protocol| protocol.variants()) {
            assert!(help.contains(variant), "{variant} in {help}");
        }
        assert!(help.starts_with("Scheme: l2, ") && help.ends_with("[default: as described]"), "{help}");
        assert!(super::help_of_runs("x").contains("rdma-sync"));
    }
}
