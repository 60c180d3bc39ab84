//! An RDMA pool that lends: an extent is a reservation of its own, which outlasts each connection.

use super::convert;
use super::lends::Lends;
use crate::commands::Handle;
use crate::remote::Granted;
use crate::roce::pool::{Service as Pool, whole};
use crate::roce::setup::draw_token;
use p4rack_fabric::balloon::{Access, Answer, Command, Node, OnPool, Order, PoolExtents};
use p4rack_fabric::roce::{Adapter, Regions, Reservation, Reservations, Token};
use p4rack_netdev::clock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tonic::{Response, Status};

/// The pool's part of a balloon.
pub(super) struct LendingPool {
    handle: Handle<Adapter<Regions>>,
    reservations: Arc<Mutex<Reservations>>,
    /// The lock is held for moments, and always taken before that of the reservations.
    state: Arc<Mutex<State>>,
}

struct State {
    node: Node,
    extents: PoolExtents,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The access that an extent's holder gets.
fn access(token: &Token, reservation: &Reservation) -> Option<Access> {
    let offer = reservation.offers.first()?;
    let (token, key) = (*token, offer.key);
    convert::access(&Granted::Region { token, key, address: offer.address, bytes: offer.bytes })
}

impl LendingPool {
    /// Lends the memory that peers of the pool may reserve.
    pub(super) fn new(pool: &Pool) -> LendingPool {
        let (handle, bytes, reservations) = pool.memory();
        // Another instance whenever the pool starts.
        let node = Node::new(clock::wall_ns(), bytes, Regions::REGIONS_MAX);
        let state = Arc::new(Mutex::new(State { node, extents: PoolExtents::default() }));
        LendingPool { handle, reservations, state }
    }
}

impl Lends for LendingPool {
    async fn execute(&self, command: Command) -> Result<Answer, Status> {
        // Others need none: fencing goes on without it.
        let token = match command.order {
            Order::Grant { .. } => {
                Some(draw_token().map_err(|error| Status::internal(format!("drawing a token: {error}")))?)
            }
            _ => None,
        };
        let (handle, state, reservations) =
            (self.handle.clone(), self.state.clone(), self.reservations.clone());
        // To the end even if the service does not wait: otherwise an extent would stay withdrawn.
        let executed = whole(async move {
            let (of_adapter, all) = (state.clone(), reservations.clone());
            let work = move |adapter: &mut Adapter<Regions>| {
                let mut state = lock(&of_adapter);
                let State { node, extents } = &mut *state;
                let (regions, reservations) = (adapter.memory_mut(), &mut *lock(&all));
                let answer =
                    node.handle(&command, &mut OnPool { regions, reservations, extents, token, access });
                (answer, extents.next_withdrawn())
            };
            let called = handle.call(work).await;
            let (answer, withdrawn) = called.map_err(|gone| Status::unavailable(gone.to_string()))?;
            if let Some((start, regions)) = withdrawn {
                // The system takes long to get many bytes back. The adapter serves its peers in the meantime.
                let dropped = tokio::task::spawn_blocking(move || drop(regions)).await;
                dropped.map_err(|error| Status::internal(error.to_string()))?;
                lock(&state).extents.zeroed(start, &mut lock(&reservations));
            }
            Ok(answer)
        });
        executed.await.map(Response::into_inner)
    }
}
