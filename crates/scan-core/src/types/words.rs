//! Elements in words of 32 bits, as they lie in the memory of devices: elements of 8 and 16 bits, and bools, take a word each, those of 64
//! bits two, the low one first.

use super::DType;

/// How an element lies in words.
pub trait Words: Sized + Copy {
    /// How many it takes.
    const WORDS: usize;
    /// Appends its words.
    fn put(self, to: &mut Vec<u32>);
    /// The element of so many words.
    fn get(words: &[u32]) -> Self;
    /// The element of as many bytes as it has on the host.
    fn of_bytes(bytes: &[u8]) -> Self;
}

macro_rules! words {
    ($($t:ty, $bits:ty, $to:expr, $from:expr);+ $(;)?) => {$(
        impl Words for $t {
            const WORDS: usize = 1;
            fn put(self, to: &mut Vec<u32>) {
                to.push($to(self));
            }
            fn get(words: &[u32]) -> $t {
                $from(words[0])
            }
            fn of_bytes(bytes: &[u8]) -> $t {
                let mut own = [0; size_of::<$bits>()];
                own.copy_from_slice(bytes);
                $from(<$bits>::from_ne_bytes(own) as u32)
            }
        }
    )+};
}

words! {
    bool, u8, u32::from, |w| w != 0;
    i8, i8, |x| i32::from(x) as u32, |w| w as i8;
    i16, i16, |x| i32::from(x) as u32, |w| w as i16;
    i32, i32, |x| x as u32, |w| w as i32;
    u8, u8, u32::from, |w| w as u8;
    u16, u16, u32::from, |w| w as u16;
    u32, u32, |x| x, |w| w;
    f32, u32, f32::to_bits, f32::from_bits;
}

macro_rules! wide {
    ($($t:ty, $to:expr, $from:expr);+ $(;)?) => {$(
        impl Words for $t {
            const WORDS: usize = 2;
            fn put(self, to: &mut Vec<u32>) {
                let bits: u64 = $to(self);
                to.extend([bits as u32, (bits >> 32) as u32]);
            }
            fn get(words: &[u32]) -> $t {
                $from(u64::from(words[0]) | u64::from(words[1]) << 32)
            }
            fn of_bytes(bytes: &[u8]) -> $t {
                let mut own = [0; 8];
                own.copy_from_slice(bytes);
                $from(u64::from_ne_bytes(own))
            }
        }
    )+};
}

wide! {
    i64, |x| x as u64, |b| b as i64;
    u64, |x| x, |b| b;
    f64, f64::to_bits, f64::from_bits;
}

/// Words that an element takes.
pub fn words(dtype: DType) -> usize {
    crate::dispatch!(dtype, T => <T as Words>::WORDS)
}

/// The words of elements.
pub fn widened<T: Words>(elements: &[T]) -> Vec<u32> {
    let mut words = super::memory::room(elements.len() * T::WORDS);
    elements.iter().for_each(|x| x.put(&mut words));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Array, Element};

    fn and_back<T: Element>(elements: &[T]) -> Vec<T> {
        let words = widened(elements);
        assert_eq!(words.len(), elements.len() * super::words(T::DTYPE), "{}", T::DTYPE);
        words.chunks_exact(T::WORDS).map(T::get).collect()
    }

    #[test]
    fn elements_come_back_as_they_went() {
        let numbers: Vec<f64> = (0..300).map(|k| f64::from(k - 150) * 7.3).collect();
        for dtype in [DType::Bool, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64] {
            let array = Array::vector(&numbers).cast(dtype);
            crate::dispatch!(dtype, T => assert_eq!(and_back(array.as_slice::<T>()), array.as_slice::<T>()));
        }
        let odd = [f64::NAN, -0.0, f64::MIN_POSITIVE / 3.0, f64::INFINITY];
        assert_eq!(Array::vector(&and_back(&odd)), Array::vector(&odd), "to the bit");
        assert_eq!(widened(&[-1i8, 1]), [u32::MAX, 1]);
        assert_eq!(widened(&[255u8]), [255]);
        assert_eq!((i16::of_bytes(&(-5i16).to_ne_bytes()), bool::of_bytes(&[2])), (-5, true));
    }
}
