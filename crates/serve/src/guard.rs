//! A wall around a service's handler that keeps its panics from ending a worker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Makes the handler of a worker.
pub(crate) type Factory<H> = Arc<dyn Fn(usize) -> H + Send + Sync>;

/// A handler behind its wall. One that panics is dropped and made anew; if the factory panics too, the worker continues
/// without a handler.
pub(crate) struct Guarded<H> {
    handler: Option<H>,
    factory: Factory<H>,
    worker: usize,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called<T> {
    Returned(T),
    Panicked,
    /// There is no handler.
    Absent,
}

impl<H> Guarded<H> {
    pub(crate) fn new(factory: Factory<H>, worker: usize) -> Self {
        let mut guarded = Self {
            handler: None,
            factory,
            worker,
        };
        guarded.renew();
        guarded
    }

    pub(crate) fn call<T>(&mut self, work: impl FnOnce(&mut H) -> T) -> Called<T> {
        let Some(handler) = &mut self.handler else {
            return Called::Absent;
        };
        // Unwind safe: a handler that panicked is never called again.
        if let Ok(value) = catch_unwind(AssertUnwindSafe(|| work(handler))) {
            return Called::Returned(value);
        }
        self.renew();
        Called::Panicked
    }

    /// Drops the handler, if any, and makes a fresh one; both may panic themselves.
    #[cold]
    fn renew(&mut self) {
        let spoiled = self.handler.take();
        drop(catch_unwind(AssertUnwindSafe(|| drop(spoiled))));
        let (factory, worker) = (&self.factory, self.worker);
        self.handler = catch_unwind(AssertUnwindSafe(|| factory(worker))).ok();
    }
}
