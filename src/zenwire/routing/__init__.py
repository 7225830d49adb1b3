"""Routing, sans-IO: faces and what they say in; messages for faces, and events, out.

`Tables` is one node's routing. It is given a role (`CLIENT`, `PEER`, `ROUTER`), neighbours
(`Tables.add_face`), their messages and the time; `Tables.session` makes the local side, on which
an API declares, publishes, asks and answers. `Tables.outputs` says what is to be done.

One file for each concern: `resources` (aliases), `declarations` (who declared what),
`interests` (who asked to be told), `propagation` (who has been told what), `upstream` (what we
ask), `pubsub`, `targets` and `queries` with those that are `pending`, `consolidation`,
`liveliness`, `matching`, `gossip`, `aggregates`; among routers `graph` (who is linked, and the trees), `routers`
(link state), `sourced` (declarations), and towards their peers `gateway`. One for each role:
`client`, `peer`, `router`; a role is a table of what the node does for each neighbour.
"""

from zenwire.routing.aggregates import Aggregates
from zenwire.routing.client import CLIENT
from zenwire.routing.faces import Face, Locality, Region, Relation, Role
from zenwire.routing.limits import Counters, Limits
from zenwire.routing.options import RoutingOptions
from zenwire.routing.outputs import (
    CloseFace,
    LivelinessChanged,
    MatchingChanged,
    NodeKnown,
    Output,
    QueryFinished,
    QueryReceived,
    ReplyReceived,
    SampleReceived,
    Send,
)
from zenwire.routing.peer import PEER
from zenwire.routing.prepared import Question, question
from zenwire.routing.router import ROUTER
from zenwire.routing.session import Session
from zenwire.routing.tables import Tables

__all__ = [
    "CLIENT",
    "PEER",
    "ROUTER",
    "Aggregates",
    "CloseFace",
    "Counters",
    "Face",
    "Limits",
    "LivelinessChanged",
    "Locality",
    "MatchingChanged",
    "NodeKnown",
    "Output",
    "QueryFinished",
    "QueryReceived",
    "Question",
    "Region",
    "Relation",
    "ReplyReceived",
    "Role",
    "RoutingOptions",
    "SampleReceived",
    "Send",
    "Session",
    "Tables",
    "question",
]
