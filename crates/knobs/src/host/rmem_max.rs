//! Socket buffers: the default size and the largest that a socket may request.

use rungwise_model::units;

use crate::Result;
use crate::edit::Place;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// `net.rmem_max`
pub(crate) static KNOB: Knob = Knob {
    id: "net.rmem_max",
    scope: Scope::Host,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "largest and default size of socket buffers, both directions",
    values: "a size for the largest, such as 16MiB, or max=16MiB,default=1MiB",
    doc: Doc {
        does: "rmem_max and wmem_max limit what SO_RCVBUF and SO_SNDBUF may request; rmem_default and wmem_default \
               apply to sockets that request nothing. TCP has its own limits (tcp_rmem, tcp_wmem).",
        helps: "When UDP sockets drop (RcvbufErrors) although the reading thread is not short of CPU: bursts that a \
                larger buffer can hold. Sockets that are already open keep their size.",
        costs: "Kernel memory per socket, and latency: packets wait longer in a long queue.",
        undone: "The previous sizes are written back. Sockets opened meanwhile keep theirs.",
        sources: "socket(7); defaults 4,194,304 and 212,992 bytes on Linux 6.18, read there. Not writable in a child \
                  network namespace (EACCES, measured).",
    },
    by_hand: &[],
    writes: &[
        Target::File("/proc/sys/net/core/rmem_max", Form::Words),
        Target::File("/proc/sys/net/core/wmem_max", Form::Words),
        Target::File("/proc/sys/net/core/rmem_default", Form::Words),
        Target::File("/proc/sys/net/core/wmem_default", Form::Words),
    ],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let names = ["rmem_max", "wmem_max", "rmem_default", "wmem_default"];
    let readings: Result<Vec<_>> = names
        .iter()
        .map(|name| context.read_machine(&KNOB, &path(name)))
        .collect();
    let readings = readings?;
    let of = |index: usize| readings[index].value.clone();
    let value = if of(0) == of(1) && of(2) == of(3) {
        format!("max={}B,default={}B", of(0), of(2))
    } else {
        "mixed".to_owned()
    };
    Ok(Current::known(value, readings))
}

fn draft(_: &Context<'_>, wish: &str) -> Result<Draft> {
    let mut draft = Draft::default();
    let mut seen = Vec::new();
    for part in wish.split(',') {
        let (name, size) = part.split_once('=').unwrap_or(("max", part));
        let name = name.trim();
        if !["max", "default"].contains(&name) || seen.contains(&name) {
            return Err(KNOB.bad_wish(wish, format!("'{part}' is not one size for max or default")));
        }
        seen.push(name);
        let bytes = units::bytes(size).map_err(|error| KNOB.bad_wish(wish, error.to_string()))?;
        let largest = u64::from(i32::MAX.unsigned_abs());
        if bytes == 0 || bytes > largest {
            return Err(KNOB.bad_wish(wish, format!("a size must be 1 to {largest} bytes")));
        }
        for direction in ["rmem", "wmem"] {
            draft = draft.file(&Place::Host, path(&format!("{direction}_{name}")), &bytes);
        }
    }
    Ok(draft)
}

fn path(name: &str) -> String {
    format!("/proc/sys/net/core/{name}")
}
