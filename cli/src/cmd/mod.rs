//! One file or folder per subcommand. Each parses its arguments, calls the crate that does the work, and prints.

mod adapter;
pub mod balloon;
pub mod bench;
mod bench_bfrt;
pub mod bench_edm;
mod bench_hostile;
mod bench_p4runtime;
mod bench_programs;
mod bench_save;
pub mod bench_sim;
pub mod bench_soak;
mod bench_start;
mod bmv2;
mod by_hand;
pub mod cache;
mod cached_client;
pub mod clio;
pub mod commands;
pub mod compat;
pub mod complete;
pub mod connect;
pub mod cowbird;
pub mod deploy;
pub mod doctor;
pub mod entity;
pub mod exercise;
pub mod far;
pub mod fat_tree;
mod finding;
pub mod gateway;
pub mod generate;
pub mod generator;
pub mod host;
pub mod hostile;
mod log_client;
pub mod memory;
pub mod mininet;
mod own_switch;
pub mod p4;
pub mod pl2;
pub mod queue;
pub mod rack;
pub mod roce;
mod saved;
mod schemes;
mod sde;
mod settings;
pub mod sim;
mod simulated;
pub mod switch;
pub mod switch_trace;
pub mod top;
pub mod topology;
pub mod trace;
pub mod up;
mod values;
mod way;
pub mod workload;

/// Prints why a command did not do its work, and returns its exit code.
fn refused(error: impl std::fmt::Display) -> std::process::ExitCode {
    eprintln!("error: {error}");
    std::process::ExitCode::FAILURE
}

/// A time that an option takes. `parse` also reads "nan" and "inf", which no time can be.
fn finite(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("write a number above 0, for example 0.5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::finite;

    #[test]
    fn times_are_numbers_above_zero() {
        assert_eq!(finite("0.5"), Ok(0.5));
        for text in ["nan", "inf", "-1", "0", "1e999", "soon"] {
            assert!(finite(text).is_err(), "{text}");
        }
    }
}
