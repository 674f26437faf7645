"""The page at `/`, for whoever opens the server's address in a browser."""

from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route


def page_routes() -> Sequence[BaseRoute]:
    """Serve the page; it is read once."""
    content = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")

    async def page(_request: Request) -> Response:
        return HTMLResponse(content)

    return (Route("/", page),)
