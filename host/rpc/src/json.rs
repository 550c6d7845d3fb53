//! A JSON parser that is stricter than `serde_json`: it refuses duplicate keys and deep nesting.
//!
//! Two parsers can disagree about the meaning of a duplicate key.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Largest nesting of arrays and objects. Tool arguments seen in practice stay below ten.
pub(crate) const MAX_DEPTH: usize = 64;

/// Parses one JSON object with the same strictness as messages: no duplicate keys, limited nesting.
///
/// # Errors
/// Fails when the bytes are not such an object.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, serde_json::Error> {
    match parse(bytes)? {
        Value::Object(object) => Ok(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(serde_json::Error::custom("it is not a JSON object"))
        }
    }
}

/// Parses one value that fills the whole of `bytes`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| serde_json::Error::custom("the message is not UTF-8"))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: 0 }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Builds a [`Value`] that may contain `depth` levels of arrays and objects.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn inside<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format!("nesting is deeper than {MAX_DEPTH}")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inside)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(inside)?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{}` appears twice", key.escape_debug())));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_error(text: &[u8]) -> String {
        parse(text).expect_err("accepted").to_string()
    }

    #[test]
    fn what_json_does_not_permit_is_refused() {
        let cases: &[&[u8]] = &[
            b"",
            b"{",
            b"{}{}",
            b"{} x",
            b"nul",
            b"NaN",
            b"1e999",
            b"'a'",
            b"{a:1}",
            b"[1,]",
            b"{\"a\":1,}",
            b"\"\t\"",
            b"\"\\ud800\"",
            b"\"\xff\"",
            b"\xef\xbb\xbf{}",
            b"{}\0",
            b"\0",
            b"// {}",
            b"01",
            b"\"\\x41\"",
        ];
        for case in cases {
            parse_error(case);
        }
    }

    #[test]
    fn a_key_twice_is_refused_however_it_is_written() {
        assert!(parse_error(br#"{"a":1,"a":1}"#).contains("`a` appears twice"));
        assert!(parse_error(br#"{"a":1,"\u0061":2}"#).contains("appears twice"));
        assert!(parse_error(br#"{"x":[{"b":{},"b":[]}]}"#).contains("`b` appears twice"));
        assert!(parse(br#"{"a":{"a":1},"b":{"a":1}}"#).is_ok());
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(parse_error(nested(MAX_DEPTH + 1).as_bytes()).contains("deeper than 64"));
        assert!(parse_error("[".repeat(1_000_000).as_bytes()).contains("deeper"));
        assert!(parse_error("{\"a\":".repeat(100_000).as_bytes()).contains("deeper"));
    }

    proptest! {
        #[test]
        fn nothing_panics_and_what_is_accepted_means_the_same_to_serde_json(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(value) = parse(&bytes) {
                prop_assert_eq!(value, serde_json::from_slice::<Value>(&bytes).expect("accepted by us only"));
            }
        }

        #[test]
        fn text_that_is_nearly_json_neither(text in r#"[\[\]{}:,"a0-9.eE \\untrlsf-]{0,60}"#) {
            if let Ok(value) = parse(text.as_bytes()) {
                prop_assert_eq!(value, serde_json::from_str::<Value>(&text).expect("accepted by us only"));
            }
        }
    }
}
