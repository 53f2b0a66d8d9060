//! Round trips on the real kernel.
