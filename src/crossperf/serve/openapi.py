"""The OpenAPI 3.1 document of the API, made of the table of endpoints and the types that they name."""

from __future__ import annotations

import functools
import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from crossperf import __version__, plain
from crossperf.platforms import Platform
from crossperf.records import COLUMNS, Run
from crossperf.serve.endpoints import Endpoint, Parameter
from crossperf.serve.problems import MEDIA_TYPE, Fault

PREFIX = "/api/v1"
_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
#: Statuses that any endpoint with a body, or with a token, may give.
_OFTEN = {
    401: "A token is needed",
    403: "Not allowed",
    404: "Not known here",
    421: "Wrong host",
    422: "Content that cannot be used",
    429: "Busy",
    500: "A defect of the server",
    501: "Not offered here",
    503: "Not available now",
}
_WITH_BODY = {
    406: "Not acceptable",
    408: "The request took too long",
    413: "Too large",
    415: "Format not supported",
}


@functools.cache
def document() -> dict[str, Any]:
    """Return the document."""
    from crossperf.serve.table import ENDPOINTS

    schemas = _Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(PREFIX + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    problem = {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "errors": {"type": "array", "items": schemas.of(Fault)},
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "crossperf",
            "version": __version__,
            "summary": "I ran this application here; how fast would it be over there?",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {**schemas.named, "Problem": problem},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    """Return one method on one path."""
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    content = {kind: {"schema": schemas.of(own)} for kind, own in endpoint.answers.items()}
    known = _OFTEN | (_WITH_BODY if endpoint.body else {})
    refused = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    statuses = {endpoint.status, 200} if endpoint.status != 200 else {200}
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.text,
        "description": (endpoint.handler.__doc__ or "").strip(),
        "parameters": [*in_path, *map(_parameter, endpoint.parameters)],
        "responses": {
            **{str(status): {"description": "The answer", "content": content} for status in sorted(statuses)},
            **{str(status): {"description": text, **refused} for status, text in known.items()},
        },
        "security": [] if endpoint.scope == "open" else [{}, {"token": []}] if endpoint.scope == "read" else _TOKEN,
    }
    if endpoint.body:
        bodies = {kind: {"schema": schemas.of(own)} for kind, own in endpoint.body.items()}
        if endpoint.example is not None:
            bodies["application/json"]["example"] = endpoint.example
        operation["requestBody"] = {"required": True, "content": bodies}
    return operation


_TOKEN: list[dict[str, list[str]]] = [{"token": []}]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any]
    if parameter.kind is list:
        schema = {"type": "array", "items": {"type": "string"}}
    else:
        schema = {"type": _SIMPLE[parameter.kind], **_limits(parameter.limits)}
    if parameter.default is not None:
        schema["default"] = parameter.default
    own = {"name": parameter.name, "in": "query", "description": parameter.text, "schema": schema}
    return own | ({"style": "form", "explode": False} if parameter.kind is list else {})


def _limits(limits: Any) -> dict[str, Any]:
    if isinstance(limits, plain.OneOf):
        return {"enum": list(limits.words)}
    if not isinstance(limits, plain.Between):
        return {}
    ends = {"minimum": limits.least, "maximum": limits.most, "exclusiveMinimum": limits.above}
    return {name: end for name, end in ends.items() if math.isfinite(end)}


class _Schemas:
    """JSON schemas of types; those of classes are kept under their names."""

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type, of an object given by its fields, or of a list given by its only entry."""
        if isinstance(kind, Mapping):
            properties = {name: self.of(own) for name, own in kind.items()}
            return {"type": "object", "required": list(properties), "properties": properties}
        if isinstance(kind, list):
            return {"type": "array", "items": self.of(kind[0])}
        if kind is bytes:
            return {"type": "string", "format": "binary"}
        if kind in _SIMPLE:
            return {"type": _SIMPLE[kind]}
        if is_dataclass(kind):
            return self._reference(kind)
        return self._generic(kind)

    def _generic(self, kind: Any) -> dict[str, Any]:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            own = self.of(arguments[0])
            return {**own, **_limits(arguments[1])}
        if origin is typing.Literal:
            return {"enum": list(arguments)}
        if origin in (typing.Union, types.UnionType):
            return {"anyOf": [self.of(own) for own in arguments]}
        if origin in (list, tuple):
            return {"type": "array", "items": self.of(arguments[0])}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            # Numbers that are not known are null, as in any answer of JSON.
            values = self.of(arguments[1])
            return {"type": "object", "additionalProperties": {} if arguments[1] is Any else _or_null(values)}
        return {}

    def _reference(self, kind: Any) -> dict[str, Any]:
        name = kind.__name__
        if name not in self.named:
            self.named[name] = {}
            self.named[name] = _run(self) if kind is Run else _platform() if kind is Platform else self._object(kind)
        return {"$ref": f"#/components/schemas/{name}"}

    def _object(self, kind: Any) -> dict[str, Any]:
        hints = typing.get_type_hints(kind, include_extras=True)
        named = {str(own.metadata.get("json", own.name)): own for own in fields(kind)}
        required = [name for name, own in named.items() if own.default is MISSING and own.default_factory is MISSING]
        properties = {name: self.of(hints[own.name]) for name, own in named.items()}
        schema = {"type": "object", "properties": properties, "description": _sentence(kind)}
        return schema | ({"required": required} if required else {})


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]} if schema.get("type") in ("number", "integer") else schema


def _sentence(kind: Any) -> str:
    return (kind.__doc__ or "").partition("\n\n")[0].strip()


def _run(schemas: _Schemas) -> dict[str, Any]:
    """Return the schema of a run as JSON nests it: known columns, counters, and whatever else was recorded."""
    hints = typing.get_type_hints(Run, include_extras=True)
    properties = {name: schemas.of(hints[name]) for name in COLUMNS}
    counters = {"type": "object", "additionalProperties": {"type": ["number", "null"]}}
    return {
        "type": "object",
        "required": ["app", "input", "platform"],
        "properties": {**properties, "counters": counters},
        "additionalProperties": True,
        "description": _sentence(Run),
    }


def _platform() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "platform_class": {"type": "string"},
            "facts": {
                "type": "object",
                "properties": {"price_per_hour": {"type": "number", "minimum": 0}},
                "additionalProperties": True,
            },
        },
        "description": _sentence(Platform),
    }
