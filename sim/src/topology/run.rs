//! A run: the network from its beginning to its results.

use super::agent::Agent;
use super::counts::Counts;
use super::experiment::TopologyExperiment;
use super::host::{InFlow, OutFlow, Receiver, Sender};
use super::judge::{Balance, judge};
use super::network::Network;
use super::outcome::{
    FlowOutcome, HostCapture, LinkOutcome, OperationsOutcome, SentTraffic, SwitchNodeOutcome, TopologyOutcome,
};
use super::plan::{Flow, Planted};
use super::spec::SendKind;
use super::switch::{HOPS_MAX, SwitchNode};
use super::wires::Outlet;
use super::world::TopologyWorld;
use crate::crew::{Alone, Crew};
use crate::latency::Latency;
use crate::outcome::{compared, depth_quantile};
use p4rack_codegen::rack::End;
use p4rack_fabric::HostMachine as _;
use p4rack_switch::{PortStats, Stats};
use std::collections::BTreeMap;

/// A network that is ready to run.
#[derive(Debug)]
pub struct TopologyRun<'e> {
    experiment: &'e TopologyExperiment,
    network: &'e Network,
    world: TopologyWorld,
}

impl TopologyExperiment {
    /// Compiles the programs and builds the network for this many workers; `captured` are names of hosts whose links are captured.
    pub fn start(&self, workers: usize, captured: &[String]) -> Result<TopologyRun<'_>, String> {
        self.start_with(workers, captured, None)
    }

    pub(super) fn start_with(
        &self,
        workers: usize,
        captured: &[String],
        planted: Option<Planted>,
    ) -> Result<TopologyRun<'_>, String> {
        let network = self.network().ok_or("the topology has not been read")?;
        let host = |name: &String| {
            let known = || network.topology.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>();
            network
                .topology
                .host(name)
                .ok_or_else(|| format!("`{name}` is no host; there are {}", known().join(", ")))
        };
        let captured = captured.iter().map(host).collect::<Result<Vec<usize>, String>>()?;
        let world = super::build::build(self, network, workers, &captured, planted)?;
        Ok(TopologyRun { experiment: self, network, world })
    }

    /// Runs it on one thread.
    pub fn run(&self) -> Result<TopologyOutcome, String> {
        Ok(self.start(1, &[])?.finish(&Alone).0)
    }
}

/// What a switch has dropped, by reason.
fn drops(switch: &SwitchNode, stats: &Stats) -> BTreeMap<String, u64> {
    let own = (switch.looped > 0).then(|| ("loop".to_owned(), switch.looped));
    stats.drops.iter().map(|(reason, count)| (reason.name().to_owned(), *count)).chain(own).collect()
}

