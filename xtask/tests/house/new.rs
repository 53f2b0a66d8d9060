//! `cargo xtask new`, in a copy of the checkout: what it writes compiles, and is refused until filled in.
