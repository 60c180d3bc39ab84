//! Plain switching: it promises nothing, so there is nothing to watch.

use super::{Watch, WatchHost};

/// Nothing.
#[derive(Debug)]
pub(crate) struct L2;

impl Watch for L2 {}

impl WatchHost for L2 {}
