//! How the lanes of a kernel tell whether its loop stops.

/// Which votes stop a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quorum {
    /// Those of all lanes.
    All,
    /// That of one.
    One,
}

/// How a kernel tells whether its loop stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Votes {
    /// Which of them stop it.
    pub quorum: Quorum,
    /// Bools per step: as many as lanes, or one where that is the same in all.
    pub voters: usize,
}

impl Votes {
    /// True where those of a step stop it.
    pub fn stop(&self, step: &[u8]) -> bool {
        // All at once, as vectors do it.
        match self.quorum {
            Quorum::All => step.iter().fold(1, |all, vote| all & vote) != 0,
            Quorum::One => step.iter().fold(0, |one, vote| one | vote) != 0,
        }
    }
}
