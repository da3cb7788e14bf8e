//! What is asked of every plan where debug assertions are on, and in tests.

use super::list::{Item, StepList, Work};
use super::parse::{Plan, parse};
#[cfg(debug_assertions)]
use super::{LoopKernel, verify, verify_kernel};
#[cfg(debug_assertions)]
use crate::ir::Scan;
use crate::ir::op::ExternRef;
use crate::ir::parse::Context;
use crate::ir::{Graph, Op};

/// Panics where a list is not well-formed, or its text form is not read back as it was.
#[cfg(debug_assertions)]
pub(crate) fn assert_list(plan: &StepList, scan: &Scan) {
    let text = plan.to_string();
    verify(plan, scan).unwrap_or_else(|e| panic!("{e}\n{text}"));
    match read_back(&text, &of_list(plan)) {
        None => {}
        Some(Plan::List(back)) => verify(&back, scan).unwrap_or_else(|e| panic!("as it was read back: {e}\n{text}")),
        Some(Plan::Kernel(_)) => panic!("a list that is read back as a kernel\n{text}"),
    }
}

/// The same of a kernel.
#[cfg(debug_assertions)]
pub(crate) fn assert_kernel(plan: &LoopKernel, scan: &Scan) {
    let text = plan.to_string();
    verify_kernel(plan, scan).unwrap_or_else(|e| panic!("{e}\n{text}"));
    match read_back(&text, &of_graph(&plan.before)) {
        None => {}
        Some(Plan::Kernel(back)) => assert_eq!(back.kernel, plan.kernel, "{text}"),
        Some(Plan::List(_)) => panic!("a kernel that is read back as a list\n{text}"),
    }
}

/// Errors of the text itself. Others are of what it says: of a loop in what is computed before that cannot run.
const OF_TEXT: [&str; 5] = ["E0901", "E0902", "E0903", "E0904", "E0906"];

/// The plan of a text, whose own text is the same; `None` where what is computed before fails whatever it is given.
pub(super) fn read_back(text: &str, externs: &[ExternRef]) -> Option<Plan> {
    let named = |key: &str, _: &[crate::types::Type]| externs.iter().find(|e| e.0.key() == key).cloned();
    let context = Context { ops: &named, ..Context::default() };
    let plan = match parse(text, &context) {
        Err(e) if !OF_TEXT.contains(&e.code) => return None,
        plan => plan.unwrap_or_else(|e| panic!("{e}\n{text}")),
    };
    let again = match &plan {
        Plan::List(plan) => plan.to_string(),
        Plan::Kernel(plan) => plan.to_string(),
    };
    let other = again.lines().zip(text.lines()).find(|(a, b)| a != b);
    assert!(again == text, "a text that is not printed again: {other:?}\n{text}");
    Some(plan)
}

/// The user's ops of a list.
pub(super) fn of_list(plan: &StepList) -> Vec<ExternRef> {
    let mut externs = of_graph(&plan.before);
    of_items(&plan.items, &mut externs);
    externs
}

/// The user's ops of a graph, those of loops in it too.
fn of_graph(graph: &Graph) -> Vec<ExternRef> {
    let mut found = vec![];
    for node in graph.nodes().iter() {
        match &node.op {
            Op::Extern(e) => found.push(e.clone()),
            Op::Scan(scan) => found.extend(of_graph(&scan.body)),
            _ => {}
        }
    }
    found
}

fn of_items(items: &[Item], found: &mut Vec<ExternRef>) {
    for item in items {
        match &item.work {
            Work::Call(Op::Extern(e), _) => found.push(e.clone()),
            Work::Call(Op::Scan(scan), _) => found.extend(of_graph(&scan.body)),
            Work::For(inner) => of_items(&inner.items, found),
            _ => {}
        }
    }
}
