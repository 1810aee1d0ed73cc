//! What the engine is to reach, and how far it got.

use super::programs::{Cache, Work};
use super::rounds::{Cell, Measured};
use super::ways::Way;

pub struct Goal {
    label: &'static str,
    works: &'static [Work],
    figure: Figure,
    /// Limit of the geometric mean.
    mean: f64,
    /// Limit of each program.
    each: f64,
    aim: Option<f64>,
}

/// What a limit is set for.
#[derive(Clone, Copy)]
enum Figure {
    /// The worse of CPU and wall time, as multiples of native.
    Ratio(Way),
    /// The same, as multiples of another way.
    Against(Way, Way),
    /// Wall time as such.
    Seconds(Way),
    /// Megabytes of log for each second of the native run.
    LogRate,
}

impl Figure {
    fn of(self, result: &Measured) -> Option<f64> {
        match self {
            Figure::Ratio(way) => result.ratio(way),
            Figure::Against(way, other) => {
                let (ratios, others) = (result.ratios(way)?, result.ratios(other)?);
                Some((ratios.cpu / others.cpu).max(ratios.wall / others.wall))
            }
            Figure::LogRate => result.log_rate(),
            Figure::Seconds(way) => match result.cell(way) {
                Cell::Cost(cost) => Some(cost.wall),
                _ => None,
            },
        }
    }
}

pub const ENGINE: &[Goal] = &[
    Goal {
        label: "computing, count",
        works: &[Work::Computing],
        figure: Figure::Ratio(Way::Count),
        mean: 1.7,
        each: 3.0,
        aim: Some(1.25),
    },
    Goal {
        label: "system calls, count",
        works: &[Work::SystemCalls],
        figure: Figure::Ratio(Way::Count),
        mean: 3.0,
        each: 3.0,
        aim: Some(1.5),
    },
    Goal {
        label: "start-up, count, warm",
        works: &[Work::StartUp],
        figure: Figure::Ratio(Way::Count),
        mean: 4.0,
        each: 4.0,
        aim: Some(2.0),
    },
    Goal {
        label: "computing, trace",
        works: &[Work::Computing],
        figure: Figure::Ratio(Way::Trace),
        mean: 5.0,
        each: f64::INFINITY,
        aim: Some(3.0),
    },
    Goal {
        label: "make, count, warm",
        works: &[Work::Make],
        figure: Figure::Ratio(Way::Count),
        mean: 8.0,
        each: 8.0,
        aim: Some(3.0),
    },
];

pub const RECORD: &[Goal] = &[
    Goal {
        label: "computing, record",
        works: &[Work::Computing],
        figure: Figure::Ratio(Way::Record),
        mean: 1.8,
        each: f64::INFINITY,
        aim: Some(1.3),
    },
    Goal {
        label: "computing, replay",
        works: &[Work::Computing],
        figure: Figure::Ratio(Way::Replay),
        mean: 1.8,
        each: f64::INFINITY,
        aim: None,
    },
    Goal {
        label: "system calls, record",
        works: &[Work::SystemCalls],
        figure: Figure::Ratio(Way::Record),
        mean: 3.5,
        each: 3.5,
        aim: Some(1.5),
    },
    Goal {
        label: "system calls, replay",
        works: &[Work::SystemCalls],
        figure: Figure::Ratio(Way::Replay),
        mean: 3.0,
        each: 3.0,
        aim: None,
    },
    Goal {
        label: "threads, record",
        works: &[Work::Threads],
        figure: Figure::Ratio(Way::Record),
        mean: 2.0,
        each: 2.0,
        aim: Some(1.4),
    },
    Goal {
        label: "threads, replay",
        works: &[Work::Threads],
        figure: Figure::Ratio(Way::Replay),
        mean: 2.0,
        each: 2.0,
        aim: None,
    },
    Goal {
        label: "make, record, warm",
        works: &[Work::Make],
        figure: Figure::Ratio(Way::Record),
        mean: 10.0,
        each: 10.0,
        aim: Some(4.0),
    },
    Goal {
        label: "make, replay, warm",
        works: &[Work::Make],
        figure: Figure::Ratio(Way::Replay),
        mean: 10.0,
        each: 10.0,
        aim: None,
    },
    Goal {
        label: "server, record",
        works: &[Work::Server],
        figure: Figure::Ratio(Way::Record),
        mean: 6.0,
        each: 6.0,
        aim: Some(3.0),
    },
    Goal {
        label: "computing, log MB/s",
        works: &[Work::Computing, Work::LongRun, Work::Threads],
        figure: Figure::LogRate,
        mean: 1.0,
        each: 1.0,
        aim: None,
    },
    Goal {
        label: "others, log MB/s",
        works: &[Work::SystemCalls, Work::Make, Work::Server],
        figure: Figure::LogRate,
        mean: 20.0,
        each: 20.0,
        aim: None,
    },
    Goal {
        label: "end of 60 s, seconds",
        works: &[Work::LongRun],
        figure: Figure::Seconds(Way::End),
        mean: 2.0,
        each: 2.0,
        aim: None,
    },
];

/// No more than to count; what differs by less is noise.
const NO_MORE: f64 = 1.03;

pub const REGION: &[Goal] = &[
    Goal {
        label: "computing, by count",
        works: &[Work::Computing],
        figure: Figure::Against(Way::Before, Way::Count),
        mean: NO_MORE,
        each: f64::INFINITY,
        aim: None,
    },
    Goal {
        label: "others, by count",
        works: &[Work::SystemCalls, Work::Threads],
        figure: Figure::Against(Way::Before, Way::Count),
        mean: NO_MORE,
        each: f64::INFINITY,
        aim: None,
    },
];

pub struct Verdict {
    pub label: &'static str,
    /// Geometric mean of the programs that have a figure.
    pub mean: Option<f64>,
    pub worst: Option<f64>,
    pub limit: String,
    pub aim: Option<f64>,
    pub says: String,
}

/// One verdict per goal that any of the measured programs counts for.
pub fn judge(goals: &[Goal], results: &[Measured]) -> Vec<Verdict> {
    goals.iter().filter_map(|goal| verdict(goal, results)).collect()
}

fn verdict(goal: &Goal, results: &[Measured]) -> Option<Verdict> {
    let counting: Vec<_> = results
        .iter()
        .map(|result| (&result.program, goal.figure.of(result)))
        .filter(|(program, _)| {
            goal.works.contains(&program.work)
                && program.cache == Cache::Warm
                && !program.report_only
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
        (Some(mean), _) if goal.aim.is_some_and(|aim| mean <= aim) => "aim reached",
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
