"""The schema, and the path that every operation takes before it is executed: parse, prove who asks, validate, weigh."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, cast

import strawberry
from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    parse,
    specified_rules,
    validate,
)
from strawberry.extensions import SchemaExtension
from strawberry.schema.config import StrawberryConfig
from strawberry.types import ExecutionContext

from app.schema.context import Context
from app.schema.errors import bad_request, unauthenticated
from app.schema.limits import TOKENS_LIMIT, Verdict, weigh
from app.schema.mutations import Mutation
from app.schema.queries import Query
from app.schema.scalars import SCALARS
from app.schema.subscriptions import Subscription
from app.schema.types.user_errors import IdempotencyConflict, InsufficientFunds, Refusal

DOCUMENTS_KEPT: Final = 256
"""Documents whose parsed and validated form is kept, the most recently used ones."""


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document that has been parsed and validated."""

    document: DocumentNode
    operations: tuple[OperationDefinitionNode, ...]
    errors: tuple[GraphQLError, ...]
    verdicts: dict[OperationDefinitionNode, Verdict] = field(
        default_factory=dict[OperationDefinitionNode, Verdict], compare=False
    )
    """What was found for operations whose size doesn't depend on variables."""

    def weigh(
        self,
        schema: GraphQLSchema,
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any],
    ) -> Verdict:
        """Judge how much an operation of the document asks for."""
        verdict = self.verdicts.get(operation)
        if verdict is None:
            verdict = weigh(schema, self.document, operation, variables)
            if verdict.fixed:
                self.verdicts[operation] = verdict
        return verdict


_NOTHING: Final = PreparedDocument(DocumentNode(definitions=()), (), ())


class LedgerSchema(strawberry.Schema):
    """Strawberry's schema, which keeps prepared documents and leaves the log to those who show errors."""

    def __init__(self, *, introspection: bool) -> None:
        """Put the schema together. Without introspection, clients learn no name that they don't know."""
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - its own annotations are incomplete
            query=Query,
            mutation=Mutation,
            subscription=Subscription,
            types=[InsufficientFunds, IdempotencyConflict, Refusal],
            extensions=[_Preparation],
            config=StrawberryConfig(
                scalar_map=SCALARS, disable_field_suggestions=not introspection
            ),
        )
        self._rules = (
            specified_rules
            if introspection
            else (*specified_rules, NoSchemaIntrospectionCustomRule)
        )
        self.prepare = lru_cache(DOCUMENTS_KEPT)(self._prepare)
        """Parse and validate a document; raises GraphQLSyntaxError."""

    @property
    def core(self) -> GraphQLSchema:
        """The schema as graphql-core knows it."""
        return self._schema

    def process_errors(
        self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None
    ) -> None:
        """Log nothing: mistakes of clients aren't ours, and `errors.present` logs what is."""

    def _prepare(self, text: str) -> PreparedDocument:
        document = parse(text, max_tokens=TOKENS_LIMIT)
        return PreparedDocument(
            document,
            tuple(
                definition
                for definition in document.definitions
                if isinstance(definition, OperationDefinitionNode)
            ),
            tuple(validate(self._schema, document, self._rules)),
        )


class _Preparation(SchemaExtension):
    """Has each operation go through the checks in their order, whatever door it came through."""

    def __init__(self) -> None:
        self._prepared = _NOTHING
        self._items: int | None = None

    def on_parse(self) -> Iterator[None]:
        """Find the parsed document."""
        operation = self.execution_context
        schema = cast("LedgerSchema", operation.schema)
        self._prepared = schema.prepare(operation.query or "")
        operation.graphql_document = self._prepared.document
        yield

    def on_validate(self) -> Iterator[None]:
        """Refuse the operation, or let it be executed. An empty list also keeps Strawberry from validating again."""
        self.execution_context.pre_execution_errors = list(self._refuse())
        yield

    def on_stream_result(self, result: object) -> Iterator[None]:
        """Let the next event of a subscription be as large as this one."""
        _ = result
        yield
        context = cast("Context", self.execution_context.context)
        context.items_left = self._items

    def _refuse(self) -> Iterator[GraphQLError]:
        schema = cast("LedgerSchema", self.execution_context.schema)
        context = cast("Context", self.execution_context.context)
        operation = self._operation()
        if operation is None:
            yield bad_request("The document has several operations: give an operationName.")
            return
        context.operation_type = operation.operation.value
        if context.claims is None and not _asks_for_schema_only(operation):
            yield unauthenticated()
            return
        if self._prepared.errors:
            yield from self._prepared.errors
            return
        verdict = self._prepared.weigh(
            schema.core, operation, self.execution_context.variables or {}
        )
        if verdict.refusal is not None:
            yield verdict.refusal
        if operation.operation is not OperationType.MUTATION:
            # What a mutation has done is told, however long it is: its fields are few, and each changes one thing.
            self._items = context.items_left = verdict.items

    def _operation(self) -> OperationDefinitionNode | None:
        """Find the operation that will run; None where the document leaves that open.

        Strawberry's public name of the operation is that of the first one where none was given.
        """
        name: Any = self.execution_context._provided_operation_name  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        operations = self._prepared.operations
        if name is None:
            return operations[0] if len(operations) == 1 else None
        return next(
            operation for operation in operations if operation.name and operation.name.value == name
        )


def build_schema(*, introspection: bool = True) -> LedgerSchema:
    """Build the schema, once for each process."""
    return LedgerSchema(introspection=introspection)


def _asks_for_schema_only(operation: OperationDefinitionNode) -> bool:
    """Tell whether nothing but the schema itself is asked for, which is no secret where introspection is on."""
    return all(
        isinstance(selection, FieldNode) and selection.name.value.startswith("__")
        for selection in operation.selection_set.selections
    )
