//! Plain switching promises nothing, so there is nothing to check.

use super::{Watch, WatchHost};

/// No checks.
#[derive(Debug)]
pub(crate) struct L2;

impl Watch for L2 {}

impl WatchHost for L2 {}
