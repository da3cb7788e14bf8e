use super::{Plan, parse};
use crate::ir::parse::Context;

/// A list with a part of each kind.
const LIST: &str = r#"list {
  fn before(t: i64, x: f64[4], h: f64[3], w: f64[3, 3], n: i64) {
    return w, n
  }
  state0 f64[3] span 2 first 2 stored carried [0, 1] far [0]
  state1 bool span 1 first 1 entering carried [0] in place
  t0 8 at 0
  t1 24 at 64
  t2 32 at 128
  kernel lanes 3 steps 2 from 1 outer [1, 2] (seq0 f64[4] from 1, state0[0] f64[3]) to (t1 f64[3]) {  # model.py:7
    moves m0 8 [0, -8]
    moves m2 0 [0, 8]
    fill m2 3 -1
    m0: f64 per lane
    m1: f64
    m2: f64 per lane
    c0: m2 next r2
    r0: f64 = load m0
    r1: f64 = carry c0
    r2: f64 = add r0 r1
  }
  move (t1 f64[3], value0 f64[3, 3]) to (t2 f64[4]) {
    2 of input 0 from 2 by -1 to 0
    1 of input 1 from 4 by 3 to 2
    1 zeros to 3
  }
  add (t1 f64[1]) to (t2 f64[4]) {
    4 of input 0 from 0 by 0 to 0
  }
  matmul [3, 3, 1] (value0 f64[3, 3], t1 f64[3]) to (t2 f64[3])
  read "i,s:e:-2" (value0 f64[3, 3], value1 i64, value1 i64, value1 i64) to (t1 f64[1])
  set along [0] (t1 f64[1], value1 i64[1]) to (t2 f64[4])
  inc "i" (t1 f64, value1 i64) to (t2 f64[4])
  slice (seq0 f64[4], value1 i64) to (t1 f64[2]) {
    begin input 1 apart 1 last 2 end 0
    2 of input 0 from 0 by 1 to 0
  }
  direct (value0 f64[3, 3]) to (t1 f64[3]) {
    fn op(%0: f64[3, 3]) {
      %1 = reduce[kind=sum, axes=[0], keepdims=false](%0)
      return %1
    }
  }
  call (t2 f64[4]) to (t2 i64[4]) {
    fn op(%0: f64[4]) {
      %1 = argsort[axis=0](%0)
      return %1
    }
  }
  guard 0 4 (value1 i64) to ()
  within 0 4 (value1 i64) to ()
  loop lanes 1 steps 4 count value1 i64 most 4 name "inner \"loop\"" (t1 f64[3]) to (t2 f64[1]) {
    is t1 f64[3] along [1, 0]
    is t2 f64[1]
    is t2 bool from 8
    stopped t2 bool from 8
    votes one of 1 t2 bool from 8
    failed t2 bool from 9
    ran t2 i64 from 2
    runs  # model.py:9
    moves m0 8 []
    m0: f64
    m1: f64
    m2: bool
    r0: f64 = load m0
    store m1 = r0
  }
  for level 1 count 3 () to (t2 f64[4]) {
    step t1 i64
    move (value0 f64[1]) to (t2 f64[1] along [1, 0]) {
      1 of input 0 from 0 by 1 to 0
    }
    write t2 f64[1] along [1, 0] = t1 f64[1]
    stop t2 bool
    ran t1 i64 from 1
  }
  write state0[2] = t1 f64[3]
  stop t2 bool
  impure
  eager
}
"#;

const KERNEL: &str = "loop lanes 2 {
  fn before(t: i64, x: f64[4], w: f64) {
    return w
  }
  state0 f64[2] span 1 first 1 stored carried [0]
  is seq0 from 1
  is value0 from 0
  is window0[0] from 0
  is state0[1] from 0
  is failed
  guarded
  slices
  votes all of 2
  runs  # model.py:3
  m0: f64 per lane
  m1: f64
  m2: f64 per lane
  m3: f64 per lane
  m4: bool per lane
  c0: m2 next r2
  r0: f64 = load m0
  r1: f64 = carry c0
  r2: f64 = add r0 r1
  store m3 = r2
}
";

fn text(plan: &Plan) -> String {
    match plan {
        Plan::Kernel(plan) => plan.to_string(),
        Plan::List(plan) => plan.to_string(),
    }
}

#[test]
fn what_is_printed_is_read_back() {
    for written in [LIST, KERNEL] {
        let plan = parse(written, &Context::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(text(&plan), written);
    }
}

/// Any text with one word left out, doubled or in place of another is a plan or an error.
#[test]
fn no_text_makes_it_panic() {
    let mut read = [0, 0];
    for written in [LIST, KERNEL] {
        let words: Vec<&str> = written.split_inclusive([' ', '\n', '[', '(', ',']).collect();
        for k in 0..words.len() {
            for with in ["", words[(k * 7 + 3) % words.len()], "-9223372036854775808 ", "1099511627776", "f64[9]", "{ ", "for "] {
                let changed = [&words[..k], &[with], &words[k + 1..]].concat().concat();
                read[usize::from(parse(&changed, &Context::default()).is_ok())] += 1;
            }
        }
    }
    assert!(read[0] > 1000 && read[1] > 100, "{read:?}");
}

#[test]
fn errors_name_the_place() {
    let fault = |text: &str| match parse(text, &Context::default()) {
        Ok(_) => panic!("must fail"),
        Err(e) => e.title,
    };
    assert_eq!(fault("tree {"), "line 1, column 1: expected `loop`, got `tree`");
    let changed = |from: &str, to: &str| fault(&LIST.replace(from, to));
    assert_eq!(changed("t1 24", "t2 24"), "line 8, column 3: expected `t1`, got `t2`");
    assert_eq!(changed("level 1", "level 3"), "line 68, column 13: loops stand in each other 3 deep at most");
    assert_eq!(changed("moves m0 8 [0, -8]", "moves m9 8 [0, -8]"), "line 11, column 11: there is no `m9`");
    assert_eq!(changed("carried [0, 1]", "carried [7]"), "line 5, column 47: a window of 2 rows hands on others");
}
