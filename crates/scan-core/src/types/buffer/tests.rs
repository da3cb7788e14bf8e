use super::{ALIKE, LINE, PLACES};
use crate::types::{Array, DType};
use std::sync::Arc;

struct Lent(Arc<[f64]>);

impl AsRef<[f64]> for Lent {
    fn as_ref(&self) -> &[f64] {
        &self.0
    }
}

fn lent() -> (Arc<[f64]>, Array) {
    let memory: Arc<[f64]> = Arc::from(vec![1.0, 2.0, 3.0, 4.0]);
    (memory.clone(), Array::foreign(&[2, 2], Lent(memory)))
}

#[test]
fn most_of_an_array_is_read_where_it_is_and_never_written_through() {
    let whole = Array::new(&[500, 2], (0..1000).map(f64::from).collect());
    let part = whole.rows(1, 499);
    assert_eq!((part.shape(), part.as_slice::<f64>().as_ptr()), (&[498, 2][..], whole.as_slice::<f64>()[2..].as_ptr()));
    assert_ne!(whole.rows(0, 200).as_slice::<f64>().as_ptr(), whole.as_slice::<f64>().as_ptr(), "a small part keeps no large memory");
    let inner = part.part(3, &[900]);
    assert_eq!((inner.to_f64_vec()[0], inner.to_f64_vec()[899]), (5.0, 904.0));
    let (mut written, mut base) = (part.clone(), whole.clone());
    written.as_mut_slice::<f64>()[0] = -1.0;
    base.as_mut_slice::<f64>()[2] = -2.0;
    assert_eq!((whole.to_f64_vec()[2], part.to_f64_vec()[0], written.to_f64_vec()[0], base.to_f64_vec()[2]), (2.0, 2.0, -1.0, -2.0));
    drop((whole, base));
    let own = part.owned();
    assert!(!own.data().is_foreign() && own.to_f64_vec()[..2] == [2.0, 3.0]);
}

#[test]
fn foreign_memory_is_read_in_place_and_copied_for_writing() {
    let (memory, array) = lent();
    assert_eq!(array.as_slice::<f64>().as_ptr(), memory.as_ptr());
    let (mut first, mut second) = (array.clone(), array.reshaped(&[4]));
    first.as_mut_slice::<f64>()[0] = 9.0;
    second.set_row(1, &Array::scalar(7.0));
    assert_eq!((first.to_f64_vec()[0], second.to_f64_vec()[1]), (9.0, 7.0));
    drop((first, second));
    let mut only = array;
    only.as_mut_slice::<f64>()[3] = 8.0;
    assert_eq!(&*memory, &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(Arc::strong_count(&memory), 1, "the owner goes with the last array that reads its memory");
    assert_eq!(lent().1.into_vec::<f64>(), [1.0, 2.0, 3.0, 4.0]);
    let mut grown = lent().1;
    grown.resize_rows(3);
    assert_eq!(grown.to_f64_vec(), [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
}

#[test]
fn owned_arrays_keep_nobody_elses_memory() {
    let (memory, array) = lent();
    assert_eq!(array.clone().owned(), array);
    let own = array.owned();
    assert_eq!(Arc::strong_count(&memory), 1);
    let at = own.as_slice::<f64>().as_ptr();
    assert_eq!(own.owned().as_slice::<f64>().as_ptr(), at, "nothing is copied twice");
}

#[test]
fn recycled_memory_begins_at_a_line_of_the_cache() {
    for n in [(1 << 11) + 5, (1 << 14) + 77, (1 << 17) + 913] {
        let arrays = [Array::dirty(DType::F64, &[n]), Array::dirty(DType::F64, &[n]), Array::dirty(DType::F64, &[n - 3])];
        assert!(arrays.iter().all(|a| a.as_slice::<f64>().as_ptr().addr().is_multiple_of(LINE)), "{n}");
        assert_eq!(arrays.map(|a| a.len()), [n, n, n - 3]);
    }
    let bools = Array::zeros(DType::Bool, &[(1 << 18) + 3]);
    assert!(bools.as_slice::<bool>().as_ptr().addr().is_multiple_of(LINE) && !bools.as_slice::<bool>().contains(&true));
}

#[test]
fn memory_keeps_apart_from_what_is_read() {
    let n = (1 << 13) + 31;
    for others in [vec![16], vec![16, 816], vec![0, 500, 1000, 1500, 2000], vec![usize::MAX - 100, 3000]] {
        let mut array = Array::dirty_apart(DType::F64, &[n], &others);
        let at = array.as_slice::<f64>().as_ptr().addr();
        let far = |other: &usize| (at.wrapping_sub(*other) % ALIKE).min(other.wrapping_sub(at) % ALIKE);
        let least = others.iter().map(far).min().unwrap();
        assert!(least + PLACES >= ALIKE / 2 / others.len(), "{others:?} {least}");
        assert!(at.is_multiple_of(LINE) && array.len() == n);
        array.as_mut_slice::<f64>().fill(7.0);
        array.resize_rows(n - 100);
        array.resize_rows(n + 2000);
        let values = array.to_f64_vec();
        assert!(values[..n - 100].iter().all(|&x| x == 7.0) && values[n - 100..].iter().all(|&x| x == 0.0) && values.len() == n + 2000);
    }
    assert_eq!(Array::dirty_apart(DType::F64, &[3], &[0]).len(), 3);
}

#[test]
fn large_memory_comes_back_once_nobody_sees_it() {
    // A length of this test's own: the pool belongs to the process.
    let n = (1 << 17) + 4099;
    let mut array = Array::dirty(DType::F64, &[n]);
    array.as_mut_slice::<f64>().fill(3.0);
    let at = array.as_slice::<f64>().as_ptr();
    let seen = array.clone();
    drop(array);
    let other = Array::dirty(DType::F64, &[n]);
    assert_ne!(other.as_slice::<f64>().as_ptr(), at, "somebody still sees it");
    assert!(seen.as_slice::<f64>().iter().all(|&x| x == 3.0));
    drop(seen);
    let again = Array::dirty(DType::F64, &[n - 7]);
    assert_eq!((again.as_slice::<f64>().as_ptr(), again.len()), (at, n - 7));
    drop(again);
    let regrown = Array::dirty(DType::F64, &[n]);
    assert_eq!((regrown.as_slice::<f64>().as_ptr(), regrown.len()), (at, n));
    assert_ne!(Array::dirty(DType::I64, &[n]).as_slice::<i64>().as_ptr().addr(), at.addr());
    drop((other, regrown));
    assert!(Array::zeros(DType::F64, &[n]).as_slice::<f64>().iter().all(|&x| x == 0.0));
}
