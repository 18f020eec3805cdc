"""Values from a JSON schema: mostly what it asks for, sometimes what it forbids."""

from random import Random
from typing import Any

Schema = dict[str, Any]
ODD_TEXTS = (
    "",
    " ",
    "\u0000",
    "\ud800",
    "a" * 3000,
    "\u202e\ufeff",
    "'; DROP TABLE items; --",
    "<?a?>" * 30,
    "%00",
    "../" * 9,
    "é",
    "a\u0301\u0323" * 200,
    "=" * 500,
    "[" * 500,
    "sk_" + "A" * 43,
    "NaN",
    "null",
    "2026-02-30",
    "7d",
    "\r\nX-a: b",
    "{{7*7}}",
    "00000000-0000-0000-0000-000000000000",
    "task_zzzz",
    "http://127.0.0.1:1/",
    "file:///etc/passwd",
)
ODD_VALUES = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    -(2**70),
    1.5,
    1e308,
    float("inf"),
    float("nan"),
    [],
    {},
    [[]],
    {"a": {"a": {"a": []}}},
    [None] * 50,
    *ODD_TEXTS,
)
WORDS = (
    "heron",
    "river",
    "waits",
    "fish",
    "the",
    "decision",
    "use",
    "Postgres",
    "never",
    "水",
    "Straße",
    "2026-11-18",
)


class Generator:
    def __init__(
        self, random: Random, definitions: Schema, known: tuple[str, ...] = (), oddity: float = 0.05
    ) -> None:
        self._random, self._definitions, self._known, self._oddity = (
            random,
            definitions,
            known,
            oddity,
        )

    def value(self, schema: Schema | bool, depth: int = 0) -> Any:
        if isinstance(schema, bool) or depth > 6 or self._random.random() < self._oddity:
            return self._random.choice(ODD_VALUES)
        if "$ref" in schema:
            return self.value(self._definitions[schema["$ref"].rpartition("/")[2]], depth + 1)
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return self.value(self._random.choice(schema[choice]), depth + 1)
        if "allOf" in schema:
            return self.value(
                {name: value for part in schema["allOf"] for name, value in part.items()}, depth + 1
            )
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type", "string")
        if isinstance(kind, list):
            kind = self._random.choice(kind)
        return getattr(self, f"_{kind}")(schema, depth)

    def object_of(self, properties: Schema, required: list[str]) -> Schema:
        """An object with what is required, most of the time, and some of the rest."""
        return {
            name: self.value(schema)
            for name, schema in properties.items()
            if self._random.random() < (0.97 if name in required else 0.4)
        }

    def _object(self, schema: Schema, depth: int) -> Any:
        made = self.object_of(schema.get("properties", {}), schema.get("required", []))
        if self._random.random() < self._oddity:
            made[self._random.choice(("extra", "", "__class__", "é"))] = self._random.choice(
                ODD_VALUES
            )
        return made

    def _array(self, schema: Schema, depth: int) -> Any:
        count = self._random.choice((0, 1, 2, schema.get("minItems", 0), schema.get("maxItems", 3)))
        return [self.value(schema.get("items", True), depth + 1) for _ in range(min(count, 200))]

    def _string(self, schema: Schema, depth: int) -> Any:
        least, most = schema.get("minLength", 0), min(schema.get("maxLength", 400), 20_000)
        if self._known and self._random.random() < 0.4:
            return self._random.choice(self._known)
        if self._random.random() < 0.1:
            return "x" * self._random.choice((least, most, most + 1, max(0, least - 1)))
        return " ".join(self._random.choices(WORDS, k=self._random.randint(1, 12)))[:most].ljust(
            least, "x"
        )

    def _integer(self, schema: Schema, depth: int) -> Any:
        least, most = schema.get("minimum", -5), schema.get("maximum", 100)
        return self._random.choice(
            (least, most, least - 1, most + 1, self._random.randint(least, max(least, most)))
        )

    def _number(self, schema: Schema, depth: int) -> Any:
        return self._random.choice(
            (
                schema.get("minimum", 0.0),
                schema.get("maximum", 1.0),
                self._random.random(),
                -0.5,
                1e9,
            )
        )

    def _boolean(self, schema: Schema, depth: int) -> Any:
        return self._random.random() < 0.5

    def _null(self, schema: Schema, depth: int) -> Any:
        return None
