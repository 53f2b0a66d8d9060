//! A capture of the machine while the load runs.
//!
//! The lab knows where and when to capture; its builder passes in how (probes, samplers, masks). The generator's measurements come with
//! the capture, since only they show whether the load was the limit.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Duration;

use rungwise_host::Host;
use rungwise_load::engine::{Completed, Edge, Hooks};
use rungwise_load::parameters::{Length, Load};
use rungwise_probes::Capture;

use crate::stage::StageError;

/// How much longer than the capture its load runs: both ends of a capture read whole tables.
pub(super) const MARGIN: Duration = Duration::from_millis(500);

/// What to capture.
pub struct CapturePlace<'a> {
    /// The place of the service.
    pub host: &'a dyn Host,
    /// Its process.
    pub service: Option<u32>,
    /// For how long.
    pub window: Duration,
}

/// Captures the machine, or says why it cannot.
pub type Capturer = dyn FnMut(&CapturePlace<'_>) -> Result<Capture, String>;

/// Calls `capture` once the load has warmed up, and ends with the load; `at_edge` is called at both ends of its window.
pub(super) fn under_load(
    (traffic, length): (&dyn Load, &Length),
    entry: &(dyn Fn(usize) -> io::Result<()> + Sync),
    at_edge: &(dyn Fn(Edge) + Sync),
    interrupted: &AtomicBool,
    capture: impl FnOnce() -> Result<Capture, String>,
) -> Result<(Capture, Completed), StageError> {
    std::thread::scope(|scope| {
        let (warm, warmed) = channel();
        let load = scope.spawn(move || {
            let on_edge = |edge: Edge| {
                at_edge(edge);
                if matches!(edge, Edge::Began) {
                    // Nobody listens any more only where the capture is over.
                    let _ = warm.send(());
                }
            };
            traffic.run(
                length,
                &Hooks {
                    thread_start: entry,
                    window: &on_edge,
                    interrupted,
                    turns: None,
                },
                &mut |_| {},
            )
        });
        // A load that never warmed up says itself why.
        let captured = warmed.recv().ok().map(|()| capture());
        let loaded = load
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (loaded, captured) {
            (Ok(completed), Some(Ok(capture))) => Ok((capture, completed)),
            (Ok(_), Some(Err(why))) => Err(StageError::Unavailable(why)),
            (Ok(_), None) => Err(StageError::Broken(
                "the generator ended without a measured window".to_owned(),
            )),
            (Err(error @ rungwise_load::Error::NoReplies { .. }), _) => {
                Err(StageError::ServiceFailed(error.to_string()))
            }
            (Err(error), _) => Err(StageError::Broken(error.to_string())),
        }
    })
}
