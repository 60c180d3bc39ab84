//! Keeps a switch as it should be: across its restarts, other controllers' writes, and the death of the
//! primary that was in charge before.

use crate::deploy::{Desired, Extent, Step, bring};
use crate::error::CtrlError;
use crate::session::{Event, Session, Standing};
use crate::target::ConnectOptions;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How soon a lost connection is made again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long the answer to a campaign may take before it is run again.
const ANSWER: Duration = Duration::from_millis(300);

/// What happens to a watched switch.
#[derive(Debug)]
pub enum Change {
    /// A step of bringing it to what it should be.
    Step(Step),
    /// This controller is in charge.
    Primary,
    /// Another controller is in charge; this one waits for its end.
    Standby,
    /// Something failed and will be tried again.
    Failed(CtrlError),
}

/// Keeps the switch at what `desired` holds, looking every `interval`; ends when its sender is gone.
pub async fn watch(
    target: ConnectOptions,
    mut desired: watch::Receiver<Arc<Desired>>,
    interval: Duration,
    mut tell: impl FnMut(Change),
) {
    let mut pause = RETRY.0;
    while desired.has_changed().is_ok() {
        match Session::join(target.clone()).await {
            Ok(mut session) => {
                pause = RETRY.0;
                match serve(&mut session, target.election_id, &mut desired, interval, &mut tell).await {
                    Ok(()) => return,
                    Err(error) => tell(Change::Failed(error)),
                }
            }
            Err(error) => tell(Change::Failed(error)),
        }
        sleep(pause).await;
        pause = (pause * 2).min(RETRY.1);
    }
}

/// One connection's life; `Ok` when nobody wants anything any more.
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
                    // The stream says what has become of this controller, or that the switch has gone.
                    Err(error) if session.is_lost(&error) => return Err(error),
                    Err(error) => tell(Change::Failed(error)),
                }
                Instant::now() + interval
            }
            Standing::Vacant { highest } => {
                // Standbys have different ids, so they ask for different ones here as well.
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
