//! The rules of client arbitration, independent of streams.
//!
//! The one with the highest election id ever seen for a role is its primary. When it leaves, there
//! is no successor: the other controllers get NOT_FOUND and may claim a higher (or the same) id.
//!
//! ```text
//!                 id ≥ highest                    leaves, or lowers its id
//!   backup ──────────────────────▶ primary ─────────────────────────────▶ (no primary)
//!     ▲  ALREADY_EXISTS: a primary │ OK                                        │
//!     └────── another's id is higher ┘            NOT_FOUND for all backups ◀──┘
//! ```

use super::roles::{Access, Refusal};
use p4rack_p4rt::google::rpc::Code;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Identifies a stream.
pub type ClientId = u64;

/// A notification to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The client to notify.
    pub client: ClientId,
    /// Role of the client.
    pub role: String,
    /// Highest election id of any primary of the role.
    pub highest: Option<u128>,
    /// OK for the primary, ALREADY_EXISTS for others while there is one, otherwise NOT_FOUND.
    pub code: Code,
}

#[derive(Debug, Default)]
struct Role {
    /// Access that its last primary asked for; `None` is everything.
    access: Option<Arc<Access>>,
    highest: Option<u128>,
    primary: Option<ClientId>,
    clients: BTreeMap<ClientId, Option<u128>>,
    /// When its last controller left, as an increasing number.
    left_at: u64,
}

impl Role {
    fn notice(&self, name: &str, client: ClientId) -> Notice {
        let code = match self.primary {
            Some(primary) if primary == client => Code::Ok,
            Some(_) => Code::AlreadyExists,
            None => Code::NotFound,
        };
        Notice { client, role: name.into(), highest: self.highest, code }
    }

    fn notices(&self, name: &str) -> Vec<Notice> {
        self.clients.keys().map(|client| self.notice(name, *client)).collect()
    }
}

/// Arbitration for all roles of a device.
#[derive(Debug)]
pub struct Arbitration {
    roles: BTreeMap<String, Role>,
    limit: usize,
    departures: u64,
}

impl Arbitration {
    /// Without clients. `limit` is the maximum of roles, and of clients per role.
    pub fn new(limit: usize) -> Arbitration {
        Arbitration { roles: BTreeMap::new(), limit, departures: 0 }
    }

    /// A client asks to be primary (or, without election id, backup) of a role.
    pub fn update(
        &mut self,
        client: ClientId,
        role_name: &str,
        election: Option<u128>,
    ) -> Result<Vec<Notice>, Refusal> {
        let refuse = |code, message: String| Err(Refusal { code, message });
        if let Some(role) = self.role_of(client)
            && role != role_name
        {
            let message = format!(
                "this stream has role `{role}` and can't change it to `{role_name}`; open another stream"
            );
            return refuse(Code::FailedPrecondition, message);
        }
        if !self.roles.contains_key(role_name) && self.roles.len() >= self.limit && !self.forget_a_role() {
            return refuse(Code::ResourceExhausted, format!("{} roles are the limit", self.limit));
        }
        let role = self.roles.entry(role_name.to_owned()).or_default();
        let taken = |(other, id): (&ClientId, &Option<u128>)| *other != client && *id == election;
        if let Some(election) = election
            && role.clients.iter().any(taken)
        {
            let message = format!(
                "election id {}:{} is used by another controller that is connected; choose another",
                election >> 64,
                election & u128::from(u64::MAX)
            );
            return refuse(Code::InvalidArgument, message);
        }
        if !role.clients.contains_key(&client) && role.clients.len() >= self.limit {
            let message = format!("{} controllers are connected, which is the limit", self.limit);
            return refuse(Code::ResourceExhausted, message);
        }
        role.clients.insert(client, election);
        let was_primary = role.primary == Some(client);
        let wins = election.is_some() && election >= role.highest;
        if wins {
            role.primary = Some(client);
            role.highest = election;
        } else if was_primary {
            role.primary = None;
        }
        Ok(if wins || was_primary { role.notices(role_name) } else { vec![role.notice(role_name, client)] })
    }

    /// Makes room: the role without controllers for the longest time loses its highest election id.
    fn forget_a_role(&mut self) -> bool {
        let empty = self.roles.iter().filter(|(name, role)| !name.is_empty() && role.clients.is_empty());
        let longest = empty.min_by_key(|(_, role)| role.left_at).map(|(name, _)| name.clone());
        longest.is_some_and(|name| self.roles.remove(&name).is_some())
    }

    /// Whether this replaces a primary or changes its own id. Its writes then have to end first.
    pub fn replaces_primary(&self, client: ClientId, role_name: &str, election: Option<u128>) -> bool {
        let Some(role) = self.roles.get(role_name) else { return false };
        role.primary.is_some_and(|primary| primary == client || election >= role.highest)
    }

