//! Titles of `PostgreSQL` backends, as `/proc/PID/cmdline` shows them: `postgres: app shop 10.0.0.7(41288) UPDATE waiting`.
//!
//! A title holds names of users and databases, and addresses; only the activity at its end is taken. A backend that waits for
//! a heavyweight lock (rows, tables) appends ` waiting`: `set_ps_display_suffix` in `src/backend/utils/misc/ps_status.c`,
//! `ProcSleep` in src/backend/storage/lmgr/proc.c (`PostgreSQL` 9.0 to 18).

/// Activity of a client backend: `waiting` (for a heavyweight lock), `idle`, `busy`; empty for other processes.
pub fn activity(title: &str) -> &'static str {
    let title = title.trim_end_matches(['\0', ' ', '\n']);
    let Some(rest) = title.strip_prefix("postgres: ") else {
        return "";
    };
    // A client backend has its client's address with the port in brackets, or `[local]`; helpers have neither.
    let is_client = rest.split(' ').any(|word| {
        word == "[local]" || (word.ends_with(')') && word.contains('(') && !word.starts_with('('))
    });
    if !is_client {
        return "";
    }
    if rest.ends_with(" waiting") {
        "waiting"
    } else if rest.ends_with(" idle") {
        "idle"
    } else {
        // `idle in transaction` holds its locks.
        "busy"
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_backend_that_waits_for_a_row_says_so() {
        for (title, expected) in [
            (
                "postgres: app shop 10.0.0.7(41288) UPDATE waiting\0\0",
                "waiting",
            ),
            ("postgres: 15/main: app shop [local] SELECT", "busy"),
            (
                "postgres: app shop 10.0.0.7(41288) idle in transaction",
                "busy",
            ),
            ("postgres: app shop 127.0.0.1(41288) idle", "idle"),
            ("postgres: checkpointer ", ""),
            ("postgres: 15/main: walwriter ", ""),
            ("/usr/lib/postgresql/15/bin/postgres\0-D\0/var", ""),
            ("vi waiting", ""),
        ] {
            assert_eq!(activity(title), expected, "{title}");
        }
    }

    proptest! {
        #[test]
        fn any_title_is_read_without_a_panic(title in any::<String>()) {
            activity(&title);
            activity(&format!("postgres: {title}"));
        }
    }
}
