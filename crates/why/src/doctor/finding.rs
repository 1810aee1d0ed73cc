//! What a probe found, and what it means.

use serde::Serialize;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Works,
    Limited,
    Missing,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Works => "works",
            Verdict::Limited => "limited",
            Verdict::Missing => "missing",
        }
    }
}

#[derive(Debug, Serialize)]
pub struct Finding {
    pub probe: &'static str,
    pub verdict: Verdict,
    /// The fact, as measured.
    pub found: String,
    /// What follows from it for the user.
    pub means: String,
    /// What the user can do; empty when it works.
    #[serde(rename = "do")]
    pub remedy: String,
}

impl Finding {
    pub fn new(
        probe: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        means: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        let remedy = match verdict {
            Verdict::Works => String::new(),
            _ => remedy.into(),
        };
        Finding { probe, verdict, found: found.into(), means: means.into(), remedy }
    }

    pub fn works(
        probe: &'static str,
        found: impl Into<String>,
        means: impl Into<String>,
    ) -> Finding {
        Finding::new(probe, Verdict::Works, found, means, "")
    }
}
