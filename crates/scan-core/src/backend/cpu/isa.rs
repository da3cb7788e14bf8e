//! The instruction sets that engines write code for.

use std::sync::OnceLock;

/// An instruction set; a later one has all that an earlier one has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Isa {
    /// What every processor has.
    Portable,
    /// x86-64 with AVX2 and FMA: vectors of 32 bytes.
    Avx2,
    /// x86-64 with AVX-512 F, VL, DQ and BW as well: vectors of 64 bytes.
    Avx512,
}

impl Isa {
    /// The name by which `RSCAN_ISA` chooses it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }
    /// The set of a name.
    ///
    /// # Errors
    /// The name is not known; the text lists those that are.
    pub fn parse(name: &str) -> Result<Isa, String> {
        let known = [Isa::Portable, Isa::Avx2, Isa::Avx512];
        known
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| format!("RSCAN_ISA is \"{name}\"; it may be avx512, avx2 or portable, or not be set"))
    }
    /// The best that this machine has.
    pub fn machine() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
            if avx2 && wide && is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512bw") {
                return Isa::Avx512;
            }
            if avx2 {
                return Isa::Avx2;
            }
        }
        Isa::Portable
    }
    /// All that this machine has.
    pub fn available() -> impl Iterator<Item = Isa> {
        [Isa::Portable, Isa::Avx2, Isa::Avx512].into_iter().filter(|&isa| isa <= Isa::machine())
    }
    /// What engines use in this process: what the environment variable `RSCAN_ISA` asks for, as far as the machine has it. Read once.
    ///
    /// # Errors
    /// `RSCAN_ISA` holds a word that is no instruction set.
    pub fn detect() -> Result<Isa, String> {
        static CHOSEN: OnceLock<Result<Isa, String>> = OnceLock::new();
        CHOSEN.get_or_init(|| Isa::choose(std::env::var("RSCAN_ISA").ok().as_deref(), Isa::machine())).clone()
    }
    fn choose(asked: Option<&str>, machine: Isa) -> Result<Isa, String> {
        match asked {
            None | Some("") => Ok(machine),
            Some(name) => Ok(Isa::parse(name)?.min(machine)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Isa;

    #[test]
    fn the_environment_lowers_but_does_not_raise() {
        assert_eq!(Isa::choose(None, Isa::Avx512), Ok(Isa::Avx512));
        assert_eq!(Isa::choose(Some("avx2"), Isa::Avx512), Ok(Isa::Avx2));
        assert_eq!(Isa::choose(Some("avx512"), Isa::Avx2), Ok(Isa::Avx2));
        assert_eq!(Isa::choose(Some("portable"), Isa::Avx512), Ok(Isa::Portable));
    }
    #[test]
    fn an_unknown_word_is_told() {
        let text = Isa::choose(Some("sse9"), Isa::Avx512).expect_err("no such set");
        assert!(text.contains("sse9") && text.contains("avx512, avx2 or portable"), "{text}");
    }
}
