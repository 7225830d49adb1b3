"""What may pass between this node and others: access, rates, sizes, and the QoS on the way.

One file for each of them: `access`, `downsampling`, `qos`, `low_pass`, in the names of the
configuration. `problems` finds all that is wrong in what it says, `messages` tells messages apart,
`gate` has the filters of one session and direction in a row, and `guarded` puts them before the
queue of a neighbour. Nothing here reads a clock or does I/O.

A filter never sees the sessions of this node itself, nor a multicast group, as in the reference.
"""

from zenwire.node.filters.access import Access, Explanation, Finding
from zenwire.node.filters.filters import Filters
from zenwire.node.filters.gate import Filtered, Gate
from zenwire.node.filters.party import Party

__all__ = ["Access", "Explanation", "Filtered", "Filters", "Finding", "Gate", "Party"]
