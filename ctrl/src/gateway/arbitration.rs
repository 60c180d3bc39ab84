//! Which controller may write: the one with the highest election id there ever was (P4Runtime, section 5).

use p4rack_p4rt::google::rpc::{Code, Status as RpcStatus};
use p4rack_p4rt::p4::v1::{MasterArbitrationUpdate, StreamMessageResponse, Uint128, stream_message_response};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, error::TrySendError};
use tonic::Status;

/// A message to a controller's stream.
pub(super) type Message = Result<StreamMessageResponse, Status>;

/// A controller's stream.
#[derive(Debug)]
struct Stream {
    number: u64,
    /// 0 of one that never wants to be primary.
    election_id: u128,
    sender: mpsc::Sender<Message>,
    /// Notified when the stream has to end.
    dismissed: Arc<Notify>,
}

/// The streams, and the primary among them.
#[derive(Debug)]
pub(super) struct Arbitration {
    device_id: u64,
    streams: Vec<Stream>,
    /// Highest election id that was ever claimed.
    highest: u128,
    next: u64,
}

impl Arbitration {
    /// Without streams.
    pub(super) fn new(device_id: u64) -> Arbitration {
        Arbitration { device_id, streams: Vec::new(), highest: 0, next: 0 }
    }

    /// Enters a stream with its first claim, and notifies all streams that it affects. Returns its number.
    pub(super) fn enter(
        &mut self,
        claim: &MasterArbitrationUpdate,
        sender: mpsc::Sender<Message>,
        dismissed: Arc<Notify>,
    ) -> Result<u64, Status> {
        let election_id = self.checked(claim, None)?;
        let number = self.next;
        self.next += 1;
        let before = self.primary();
        self.streams.push(Stream { number, election_id, sender, dismissed });
        self.settle(number, before);
        Ok(number)
    }

    /// A further claim of a stream.
    pub(super) fn claim(&mut self, number: u64, claim: &MasterArbitrationUpdate) -> Result<(), Status> {
        let election_id = self.checked(claim, Some(number))?;
        let before = self.primary();
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.number == number) {
            stream.election_id = election_id;
        }
        self.settle(number, before);
        Ok(())
    }

    /// A stream has ended.
    pub(super) fn leave(&mut self, number: u64) {
        let before = self.primary();
        self.streams.retain(|stream| stream.number != number);
        if before == Some(number) {
            self.tell(|_| true);
        }
    }

    /// Whether this is the primary's election id. Errors: why not.
    pub(super) fn check_primary(&self, election_id: Option<Uint128>) -> Result<(), Status> {
        let given = joined(election_id);
        let primary = self.primary_stream();
        if given != 0 && primary.is_some_and(|stream| stream.election_id == given) {
            return Ok(());
        }
        let why = match primary {
            Some(stream) => format!("the primary has election id {}", stream.election_id),
            None => "there is no primary: open a stream first, with an election id above all before".into(),
        };
        Err(Status::permission_denied(format!("election id {given} is not the primary's; {why}")))
    }

    /// Whether this stream is the primary's.
    pub(super) fn is_primary(&self, number: u64) -> bool {
        self.primary() == Some(number)
    }

    /// Sends a message to one stream. Whether there was room.
    pub(super) fn send(&self, number: u64, message: StreamMessageResponse) -> bool {
        let stream = self.streams.iter().find(|stream| stream.number == number);
        stream.is_some_and(|stream| stream.sender.try_send(Ok(message)).is_ok())
    }

    /// Sends a message to the primary. Whether there is one, with room.
    pub(super) fn send_primary(&self, message: StreamMessageResponse) -> bool {
        self.primary().is_some_and(|number| self.send(number, message))
    }

    fn primary_stream(&self) -> Option<&Stream> {
        let candidates = self.streams.iter().filter(|stream| stream.election_id != 0);
        candidates.max_by_key(|stream| stream.election_id).filter(|stream| stream.election_id >= self.highest)
    }

    fn primary(&self) -> Option<u64> {
        self.primary_stream().map(|stream| stream.number)
    }

    /// The election id of a claim, if it can be made.
    fn checked(&self, claim: &MasterArbitrationUpdate, own: Option<u64>) -> Result<u128, Status> {
        if claim.device_id != self.device_id {
            let own = self.device_id;
            return Err(Status::not_found(format!("there is no device {}, only {own}", claim.device_id)));
        }
        if claim.role.as_ref().is_some_and(|role| !role.name.is_empty() || role.config.is_some()) {
            return Err(Status::unimplemented("roles don't exist over BFRuntime; leave the role out"));
        }
        let election_id = joined(claim.election_id);
        let taken = |stream: &&Stream| {
            stream.election_id == election_id && Some(stream.number) != own && election_id != 0
        };
        match self.streams.iter().find(taken) {
            Some(_) => Err(Status::invalid_argument(format!(
                "election id {election_id} is another controller's; choose a higher one"
            ))),
            None => Ok(election_id),
        }
    }

    /// Answers the claiming stream, and all streams if the primary has changed.
    fn settle(&mut self, number: u64, before: Option<u64>) {
        let claimed = self.streams.iter().find(|stream| stream.number == number);
        self.highest = self.highest.max(claimed.map_or(0, |stream| stream.election_id));
        let changed = self.primary() != before;
        self.tell(|stream| changed || stream.number == number);
    }

    /// Notifies streams of their status. A stream whose client does not read is closed.
    fn tell(&mut self, who: impl Fn(&Stream) -> bool) {
        let primary = self.primary();
        let mut deaf = Vec::new();
        for stream in self.streams.iter().filter(|stream| who(stream)) {
            let (code, message) = match primary {
                Some(number) if number == stream.number => (Code::Ok, ""),
                Some(_) => (Code::AlreadyExists, "another controller is primary"),
                None => (Code::NotFound, "there is no primary"),
            };
            let status = RpcStatus { code: code as i32, message: message.into(), ..Default::default() };
            let update = MasterArbitrationUpdate {
                device_id: self.device_id,
                role: None,
                election_id: Some(Uint128 { high: (self.highest >> 64) as u64, low: self.highest as u64 }),
                status: Some(status),
            };
            let update = Some(stream_message_response::Update::Arbitration(update));
            let sent = stream.sender.try_send(Ok(StreamMessageResponse { update }));
            if matches!(sent, Err(TrySendError::Full(_))) {
                stream.dismissed.notify_one();
                deaf.push(stream.number);
            }
        }
        deaf.into_iter().for_each(|number| self.leave(number));
    }
}

