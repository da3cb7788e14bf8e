// Roundings of f64 by sums: some drivers compute their own by way of f32. 2^52 has no bit left for a fraction; zeros keep their sign.
fn round64(x: f64) -> f64 {
  let most = 4503599627370496.0lf;
  let size = (abs(x) + most) - most;
  return select(x, select(size, -size, x < 0.0lf), abs(x) < most && x != 0.0lf);
}

fn floor64(x: f64) -> f64 {
  let near = round64(x);
  return select(near, near - 1.0lf, near > x);
}
