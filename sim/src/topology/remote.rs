//! Remote memory of a scripted host: its flows use that of others, and others use its own.

use super::counts::{Counts, TrafficCounts};
use super::host::{HostNode, OutFlow, Sender};
use super::memory::{Ended, packet};
use super::plan::Plan;
use super::wires::Wires;
use p4rack_wire::{Histogram, Nanos};

impl HostNode {
    /// Handles timeouts of a flow that uses remote memory, and sends its packets.
    pub(super) fn operate(&mut self, out: usize, plan: &Plan, wires: &mut Wires, counts: &mut Counts) {
        let now = self.now;
        let flow = &plan.flows[usize::from(self.out[out].id)];
        let traffic = &mut counts.traffic[usize::from(flow.traffic)];
        let OutFlow { sender, sent, answers, answer_bytes, latency, .. } = &mut self.out[out];
        let Sender::Memory(client) = sender else { return };
        let mut own = Own { answers, answer_bytes, latency };
        client.advance(self.machines.as_deref_mut(), out as u32, now, &mut |ended| {
            count(ended, now, plan, &mut own, traffic);
        });
        traffic.sent += client.begun() - *sent;
        *sent = client.begun();
        loop {
            let Sender::Memory(client) = &mut self.out[out].sender else { return };
            let Some(packet) = client.poll(now) else { break };
            let mut frame = wires.frames.take(packet.len() < 150);
            flow.headers.packet(packet, &mut frame);
            self.send(frame, wires, counts);
        }
    }

    /// Takes a packet of remote memory. Returns the sender that may have something else to do now, or `None` if it is no such packet.
    pub(super) fn take_packet(
        &mut self,
        frame: &[u8],
        received_at: Nanos,
        plan: &Plan,
        wires: &mut Wires,
        counts: &mut Counts,
    ) -> Option<Option<usize>> {
        let (ports, packet) = packet(frame)?;
        let (flow, id, is_there) = plan.flow_of(ports)?;
        let end = if is_there { flow.to } else { flow.from };
        if usize::from(end) != self.index {
            counts.elsewhere += 1;
            return Some(None);
        }
        counts.memory += 1;
        if is_there {
            if let Some(machines) = &mut self.machines {
                machines.take_packet(id, packet, self.now);
            }
            return Some(None);
        }
        let out = flow.out as usize;
        if let Sender::Memory(client) = &mut self.out[out].sender {
            client.take(packet, received_at, self.now);
            self.operate(out, plan, wires, counts);
        }
        Some(Some(out))
    }

    /// Continues operations that have ended at its machines, and sends the machines' packets.
    pub(super) fn serve(&mut self, at: usize, plan: &Plan, wires: &mut Wires, counts: &mut Counts) {
        let now = self.now;
        if let Some(machines) = &mut self.machines {
            machines.wake(now);
        }
        loop {
            while let Some((out, slot, outcome)) = self.machines.as_mut().and_then(|own| own.poll_end()) {
                let out = out as usize;
                let OutFlow { id, sender, answers, answer_bytes, latency, .. } = &mut self.out[out];
                if let Sender::Memory(client) = sender
                    && let Some(ended) = client.take_end(slot, &outcome, now)
                {
                    let traffic = plan.flows[usize::from(*id)].traffic;
                    let traffic = &mut counts.traffic[usize::from(traffic)];
                    count(&ended, now, plan, &mut Own { answers, answer_bytes, latency }, traffic);
                }
                self.operate(out, plan, wires, counts);
                let due = self.due_of(out);
                wires.inlets[at].dues.set(out + 1, due);
            }
            let mut frame = wires.frames.take(true);
            if !self.machines.as_mut().is_some_and(|own| own.poll_frame(now, &mut frame)) {
                wires.frames.release(frame);
                break;
            }
            self.put(frame, wires, counts);
        }
        while let Some((id, packet)) = self.machines.as_mut().and_then(|own| own.poll_packet(now)) {
            let Some(flow) = plan.flows.get(usize::from(id)) else { continue };
            let mut frame = wires.frames.take(packet.len() < 150);
            flow.back.packet(packet, &mut frame);
            self.send(frame, wires, counts);
        }
        let due = self.machines.as_ref().map_or(Nanos::MAX, |own| own.due());
        wires.inlets[at].dues.set(self.memory_component(), due);
    }
}

/// Counters of a flow that uses remote memory.
struct Own<'a> {
    answers: &'a mut u64,
    answer_bytes: &'a mut u64,
    latency: &'a mut Option<Box<Histogram>>,
}

/// Counts an operation that has ended.
fn count(ended: &Ended, now: Nanos, plan: &Plan, own: &mut Own<'_>, traffic: &mut TrafficCounts) {
    let latency = plan.measures(ended.begun).then(|| now.saturating_sub(ended.begun));
    if let Some(operations) = &mut traffic.operations {
        operations.count(ended, latency);
    }
    if !ended.is_done() {
        return;
    }
    *own.answers += 1;
    if plan.measures(now) {
        *own.answer_bytes += u64::from(ended.bytes);
        traffic.bytes += u64::from(ended.bytes);
    }
    if let Some(latency) = latency {
        traffic.latency.record(latency.0.max(1));
        if let Some(own) = own.latency {
            own.record(latency.0.max(1));
        }
    }
}
