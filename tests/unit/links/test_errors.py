from __future__ import annotations

import errno
import pickle
import socket
import ssl

import pytest

from zenwire.errors import ZError
from zenwire.links.errors import EndpointError, LinkError, link_error


def test_an_error_says_what_where_and_what_to_try() -> None:
    error = LinkError("tcp/h:1", "connecting: refused", "is it running?")
    assert isinstance(error, ZError)
    assert str(error) == "tcp/h:1: connecting: refused; is it running?"
    assert str(LinkError("tcp/h:1", "gone")) == "tcp/h:1: gone"
    assert str(EndpointError("x", "config", "bad", "try")) == "config of 'x': bad; try"


@pytest.mark.parametrize(
    "error", [LinkError("a", "b", "c"), EndpointError("a", "config", "b", "c")]
)
def test_an_error_crosses_processes_whole(error: LinkError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (OSError(errno.ECONNREFUSED, "Connection refused"), "nothing listens there"),
        (OSError(errno.EADDRINUSE, "in use"), "another program listens there"),
        (OSError(errno.EMFILE, "Too many"), "ulimit -n"),
        (OSError(errno.EBADF, "Bad"), "doing: Bad"),
        (OSError("text only"), "doing: text only"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "cannot be resolved"),
        (TimeoutError(), "no answer in time"),
        (RuntimeError(), "doing: RuntimeError"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong"), "TLS failed"),
    ],
)
def test_errors_of_the_system_get_a_hint(cause: Exception, said: str) -> None:
    error = link_error("tcp/h:1", "doing", cause)
    assert said in str(error)
    assert str(error).startswith("tcp/h:1: doing: ")


def test_a_link_error_stays_what_it_is() -> None:
    error = LinkError("a", "b")
    assert link_error("x", "y", error) is error
