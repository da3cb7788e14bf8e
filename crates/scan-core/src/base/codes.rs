//! The pages that explain error codes: one file each in `codes/`, listed here.

macro_rules! pages {
    ($($code:literal),* $(,)?) => {
        /// Every code that has a page.
        pub const CODES: &[&str] = &[$($code),*];

        /// The page of a code, `E0103`.
        ///
        /// ```
        /// use scan_core::prelude::*;
        ///
        /// assert!(error_page("E0103").unwrap().starts_with("# E0103: "));
        /// ```
        pub fn page(code: &str) -> Option<&'static str> {
            match code {
                $($code => Some(include_str!(concat!("codes/", $code, ".md"))),)*
                _ => None,
            }
        }
    };
}

#[rustfmt::skip]
pages![
    "E0101", "E0102", "E0103", "E0104", "E0105", "E0106", "E0107", "E0108", "E0109", "E0110", "E0111", "E0112",
    "E0113", "E0114", "E0115", "E0116", "E0117", "E0118", "E0119", "E0120", "E0121", "E0122", "E0123", "E0124",
    "E0125", "E0126", "E0127", "E0128", "E0129", "E0130", "E0201", "E0202", "E0203", "E0204", "E0205", "E0206", "E0207", "E0208", "E0220", "E0221",
    "E0222", "E0224", "E0230", "E0231", "E0301", "E0302", "E0390", "E0391", "E0392", "E0401", "E0402", "E0403", "E0404",
    "E0405", "E0406", "E0407", "E0414", "E0415", "E0501", "E0502", "E0503", "E0504", "E0505", "E0506", "E0507",
    "E0508", "E0509", "E0511", "E0515", "E0521", "E0522", "E0523", "E0531", "E0532", "E0533", "E0534", "E0541", "E0601", "E0602", "E0603", "E0604", "E0605", "E0701", "E0702", "E0703",
    "E0704", "E0801", "E0802", "E0803",
    "E0804", "E0805", "E0806", "E0807", "E0808", "E0809", "E0810", "E0811", "E0812", "E0813", "E0814", "E0901", "E0902",
    "E0903", "E0904", "E0905", "E0906", "E0907", "E0908", "E0911", "E0912", "E0913", "E0914", "E0915", "E0916",
    "E0917", "E0918", "E0921", "E0922", "E0923", "E0924", "E0925", "E0926", "E0927", "E9999",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The list above, from the folder.
    fn folder() -> Vec<String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/base/codes");
        let Ok(files) = std::fs::read_dir(path) else { return vec![] };
        let mut codes: Vec<String> = files.filter_map(|f| f.ok()?.file_name().to_str()?.strip_suffix(".md").map(str::to_string)).collect();
        codes.sort();
        codes
    }

    #[test]
    fn every_page_is_listed() {
        let list = folder().iter().map(|c| format!("{c:?}, ")).collect::<String>();
        assert_eq!(folder(), CODES, "the list should be: {list}");
    }

    #[test]
    fn pages_begin_with_their_code() {
        for code in CODES {
            let first = page(code).and_then(|p| p.lines().next()).unwrap_or_default();
            assert!(first.starts_with(&format!("# {code}")), "{code}: the first line is {first:?}, not `# {code}: …`");
        }
    }
}
