//! Bodies: arrays by name, as JSON (`{"x": [[1, 2]]}`) or as a safetensors file.

use crate::refused::Refused;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use scan_core::dispatch;
use scan_core::prelude::{Array, DType, Port, module::params_to_bytes, params_from_bytes};
use serde_json::{Map, Number, Value};

/// How a body is written; an answer is written as its request was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Numbers and nested lists by name. What JSON has no numbers for are the texts "nan", "inf" and "-inf".
    Json,
    /// A safetensors file.
    Tensors,
}

const TENSORS: &str = "application/octet-stream";

impl Format {
    /// That of a request; JSON where it does not say.
    ///
    /// # Errors
    /// 415 for any other.
    pub fn of(headers: &HeaderMap) -> Result<Format, Refused> {
        let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(Format::Json) };
        let name = value.to_str().unwrap_or("").split(';').next().unwrap_or("").trim();
        match name {
            "application/json" => Ok(Format::Json),
            TENSORS => Ok(Format::Tensors),
            _ => Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media type", format!("bodies are application/json or {TENSORS}"))),
        }
    }

    /// The arrays of a body, by name; of JSON, as the ports of these names take them. `rows`: as a row of what they take.
    ///
    /// # Errors
    /// 400 where it cannot be read, 422 where it does not fit.
    pub fn read(self, body: &[u8], ports: &[Port], rows: bool) -> Result<Vec<(String, Array)>, Refused> {
        if self == Format::Tensors {
            let found = if body.is_empty() { Ok(Default::default()) } else { params_from_bytes(body) };
            let found = found.map_err(|e| Refused::new(StatusCode::BAD_REQUEST, e.code, e.title))?;
            return Ok(found.into_iter().collect());
        }
        let empty = || Ok(Value::Object(Map::new()));
        let value = if body.is_empty() { empty() } else { serde_json::from_slice(body) };
        let value: Value = value.map_err(|e| Refused::new(StatusCode::BAD_REQUEST, "json", e.to_string()))?;
        let Value::Object(found) = value else { return Err(Refused::body("a body is an object of arrays by name")) };
        found.into_iter().map(|(name, value)| named(name, &value, ports, rows)).collect()
    }

    /// The answer with these arrays.
    ///
    /// # Errors
    /// 500 where they have no file.
    pub fn write(self, arrays: Vec<(String, Array)>) -> Result<Response, Refused> {
        match self {
            Format::Tensors => {
                let bytes = params_to_bytes(&arrays.into_iter().collect())?;
                Ok(([(header::CONTENT_TYPE, TENSORS)], bytes).into_response())
            }
            Format::Json => {
                let all: Map<String, Value> =
                    arrays.into_iter().map(|(name, array)| (name, nested(&flat(&array), array.shape()))).collect();
                Ok(axum::Json(Value::Object(all)).into_response())
            }
        }
    }
}

fn named(name: String, value: &Value, ports: &[Port], rows: bool) -> Result<(String, Array), Refused> {
    let Some(port) = ports.iter().find(|port| port.name.as_deref() == Some(&*name)) else {
        return Err(Refused::body(format!("there is no input `{name}`")));
    };
    let rank = port.ty.rank() - usize::from(rows && port.ty.rank() > 0);
    let array = array(value, port.ty.dtype, rank).map_err(|why| Refused::body(format!("`{name}`: {why}")))?;
    Ok((name, array))
}

/// An array of nested lists.
fn array(value: &Value, dtype: DType, rank: usize) -> Result<Array, String> {
    let (mut shape, mut inner) = (vec![], value);
    for _ in 0..rank {
        let Value::Array(list) = inner else { return Err(format!("it takes {rank} axes")) };
        shape.push(list.len());
        match list.first() {
            Some(first) => inner = first,
            None => break,
        }
    }
    shape.resize(rank, 0);
    let mut leaves = vec![];
    collect(value, &shape, &mut leaves)?;
    dispatch!(dtype, T => {
        let elements = leaves.into_iter().map(<T as Number1>::of).collect::<Option<Vec<T>>>();
        elements.map(|elements| Array::new(&shape, elements)).ok_or_else(|| format!("not all of it is {dtype}"))
    })
}

