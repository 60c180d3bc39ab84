//! PL2's controller. It sends the switch the management frames of `p4rack pl2`.

use crate::agenda::RankedAgenda;
use crate::switch::{Model, SwitchModel};
use p4rack_codegen::rack::Rack;
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::pl2::{self, Kind, Management, Side};
use p4rack_wire::{MacAddr, Nanos};

/// PL2's controller: it makes the switch forget the reservations of silent senders.
#[derive(Debug)]
pub(super) struct Controller {
    pl2: Pl2,
    /// Time between a report and the action at the switch; `None`: hosts don't report.
    pub delay: Option<Nanos>,
    /// Reservations to forget: source, destination.
    pending: RankedAgenda<(usize, usize)>,
    /// Reservations forgotten: time, source, destination.
    pub forgotten: Vec<(Nanos, usize, usize)>,
}

impl Controller {
    /// A controller for a rack with these parameters.
    pub fn new(pl2: Pl2, delay: Option<Nanos>) -> Controller {
        Controller { pl2, delay, pending: RankedAgenda::new(), forgotten: Vec::new() }
    }

    /// A destination reports a sender that fell silent.
    pub fn report(&mut self, sender: usize, destination: usize, now: Nanos) {
        self.pending.push(now + self.delay.unwrap_or_default(), (sender, destination));
    }

    /// When it acts on the switch next; `Nanos::MAX`: never.
    pub fn due(&self) -> Nanos {
        self.pending.due()
    }

    /// Makes the switch forget reservations that are due.
    pub fn act(&mut self, switch: &mut SwitchModel, rack: &Rack, now: Nanos) {
        while let Some((sender, destination)) = self.pending.pop(now) {
            self.forget(switch, rack, sender, destination, now);
            self.forgotten.push((now, sender, destination));
        }
    }

    /// Amount reserved at a port, in slots or time units. `None`: the switch did not answer.
    pub fn reserved(&self, switch: &mut SwitchModel, target: Side, port: u16, now: Nanos) -> Option<u32> {
        let request = Management { target: target as u8, index: port, ..request(Kind::MgmtRead) };
        self.manage(switch, request, now)
    }

    /// Makes the switch forget a source's reservations towards a destination. Both are indices into the rack's hosts.
    fn forget(
        &self,
        switch: &mut SwitchModel,
        rack: &Rack,
        source: usize,
        destination: usize,
        now: Nanos,
    ) -> Option<()> {
        let link = |host: usize| rack.hosts.get(host).map(|host| host.link);
        let (index, to) = (link(source)?, link(destination)?);
        for cell in 0..self.pl2.cells_a_pair() {
            let cell = self.pl2.cell_number(rack, source, destination, cell);
            let request = Management { index, destination: to, cell, ..request(Kind::MgmtForget) };
            self.manage(switch, request, now)?;
        }
        Some(())
    }

    fn manage(&self, switch: &mut SwitchModel, request: Management, now: Nanos) -> Option<u32> {
        let mut frame = [0; 60];
        let (src, dst) = (MacAddr([2, 0, 0, 0xff, 0, 1]), MacAddr([2, 0, 0, 0xff, 0, 2]));
        Ethernet { dst, src, ether_type: self.pl2.ether_type }.emit(&mut frame);
        request.emit(&mut frame[Ethernet::BYTES..]);
        let reply = switch.manage(&frame, now)?;
        let answer = Management::parse(reply.get(Ethernet::BYTES..)?).ok()?;
        (answer.kind == Kind::MgmtReply as u8).then_some(answer.value)
    }
}

fn request(kind: Kind) -> Management {
    Management {
        version: pl2::VERSION,
        kind: kind as u8,
        target: Side::In as u8,
        index: 0,
        token: 1,
        value: 0,
        destination: 0,
        reserved: 0,
        cell: 0,
    }
}
