//! Commands on the switch as a whole: ports, queues, programs.

use super::words::{at_least, exactly, number};
use super::{Call, Done, Failure, mistake};
use p4rack_netdev::Links;
use p4rack_p4rt::p4::v1::ForwardingPipelineConfig;
use p4rack_switch::{QUEUES, QueueLimit, QueuePlan, Shaping, ShapingUnit};
use p4rack_wire::ethernet::overhead::{FCS, MTU};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use std::time::SystemTime;

/// A full frame with tag and FCS.
const FRAME_BYTES: u64 = (Ethernet::BYTES + Vlan::BYTES) as u64 + MTU + FCS;

impl Call<'_> {
    pub(super) async fn device_command(&mut self, name: &str, args: &[&str]) -> Done {
        match name {
            "show_ports" => {
                exactly::<0>(args)?;
                self.say(format!("{:^10}{:^20}{:^10}{}", "port #", "iface name", "status", "extra info"));
                self.say("=".repeat(50));
                let mut links = Links::open().ok();
                for port in self.runtime.facts.ports.clone() {
                    let link = links.as_mut().and_then(|links| links.get(&port.interface).ok());
                    let status = if link.is_some_and(|link| link.carries) { "UP" } else { "DOWN" };
                    self.say(format!("{:^10}{:^20}{status:^10}", port.number, port.interface));
                }
                Ok(())
            }
            "switch_info" => {
                exactly::<0>(args)?;
                let (id, ports) = (self.runtime.facts.device_id, self.runtime.facts.ports.len());
                self.say(format!("{:25}: {id}", "device_id"));
                self.say(format!("{:25}: {ports}", "ports"));
                let addr = self.runtime.client.target().addr.clone();
                self.say(format!("{:25}: {addr}", "p4runtime"));
                Ok(())
            }
            "get_time_elapsed" => {
                exactly::<0>(args)?;
                let elapsed_us = self.runtime.facts.started.elapsed().as_micros();
                self.say(elapsed_us);
                Ok(())
            }
            "get_time_since_epoch" => {
                exactly::<0>(args)?;
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let since = since.map_err(|error| Failure(format!("Error: the system's clock: {error}")))?;
                self.say(since.as_micros());
                Ok(())
            }
            "set_queue_rate" | "set_queue_depth" => self.set_queue(name, args).await,
            "reset_state" => {
                exactly::<0>(args)?;
                let config = self.config().await?;
                self.install(config).await
            }
            "load_new_config_file" => {
                let [file] = exactly::<1>(args)?;
                let Some(text) = self.given.take() else { return mistake("Not a valid filename") };
                self.say("Loading new Json config");
                let compiled = match p4rack_bmv2::is_json_file(&text, file) {
                    true => p4rack_bmv2::read(&text, file, None).map_err(|error| error.to_string()),
                    false => Err(format!("{file} is not BMv2's JSON; p4c writes it")),
                };
                let compiled =
                    compiled.map_err(|error| Failure(format!("Error: Not a valid JSON file: {error}")))?;
                self.runtime.loaded = Some(ForwardingPipelineConfig {
                    p4info: Some(compiled.p4info),
                    p4_device_config: text.into_bytes(),
                    cookie: None,
                });
                Ok(())
            }
            "swap_configs" => {
                exactly::<0>(args)?;
                let Some(config) = self.runtime.loaded.clone() else {
                    return Err(Failure(
                        "Invalid swap operation (NO_ONGOING_SWAP): load_new_config_file comes first".into(),
                    ));
                };
                self.say("Swapping configs");
                self.install(config).await?;
                self.runtime.loaded = None;
                Ok(())
            }
            "write_config_to_file" => {
                exactly::<1>(args)?;
                let config = self.config().await?.p4_device_config;
                let text = String::from_utf8_lossy(&config).into_owned();
                // A controller may have wrapped the text.
                let is_wrapped = text.starts_with(|c: char| c.is_control() && !c.is_whitespace());
                let from = if is_wrapped { text.find('{').unwrap_or(0) } else { 0 };
                self.taken = Some(text[from..].to_owned());
                Ok(())
            }
            _ => self.unknown(name),
        }
    }

    /// The running program.
    async fn config(&mut self) -> Done<ForwardingPipelineConfig> {
        let config = self.runtime.client.pipeline().await?;
        config.ok_or_else(|| Failure("Error: the switch runs no program".to_owned()))
    }

    /// Installs a program; the switch's state starts over.
    async fn install(&mut self, config: ForwardingPipelineConfig) -> Done {
        let schema = self.schema.clone();
        let done = self.runtime.session(&schema).await?.set_pipeline(config).await;
        self.runtime.session = None;
        done?;
        self.runtime.forget();
        Ok(())
    }

    async fn set_queue(&mut self, name: &str, args: &[&str]) -> Done {
        let what = if name == "set_queue_rate" { "rate_pps" } else { "nb_pkts" };
        let ([value], rest) = at_least::<1>(args)?;
        let value: u32 = number(value, what)?;
        let all = 0..QUEUES as u8;
        let (ports, queues) = match rest {
            [] => (self.runtime.facts.ports.iter().map(|port| port.number).collect(), all),
            [port] => (vec![number(port, "egress_port")?], all),
            [port, priority] => {
                let queue: u8 = number(priority, "priority")?;
                (vec![number(port, "egress_port")?], queue..queue.saturating_add(1))
            }
            _ => return mistake(format!("Wrong number of args, expected 1 to 3 but got {}", args.len())),
        };
        let is_rate = name == "set_queue_rate";
        let change = move |plan: QueuePlan| match is_rate {
            true => QueuePlan { most: frames_per_s(value), ..plan },
            false => {
                let limit = QueueLimit { bytes: u64::from(value) * FRAME_BYTES, share_log2: None };
                QueuePlan { limit: Some(limit), ..plan }
            }
        };
        let set = move |switch: &mut p4rack_switch::Switch, now| {
            for port in &ports {
                for queue in queues.clone() {
                    let plan = switch.queue_plan(*port, queue)?;
                    switch.queue_plan_set(*port, queue, change(plan), now)?;
                }
            }
            Ok::<(), p4rack_switch::ControlError>(())
        };
        let done = self.runtime.handle.call(set).await.map_err(|gone| Failure(format!("Error: {gone}")))?;
        done.map_err(|error| Failure(format!("Error: {error}")))
    }
}

/// A rate of frames; 0 is no limit, as BMv2 has it.
fn frames_per_s(rate_per_s: u32) -> Shaping {
    match rate_per_s {
        0 => Shaping::default(),
        _ => Shaping { enabled: true, unit: ShapingUnit::Frames, rate_per_s: rate_per_s.into(), burst: 0 },
    }
}
