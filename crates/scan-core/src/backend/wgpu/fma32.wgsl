// x·y + z rounded once. The product is exact in f64; the sum is made there, with its last bit set where it is not exact, so that rounding it
// again to f32 decides rightly.
fn fma32(x: f32, y: f32, z: f32) -> f32 {
  let product = f64(x) * f64(y);
  let addend = f64(z);
  let sum = product + addend;
  let other = sum - product;
  let error = (product - (sum - other)) + (addend - other);
  let bits = bitcast<u64>(sum);
  let finite = (bits & 0x7ff0000000000000lu) != 0x7ff0000000000000lu;
  if (finite && !(error == 0.0lf) && (bits & 1lu) == 0lu) {
    // One place further from zero, or nearer to it: as the error points.
    let outward = (error > 0.0lf) == (sum > 0.0lf);
    return f32(bitcast<f64>(select(bits - 1lu, bits + 1lu, outward)));
  }
  return f32(sum);
}
