//! Hosts in several pipes of a chip under EDM: what asks for time in another pipe visits the clock there, and the lane of its
//! message in the pipe by which data comes in.

mod grants;
mod hosts;
mod lanes;
mod lost;
mod rack;
mod registers;