fn collect<'a>(value: &'a Value, shape: &[usize], to: &mut Vec<&'a Value>) -> Result<(), String> {
    match (shape, value) {
        ([], _) => to.push(value),
        ([n, rest @ ..], Value::Array(list)) if list.len() == *n => list.iter().try_for_each(|v| collect(v, rest, to))?,
        _ => return Err("its lists have different lengths".into()),
    }
    Ok(())
}

/// Elements of arrays as JSON has them.
trait Number1: Sized {
    fn of(value: &Value) -> Option<Self>;
    fn to(self) -> Value;
}

macro_rules! integers {
    ($($t:ty),+) => {$(
        impl Number1 for $t {
            fn of(value: &Value) -> Option<$t> {
                value.as_i64().and_then(|x| x.try_into().ok()).or_else(|| value.as_u64()?.try_into().ok())
            }
            fn to(self) -> Value {
                self.into()
            }
        }
    )+};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($t:ty),+) => {$(
        impl Number1 for $t {
            fn of(value: &Value) -> Option<$t> {
                match value {
                    Value::String(text) if matches!(&**text, "nan" | "inf" | "-inf") => text.parse().ok(),
                    _ => value.as_f64().map(|x| x as $t),
                }
            }
            fn to(self) -> Value {
                Number::from_f64(f64::from(self)).map_or_else(|| Value::from(self.to_string().to_lowercase()), Value::Number)
            }
        }
    )+};
}
floats!(f32, f64);

impl Number1 for bool {
    fn of(value: &Value) -> Option<bool> {
        value.as_bool()
    }
    fn to(self) -> Value {
        self.into()
    }
}

fn flat(array: &Array) -> Vec<Value> {
    dispatch!(array.dtype(), T => array.as_slice::<T>().iter().map(|x| x.to()).collect())
}

fn nested(flat: &[Value], shape: &[usize]) -> Value {
    match shape {
        [] => flat.first().cloned().unwrap_or(Value::Null),
        [n, rest @ ..] => {
            let wide: usize = rest.iter().product();
            (0..*n).map(|i| nested(&flat[i * wide..(i + 1) * wide], rest)).collect::<Vec<_>>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scan_core::prelude::Type;

    fn port(name: &str, dtype: DType, rank: usize) -> Port {
        Port { name: Some(name.into()), doc: None, ty: Type::unknown(dtype, rank), axes: vec![], default: None }
    }

    #[test]
    fn json_there_and_back_is_exact() {
        let ports = [port("x", DType::F64, 2), port("n", DType::U64, 0), port("b", DType::Bool, 1)];
        let body = br#"{"x": [[0.1, "nan", 5e-324], ["-inf", -0.0, 3]], "n": 18446744073709551615, "b": [true, false]}"#;
        let read = Format::Json.read(body, &ports, false).unwrap();
        let by_name = |name: &str| read.iter().find(|(n, _)| n == name).unwrap().1.clone();
        assert_eq!(by_name("n").as_slice::<u64>(), [u64::MAX]);
        assert_eq!(by_name("b").as_slice::<bool>(), [true, false]);
        let x = by_name("x");
        let again = serde_json::to_vec(&serde_json::json!({"x": nested(&flat(&x), x.shape())})).unwrap();
        assert_eq!(Format::Json.read(&again, &ports, false).unwrap()[0].1.bits(), x.bits());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let ports = [port("x", DType::F32, 2), port("n", DType::I8, 1)];
        let all: [(&[u8], u16); 9] = [
            (b"{", 400),
            (b"\xff", 400),
            (b"[]", 422),
            (br#"{"y": 1}"#, 422),
            (br#"{"x": 1}"#, 422),
            (br#"{"x": [[1], [1, 2]]}"#, 422),
            (br#"{"x": [["one"]]}"#, 422),
            (br#"{"n": [128]}"#, 422),
            (br#"{"n": [1.5]}"#, 422),
        ];
        for (body, status) in all {
            assert_eq!(Format::Json.read(body, &ports, false).unwrap_err().status.as_u16(), status, "{}", String::from_utf8_lossy(body));
        }
        assert_eq!(Format::Tensors.read(b"abc", &ports, false).unwrap_err().status.as_u16(), 400);
    }
}