    /// Whether a role can have this access, given the roles that have controllers.
    pub fn check_access(&self, role_name: &str, access: &Access) -> Result<(), Refusal> {
        let others = self.roles.iter().filter(|(name, role)| *name != role_name && !role.clients.is_empty());
        for (name, role) in others {
            if let Some(id) = role.access.as_ref().and_then(|other| access.conflict(other)) {
                let message = format!(
                    "role `{name}` has the object with id {id} (0x{id:08x}), and one of both for itself"
                );
                return Err(Refusal { code: Code::InvalidArgument, message });
            }
        }
        Ok(())
    }

    /// Records the access that a primary asks for on behalf of its role. Others are ignored.
    pub fn set_access(&mut self, client: ClientId, access: Option<Arc<Access>>) {
        if let Some(role) = self.roles.values_mut().find(|role| role.primary == Some(client)) {
            role.access = access;
        }
    }

    /// Access of a role; `None` is everything.
    pub fn access(&self, role_name: &str) -> Option<&Arc<Access>> {
        self.roles.get(role_name)?.access.as_ref()
    }

    /// A stream has ended. The end of a primary promotes no other stream.
    pub fn leave(&mut self, client: ClientId) -> Vec<Notice> {
        for (name, role) in &mut self.roles {
            if role.clients.remove(&client).is_some() {
                self.departures += 1;
                role.left_at = self.departures;
                if role.primary != Some(client) {
                    return Vec::new();
                }
                role.primary = None;
                return role.notices(name);
            }
        }
        Vec::new()
    }

    /// Whether the sender of a Write may write, and the access of its role; `None` is everything.
    pub fn authorise(&self, role_name: &str, election: Option<u128>) -> Result<Option<Arc<Access>>, Refusal> {
        let refuse = |code, message: &str| Err(Refusal { code, message: message.into() });
        let Some(role) = self.roles.get(role_name) else {
            return match role_name {
                "" => refuse(Code::PermissionDenied, "nobody is primary; open a stream and arbitrate first"),
                _ => refuse(Code::NotFound, "no controller has arbitrated for this role"),
            };
        };
        match role.primary {
            None => refuse(Code::PermissionDenied, "there is no primary; arbitrate first"),
            Some(_) if election.is_none() || election != role.highest => {
                refuse(Code::PermissionDenied, "only the primary may write: this is not its election id")
            }
            Some(_) => Ok(role.access.clone()),
        }
    }

    /// Access of this client's role, if it is the primary.
    pub fn primary_access(&self, client: ClientId) -> Option<Option<&Access>> {
        let role = self.roles.values().find(|role| role.primary == Some(client))?;
        Some(role.access.as_deref())
    }

    /// Whether a role has a primary.
    pub fn has_primary(&self, role_name: &str) -> bool {
        self.roles.get(role_name).is_some_and(|role| role.primary.is_some())
    }

    /// The primaries of all roles, with their access.
    pub fn primaries(&self) -> impl Iterator<Item = (ClientId, Option<&Access>)> {
        self.roles.values().filter_map(|role| Some((role.primary?, role.access.as_deref())))
    }

