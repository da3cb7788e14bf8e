//! The reading of PTX: what instructions mean by the manual, and what is refused.

use super::Fake;
use super::parse::parse;
use crate::backend::cuda::driver::{Answer, Call, Driver};

/// A kernel of such lines, with registers of every class.
fn kernel(lines: &str) -> String {
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(\n.param .u64 m,\n.param .align 4 .b8 p[8]\n)\n.maxntid 32, 1, 1\n{{\n\
         .reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n.reg .f64 %fd<9>;\nld.param.u64 %rd8, [m];\n{lines}\nret;\n}}\n"
    )
}

/// The first words of the memory behind a run.
fn words(lines: &str) -> Answer<[u32; 4]> {
    let fake = Fake::default();
    let module = fake.load(&kernel(lines))?;
    let (function, heap, stream) = (fake.function(module, "k")?, fake.allocate(16)?, fake.stream()?);
    fake.launch(&Call { function, blocks: 1, threads: 1, shared: 0, heap, params: &[3, 4] }, stream)?;
    let mut found = [0; 4];
    fake.read(heap, &mut found, stream).map(|()| found)
}

/// The word that lines leave in `%r0`.
fn word(lines: &str) -> u32 {
    words(&format!("{lines}\nst.global.u32 [%rd8], %r0;")).unwrap_or_else(|f| panic!("{f}"))[0]
}

/// The word whose bits lines leave in `%p0`.
fn holds(lines: &str) -> bool {
    word(&format!("{lines}\nselp.u32 %r0, 1, 0, %p0;")) == 1
}

#[test]
fn instructions_mean_what_the_manual_says() {
    let nan = "mov.f32 %f0, 0f7FC00000;\nmov.f64 %fd0, 0d7FF8000000000000;";
    assert_eq!(word(&format!("{nan}\ncvt.rzi.s32.f32 %r0, %f0;")), 0);
    assert_eq!(word(&format!("{nan}\ncvt.rzi.s32.f64 %r0, %fd0;")), 0x8000_0000);
    assert_eq!(word("mov.f32 %f0, 0f4F800000;\ncvt.rzi.s32.f32 %r0, %f0;"), i32::MAX as u32, "what is too large is cut");
    assert_eq!(word("mov.f32 %f0, 0fC0200000;\ncvt.rzi.u32.f32 %r0, %f0;"), 0);
    assert_eq!(word("mov.f32 %f0, 0fC0200000;\ncvt.rmi.f32.f32 %f1, %f0;\nmov.b32 %r0, %f1;"), (-3f32).to_bits());
    assert_eq!(word("mov.f32 %f0, 0f40200000;\ncvt.rni.f32.f32 %f1, %f0;\nmov.b32 %r0, %f1;"), 2f32.to_bits(), "halves to even");
    assert_eq!(word("mov.b32 %r1, 0x1ff;\ncvt.s32.s8 %r0, %r1;"), u32::MAX);
    assert_eq!(word("mov.b32 %r1, 0x1ff;\ncvt.u32.u8 %r0, %r1;"), 255);
    assert_eq!(word("mov.b32 %r1, -8;\nshr.s32 %r0, %r1, 40;"), u32::MAX, "amounts end at the width");
    assert_eq!(word("mov.b32 %r1, -8;\nshr.u32 %r0, %r1, 40;") | word("mov.b32 %r1, 1;\nshl.b32 %r0, %r1, 32;"), 0);
    assert_eq!(word("mov.b32 %r1, -2;\nmul.wide.s32 %rd0, %r1, 3;\nmov.b64 %rd1, %rd0;\ncvt.u32.u64 %r0, %rd1;"), -6i32 as u32);
    assert_eq!(word("mov.b64 %rd0, -1;\nmin.u64 %rd1, %rd0, 5;\ncvt.u32.u64 %r0, %rd1;"), 5);
    assert_eq!(word("mov.b32 %r1, -7;\nmax.s32 %r0, %r1, -3;"), -3i32 as u32);
    assert_eq!(word("mov.u32 %r1, %ntid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r0, %r2, %r1, %r3;"), 0);
    assert_eq!(word("ld.param.u32 %r0, [p+4];"), 4);
    assert!(holds(&format!("{nan}\nsetp.neu.f32 %p0, %f0, %f0;")) && !holds(&format!("{nan}\nsetp.ne.f32 %p0, %f0, %f0;")));
    assert!(holds("mov.b32 %r1, -1;\nsetp.lt.s32 %p0, %r1, 0;") && !holds("mov.b32 %r1, -1;\nsetp.lt.u32 %p0, %r1, 0;"));
    assert_eq!(word("mov.b32 %r0, 0;\nL0:\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p0, %r0, 5;\n@%p0 bra L0;\n@!%p0 add.u32 %r0, %r0, 1;"), 6);
    let quotient = "mov.f32 %f0, 0f3F800000;\nmov.f32 %f1, 0f40400000;\ndiv.rn.f32 %f2, %f0, %f1;\nmov.b32 %r0, %f2;";
    assert_eq!(word(quotient), (1f32 / 3.0).to_bits());
}

#[test]
fn memory_is_looked_at() {
    let fault = |lines: &str| words(lines).map_err(|f| f.text);
    assert_eq!(fault("st.global.u64 [%rd8+8], %rd8;").map(|_| ()), Ok(()));
    assert_eq!(fault("st.global.u64 [%rd8+16], %rd8;"), Err("CUDA_ERROR_ILLEGAL_ADDRESS".into()));
    assert_eq!(fault("st.global.u64 [%rd8+4], %rd8;"), Err("CUDA_ERROR_MISALIGNED_ADDRESS".into()));
    assert_eq!(words(""), Ok([0xa5a5_a5a5; 4]), "nobody clears memory");
}

#[test]
fn what_is_no_kernel_is_refused() {
    for (lines, why) in [
        ("add.f32 %f0, %f1, %f2;", "not of F32"),
        ("add.rn.ftz.f32 %f0, %f1, %f2;", "no such instruction"),
        ("fma.rn.f32 %f0, %f1, %f2;", "3 operands"),
        ("add.s32 %f0, %r1, %r2;", "%f0 is no S32"),
        ("mov.b32 %r9, 1;", "no register %r9"),
        ("cvt.s32.f32 %r0, %f0;", "a rounding that is missing or too much"),
        ("ld.global.u32 %r0, [%r1];", "an address has 64 bits"),
        ("ld.param.u32 %r0, [q];", "no such parameter"),
        ("@%r0 bra L0;", "a guard that is no predicate"),
        ("mov.f32 %f0, 1;", "an integer where another type stands"),
        ("mov.b32 %r0, 1", "no `;`"),
        ("neg.u32 %r0, %r1;", "not of U32"),
    ] {
        assert_eq!(parse(&kernel(lines)).map(|_| ()), Err(format!("line 16: {why}: `{lines}`")));
    }
    assert_eq!(parse(&kernel("bra L7;")).map(|_| ()), Err("no label L7".into()));
    assert_eq!(parse(".target sm_70").map(|_| ()), Err("line 1: a version before the target: `.target sm_70`".into()));
}
