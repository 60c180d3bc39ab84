//! The running program, and how another one replaces it.

use super::{Device, beside, status};
use crate::core::{Gone, Handle};
use crate::p4runtime::limits::Charge;
use crate::p4runtime::preserve;
use p4rack_entities::{Candidate, Program};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::SetForwardingPipelineConfigRequest;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_switch::Pipeline;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tonic::Status;

/// Listeners for programs, notified while nothing is written or read.
pub(crate) trait Watch: std::fmt::Debug + Send + Sync {
    /// Another program runs than `old`: `new`.
    fn replaced(&self, old: Option<&Arc<Program>>, new: &Arc<Program>);
}

/// The running program, and the one saved for COMMIT.
#[derive(Debug, Default)]
pub struct Programs {
    /// Listeners for program changes.
    pub watch: Option<Arc<dyn Watch>>,
    /// The running program.
    pub running: Option<Arc<Program>>,
    /// The program that VERIFY_AND_SAVE saved.
    pub saved: Option<Candidate>,
    /// Whether all packets are traced, for a log.
    pub is_logged: bool,
    /// Programs whose switch has state that P4Runtime does not show, so that no other program can take it over.
    apart: Mutex<Vec<Weak<Program>>>,
}

impl Programs {
    /// Loads a program into the switch.
    pub async fn commit(&mut self, handle: &Handle, candidate: Candidate) -> Result<(), Gone> {
        let Candidate { program, pipeline } = candidate;
        handle.call(move |switch, _| switch.load(pipeline)).await?;
        self.runs(handle, Arc::new(program)).await
    }

    /// Notes that a client has written state to a program's switch that P4Runtime does not show.
    pub fn set_apart(&self, program: &Arc<Program>) {
        // No change can panic half-way.
        let mut apart = self.apart.lock().unwrap_or_else(PoisonError::into_inner);
        apart.retain(|known| known.strong_count() > 0);
        if !apart.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(program))) {
            apart.push(Arc::downgrade(program));
        }
    }

    fn is_apart(&self, program: &Arc<Program>) -> bool {
        let apart = self.apart.lock().unwrap_or_else(PoisonError::into_inner);
        apart.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(program)))
    }

    /// The switch has another program.
    pub(super) async fn runs(&mut self, handle: &Handle, program: Arc<Program>) -> Result<(), Gone> {
        if self.is_logged {
            let ir = program.clone();
            // The first packet after the answer is in the log.
            let traced = tokio::task::spawn_blocking(move || Pipeline::compile_traced(&ir.ir)).await;
            let begun = match traced.map_err(|error| error.to_string()) {
                Ok(Ok(traced)) => handle
                    .call(|switch, _| switch.trace_all(traced))
                    .await?
                    .map_err(|error| error.to_string()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(error) => Err(error),
            };
            if let Err(error) = begun {
                tracing::warn!(error, "the log will not say what happens to packets");
            }
        }
        let old = self.running.replace(program.clone());
        if let Some(watch) = &self.watch {
            watch.replaced(old.as_ref(), &program);
        }
        Ok(())
    }

    /// Carries out an action of SetForwardingPipelineConfig with a verified program.
    async fn take(&mut self, handle: &Handle, action: Action, candidate: Candidate) -> Result<(), Status> {
        match action {
            Action::VerifyAndSave => self.saved = Some(candidate),
            Action::VerifyAndCommit => {
                self.saved = None;
                self.commit(handle, candidate).await?;
            }
            Action::ReconcileAndCommit => {
                let Some(running) = self.running.clone() else {
                    self.saved = None;
                    return Ok(self.commit(handle, candidate).await?);
                };
                if self.is_apart(&running) {
                    let message = "BFRuntime's clients have written what P4Runtime does not show (settings of single \
                                   pipes, attributes of tables, tables of the device …), and a new program could not \
                                   take it over; use VERIFY_AND_COMMIT, which clears all";
                    return Err(status(Code::FailedPrecondition, message));
                }
                let program = preserve::replace(handle, &running, candidate).await?;
                self.saved = None;
                self.runs(handle, program).await?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Does work that must not be cancelled half-way. Its memory is charged until it ends, even if the caller has left.
pub(super) async fn to_its_end(
    charge: Arc<Charge>,
    work: impl Future<Output = Result<(), Status>> + Send + 'static,
) -> Result<(), Status> {
    let done = tokio::spawn(async move {
        let done = work.await;
        drop(charge);
        done
    });
    done.await.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
}

impl Device {
    /// Verifies, saves or installs a program, as the request says. `charge` is held until the work ends, even if the
    /// caller has left.
    pub async fn set_config(
        &self,
        request: SetForwardingPipelineConfigRequest,
        charge: Arc<Charge>,
    ) -> Result<(), Status> {
        self.check_id(request.device_id)?;
        if self.authorise(&request.role, request.election_id.as_ref())?.is_some_and(|access| !access.installs)
        {
            return Err(status(
                Code::PermissionDenied,
                "the role's config does not allow it to set the pipeline",
            ));
        }
        let action = Action::try_from(request.action).unwrap_or(Action::Unspecified);
        match (action, request.config) {
            (Action::Unspecified, _) => Err(status(Code::InvalidArgument, "the action is not set")),
            (Action::Commit, Some(_)) => {
                Err(status(Code::InvalidArgument, "COMMIT uses the saved config; leave config unset"))
            }
            (Action::Commit, None) => {
                let mut programs = self.programs.clone().write_owned().await;
                self.authorise(&request.role, request.election_id.as_ref())?;
                let Some(saved) = programs.saved.take() else {
                    return Err(status(Code::NotFound, "no config is saved; call VERIFY_AND_SAVE first"));
                };
                let handle = self.handle.clone();
                to_its_end(charge, async move { Ok(programs.commit(&handle, saved).await?) }).await
            }
            (_, None) => Err(status(Code::InvalidArgument, "config is not set")),
            (action, Some(config)) => {
                let charged = charge.clone();
                let verify = move || {
                    let verified = Candidate::verify(config);
                    drop(charged);
                    verified
                };
                let verified = beside(&self.compiler, verify).await?;
                let candidate = verified.map_err(|error| status(error.code, error.message))?;
                let mut programs = self.programs.clone().write_owned().await;
                // The primary may have changed while the program was compiled.
                self.authorise(&request.role, request.election_id.as_ref())?;
                let handle = self.handle.clone();
                to_its_end(charge, async move { programs.take(&handle, action, candidate).await }).await
            }
        }
    }
}
