//! Parameters of the kernel command line, as GRUB of Debian and its derivatives reads them from a folder.
//!
//! Other distributions use commands; the file names them.

use super::item::{Item, Setting};
use super::{Export, HEADER};

pub(super) const PATH: &str = "/etc/default/grub.d/90-rungwise.cfg";

pub(super) fn write(settings: &[Setting], export: &mut Export) {
    for setting in settings {
        match &setting.item {
            Item::Boot { .. } => {}
            Item::Fleeting { why, .. } => export.leave(setting, why.clone()),
            Item::Sysctl { .. } => {
                export.leave(setting, "it is set at run time; use --as sysctl.d");
            }
            Item::Group { .. } => {
                export.leave(setting, "it is set at run time; use --as systemd");
            }
            _ => export.leave(setting, "it is set at run time; use --as tuned or systemd"),
        }
    }
    let words = parameters(settings);
    if words.is_empty() {
        return;
    }
    let words = words.join(" ");
    export.file(
        PATH,
        format!(
            "# {HEADER}\n\
             # Debian, Ubuntu and derivatives: takes effect after update-grub and a reboot. Others do not read this folder:\n\
             #   Red Hat, Fedora and derivatives: grubby --update-kernel=ALL --args=\"{words}\"\n\
             #   GRUB elsewhere: add the words to GRUB_CMDLINE_LINUX in /etc/default/grub, then grub2-mkconfig -o\n\
             #     /boot/grub2/grub.cfg, or grub-mkconfig -o /boot/grub/grub.cfg\n\
             #   systemd-boot: add the words to /etc/kernel/cmdline, then kernel-install add-all\n\
             GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {words}\"\n"
        ),
    );
}

/// The words in order, each once.
pub(super) fn parameters(settings: &[Setting]) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    for setting in settings {
        if let Item::Boot { text } = &setting.item {
            for word in text.split_whitespace() {
                if !words.contains(&word) {
                    words.push(word);
                }
            }
        }
    }
    words
}
