//! `p4rack deploy TOPOLOGY --watch`: keeps each switch of a topology in the state that the files define.

use super::args::Args;
use super::topology::{self, Member};
use super::watch::{Board, fail, renew, reporter, serve_metrics, tell};
use crate::cmd::connect;
use crate::cmd::saved::Files;
use p4rack_ctrl::ConnectOptions;
use p4rack_ctrl::deploy::Desired;
use p4rack_ctrl::watch::watch;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

/// Runs until SIGINT or SIGTERM.
pub fn run(args: Args) -> ExitCode {
    let board = Board::default();
    // Before they are read: a later save counts.
    let mut files = Files::of([args.rack.clone()]);
    let (topology, members) = match topology::members(&args) {
        Ok(found) => found,
        Err(error) => return fail(error.to_string()),
    };
    files.follow(topology::files_of(&args, &topology));
    if let Err(error) = serve_metrics(&args, &board) {
        return fail(error);
    }
    connect::block_on(async move {
        let mut kept = Kept { args: &args, board, switches: BTreeMap::new(), tasks: JoinSet::new() };
        kept.take(members);
        connect::until_signalled(kept.follow(files)).await
    })
}

/// The switches of a topology that are kept.
struct Kept<'a> {
    args: &'a Args,
    board: Board,
    switches: BTreeMap<String, (ConnectOptions, channel::Sender<Arc<Desired>>)>,
    tasks: JoinSet<()>,
}

impl Kept<'_> {
    /// Keeps these switches from now on. Those that stay the same are left alone.
    fn take(&mut self, members: Vec<Member>) {
        let mut before = std::mem::take(&mut self.switches);
        for Member { name, target, desired } in members {
            let is_there = |(known, _): &(ConnectOptions, _)| {
                known.addr == target.addr
                    && known.device_id == target.device_id
                    && known.protocol == target.protocol
            };
            let there = before.remove(&name).filter(is_there);
            let sender = match there {
                Some((_, sender)) => {
                    renew(&sender, desired, &name);
                    sender
                }
                None => {
                    let (sender, receiver) = channel::channel(Arc::new(desired));
                    let report = reporter(&self.board, Some(name.clone()), &target, self.args.json);
                    self.tasks.spawn(watch(target.clone(), receiver, self.args.interval(), report));
                    sender
                }
            };
            self.switches.insert(name, (target, sender));
        }
        // Without their senders, the tasks of the others end.
        before.keys().for_each(|name| tell(&format!("{name}: is no longer described, and left as it is")));
    }

    /// Applies what the files say after each save, forever.
    async fn follow(mut self, mut files: Files) {
        loop {
            files.saved().await;
            match topology::members(self.args) {
                Ok((topology, members)) => {
                    files.follow(topology::files_of(self.args, &topology));
                    self.take(members);
                }
                Err(error) => {
                    tell(&format!("{}: the new description is not used:\n{error}", self.args.rack.display()));
                }
            }
        }
    }
}
