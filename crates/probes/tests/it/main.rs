//! Probes over recorded machines and machines in texts.

mod cpu_stories;
mod every_probe;
mod host_stories;
mod losses;
mod net_answers;
mod net_stories;
mod owners;
mod queues;
mod story;
