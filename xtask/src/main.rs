//! `cargo xtask`: the command line of the chores. Exit 0 done, 1 failed, 4 a precondition is missing.
#![expect(clippy::print_stderr, reason = "errors are printed for the user")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::new::Kind;
use xtask::new::knob::Scope;
use xtask::tree::Tree;

/// Project chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    /// Work on this checkout instead of the one xtask was built in.
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    root: Option<PathBuf>,
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Run every test; installs the Debian packages that they need and lists them.
    Test {
        /// Only check that the packages are installed; install nothing.
        #[arg(long)]
        no_install: bool,
        /// Only tests that need no root, no packages and no JVM: those of every crate below the binary, and the recorded hosts.
        #[arg(long, conflicts_with = "no_install")]
        fast: bool,
        /// Arguments for `cargo test --workspace`.
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Write the generated pages, schemas, man pages and completions.
    Docs {
        /// Write nothing; fail and name the files that are stale.
        #[arg(long)]
        check: bool,
    },
    /// Write the stub of a new part and its entry in the registry.
    New {
        /// What to add.
        kind: Kind,
        /// Its id: `net.rps_cpus`, `tcp/accept-queue-overflow`, `net/proc-net-snmp`, `rpc-echo`.
        id: String,
        /// Scope of a knob; the folder of its file.
        #[arg(long, value_enum, default_value_t = Scope::Netns)]
        scope: Scope,
    },
    /// Remove other people's data from a recorded capture: processes, unused devices, names in stacks.
    Prune {
        /// Output of `rungwise capture --mask-addresses`.
        capture: PathBuf,
        /// The file to write; may be the same.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Cut the kernel command line after this word.
        #[arg(long, value_name = "WORD")]
        command_line_to: Option<String>,
    },
    /// Provide the JVMs whose logs the tests read, as `java-8` to `java-25` below the target folder; `test` does this too.
    Jvms,
    /// Ask real JVMs for their flags and write the tables of `rungwise jvm flags`.
    JvmFlags {
        /// One per release: `17=/usr/lib/jvm/java-17-openjdk-amd64/bin/java`.
        #[arg(required = true, value_name = "RELEASE=JAVA")]
        javas: Vec<String>,
    },
    /// Plant faults, confirm each by other means, run rungwise, and score its findings; without `--random` a small fixed set.
    Faults(xtask::faults::Options),
    /// The paced client of `faults`.
    #[command(hide = true)]
    FaultsLoad {
        /// An order as JSON.
        order: String,
    },
    /// The service of `faults` for faults that no Debian program can have.
    #[command(hide = true)]
    FaultsApp {
        /// Address and port.
        listen: String,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let tree = cli.root.map_or_else(Tree::ours, Tree::at);
    let result = match cli.chore {
        Chore::Test {
            fast: true, args, ..
        } => xtask::test::fast(&tree, &args),
        Chore::Test {
            no_install, args, ..
        } => xtask::test::run(&tree, no_install, &args),
        Chore::Docs { check } => xtask::docs::run(&tree, check),
        Chore::New { kind, id, scope } => xtask::new::run(&tree, kind, &id, scope),
        Chore::Prune {
            capture,
            output,
            command_line_to,
        } => xtask::prune::run(&capture, &output, command_line_to.as_deref()),
        Chore::Jvms => xtask::jvms::run(),
        Chore::JvmFlags { javas } => xtask::jvm_flags::run(&tree, &javas),
        Chore::Faults(options) => xtask::faults::run(&tree, &options),
        Chore::FaultsLoad { order } => xtask::faults::load(&order),
        Chore::FaultsApp { listen } => {
            xtask::faults::app::serve(&listen).map(|()| ExitCode::SUCCESS)
        }
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
