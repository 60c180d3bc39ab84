//! Digests of the program that a client is bound to. Only that client receives them.

use super::{Link, update_error};
use crate::connect::ConnectOptions;
use crate::error::CtrlError;
use p4rack_bfrt::p4runtime::digest_list;
use p4rack_p4rt::bfrt_proto::subscribe::Notifications;
use p4rack_p4rt::bfrt_proto::{
    DigestListAck, StreamMessageRequest, stream_message_request, stream_message_response,
};
use p4rack_p4rt::p4::v1::DigestList;

impl Link {
    /// Connects to hear of digests, once it is bound to a program ([`Link::schema`]).
    pub async fn to_learn(target: ConnectOptions) -> Result<Link, CtrlError> {
        let news = Notifications { enable_learn_notifications: true, ..Default::default() };
        Link::subscribed(target, news).await
    }

    /// The next list, with the ids of [`Link::schema`]'s names. It is acknowledged. Errors: a program is installed, whose
    /// names may be others.
    pub async fn digests(&mut self) -> Result<DigestList, CtrlError> {
        loop {
            let list = match self.message().await?.update {
                Some(stream_message_response::Update::Digest(list)) => list,
                Some(stream_message_response::Update::SetForwardingPipelineConfigResponse(_)) => {
                    return Err(CtrlError::Ended("a program was installed; start again".into()));
                }
                _ => continue,
            };
            let read = digest_list(&self.bound()?.schema, &list).map_err(update_error)?;
            let ack = DigestListAck { digest_id: list.digest_id, list_id: list.list_id };
            let update = Some(stream_message_request::Update::DigestAck(ack));
            let request = StreamMessageRequest { client_id: self.client_id, update };
            if let Some(stream) = &self.stream {
                let sent = stream.outgoing.send(request).await;
                sent.map_err(|_| CtrlError::Ended("it closed the stream".into()))?;
            }
            return Ok(read);
        }
    }
}
