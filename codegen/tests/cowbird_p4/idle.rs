//! A thread that fetches nothing: its rings fill up, and no other thread is affected.

use crate::rack::{Faults, Net, built, built_on};
use p4rack_codegen::Arch;
use p4rack_cowbird::{Layout, Refused};

const LAYOUT: Layout = Layout { entries: 16, request_bytes: 512, response_bytes: 512 };
const FAULTS: Faults = Faults { lost: 10, copied: 10, delayed: 50 };

#[test]
fn a_thread_that_fetches_nothing_harms_itself_alone() {
    let twins = [built_on(4, Arch::Tna)];
    let built = built(4);
    for seed in 0..8 {
        let mut net = Net::beside(&built, &twins, 2, 100, LAYOUT, FAULTS, seed);
        let mut steps = 0;
        while net.threads[1].left > 0 || !net.threads[1].history.is_done() {
            net.ask(0).unwrap();
            net.ask(1).unwrap();
            net.fetch(1).unwrap();
            net.step();
            steps += 1;
            assert!(steps < 200_000, "seed {seed}: {:?}", net.rig.all_drops());
        }
        net.threads[1].history.end(net.span(1)).unwrap();
        net.threads[0].history.kept(net.span(0)).unwrap();
        // Its responses have no room, and its own client refuses further reads.
        let refused = (0..LAYOUT.entries).find_map(|_| net.threads[0].client.async_read(0, 0, 64).err());
        assert!(
            matches!(refused, Some(Refused::ResponseDataFull | Refused::RequestsFull)),
            "seed {seed}: {refused:?}"
        );
        assert_eq!((net.threads[0].history.count_done(), net.refusal(0)), (0, 0), "seed {seed}");
    }
}
