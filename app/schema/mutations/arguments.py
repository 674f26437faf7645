"""The one argument that every mutation has."""

from typing import Annotated, TypeVar

import strawberry

Input = TypeVar("Input")

Given = Annotated[Input, strawberry.argument(description="What is asked for.")]
