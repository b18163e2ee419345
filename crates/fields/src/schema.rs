//! The JSON Schema of a declared table, for editors, forms and references (draft 2020-12).
//!
//! It says what may be written. What no single field can tell is not in it.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use crate::bounds::Bounds;
use crate::declaration::{FieldDeclaration, PartDeclaration, Shape};

/// The schema's dialect.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of a file with this table at its top level.
pub fn schema_of(part: &'static PartDeclaration, title: &str) -> Json {
    let mut definitions = BTreeMap::new();
    let Json::Object(mut schema) = table(part, &mut definitions) else {
        unreachable!("a table is an object")
    };
    schema.insert("$schema".into(), DIALECT.into());
    schema.insert("title".into(), title.into());
    schema.insert("$defs".into(), Json::Object(definitions.into_iter().collect()));
    Json::Object(schema)
}

fn table(part: &'static PartDeclaration, definitions: &mut BTreeMap<String, Json>) -> Json {
    let properties: Map<String, Json> =
        part.fields.iter().map(|field| (field.name.to_owned(), property(field, definitions))).collect();
    let needed: Vec<_> = part.fields.iter().filter(|field| field.is_needed).map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": part.description,
        "properties": properties,
        "additionalProperties": false,
    });
    if !needed.is_empty() {
        schema["required"] = json!(needed);
    }
    schema
}

fn property(field: &FieldDeclaration, definitions: &mut BTreeMap<String, Json>) -> Json {
    let mut schema = value(&field.shape, field.bounds, definitions);
    schema["description"] = field.description.clone().into();
    if let Some(default) =
        field.default.as_ref().and_then(|default| serde_json::from_str::<Json>(default).ok())
    {
        schema["default"] = default;
    }
    schema
}

fn value(shape: &Shape, bounds: Bounds, definitions: &mut BTreeMap<String, Json>) -> Json {
    match shape {
        Shape::Truth => json!({"type": "boolean"}),
        Shape::Whole => {
            bounded(json!({"type": "integer"}), bounds, ["minimum", "maximum", "exclusiveMaximum"])
        }
        Shape::Number => json!({"type": "number"}),
        Shape::Text(example) => {
            let mut text = bounded(json!({"type": "string"}), bounds, ["minLength", "maxLength", ""]);
            if let Some(example) = example {
                text["examples"] = json!([example]);
            }
            text
        }
        Shape::Words(words) => json!({
            "type": "string",
            "enum": words.iter().map(|(word, _)| *word).collect::<Vec<_>>(),
            "x-meanings": words.iter().map(|(word, means)| ((*word).to_owned(), Json::from(*means))).collect::<Map<_, _>>(),
        }),
        Shape::Numbers(numbers) => json!({"type": "integer", "enum": numbers}),
        Shape::Quantity(kind) => json!({
            "type": "string",
            "title": kind.name,
            "examples": [kind.example],
            "x-units": kind.units.iter().map(|(unit, ..)| *unit).collect::<Vec<_>>(),
        }),
        Shape::Table(declaration) => {
            let part = declaration();
            if !definitions.contains_key(part.name) {
                // A place for it, before those in it are made.
                definitions.insert(part.name.to_owned(), Json::Null);
                let made = table(part, definitions);
                definitions.insert(part.name.to_owned(), made);
            }
            json!({"$ref": format!("#/$defs/{}", part.name)})
        }
        Shape::Array(inner) => {
            let items = value(inner, Bounds::default(), definitions);
            bounded(json!({"type": "array", "items": items}), bounds, ["minItems", "maxItems", ""])
        }
        Shape::Map(inner) => {
            json!({"type": "object", "additionalProperties": value(inner, Bounds::default(), definitions)})
        }
        Shape::Either(shapes) => {
            let variants: Vec<_> = shapes.iter().map(|shape| value(shape, bounds, definitions)).collect();
            json!({"anyOf": variants})
        }
    }
}

fn bounded(mut schema: Json, bounds: Bounds, [least, most, below]: [&str; 3]) -> Json {
    for (name, bound) in [(least, bounds.least), (most, bounds.most), (below, bounds.below)] {
        // Numbers of JSON have 64 bits at most.
        if let Some(bound) = bound.filter(|_| !name.is_empty()).and_then(|bound| i64::try_from(bound).ok()) {
            schema[name] = bound.into();
        }
    }
    schema
}