impl TopologyRun<'_> {
    /// Runs it with the workers that it was built for.
    pub fn finish(mut self, crew: &dyn Crew) -> (TopologyOutcome, Vec<HostCapture>) {
        let (warm, stop, end) = (self.world.plan.warm, self.world.plan.stop, self.world.plan.end);
        self.world.run_until(warm, crew);
        let before = self.carried();
        self.world.run_until(stop, crew);
        let carried: Vec<f64> =
            self.carried().iter().zip(&before).map(|(now, before)| now - before).collect();
        self.world.run_until(end, crew);
        let outcome = self.outcome(&carried);
        let captures = self.world.hosts().into_iter().filter_map(|host| {
            let frames = host.captured.clone()?;
            let name = self.network.topology.hosts[host.index].name.clone();
            Some(HostCapture { host: name, frames, lost: host.uncaptured })
        });
        (outcome, captures.collect())
    }

    /// All directions of links: those of switches with their ports, then those of hosts.
    fn outlets(&self) -> Vec<(End, &Outlet)> {
        let mut all = Vec::new();
        for switch in self.world.switches() {
            let ports =
                self.network.topology.ports(switch.index).map(|(port, _)| End::Port(switch.index, port));
            all.extend(ports.zip(&switch.outlets));
        }
        all.extend(self.world.hosts().into_iter().map(|host| (End::Host(host.index), &host.outlet)));
        all
    }

    /// Bytes that each of them has carried until now.
    fn carried(&self) -> Vec<f64> {
        let carried = |(_, outlet): (End, &Outlet)| {
            let waits = outlet.link.backlog(self.world.now).0 as f64 * outlet.link.rate_bps() as f64 / 8e9;
            (outlet.link.stats.wire_bytes as f64 - waits).max(0.0)
        };
        self.outlets().into_iter().map(carried).collect()
    }

    fn outcome(&self, carried: &[f64]) -> TopologyOutcome {
        let (world, spec) = (&self.world, &self.experiment.spec);
        let seconds = (world.plan.stop - world.plan.warm).as_secs_f64();
        let counts = world.counts();
        let switches = world.switches();
        let stats: Vec<Stats> = switches.iter().map(|switch| switch.switch.stats(world.now)).collect();
        let (balance, mut problems) = judge(world, &counts, &stats);
        problems.extend(self.loops(&balance));
        let traffic = self.traffic(&counts, seconds);
        let named = switches.iter().zip(&stats).map(|(switch, stats)| SwitchNodeOutcome {
            name: self.network.topology.switches[switch.index].name.clone(),
            hops: switch.hops,
            to_controller: switch.to_controller,
            clones: stats.clones,
            replicas: stats.replicas,
            passes: stats.resubmits + stats.recirculations,
            buffer_max_bytes: stats.buffer_max_bytes,
            drops: drops(switch, stats),
        });
        let mut outcome = TopologyOutcome {
            name: spec.name.clone(),
            topology: self.network.topology.name.clone(),
            seed: spec.seed,
            measured_s: seconds,
            goodput_gbps: traffic.iter().map(|traffic| traffic.goodput_gbps).sum(),
            traffic,
            flows: if world.plan.by_flow { self.flows(seconds) } else { Vec::new() },
            operations: self.operations(&counts),
            machines: self.machines(),
            links: self.links(&stats, carried, seconds),
            switch_hops: switches.iter().map(|switch| switch.hops).sum(),
            switches: named.collect(),
            agents: self.agents(|agent| agent.machine.counters()),
            agents_drops: self.agents(|agent| agent.machine.stats().drops().collect()),
            balance,
            windows: world.windows,
            problems,
            paper: Vec::new(),
            digest: format!("{:016x}", world.digest()),
            took: None,
        };
        outcome.paper = compared(&outcome, spec.paper.iter());
        outcome
    }

    /// What is wrong with frames that went round in a loop.
    fn loops(&self, balance: &Balance) -> Option<String> {
        let names = &self.network.topology.switches;
        let through =
            self.world.switches().into_iter().filter(|switch| !switch.loop_ports.is_empty()).map(|switch| {
                let ports: Vec<String> = switch.loop_ports.iter().map(u16::to_string).collect();
                format!("{}:{}", names[switch.index].name, ports.join(","))
            });
        let (looped, through) = (balance.looped, through.collect::<Vec<_>>().join(", "));
        let end = match self.world.ended {
            true => format!(
                "; the run ended after {} µs, so its other figures say little",
                self.world.now.0 / 1_000
            ),
            false => String::new(),
        };
        let what = format!("frames go round in a loop of switches, which they leave by {through}");
        (!through.is_empty()).then(|| {
            format!(
                "{what}; {looped} of them were dropped after {HOPS_MAX} switches: mend the programs or entries there{end}"
            )
        })
    }

    /// Counters of agents by name, without those that are 0.
    fn agents(&self, of: fn(&Agent) -> Vec<(&'static str, u64)>) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        for agent in self.world.hosts().into_iter().filter_map(|host| host.agent.as_ref()) {
            for (name, count) in of(agent).into_iter().filter(|(_, count)| *count > 0) {
                *all.entry(name).or_insert(0) += count;
            }
        }
        all
    }

    /// Counters of remote memory's machines by name, without those that are 0.
    fn machines(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        let mut add = |machine: &'static str, name: &'static str, count: u64| {
            if count > 0 {
                *all.entry(format!("{machine}.{name}")).or_insert(0) += count;
            }
        };
        for host in self.world.hosts() {
            host.machines.iter().for_each(|machines| machines.counters(&mut add));
            for out in &host.out {
                if let Sender::Memory(client) = &out.sender {
                    client.counters(&mut add);
                }
            }
        }
        all
    }

    /// Each flow with its sender and its receiver.
    fn ends(&self) -> impl Iterator<Item = (&Flow, &OutFlow, &InFlow)> {
        let hosts = self.world.hosts();
        self.world.plan.flows.iter().filter_map(move |flow| {
            let (from, to) = (*hosts.get(usize::from(flow.from))?, *hosts.get(usize::from(flow.to))?);
            Some((flow, from.out.get(flow.out as usize)?, to.into.get(flow.into as usize)?))
        })
    }

    fn traffic(&self, counts: &Counts, seconds: f64) -> Vec<SentTraffic> {
        let plan = &self.world.plan;
        let mut all: Vec<SentTraffic> = Vec::new();
        for (traffic, counts) in plan.traffic.iter().zip(&counts.traffic) {
            let send = traffic.spec.send;
            let is_known = send != SendKind::Pcap;
            // Only TCP sends frames again. Other copies are made by switches.
            let again = if send.is_tcp() { counts.twice } else { 0 };
            let received = counts.operations.as_ref().map_or(counts.received, |both| both.done());
            all.push(SentTraffic {
                name: traffic.spec.name.clone(),
                send: send.name(),
                flows: 0,
                sent: counts.sent,
                received: is_known.then_some(received),
                lost: is_known.then(|| counts.sent.saturating_sub(received + counts.damaged + again)),
                twice: counts.twice,
                reordered: counts.reordered,
                damaged: counts.damaged,
                goodput_gbps: counts.bytes as f64 * 8.0 / seconds / 1e9,
                failed: counts.operations.as_ref().map_or(0, |_| counts.sent - received),
                retransmissions: 0,
                timeouts: 0,
                of: match send {
                    SendKind::RequestResponse => "request and answer",
                    SendKind::Memory => "operation",
                    _ if send.is_tcp() => "message",
                    _ => "frame",
                },
                latency_ns: Latency::of(&counts.latency, true),
            });
        }
        for (flow, out, _) in self.ends() {
            let one = &mut all[usize::from(flow.traffic)];
            one.flows += 1;
            match &out.sender {
                Sender::Timed(_) | Sender::Replay(_) | Sender::Memory(_) => {}
                Sender::Requests(requests) => one.failed += requests.lost + requests.open(),
                Sender::Stream(stream) => {
                    one.failed += stream.refused;
                    one.retransmissions += stream.sender.retransmissions;
                    one.timeouts += stream.sender.timeouts;
                }
            }
        }
        all
    }

    fn operations(&self, counts: &Counts) -> Vec<OperationsOutcome> {
        let plan = &self.world.plan;
        let mut open = vec![[0; 2]; plan.traffic.len()];
        for (flow, out, _) in self.ends() {
            if let Sender::Memory(client) = &out.sender {
                let [reads, writes] = client.open();
                let of = &mut open[usize::from(flow.traffic)];
                *of = [of[0] + reads, of[1] + writes];
            }
        }
        let mut all = Vec::new();
        for ((traffic, counts), open) in plan.traffic.iter().zip(&counts.traffic).zip(open) {
            let Some(both) = &counts.operations else { continue };
            for ((one, what), open) in both.each().into_iter().zip(["reads", "writes"]).zip(open) {
                all.push(OperationsOutcome {
                    name: format!("{}, {what}", traffic.spec.name),
                    way: traffic.spec.way.clone().unwrap_or_default(),
                    done: one.done,
                    refused: one.refused,
                    unknown: one.unknown,
                    open,
                    again: one.again,
                    checked_bytes: one.checked_bytes,
                    wrong_bytes: one.wrong_bytes,
                    latency_ns: Latency::of(&one.latency, true),
                });
            }
        }
        all
    }

    fn flows(&self, seconds: f64) -> Vec<FlowOutcome> {
        let topology = &self.network.topology;
        let mut numbers = BTreeMap::new();
        let one = |(flow, out, into): (&Flow, &OutFlow, &InFlow)| {
            let traffic = &self.world.plan.traffic[usize::from(flow.traffic)];
            let (from, to) =
                (&topology.hosts[usize::from(flow.from)].name, &topology.hosts[usize::from(flow.to)].name);
            let mut name = match traffic.spec.send {
                SendKind::Pcap => from.clone(),
                _ => format!("{from}–{to}"),
            };
            let number = numbers.entry((flow.traffic, flow.from, flow.to)).or_insert(0);
            *number += 1;
            if traffic.spec.flows > 1 {
                name += &format!(" {number}");
            }
            let is_asking = matches!(into.receiver, Receiver::Server(_) | Receiver::Memory);
            let latency =
                out.latency.as_ref().filter(|latency| !latency.is_empty()).or(into.latency.as_ref());
            FlowOutcome {
                name,
                traffic: traffic.spec.name.clone(),
                sent: out.sent,
                received: if is_asking { out.answers } else { into.received },
                goodput_mbps: (into.bytes + out.answer_bytes) as f64 * 8.0 / seconds / 1e6,
                latency_ns: latency.map_or_else(Latency::default, |latency| Latency::of(latency, false)),
            }
        };
        self.ends().map(one).collect()
    }

    fn links(&self, stats: &[Stats], carried: &[f64], seconds: f64) -> Vec<LinkOutcome> {
        let topology = &self.network.topology;
        let other = |end: End| {
            let link = topology.links.iter().find(|link| link.ends.contains(&end));
            link.map_or(end, |link| if link.ends[0] == end { link.ends[1] } else { link.ends[0] })
        };
        let none = PortStats::default();
        let hosts = self.world.hosts();
        let queue_full = |end: End| match end {
            End::Host(host) => hosts.get(host).map_or(0, |host| {
                let agent = host.agent.as_ref();
                host.queue_full + agent.map_or(0, |agent| agent.machine.stats().app_frames_dropped())
            }),
            End::Port(..) => 0,
        };
        let one = |((end, outlet), carried): ((End, &Outlet), &f64)| {
            let port = match end {
                End::Port(switch, port) => stats[switch].ports.iter().find(|stats| stats.port == port),
                End::Host(_) => None,
            };
            let port = port.unwrap_or(&none);
            let (link, _) = self.world.link(outlet);
            let rate_bps = outlet.link.rate_bps();
            LinkOutcome {
                name: format!("{}–{}", topology.end_name(end), topology.end_name(other(end))),
                rate_gbps: (rate_bps > 0).then_some(rate_bps as f64 / 1e9),
                utilisation: (rate_bps > 0).then(|| carried * 8.0 / seconds / rate_bps as f64),
                frames: link.sent,
                lost: link.lost,
                dropped: port.drops.iter().map(|(_, count)| count).sum::<u64>()
                    + queue_full(end)
                    + outlet.full,
                queue_max_bytes: port.queue_max_bytes,
                queue_p999_bytes: depth_quantile(port, 0.999),
            }
        };
        self.outlets().into_iter().zip(carried).map(one).collect()
    }
}
