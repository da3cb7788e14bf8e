// x·y + z rounded once, in integers: the product of the mantissas has 106 bits, in two words of 64; both terms are aligned with their first
// bit at place 126, and what is shifted out is remembered in the last place.
struct Term { high: u64, low: u64, exponent: i32 }

fn leading(x: u64) -> i32 {
  let high = u32(x >> 32u);
  let low = u32(x & 0xfffffffflu);
  return i32(select(32u + countLeadingZeros(low), countLeadingZeros(high), high != 0u));
}

// Shifted to the right by 0 <= n < 128, a bit that is lost kept in the last place.
fn sticky(t: Term, n: u32) -> Term {
  if (n == 0u) { return t; }
  if (n >= 64u) {
    let k = n - 64u;
    let lost = t.low | select(t.high << (64u - max(k, 1u)), 0lu, k == 0u);
    return Term(0lu, (t.high >> k) | select(0lu, 1lu, lost != 0lu), t.exponent);
  }
  let lost = t.low << (64u - n);
  let low = (t.low >> n) | (t.high << (64u - n)) | select(0lu, 1lu, lost != 0lu);
  return Term(t.high >> n, low, t.exponent);
}

// The first bit brought to place 126; the value is the two words times two to the exponent.
fn normal(high: u64, low: u64, exponent: i32) -> Term {
  let shift = select(64 + leading(low), leading(high), high != 0lu) - 1;
  if (shift < 0) { return sticky(Term(high, low, exponent + 1), 1u); }
  let n = u32(shift);
  if (n == 0u) { return Term(high, low, exponent); }
  if (n >= 64u) { return Term(low << (n - 64u), 0lu, exponent - shift); }
  return Term((high << n) | (low >> (64u - n)), low << n, exponent - shift);
}

// The mantissa of a number that is not zero, and its exponent: value = mantissa · 2^exponent.
fn mantissa(bits: u64) -> u64 {
  let fraction = bits & 0xffffffffffffflu;
  return select(fraction | 0x10000000000000lu, fraction, (bits & 0x7ff0000000000000lu) == 0lu);
}
fn exponent(bits: u64) -> i32 {
  return max(i32(u32((bits >> 52u) & 0x7fflu)), 1) - 1075;
}

fn product(x: u64, y: u64) -> Term {
  let a = mantissa(x); let b = mantissa(y);
  let a1 = a >> 32u; let a0 = a & 0xfffffffflu;
  let b1 = b >> 32u; let b0 = b & 0xfffffffflu;
  let low = a0 * b0;
  let middle = a1 * b0 + (low >> 32u);
  let other = a0 * b1 + (middle & 0xfffffffflu);
  let high = a1 * b1 + (middle >> 32u) + (other >> 32u);
  return normal(high, (other << 32u) | (low & 0xfffffffflu), exponent(x) + exponent(y));
}

// Rounded to the nearest, halves to even.
fn rounded(t: Term, sign: u64) -> f64 {
  // Place 126 has the weight 2^(exponent + 126); the mantissa's last bit is at place 74, or further left where the number is small.
  let top = t.exponent + 126;
  if (top > 1023) { return bitcast<f64>(sign | 0x7ff0000000000000lu); }
  let deeper = max(-1022 - top, 0);
  if (deeper > 60) { return bitcast<f64>(sign); }
  let s = sticky(t, u32(deeper) + 10u);
  // The mantissa and nothing else in the high word, the rest in the low one.
  let up = s.low > 0x8000000000000000lu || (s.low == 0x8000000000000000lu && (s.high & 1lu) == 1lu);
  let whole = s.high + select(0lu, 1lu, up);
  // The first bit of the mantissa counts one in the exponent, which is therefore one less here; so do the bits that rounding carries over.
  let biased = select(u64(u32(max(top, -1022) + 1022)), 0lu, deeper > 0);
  return bitcast<f64>(sign | ((biased << 52u) + whole));
}

fn fma64(x: f64, y: f64, z: f64) -> f64 {
  let a = bitcast<u64>(x); let b = bitcast<u64>(y); let c = bitcast<u64>(z);
  let most = 0x7ff0000000000000lu;
  let size = 0x7ffffffffffffffflu;
  let special = (a & most) == most || (b & most) == most;
  if (special || (a & size) == 0lu || (b & size) == 0lu) { return x * y + z; }
  if ((c & most) == most) { return z + z; }
  if ((c & size) == 0lu) { return x * y; }
  let sign = (a ^ b) & 0x8000000000000000lu;
  let own = c & 0x8000000000000000lu;
  var s = product(a, b);
  var t = normal(0lu, mantissa(c), exponent(c));
  var first = sign;
  // The larger one first.
  let less = s.exponent < t.exponent || (s.exponent == t.exponent && (s.high < t.high || (s.high == t.high && s.low < t.low)));
  if (less) { let u = s; s = t; t = u; first = own; }
  let apart = s.exponent - t.exponent;
  if (apart > 126) { t = Term(0lu, 1lu, s.exponent); } else { t = sticky(t, u32(apart)); }
  if (sign == own) {
    let low = s.low + t.low;
    let high = s.high + t.high + select(0lu, 1lu, low < s.low);
    return rounded(normal(high, low, s.exponent), first);
  }
  let low = s.low - t.low;
  let high = s.high - t.high - select(0lu, 1lu, s.low < t.low);
  if (high == 0lu && low == 0lu) { return bitcast<f64>(u64(p[0])); }
  return rounded(normal(high, low, s.exponent), first);
}
