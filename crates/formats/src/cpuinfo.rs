//! `/proc/cpuinfo`: the CPU model. Reads the first CPU only; a machine has one kind, or (big.LITTLE) the
//! difference does not matter here.
//!
//! x86 gives a name and flags; arm64 numbers of vendor and part only, and no flag for guests. Source:
//! arch/x86/kernel/cpu/proc.c and arch/arm64/kernel/cpuinfo.c, Linux 6.18.

use crate::fields;

/// What the CPUs are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuInfo {
    /// Name, or vendor and part in numbers; empty if the file has neither.
    pub model: String,
    /// Whether the CPU reports a hypervisor; absent on CPUs that do not report it (all but x86).
    pub hypervisor: Option<bool>,
}

/// Reads the file; `None` if it holds no `name : value` line.
pub fn parse(text: &str) -> Option<CpuInfo> {
    let field = |name: &str| fields::value(text, name);
    text.lines().find(|line| line.contains(':'))?;
    let model = match field("model name").or_else(|| field("Model")) {
        Some(name) => name.to_owned(),
        None => match (field("CPU implementer"), field("CPU part")) {
            (Some(vendor), Some(part)) => format!("implementer {vendor} part {part}"),
            _ => String::new(),
        },
    };
    // Only x86 has a line of this name; arm64 calls it `Features`.
    let hypervisor = field("flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    Some(CpuInfo { model, hypervisor })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_x86_guest_says_so() {
        let text =
            "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu x2apic hypervisor lahf_lm\n";
        let info = parse(text).unwrap();
        assert_eq!(
            (info.model.as_str(), info.hypervisor),
            ("AMD EPYC", Some(true))
        );
        let bare = parse("model name\t: Foo\nflags\t\t: fpu hypervisor_not\n").unwrap();
        assert_eq!(bare.hypervisor, Some(false));
    }

    #[test]
    fn arm_has_numbers_and_does_not_tell_of_guests() {
        let text =
            "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x48\nCPU part\t: 0xd01\n";
        let info = parse(text).unwrap();
        assert_eq!(info.model, "implementer 0x48 part 0xd01");
        assert_eq!(info.hypervisor, None);
        assert_eq!(parse("garbage"), None);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".*") {
            let _ = parse(&text);
        }
    }
}