    fn role_of(&self, client: ClientId) -> Option<&str> {
        let mut roles = self.roles.iter();
        roles.find(|(_, role)| role.clients.contains_key(&client)).map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(notices: Vec<Notice>) -> Vec<(ClientId, Code)> {
        notices.into_iter().map(|notice| (notice.client, notice.code)).collect()
    }

    #[test]
    fn the_primarys_disconnect_promotes_nobody_and_the_highest_election_id_is_remembered() {
        let mut arbitration = Arbitration::new(8);
        assert_eq!(codes(arbitration.update(1, "", Some(10)).unwrap()), [(1, Code::Ok)]);
        assert_eq!(codes(arbitration.update(2, "", Some(5)).unwrap()), [(2, Code::AlreadyExists)]);
        let notices = arbitration.leave(1);
        assert_eq!(notices[0].highest, Some(10));
        assert_eq!(codes(notices), [(2, Code::NotFound)]);
        assert_eq!(codes(arbitration.update(2, "", Some(9)).unwrap()), [(2, Code::NotFound)]);
        assert_eq!(arbitration.authorise("", Some(9)).unwrap_err().code, Code::PermissionDenied);
        assert_eq!(codes(arbitration.update(2, "", Some(10)).unwrap()), [(2, Code::Ok)]);
        assert_eq!(arbitration.authorise("", Some(10)), Ok(None));
    }

    #[test]
    fn unset_election_id_is_never_primary_and_differs_from_zero() {
        let mut arbitration = Arbitration::new(8);
        assert_eq!(codes(arbitration.update(1, "", None).unwrap()), [(1, Code::NotFound)]);
        assert_eq!(arbitration.authorise("", None).unwrap_err().code, Code::PermissionDenied);
        let notices = arbitration.update(2, "", Some(0)).unwrap();
        assert_eq!(codes(notices), [(1, Code::AlreadyExists), (2, Code::Ok)]);
        assert_eq!(arbitration.authorise("", None).unwrap_err().code, Code::PermissionDenied);
        assert_eq!(arbitration.authorise("", Some(0)), Ok(None));
    }

    #[test]
    fn several_may_be_backups_without_election_id() {
        let mut arbitration = Arbitration::new(8);
        arbitration.update(1, "", None).unwrap();
        assert!(arbitration.update(2, "", None).is_ok());
    }

    #[test]
    fn a_higher_election_id_takes_over_and_everybody_is_told() {
        let mut arbitration = Arbitration::new(8);
        arbitration.update(1, "", Some(1)).unwrap();
        let notices = arbitration.update(2, "", Some(2)).unwrap();
        assert_eq!(codes(notices), [(1, Code::AlreadyExists), (2, Code::Ok)]);
        assert_eq!(arbitration.authorise("", Some(1)).unwrap_err().code, Code::PermissionDenied);
    }

    #[test]
    fn a_primary_that_lowers_its_id_leaves_nobody_in_charge() {
        let mut arbitration = Arbitration::new(8);
        arbitration.update(1, "", Some(5)).unwrap();
        arbitration.update(2, "", Some(4)).unwrap();
        let notices = arbitration.update(1, "", Some(3)).unwrap();
        assert_eq!(codes(notices), [(1, Code::NotFound), (2, Code::NotFound)]);
    }

    #[test]
    fn a_used_election_id_ends_the_stream() {
        let mut arbitration = Arbitration::new(8);
        arbitration.update(1, "", Some(5)).unwrap();
        assert_eq!(arbitration.update(2, "", Some(5)).unwrap_err().code, Code::InvalidArgument);
        assert_eq!(codes(arbitration.update(1, "", Some(5)).unwrap()), [(1, Code::Ok)]);
    }

    #[test]
    fn roles_are_apart_and_cant_be_changed() {
        let mut arbitration = Arbitration::new(8);
        arbitration.update(1, "", Some(5)).unwrap();
        assert_eq!(codes(arbitration.update(2, "acl", Some(1)).unwrap()), [(2, Code::Ok)]);
        assert_eq!(arbitration.update(2, "", Some(9)).unwrap_err().code, Code::FailedPrecondition);
        assert_eq!(arbitration.authorise("acl", Some(1)), Ok(None));
        assert_eq!(arbitration.authorise("nat", Some(1)).unwrap_err().code, Code::NotFound);
        assert_eq!(arbitration.primaries().map(|(client, _)| client).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn the_role_without_controllers_for_longest_makes_room_for_another() {
        let mut arbitration = Arbitration::new(3);
        for (client, role) in [(1, ""), (2, "a"), (3, "b")] {
            arbitration.update(client, role, Some(7)).unwrap();
        }
        for client in [1, 3, 2] {
            arbitration.leave(client);
        }
        arbitration.update(4, "c", Some(1)).unwrap();
        assert_eq!(arbitration.authorise("b", Some(7)).unwrap_err().code, Code::NotFound);
        arbitration.update(5, "d", Some(1)).unwrap();
        assert_eq!(arbitration.authorise("a", Some(7)).unwrap_err().code, Code::NotFound);
        // The default role and roles with controllers stay.
        assert_eq!(arbitration.update(6, "e", Some(1)).unwrap_err().code, Code::ResourceExhausted);
        assert_eq!(codes(arbitration.update(6, "", Some(6)).unwrap()), [(6, Code::NotFound)]);
    }

    #[test]
    fn writes_end_only_for_who_takes_a_primarys_place_or_is_it() {
        let mut arbitration = Arbitration::new(3);
        assert!(!arbitration.replaces_primary(1, "", Some(5)), "there is none");
        arbitration.update(1, "", Some(5)).unwrap();
        for (client, election, expected) in
            [(1, None, true), (1, Some(5), true), (2, Some(4), false), (2, None, false), (2, Some(6), true)]
        {
            assert_eq!(arbitration.replaces_primary(client, "", election), expected, "{client} {election:?}");
        }
        assert!(!arbitration.replaces_primary(2, "other", Some(9)));
    }

    #[test]
    fn too_many_are_refused() {
        let mut arbitration = Arbitration::new(2);
        arbitration.update(1, "", Some(1)).unwrap();
        arbitration.update(2, "", None).unwrap();
        assert_eq!(arbitration.update(3, "", None).unwrap_err().code, Code::ResourceExhausted);
        arbitration.leave(2);
        assert!(arbitration.update(3, "", None).is_ok());
        arbitration.update(4, "a", None).unwrap();
        assert_eq!(arbitration.update(5, "b", None).unwrap_err().code, Code::ResourceExhausted);
    }
}
