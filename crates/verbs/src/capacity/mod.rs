//! Predictions, one file per question.

mod asked;
pub mod gc;
