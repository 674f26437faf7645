"""How much one operation may ask for: its depth, its aliases, and its cost in fields that have to be resolved.

Cost. Each selection set is walked once, fragments included, and each fragment's result is kept; so the time is linear in
the size of the document, whatever its fragments expand to. Sizes of pages and lists are taken from the variables too.

Some lists show their length only when they are read: a transaction has two legs as a rule and may have hundreds. They are
weighed by the rule, and the operation is told how many items of such lists it may read at the most, so that what comes out
longer than the rule can't cost more than all else may.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, cast

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    get_named_type,
)
from graphql.validation.rules import overlapping_fields_can_be_merged

from app.schema.errors import ApiError, too_complex
from app.schema.types.connections import PAGE_DEFAULT, PAGE_LIMIT

QUERY_LIMIT: Final = 65_536
"""Longest document, in characters. Data travels in variables, which this doesn't count."""

TOKENS_LIMIT: Final = 2_000
DEPTH_LIMIT: Final = 15
ALIASES_LIMIT: Final = 100
COST_LIMIT: Final = 50_000
"""Fields that may have to be resolved: a batch of 1,000 transfers may ask for all that it does."""

# Looking for fields that contradict each other is quadratic in their number; the library's own bound of 500,000 steps
# costs a fifth of a second. It is meant to be set here, once for the process.
overlapping_fields_can_be_merged.MAX_COMPLEXITY_BUDGET = 20_000

_INTROSPECTION_COST: Final = 10_000
"""Of `__schema` and `__type`, which may ask for the whole schema."""

_LENGTHS: Final = {
    ("Transaction", "legs"): 2,
    ("Transaction", "reversedBy"): 1,
    ("Hold", "transactions"): 2,
    ("Withdrawal", "transactions"): 2,
}
"""How long those lists are as a rule that the client doesn't give the size of."""

_REVERSALS_IN_MUTATIONS: Final = 20
"""How long reversedBy counts as in a mutation: what that has done is told however long it is, so it is weighed before."""

_UNBOUNDED: Final = frozenset({("Transaction", "legs"), ("Transaction", "reversedBy")})
"""Those of them that may be much longer."""

_OVERFLOW: Final = 1 << 40
_PAGE_SIZES: Final = frozenset({"first", "last"})


