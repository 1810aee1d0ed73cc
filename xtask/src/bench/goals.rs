//! What the engine is to reach, and how far it got.

use super::programs::{Cache, Work};
use super::rounds::{Measured, Way};

struct Goal {
    label: &'static str,
    work: Work,
    way: Way,
    /// Limit of the geometric mean.
    mean: f64,
    /// Limit of each program.
    each: f64,
    aim: f64,
}

const GOALS: [Goal; 5] = [
    Goal {
        label: "computing, count",
        work: Work::Computing,
        way: Way::Count,
        mean: 1.7,
        each: 3.0,
        aim: 1.25,
    },
    Goal {
        label: "system calls, count",
        work: Work::SystemCalls,
        way: Way::Count,
        mean: 3.0,
        each: 3.0,
        aim: 1.5,
    },
    Goal {
        label: "start-up, count, warm",
        work: Work::StartUp,
        way: Way::Count,
        mean: 4.0,
        each: 4.0,
        aim: 2.0,
    },
    Goal {
        label: "computing, trace",
        work: Work::Computing,
        way: Way::Trace,
        mean: 5.0,
        each: f64::INFINITY,
        aim: 3.0,
    },
    Goal {
        label: "make, count, warm",
        work: Work::Make,
        way: Way::Count,
        mean: 8.0,
        each: 8.0,
        aim: 3.0,
    },
];

pub struct Verdict {
    pub label: &'static str,
    /// Geometric mean of the programs that have a figure.
    pub mean: Option<f64>,
    pub worst: Option<f64>,
    pub limit: String,
    pub aim: f64,
    pub says: String,
}

/// One verdict per goal that any of the measured programs counts for.
pub fn judge(results: &[Measured]) -> Vec<Verdict> {
    GOALS.iter().filter_map(|goal| verdict(goal, results)).collect()
}

fn verdict(goal: &Goal, results: &[Measured]) -> Option<Verdict> {
    let counting: Vec<_> = results
        .iter()
        .map(|result| (&result.program, result.ratio(goal.way)))
        .filter(|(program, _)| {
            program.work == goal.work && program.cache == Cache::Warm && !program.report_only
        })
        .collect();
    if counting.is_empty() {
        return None;
    }
    let ratios: Vec<f64> = counting.iter().filter_map(|(_, ratio)| *ratio).collect();
    let mean = geometric_mean(&ratios);
    let worst = ratios.iter().copied().reduce(f64::max);
    let says = match (mean, worst) {
        (Some(mean), Some(worst)) if mean > goal.mean || worst > goal.each => "too slow",
        (Some(mean), _) if mean <= goal.aim => "aim reached",
        (Some(_), _) => "within the limit",
        _ => "no figure",
    };
    let missing = counting.len() - ratios.len();
    let says = match missing {
        _ if ratios.is_empty() => says.to_owned(),
        0 => says.to_owned(),
        _ => format!("{says}; {missing} of {} have no figure", counting.len()),
    };
    let limit = match goal.each {
        each if each == goal.mean && counting.len() > 1 => format!("each {each}"),
        each if each.is_finite() && each != goal.mean => format!("{}, each {each}", goal.mean),
        _ => goal.mean.to_string(),
    };
    Some(Verdict { label: goal.label, mean, worst, limit, aim: goal.aim, says })
}

fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let count = ratios.len() as f64;
    (count > 0.0).then(|| (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count).exp())
}

#[cfg(test)]
mod tests {
    use super::geometric_mean;

    #[test]
    fn geometric_mean_of_ratios() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[2.0, 8.0]).unwrap() - 4.0).abs() < 1e-9);
    }
}
