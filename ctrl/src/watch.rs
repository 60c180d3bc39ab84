//! Keeps a switch in its desired state, across its restarts, writes of other controllers, and the death of
//! the previous primary.

use crate::bfrt;
use crate::connect::ConnectOptions;
use crate::deploy::{Desired, Extent, Step, bring, bring_to};
use crate::error::CtrlError;
use crate::protocol::Protocol;
use crate::session::{Event, Session, Standing};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Delay before reconnecting: initial and maximum.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long to wait for the answer to a campaign before repeating it.
const ANSWER: Duration = Duration::from_millis(300);

/// An event of a watched switch.
#[derive(Debug)]
pub enum Change {
    /// A step towards the desired state.
    Step(Step),
    /// This controller became primary.
    Primary,
    /// Another controller is primary; this one waits.
    Standby,
    /// A failure; the operation will be retried.
    Failed(CtrlError),
}

/// Keeps the switch in the state in `desired` and checks it every `interval`. Ends when the sender of
/// `desired` is gone.
pub async fn watch(
    target: ConnectOptions,
    mut desired: watch::Receiver<Arc<Desired>>,
    interval: Duration,
    mut tell: impl FnMut(Change),
) {
    let mut pause = RETRY.0;
    // Over BFRuntime: the last reported standby state; `None` before the first report.
    let mut stood_by = None;
    while desired.has_changed().is_ok() {
        let began = Instant::now();
        let served = match target.protocol {
            Protocol::P4Runtime => keep(&target, &mut desired, interval, &mut tell).await,
            Protocol::BfRuntime => {
                keep_bound(&target, &mut desired, interval, &mut stood_by, &mut tell).await
            }
        };
        match served {
            Ok(()) => return,
            Err(error) => tell(Change::Failed(error)),
        }
        if began.elapsed() > RETRY.1 {
            pause = RETRY.0;
        }
        sleep(pause).await;
        pause = (pause * 2).min(RETRY.1);
    }
}

async fn keep(
    target: &ConnectOptions,
    desired: &mut watch::Receiver<Arc<Desired>>,
    interval: Duration,
    tell: &mut impl FnMut(Change),
) -> Result<(), CtrlError> {
    let mut session = Session::join(target.clone()).await?;
    serve(&mut session, target.election_id, desired, interval, tell).await
}

/// The same over BFRuntime, where the client that is bound to the program has the role of P4Runtime's primary.
async fn keep_bound(
    target: &ConnectOptions,
    desired: &mut watch::Receiver<Arc<Desired>>,
    interval: Duration,
    stood_by: &mut Option<bool>,
    tell: &mut impl FnMut(Change),
) -> Result<(), CtrlError> {
    let mut link = bfrt::Link::connect(target.clone()).await?;
    let mut pause = RETRY.0;
    loop {
        let mut wait = interval;
        let is_standby = match link.schema().await {
            // A switch without a program, or with one of another architecture, has no controller yet.
            Ok(_) | Err(CtrlError::Program(_)) => false,
            Err(error) if error.is_taken() => true,
            Err(error) => return Err(error),
        };
        if stood_by.replace(is_standby) != Some(is_standby) {
            tell(if is_standby { Change::Standby } else { Change::Primary });
        }
        if !is_standby {
            let wanted = desired.borrow_and_update().clone();
            match bring_to(&mut link, &wanted, Extent::All, &mut |step| tell(Change::Step(step))).await {
                Ok(()) => pause = RETRY.0,
                Err(error) if link.has_ended().await => return Err(error),
                // It stays bound: another controller would take its place and be refused the same.
                Err(error) => {
                    tell(Change::Failed(error));
                    wait = pause;
                    pause = (pause * 2).min(RETRY.1);
                }
            }
        }
        tokio::select! {
            () = sleep(wait) => {}
            error = link.ended() => return Err(error),
            changed = desired.changed() => if changed.is_err() {
                return Ok(());
            },
        }
    }
}

/// Serves one connection. Returns `Ok` when the sender of `desired` has been dropped.
async fn serve(
    session: &mut Session,
    own_id: u128,
    desired: &mut watch::Receiver<Arc<Desired>>,
    interval: Duration,
    tell: &mut impl FnMut(Change),
) -> Result<(), CtrlError> {
    let mut was = None;
    loop {
        let standing = session.standing();
        if was != Some(standing) {
            match standing {
                Standing::Primary => tell(Change::Primary),
                Standing::Standby { .. } => tell(Change::Standby),
                Standing::Vacant { .. } => {}
            }
            was = Some(standing);
        }
        let until = match standing {
            Standing::Primary => {
                let wanted = desired.borrow_and_update().clone();
                match bring(session, &wanted, Extent::All, &mut |step| tell(Change::Step(step))).await {
                    Ok(()) => {}
                    // The stream reports this controller's standing, or that the switch is gone.
                    Err(error) if session.is_lost(&error) => return Err(error),
                    Err(error) => tell(Change::Failed(error)),
                }
                Instant::now() + interval
            }
            Standing::Vacant { highest } => {
                // Standbys have different ids, so they campaign with different ids here as well.
                session.campaign(highest.saturating_add(own_id.max(1))).await?;
                Instant::now() + ANSWER
            }
            Standing::Standby { .. } => Instant::now() + interval,
        };
        loop {
            tokio::select! {
                event = session.event(until) => match event? {
                    Some(Event::Standing(_)) | None => break,
                    Some(Event::Refused(why)) => tell(Change::Failed(CtrlError::PacketOut(why))),
                    Some(_) => {}
                },
                changed = desired.changed() => match changed {
                    Ok(()) if standing == Standing::Primary => break,
                    Ok(()) => {}
                    Err(_) => return Ok(()),
                },
            }
        }
    }
}
