"""Rules of the house that no linter knows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import app
from app.database import StatementFileError, load_statements

APP = Path(app.__file__).parent
SQL_FILES = sorted(APP.rglob("*.sql"))

_LOADERS = {"load_statements", "load_driver_statements"}


def loaded_file(call: ast.Call, module: Path) -> Path | None:
    """Find which file a call such as `load_statements(Path(__file__).parent / "sql" / "posting.sql")` loads."""
    if not (isinstance(call.func, ast.Name) and call.func.id in _LOADERS):
        return None
    parts = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant)]
    file = next((part for part in parts if isinstance(part, str) and part.endswith(".sql")), None)
    return None if file is None else module.parent / "sql" / file


def uses_of_statements() -> Iterator[tuple[Path, str]]:
    """Yield each statement that a module names, with the file that the module has loaded it from."""
    for module in APP.rglob("*.py"):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        files: dict[str, Path] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign | ast.Assign) and isinstance(node.value, ast.Call):
                file = loaded_file(node.value, module)
                targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
                for target in targets:
                    if file is not None and isinstance(target, ast.Name):
                        files[target.id] = file
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                file = files.get(node.value.id)
                if file is not None:
                    yield from (
                        (file, part.value)
                        for part in ast.walk(node.slice)
                        if isinstance(part, ast.Constant) and isinstance(part.value, str)
                    )


def test_there_are_statements_to_look_at() -> None:
    assert APP / "ledger" / "posting" / "sql" / "posting.sql" in SQL_FILES
    assert (APP / "ledger" / "posting" / "sql" / "posting.sql", "lock_accounts") in set(
        uses_of_statements()
    )


@pytest.mark.parametrize("file", SQL_FILES, ids=lambda file: str(file.relative_to(APP)))
def test_every_statement_is_used_and_every_used_statement_is_there(file: Path) -> None:
    used = {name for loaded, name in uses_of_statements() if loaded == file}

    assert used == set(load_statements(file))


@pytest.mark.parametrize("file", SQL_FILES, ids=lambda file: str(file.relative_to(APP)))
def test_a_statement_has_one_name_and_a_name_one_statement(file: Path) -> None:
    names = re.findall(r"^-- name: (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)

    assert names == list(load_statements(file))
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("file", SQL_FILES, ids=lambda file: str(file.relative_to(APP)))
def test_no_parameter_is_cast_in_a_way_that_hides_it(file: Path) -> None:
    assert re.search(r":\w+::", file.read_text(encoding="utf-8")) is None


def test_a_hidden_parameter_is_refused_when_it_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "wrong.sql"
    file.write_text("-- name: wrong\nselect :ids::uuid[];\n", encoding="utf-8")

    with pytest.raises(StatementFileError, match=r"wrong\.sql"):
        load_statements(file)
