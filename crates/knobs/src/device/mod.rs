//! Knobs of one network device.

pub(crate) mod gro;
pub(crate) mod gro_list_fwd;
pub(crate) mod hardware;
pub(crate) mod link;
pub(crate) mod napi_defer;
pub(crate) mod queues;
pub(crate) mod rfs;
pub(crate) mod ring;
pub(crate) mod rps_cpus;
pub(crate) mod rss_hash_fields;
pub(crate) mod rss_table;
pub(crate) mod threaded_napi;
pub(crate) mod tso_gso;
pub(crate) mod xps_cpus;
pub(crate) mod xps_rxqs;

use rungwise_model::kernel::{Answer, NetDevice, Question};

use crate::Result;
use crate::error::Error;
use crate::knob::{Context, Current, Knob, Reading};
use crate::mask;

/// The kernel's description of the device, limits included.
fn details(knob: &Knob, context: &Context<'_>) -> Result<NetDevice> {
    let name = context.device(knob)?;
    let failed = |answer| {
        let host = context.here.name();
        Error::kernel(knob.id, format!("read the limits of {name}"), host, answer)
    };
    let answer = context.here.ask(Question::Devices).map_err(failed)?;
    let devices = match answer {
        Answer::Devices(devices) => devices,
        _ => Vec::new(),
    };
    devices
        .into_iter()
        .find(|device| device.name == name)
        .ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))
}

/// One value for masks that are all alike; `mixed` otherwise.
fn masks(knob: &Knob, readings: Vec<Reading>) -> Current {
    let Some(first) = readings.first() else {
        return Current::unknown(format!("the device has no queue with {}", knob.id));
    };
    let Some(cpus) = mask::parse(&first.value) else {
        return Current::unknown(format!(
            "{} is not a CPU mask: '{}'",
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
