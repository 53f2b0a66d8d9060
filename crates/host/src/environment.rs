//! The variables, the command line and the folders that rungwise takes from its environment.

use std::env;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::privilege;

/// Where journals and the instance lock live: `RUNGWISE_STATE`, else `/var/lib/rungwise` for root,
/// else `$XDG_STATE_HOME/rungwise`, else `~/.local/state/rungwise`. Absolute, because the guard of a
/// journal works in another folder.
pub fn state_dir() -> Result<PathBuf> {
    let dir =
        state_dir_of(|name| variable(name).map(PathBuf::from), is_root()).ok_or_else(|| {
            Error::Missing {
                tried: "find a folder for state".to_owned(),
                why: "neither RUNGWISE_STATE nor XDG_STATE_HOME nor HOME is set".to_owned(),
                remedy: "set RUNGWISE_STATE to a folder that you own".to_owned(),
            }
        })?;
    std::path::absolute(dir).map_err(Error::system("find the current folder"))
}

/// Where results live that can be made again, such as a built service: `RUNGWISE_CACHE`, else `/var/cache/rungwise` for root, else
/// `$XDG_CACHE_HOME/rungwise`, else `~/.cache/rungwise`. Absolute, because it becomes part of the command of a service.
pub fn cache_dir() -> Result<PathBuf> {
    let dir =
        cache_dir_of(|name| variable(name).map(PathBuf::from), is_root()).ok_or_else(|| {
            Error::Missing {
                tried: "find a folder for the cache".to_owned(),
                why: "neither RUNGWISE_CACHE nor XDG_CACHE_HOME nor HOME is set".to_owned(),
                remedy: "set RUNGWISE_CACHE to a folder that you own".to_owned(),
            }
        })?;
    std::path::absolute(dir).map_err(Error::system("find the current folder"))
}

/// Where the user says that the JDK is.
pub fn java_home() -> Option<PathBuf> {
    variable("JAVA_HOME").map(PathBuf::from)
}

/// Folders for a result that cannot be written to its own place: the one for temporary files, and the current one.
pub fn other_folders() -> Vec<PathBuf> {
    let mut folders = vec![env::temp_dir()];
    folders.extend(env::current_dir());
    folders
}

/// Whether the user asked for no colour (<https://no-color.org>: set and not empty).
pub fn no_color() -> bool {
    variable("NO_COLOR").is_some()
}

/// Kind of terminal; `dumb` and none cannot move the cursor.
pub fn term() -> Option<String> {
    variable("TERM")
}

/// This program's file, to start it again as a guard or a service.
pub fn current_exe() -> Result<PathBuf> {
    env::current_exe().map_err(Error::system("find this program's own file"))
}

/// The command line; bytes that are not UTF-8 are replaced.
pub fn argv() -> Vec<String> {
    env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// A variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn state_dir_of(variable: impl Fn(&str) -> Option<PathBuf>, root: bool) -> Option<PathBuf> {
    let system = root.then(|| "/var/lib/rungwise".into());
    let own = || system.or_else(|| of_user(&variable, "XDG_STATE_HOME", ".local/state"));
    variable("RUNGWISE_STATE").or_else(own)
}

fn cache_dir_of(variable: impl Fn(&str) -> Option<PathBuf>, root: bool) -> Option<PathBuf> {
    let system = root.then(|| "/var/cache/rungwise".into());
    let own = || system.or_else(|| of_user(&variable, "XDG_CACHE_HOME", ".cache"));
    variable("RUNGWISE_CACHE").or_else(own)
}

fn of_user(
    variable: impl Fn(&str) -> Option<PathBuf>,
    xdg: &str,
    below_home: &str,
) -> Option<PathBuf> {
    // The XDG specification has relative paths ignored.
    let xdg = variable(xdg).filter(|dir| dir.is_absolute());
    xdg.or_else(|| Some(variable("HOME")?.join(below_home)))
        .map(|dir| dir.join("rungwise"))
}

/// Root of the machine, not of a user namespace.
fn is_root() -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    root && privilege::in_initial_user_namespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_goes_where_the_user_says_then_where_the_system_says() {
        let all = |name: &str| Some(PathBuf::from(format!("/{name}")));
        assert_eq!(state_dir_of(all, true), Some("/RUNGWISE_STATE".into()));
        let xdg =
            |name: &str| (name != "RUNGWISE_STATE").then(|| PathBuf::from(format!("/{name}")));
        assert_eq!(state_dir_of(xdg, true), Some("/var/lib/rungwise".into()));
        assert_eq!(
            state_dir_of(xdg, false),
            Some("/XDG_STATE_HOME/rungwise".into())
        );
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/home/u"));
        assert_eq!(
            state_dir_of(home, false),
            Some("/home/u/.local/state/rungwise".into())
        );
        assert_eq!(state_dir_of(|_| None, false), None);
        assert_eq!(cache_dir_of(all, true), Some("/RUNGWISE_CACHE".into()));
        assert_eq!(
            cache_dir_of(|_| None, true),
            Some("/var/cache/rungwise".into())
        );
        assert_eq!(
            cache_dir_of(home, false),
            Some("/home/u/.cache/rungwise".into())
        );
    }

    #[test]
    fn a_relative_xdg_folder_is_ignored() {
        let odd = |name: &str| match name {
            "XDG_STATE_HOME" => Some(PathBuf::from("state")),
            "HOME" => Some(PathBuf::from("/home/u")),
            _ => None,
        };
        assert_eq!(
            state_dir_of(odd, false),
            Some("/home/u/.local/state/rungwise".into())
        );
    }
}
