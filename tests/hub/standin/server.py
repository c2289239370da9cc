"""The stand-in as a running server: `with StandIn() as hub: ... hub.url`."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import uvicorn
from fastapi import FastAPI, Request, Response
from hub.standin import api, git
from hub.standin.faults import Fault
from hub.standin.store import Problem, Store


def make_app(store: Store, faults: list[Fault]) -> FastAPI:
    app = FastAPI()
    app.include_router(git.routes(store))
    app.include_router(api.routes(store))

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        headers = {"X-Error-Code": error.code, "X-Error-Message": " ".join(error.message.split())}
        return Response(error.message, error.status, {name: value for name, value in headers.items() if value})

    @app.middleware("http")
    async def log_and_fail(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        line = f"{request.method} {request.url.path}"
        fault = next((fault for fault in faults if fault.strikes(line)), None)
        if fault is not None:
            if fault.afterwards:
                await answer(request)
            await fault.wait()
        if fault is None or not fault.status:
            response = await answer(request)
        else:
            response = Response(fault.message, fault.status)
        store.log.append(f"{line} {response.status_code}")
        return response

    return app


class StandIn:
    """A server on a free port of loopback, in a thread of this process, so that tests reach into its store."""

    def __init__(self) -> None:
        self.store = Store()
        self.faults: list[Fault] = []
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(make_app(self.store, self.faults), log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the stand-in did not start")
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(timeout=10)
        self._socket.close()

    def fail(self, where: str, **more: object) -> Fault:
        """Let requests that match fail; see `Fault`."""
        fault = Fault(where, **more)  # type: ignore[arg-type]
        self.faults.append(fault)
        return fault