@dataclass(frozen=True, slots=True)
class Size:
    """How large a selection is."""

    depth: int = 0
    aliases: int = 0
    cost: int = 0
    item_cost: int = 1
    """Of the dearest item of a list that may be longer than it was weighed."""

    def beside(self, other: "Size") -> "Size":
        """Put another selection beside this one."""
        return Size(
            max(self.depth, other.depth),
            min(_OVERFLOW, self.aliases + other.aliases),
            min(_OVERFLOW, self.cost + other.cost),
            max(self.item_cost, other.item_cost),
        )

    def below(self, *, aliased: bool, times: int, unbounded: bool) -> "Size":
        """Put a field above this selection, which is resolved so many times, or even more where `unbounded`."""
        return Size(
            self.depth + 1,
            self.aliases + aliased,
            min(_OVERFLOW, 1 + times * self.cost),
            max(self.item_cost, self.cost) if unbounded else self.item_cost,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an operation may run."""

    refusal: ApiError | None
    fixed: bool
    """Whether it holds for the operation whatever the variables are."""
    items: int = 0
    """How many items of lists whose length isn't known beforehand the operation may read."""


def weigh(
    schema: GraphQLSchema,
    document: DocumentNode,
    operation: OperationDefinitionNode,
    variables: Mapping[str, Any],
) -> Verdict:
    """Refuse an operation that is too large; the document must be valid."""
    root = schema.get_root_type(operation.operation)
    measure = _Measure(schema, _fragments_of(document), variables)
    measure.variables = {**measure.defaults(operation), **variables}
    if operation.operation is OperationType.MUTATION:
        measure.lengths = {**_LENGTHS, ("Transaction", "reversedBy"): _REVERSALS_IN_MUTATIONS}
    try:
        size = Size() if root is None else measure.selections(operation.selection_set, root)
    except RecursionError:
        # Fragments may be chained deeper than the parser lets fields be nested.
        return Verdict(too_complex("The operation is nested too deeply."), fixed=False)
    for name, actual, limit in (
        ("depth", size.depth, DEPTH_LIMIT),
        ("number of aliases", size.aliases, ALIASES_LIMIT),
        ("cost", size.cost, COST_LIMIT),
    ):
        if actual > limit:
            refusal = too_complex(f"The {name} of the operation exceeds {limit}.")
            return Verdict(refusal, fixed=not measure.looked_at_variables)
    return Verdict(None, fixed=not measure.looked_at_variables, items=COST_LIMIT // size.item_cost)


def _fragments_of(document: DocumentNode) -> dict[str, FragmentDefinitionNode]:
    return {
        definition.name.value: definition
        for definition in document.definitions
        if isinstance(definition, FragmentDefinitionNode)
    }


@dataclass(slots=True)
class _Measure:
    schema: GraphQLSchema
    fragments: Mapping[str, FragmentDefinitionNode]
    variables: Mapping[str, Any]
    measured: dict[str, Size] = field(default_factory=dict[str, Size])
    searched: set[str] = field(default_factory=set[str])
    """Fragments in which no alias was found below an introspection field."""
    looked_at_variables: bool = False
    lengths: Mapping[tuple[str, str], int] = field(default_factory=lambda: _LENGTHS)

    def defaults(self, operation: OperationDefinitionNode) -> dict[str, object]:
        return {
            definition.variable.name.value: self.value(definition.default_value)
            for definition in operation.variable_definitions or ()
            if definition.default_value is not None
        }

    def selections(self, selection_set: SelectionSetNode, parent: GraphQLNamedType) -> Size:
        size = Size()
        for selection in selection_set.selections:
            match selection:
                case FieldNode():
                    size = size.beside(self.field(selection, parent))
                case FragmentSpreadNode():
                    size = size.beside(self.fragment(selection.name.value))
                case InlineFragmentNode():
                    condition = selection.type_condition
                    narrowed = (
                        parent if condition is None else self.schema.type_map[condition.name.value]
                    )
                    size = size.beside(self.selections(selection.selection_set, narrowed))
                case _:
                    pass
        return size

    def fragment(self, name: str) -> Size:
        if name not in self.measured:
            fragment = self.fragments[name]
            self.measured[name] = self.selections(
                fragment.selection_set, self.schema.type_map[fragment.type_condition.name.value]
            )
        return self.measured[name]

    def introspection(self, node: FieldNode) -> Size:
        """Measure a field that tells of the schema itself.

        It is deep by nature. Its cost is bounded by the schema, and the validation bounds how often lists lie in lists,
        for as long as no field of it is asked for several times: so none of them may be aliased.
        """
        if node.selection_set is None:
            return Size(aliases=int(node.alias is not None))
        if self.aliased(node.selection_set):
            return Size(aliases=_OVERFLOW)
        return Size(aliases=int(node.alias is not None), cost=_INTROSPECTION_COST)

    def aliased(self, selection_set: SelectionSetNode) -> bool:
        """Tell whether any field below has an alias; each fragment is looked at once."""
        for selection in selection_set.selections:
            match selection:
                case FieldNode():
                    if selection.alias is not None:
                        return True
                    below = selection.selection_set
                case FragmentSpreadNode():
                    name = selection.name.value
                    if name in self.searched:
                        continue
                    self.searched.add(name)
                    below = self.fragments[name].selection_set
                case InlineFragmentNode():
                    below = selection.selection_set
                case _:
                    below = None
            if below is not None and self.aliased(below):
                return True
        return False

    def field(self, node: FieldNode, parent: GraphQLNamedType) -> Size:
        if node.name.value.startswith("__"):
            return self.introspection(node)
        if not isinstance(parent, GraphQLObjectType | GraphQLInterfaceType):
            return Size()
        definition = parent.fields[node.name.value]
        below = (
            Size()
            if node.selection_set is None
            else self.selections(node.selection_set, _named(_type_of(definition)))
        )
        place = (parent.name, node.name.value)
        return below.below(
            aliased=node.alias is not None,
            times=self.times(node, definition, self.lengths.get(place, 1)),
            unbounded=place in _UNBOUNDED,
        )

    def times(self, node: FieldNode, definition: GraphQLField, length: int) -> int:
        """How often what is below a field is resolved: the size of its page, or of a list of objects it is given.

        Where neither says, it is as often as the list is long as a rule.
        """
        times = PAGE_DEFAULT if "first" in definition.args else length
        for argument in node.arguments or ():
            name = argument.name.value
            if name in _PAGE_SIZES:
                size = self.value(argument.value)
                if isinstance(size, int):
                    times = max(1, min(size, PAGE_LIMIT))
            elif _has_objects(type_ := _type_of(definition.args[name])):
                times = max(times, _longest(self.value(argument.value), type_))
        return times

    def value(self, node: ValueNode) -> object:
        """Read as much of an argument as decides about sizes."""
        match node:
            case VariableNode():
                self.looked_at_variables = True
                return self.variables.get(node.name.value)
            case IntValueNode():
                return int(node.value) if len(node.value) < len(str(_OVERFLOW)) else _OVERFLOW
            case ListValueNode():
                return [self.value(item) for item in node.values]
            case ObjectValueNode():
                return {item.name.value: self.value(item.value) for item in node.fields}
            case _:
                return None


@cache
def _has_objects(type_: Any) -> bool:
    """Tell whether an argument is, or holds, a list of objects or of ids."""
    if str(type_).startswith("["):
        named = _named(type_)
        return named.name == "ID" or isinstance(named, GraphQLInputObjectType)
    return any(_has_objects(member) for member in _members(type_).values())


def _longest(value: Any, type_: Any) -> int:
    """Measure the longest list of objects or of ids in an argument."""
    if not _has_objects(type_):
        return 1
    if isinstance(value, list):
        return len(cast("list[object]", value))
    given = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    lengths = (_longest(given.get(name), member) for name, member in _members(type_).items())
    return max(lengths, default=1)


def _members(type_: Any) -> dict[str, Any]:
    named = _named(type_)
    if not isinstance(named, GraphQLInputObjectType):
        return {}
    return {name: _type_of(member) for name, member in named.fields.items()}


def _type_of(definition: Any) -> Any:
    """Read the type of a field or an argument; graphql-core's own annotation of it is incomplete."""
    return definition.type


def _named(type_: Any) -> GraphQLNamedType:
    return cast("GraphQLNamedType", get_named_type(type_))
