//! Elements of one type as those of another.

/// Conversion between element types: ints wrap, bool is `x != 0`, float to int truncates and
/// saturates at the target's range with NaN giving 0 (NumPy leaves both undefined).
pub trait Cast<B> {
    /// The converted value.
    fn cast(self) -> B;
}

macro_rules! casts {
    ($($a:ty => $($b:ty),+;)+) => {$($(
        impl Cast<$b> for $a { #[inline] fn cast(self) -> $b { self as $b } }
    )+)+};
}

macro_rules! bool_casts {
    ($($t:ty: $one:expr, $zero:expr);+ $(;)?) => {$(
        impl Cast<bool> for $t { #[inline] fn cast(self) -> bool { self != $zero } }
        impl Cast<$t> for bool { #[inline] fn cast(self) -> $t { if self { $one } else { $zero } } }
    )+};
}

casts! {
    i8 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    i16 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    i32 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    i64 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    u8 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    u16 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    u32 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    u64 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    f32 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    f64 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
}

bool_casts! { i8: 1, 0; i16: 1, 0; i32: 1, 0; i64: 1, 0; u8: 1, 0; u16: 1, 0; u32: 1, 0; u64: 1, 0; f32: 1.0, 0.0; f64: 1.0, 0.0 }

impl Cast<bool> for bool {
    fn cast(self) -> bool {
        self
    }
}
