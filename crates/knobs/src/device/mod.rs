//! Knobs of one network device. Each file is one knob; its name is the last part of the knob's id.

pub(crate) mod gro;
pub(crate) mod gro_list_fwd;
pub(crate) mod napi_defer;
pub(crate) mod rfs;
pub(crate) mod rps_cpus;
pub(crate) mod threaded_napi;
pub(crate) mod tso_gso;
pub(crate) mod xps_cpus;

use crate::knob::{Current, Knob, Reading};
use crate::mask;

/// One value for masks that are all alike; `mixed` otherwise.
fn masks(knob: &Knob, readings: Vec<Reading>) -> Current {
    let Some(first) = readings.first() else {
        return Current::unknown(format!("the device has no queue with {}", knob.id));
    };
    let Some(cpus) = mask::parse(&first.value) else {
        return Current::unknown(format!(
            "{} does not hold a mask but '{}'",
            first.source, first.value
        ));
    };
    let alike = readings
        .iter()
        .all(|reading| mask::parse(&reading.value).as_ref() == Some(&cpus));
    let value = match (alike, cpus.is_empty()) {
        (false, _) => "mixed".to_owned(),
        (true, true) => "off".to_owned(),
        (true, false) => mask::format_list(&cpus),
    };
    Current::known(value, readings)
}
