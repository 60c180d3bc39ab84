//! Shares of what a board has: no process takes what others need.

use super::*;

const K4: PageSize = PageSize::K4;
const PAGE: u64 = 4_096;

#[test]
fn a_call_has_one_packet() {
    let mut rig = Rig::new(config());
    let grant = rig.board.begin(quotas(0, 9)).unwrap();
    let mut body = vec![0; AllocBody::BYTES];
    AllocBody { bytes: PAGE, page_size: 0, rights: 3, reserved: 0 }.emit(&mut body);
    let alloc = rig.header(&grant, Kind::Manage, Manage::Alloc as u8, 0, body.len() as u32);
    for index in 0..2 {
        let part = Header { index, packets: 2, ..alloc };
        assert_eq!(rig.ask(&part, &body).0, Status::BadLength);
    }
    assert_eq!(rig.board.table().taken(), 0);
    assert_eq!(rig.ask(&alloc, &body).0, Status::Done, "nothing of it is remembered");
}
