//! Registries: sorted, ids unique, every page with its headings.
