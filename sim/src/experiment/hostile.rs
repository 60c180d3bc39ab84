//! `[[hostile]]`: hosts that break the rules.

use super::check::Check;
use super::{Arrivals, Experiment, Spec};
use p4rack_fabric::hostile::{Attack, Config};
use serde::{Deserialize, Serialize};

/// The attack `none`: the host behaves. The others' results are the baseline for all other attacks.
pub const NO_ATTACK: &str = "none";

/// `[[hostile]]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostileSpec {
    /// Name of the host.
    pub host: String,
    /// Name of the attack that it runs instead of its traffic, or `none`.
    pub attack: String,
    /// The host at which attacks on one host aim.
    #[serde(default = "first")]
    pub victim: String,
}

fn first() -> String {
    "h1".into()
}

impl Check<'_> {
    pub(super) fn hostile(&mut self, spec: &Spec) {
        for (nth, one) in spec.hostile.iter().enumerate() {
            self.known_host(spec, "hostile", nth, "host", &one.host);
            self.known_host(spec, "hostile", nth, "victim", &one.victim);
            if one.host == one.victim {
                self.problem("hostile", nth, "victim", "is the host itself; name another");
            }
            if one.attack != NO_ATTACK
                && let Err(error) = one.attack.parse::<Attack>()
            {
                self.problem("hostile", nth, "attack", format!("{error}, or {NO_ATTACK}"));
            }
            if spec.traffic.iter().any(|traffic| traffic.arrivals == Arrivals::Rounds) {
                self.problem("hostile", nth, "host", "never ends its part of a round; use other arrivals");
            }
        }
    }
}

impl Experiment {
    /// Whether a host is named in `[[hostile]]`.
    pub(crate) fn is_watched(&self, host: usize) -> bool {
        self.spec.hostile.iter().any(|one| self.host(&one.host) == Some(host))
    }

    /// The attack that a host runs instead of its traffic.
    pub(crate) fn hostile(&self, host: usize) -> Option<Config> {
        let one = self.spec.hostile.iter().find(|one| self.host(&one.host) == Some(host))?;
        let attack = one.attack.parse().ok()?;
        let victim = self.host(&one.victim)?;
        let hosts = &self.rack.hosts;
        Some(self.pl2.hostile(&self.rack, self.scheme, (&hosts[host], attack, &hosts[victim])))
    }
}
