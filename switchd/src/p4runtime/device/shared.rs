//! Access for another server of the same device: its program, and the order of requests.

use super::programs::{Programs, to_its_end};
use super::{Device, Watch, beside};
use crate::core::Handle;
use crate::p4runtime::limits::Charge;
use p4rack_entities::Program;
use p4rack_switch::{Keep, Switch};
use std::sync::Arc;
use tokio::sync::{RwLockReadGuard, RwLockWriteGuard, SemaphorePermit};
use tonic::Status;

/// While it is held, no program comes.
#[derive(Debug)]
pub(crate) struct Held<'a>(RwLockReadGuard<'a, Programs>);

impl Held<'_> {
    /// The program that runs.
    pub fn program(&self) -> Option<&Arc<Program>> {
        self.0.running.as_ref()
    }

    /// Notes that a program's switch has state that P4Runtime does not show.
    pub fn set_apart(&self, program: &Arc<Program>) {
        self.0.set_apart(program);
    }

    /// Whether this program runs.
    pub fn runs(&self, program: &Arc<Program>) -> bool {
        self.0.running.as_ref().is_some_and(|running| Arc::ptr_eq(running, program))
    }
}

/// While it is held, nothing is written and no program comes.
#[derive(Debug)]
pub(crate) struct Alone<'a>(#[allow(dead_code)] RwLockWriteGuard<'a, Programs>);

impl Device {
    /// The way to the switch.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Keeps the program.
    pub(crate) async fn hold(&self) -> Held<'_> {
        Held(self.programs.read().await)
    }

    /// Waits until nothing is written and no program comes, and keeps it so.
    pub(crate) async fn alone(&self) -> Alone<'_> {
        Alone(self.programs.write().await)
    }

    /// From now on, notifies `watch` of programs that replace others.
    pub(crate) async fn watch(&self, watch: Arc<dyn Watch>) {
        self.programs.write().await.watch = Some(watch);
    }

    /// A permit for a part of a Read.
    pub(crate) async fn part(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.parts.acquire().await.ok()
    }

    /// Compiles on another thread, so that other requests don't wait.
    pub(crate) async fn compile<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Status> {
        beside(&self.compiler, work).await
    }

    /// Runs long work beside the threads that serve calls.
    pub(crate) async fn aside<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Status> {
        beside(&self.aside, work).await
    }

    /// Lets the switch take over another one, which runs this program and was prepared elsewhere; `take` gives it up
    /// once no reads and writes are under way. Returns whether there was one. A saved program is forgotten.
    pub(crate) async fn take_over(
        &self,
        program: Arc<Program>,
        take: impl Future<Output = Option<Switch>> + Send,
        keep: Keep,
        charge: Arc<Charge>,
    ) -> Result<bool, Status> {
        let mut programs = self.programs.clone().write_owned().await;
        let Some(other) = take.await else { return Ok(false) };
        let handle = self.handle.clone();
        let work = async move {
            programs.saved = None;
            handle.call(move |switch, _| switch.adopt(other, keep)).await?;
            programs.runs(&handle, program).await?;
            Ok(())
        };
        to_its_end(charge, work).await.map(|()| true)
    }
}
