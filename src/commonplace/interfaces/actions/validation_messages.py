"""What is wrong with a value that was sent, in the words that every face uses."""

from collections.abc import Mapping
from typing import Any

_WHOLE, _YES_OR_NO, _OBJECT = "must be a whole number", "must be true or false", "must be an object"
_MUST = {
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
}


def mistake(detail: Mapping[str, Any]) -> str:
    """Of what pydantic tells; to be put after the value's name."""
    told = detail.get("ctx", {})
    if told.get("min_length") == 1:
        return "must not be empty"
    said = _MUST.get(detail["type"])
    return (
        said.format(**told)
        if said
        else f"is not taken: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
    )
