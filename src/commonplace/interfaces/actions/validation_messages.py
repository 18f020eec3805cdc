"""Sentences for invalid input, the same for MCP, REST and the command line."""

from collections.abc import Mapping
from typing import Any

_WHOLE, _YES_OR_NO, _OBJECT = "must be a whole number", "must be true or false", "must be an object"
_MUST = {
    "greater_than": "must be more than {gt:,}",
    "greater_than_equal": "must be at least {ge:,}",
    "less_than_equal": "must be at most {le:,}",
    "string_too_short": "must have at least {min_length:,} characters",
    "string_too_long": "must have at most {max_length:,} characters",
    "too_short": "must have at least {min_length:,} entries",
    "too_long": "must have at most {max_length:,} entries",
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": _WHOLE,
    "bool_parsing": _YES_OR_NO,
    "bool_type": _YES_OR_NO,
    "float_type": "must be a number",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "literal_error": "must be {expected}",
    "value_error": "{error}",
    "string_pattern_mismatch": "must be an email address such as you@example.org",
}


def error_sentence(detail: Mapping[str, Any], name: str, known: str) -> str:
    """Return one of pydantic's errors as a sentence.

    `name` is the field as the interface writes it, empty for the whole input; `known` says which
    fields there are.
    """
    context = dict(detail.get("ctx", {}))
    if "expected" in context:
        context["expected"] = context["expected"].replace("'", "")
    match detail["type"]:
        case "missing":
            return f"{name} is required."
        case "extra_forbidden":
            return f"Unknown field {name}; {known}."
        case "string_unicode":
            return f"{name} is not valid Unicode (a lone surrogate); send well-formed text."
        case "value_error" if not name:
            return f"{context['error']}."
    if context.get("min_length") == 1:
        return f"{name} must not be empty."
    message = _MUST.get(detail["type"])
    if message is None:
        return f"{name} is invalid: {detail['msg'][:1].lower()}{detail['msg'][1:]}."
    return f"{name} {message.format(**context)}."