fn joined(election_id: Option<Uint128>) -> u128 {
    election_id.map_or(0, |id| u128::from(id.high) << 64 | u128::from(id.low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(election_id: u64) -> MasterArbitrationUpdate {
        let election_id = Some(Uint128 { high: 0, low: election_id });
        MasterArbitrationUpdate { device_id: 1, election_id, ..Default::default() }
    }

    /// The arbitration codes that a stream received.
    fn told(receiver: &mut mpsc::Receiver<Message>) -> Vec<Code> {
        let mut codes = Vec::new();
        while let Ok(Ok(message)) = receiver.try_recv() {
            if let Some(stream_message_response::Update::Arbitration(update)) = message.update {
                codes.push(Code::try_from(update.status.unwrap_or_default().code).unwrap());
            }
        }
        codes
    }

    #[test]
    fn the_highest_election_id_is_primary() {
        let mut arbitration = Arbitration::new(1);
        let (one, mut first) = mpsc::channel(8);
        let (two, mut second) = mpsc::channel(8);
        let one = arbitration.enter(&claim(5), one, Arc::default()).unwrap();
        assert_eq!(told(&mut first), [Code::Ok]);
        let two = arbitration.enter(&claim(7), two, Arc::default()).unwrap();
        assert_eq!((told(&mut first), told(&mut second)), (vec![Code::AlreadyExists], vec![Code::Ok]));
        assert!(arbitration.is_primary(two) && arbitration.check_primary(claim(7).election_id).is_ok());
        assert!(arbitration.check_primary(claim(5).election_id).is_err());
        assert!(arbitration.check_primary(None).is_err());
        arbitration.leave(two);
        assert_eq!(told(&mut first), [Code::NotFound], "5 is below what there was");
        assert!(arbitration.check_primary(claim(5).election_id).is_err());
        arbitration.claim(one, &claim(7)).unwrap();
        assert_eq!(told(&mut first), [Code::Ok]);
    }

    #[test]
    fn claims_that_can_not_be_made_change_nothing() {
        let mut arbitration = Arbitration::new(1);
        let (one, mut first) = mpsc::channel(8);
        let (two, _second) = mpsc::channel(8);
        arbitration.enter(&claim(5), one, Arc::default()).unwrap();
        assert_eq!(
            arbitration.enter(&claim(5), two.clone(), Arc::default()).unwrap_err().code(),
            tonic::Code::InvalidArgument
        );
        let stranger = MasterArbitrationUpdate { device_id: 2, ..claim(9) };
        assert_eq!(
            arbitration.enter(&stranger, two.clone(), Arc::default()).unwrap_err().code(),
            tonic::Code::NotFound
        );
        assert!(arbitration.check_primary(claim(5).election_id).is_ok());
        // Streams without an election id only watch; there may be several.
        let watcher = arbitration.enter(&claim(0), two.clone(), Arc::default()).unwrap();
        arbitration.enter(&claim(0), two.clone(), Arc::default()).unwrap();
        assert!(!arbitration.is_primary(watcher));
        assert_eq!(told(&mut first), [Code::Ok]);
    }

    #[tokio::test]
    async fn who_does_not_read_loses_its_stream() {
        let mut arbitration = Arbitration::new(1);
        let (one, _unread) = mpsc::channel(1);
        let dismissed = Arc::new(Notify::new());
        let one = arbitration.enter(&claim(5), one, dismissed.clone()).unwrap();
        let (two, _read) = mpsc::channel(8);
        arbitration.enter(&claim(6), two, Arc::default()).unwrap();
        assert!(!arbitration.streams.iter().any(|stream| stream.number == one));
        let told = tokio::time::timeout(std::time::Duration::ZERO, dismissed.notified()).await;
        assert!(told.is_ok(), "and is ended");
    }
}
