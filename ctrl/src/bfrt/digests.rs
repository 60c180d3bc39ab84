//! Digests of the program that a client is bound to. Only that client receives them.

use super::{Link, update_error};
use crate::connect::ConnectOptions;
use crate::error::CtrlError;
use p4rack_bfrt::p4runtime::digest_list;
use p4rack_p4rt::bfrt_proto::stream_message_response;
use p4rack_p4rt::bfrt_proto::subscribe::Notifications;
use p4rack_p4rt::p4::v1::DigestList;

impl Link {
    /// Connects to hear of digests, once it is bound to a program ([`Link::schema`]).
    pub async fn to_learn(target: ConnectOptions) -> Result<Link, CtrlError> {
        let news = Notifications { enable_learn_notifications: true, ..Default::default() };
        Link::subscribed(target, news).await
    }

    /// The next list, with the ids of [`Link::schema`]'s names. It is not acknowledged: a driver does that itself, and ends the
    /// stream of a client that does, too. Errors: a program is installed, whose names may be others.
    pub async fn digests(&mut self) -> Result<DigestList, CtrlError> {
        loop {
            match self.message().await?.update {
                Some(stream_message_response::Update::Digest(list)) => {
                    return digest_list(&self.bound()?.schema, &list).map_err(update_error);
                }
                Some(stream_message_response::Update::SetForwardingPipelineConfigResponse(_)) => {
                    return Err(CtrlError::Ended("a program was installed; start again".into()));
                }
                _ => {}
            }
        }
    }
}
