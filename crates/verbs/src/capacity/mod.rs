//! Predictions, one file per question.

mod asked;
pub mod gc;
pub mod rpc;
