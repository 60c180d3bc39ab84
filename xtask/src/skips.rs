//! Allowed skips of a test run, by name and with the reason. Any other skip fails the run.

/// Part of a skip's requirement, and the reason why machines without it may pass.
const ALLOWED: &[(&str, &str)] = &[
    ("takes any metadata for the packet_out header", "BMv2's nature: it does not check it"),
    ("simple_switch_grpc", "Debian does not package BMv2: it has to be built from its sources"),
    ("p4c's testdata", "it is a part of p4c's repository, and `p4 samples` checks the same programs"),
    ("a folder of BMv2 JSON", "it is a part of BMv2's repository"),
    ("p4c-bm2-ss", "Debian does not package BMv2's compiler: it has to be built from its sources"),
    ("a machine without BMv2", "the test is about what is said where it is missing"),
    ("bf_switchd", "Tofino's driver has to be built with its SDE"),
    ("tofino-model", "Tofino's model has to be built with its SDE"),
    ("the Tofino SDE", "it has to be built, and its model is not public"),
    ("slots of 32-bit times", "Tofino's nature: tests that wait for slots need longer ones"),
    ("cloudPhysicsIO", "its package lacks its repository's trace; others are compared"),
    ("EDM's traces", "data of another project, read in examples/paper/edm/traces or beside this one"),
    ("EDM's distributions", "data of another project, read where it lies beside this one"),
    ("github.com/rustsec", "a network may reach the package registries alone"),
    ("Python's own tests", "an installation of Python may come without them"),
    ("root, to start another user's process", "tests run without root, too"),
    ("a kernel that denies userfaultfd", "a machine may permit it to all users"),
    ("needs Rust ", "a machine may have a later Rust than the oldest one alone"),
    ("--io xdp", "the kernel gives AF_XDP to root alone, and not everywhere"),
    ("huge pages", "a system may have switched them off, or have no memory free for one"),
    ("--io ring", "the kernel may forbid the memory that it shares"),
];

/// Why a skip is allowed; `None` if it is not.
pub fn allowed(reason: &str) -> Option<&'static str> {
    ALLOWED.iter().find(|(needs, _)| reason.contains(needs)).map(|(_, why)| *why)
}
