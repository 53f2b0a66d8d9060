//! Switches of the service under test. Each file is one knob; its name is the last part of its id.
//!
//! The engine cannot turn these: a socket option belongs to the process that holds the socket. Their plans carry
//! [`Edit::Service`], and the service is restarted with that switch; `rungwise serve udp` has an option for each, and
//! its start line shows what the kernel granted.

pub(crate) mod af_xdp;
pub(crate) mod application;
pub(crate) mod busy_poll;
pub(crate) mod incoming_cpu;
pub(crate) mod io_uring;
pub(crate) mod jvm;
pub(crate) mod pin_threads;
pub(crate) mod pmtudisc;
pub(crate) mod recvmmsg;
pub(crate) mod reuseport;
pub(crate) mod reuseport_bpf;
pub(crate) mod udp_gro;
pub(crate) mod udp_segment;
pub(crate) mod xdp_echo;

use crate::Result;
use crate::edit::Edit;
use crate::knob::{Context, Current, Draft};

#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature of every knob's reader"
)]
fn read(_: &Context<'_>) -> Result<Current> {
    Ok(Current::unknown("only the service knows it"))
}

fn switch(context: &Context<'_>, name: &str, value: &impl ToString) -> Draft {
    let edit = Edit::Service {
        switch: name.to_owned(),
        value: value.to_string(),
    };
    Draft {
        edits: vec![(context.place.clone(), edit)],
        notes: vec!["takes effect when the service is restarted with it".to_owned()],
    }
}

/// Each service knob's undo is the same.
const RESTARTED: &str =
    "The service is restarted without the switch; nothing remains in the kernel.";

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;
    use crate::knob::Scope;

    #[test]
    fn a_switch_is_planned_and_nonsense_is_refused_with_the_right_words() {
        let host = Recorded::new("this host", 1);
        let context = Context::of_host(&host, None, &[0, 1]);
        let cases = [
            ("sock.reuseport", "on", "on"),
            ("sock.reuseport_bpf", "cbpf", "cbpf"),
            ("cpu.pin_threads", "0-1", "0-1"),
            ("sock.pmtudisc", "do", "do"),
            ("sock.recvmmsg", "32", "32"),
            ("sock.busy_poll", "50us", "50us"),
            ("net.xdp_echo", "generic", "generic"),
            ("sock.af_xdp", "native", "native"),
        ];
        for (id, wish, value) in cases {
            let plan = crate::find(id).unwrap().plan(&context, wish).unwrap();
            assert_eq!(plan.service().next().unwrap().1, value, "{id}");
        }
        for knob in crate::KNOBS
            .iter()
            .filter(|knob| knob.scope == Scope::Service)
        {
            let error = knob.plan(&context, "perhaps").unwrap_err().to_string();
            assert!(
                error.contains(knob.values) && error.contains("perhaps"),
                "{error}"
            );
        }
    }
}
