"""The compiled kernels of ``zenwire.capture``, in one file because Numba's cache looks at no other.

Arithmetic is signed, since lengths and times are; an index is made unsigned where it is used,
which spares a test for wrap-around. Nothing here trusts its input: every index is bounded by a
check before it. Where an array is full, a kernel stops, says where, and is called again.
"""

import logging
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

U = types.uint64
I = types.int64
B = types.boolean

BYTES = types.Array(types.uint8, 1, "C")
INT64 = types.Array(types.int64, 1, "C")
TABLE = types.Array(types.int64, 2, "C")
KEYS = types.Array(types.uint64, 2, "C")

log = logging.getLogger("zenwire.capture")


def _nothing():
    pass


try:
    njit(cache=True)(_nothing)
    CACHE = True
except RuntimeError as e:
    # No directory that Numba may write to: the kernels work, but are compiled in each process.
    CACHE = False
    log.warning("compiled kernels are not kept (%s): set NUMBA_CACHE_DIR", e)

OPTIONS = {"cache": CACHE, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

_SIGNATURES = {}
_READY = set()


def kernel(signature: Any) -> Any:
    """Compiled when ``ready`` asks for it first, not at import: few files need all of them."""

    def make(function):
        made = njit(**OPTIONS)(function)
        _SIGNATURES[made] = signature
        return made

    return make


def part(signature: Any) -> Any:
    """The same for what kernels alone call, which needs no way in from Python."""

    def make(function):
        made = njit(no_cpython_wrapper=True, **OPTIONS)(function)
        _SIGNATURES[made] = signature
        return made

    return make


def ready(made: Any) -> Any:
    """The kernel, compiled or from the cache, for its own signature and no other."""
    if made not in _READY:
        # What it calls first: otherwise Numba compiles that for the types of each call.
        for name in made.py_func.__code__.co_names:
            called = globals().get(name)
            if isinstance(called, type(made)) and called in _SIGNATURES:
                ready(called)
        made.compile(_SIGNATURES[made])
        made.disable_compile()
        if not _READY and not made.stats.cache_hits:
            log.warning("compiling the kernels: some seconds, once on this machine")
        _READY.add(made)
    return made


@intrinsic
def copy(context, target, q, source, p, n):
    """target[q:q+n] = source[p:p+n], unchecked."""
    signature = types.void(target, q, source, p, n)

    def generate(context, builder, signature, args):
        out = context.make_array(signature.args[0])(context, builder, args[0])
        src = context.make_array(signature.args[2])(context, builder, args[2])
        here = builder.gep(src.data, [args[3]])
        there = builder.gep(out.data, [args[1]])
        cgutils.raw_memcpy(builder, there, here, args[4], 1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def load4(context, source, p):
    """Four bytes as a little-endian integer, unaligned and unchecked."""
    signature = types.uint32(source, p)

    def generate(context, builder, signature, args):
        src = context.make_array(signature.args[0])(context, builder, args[0])
        here = builder.gep(src.data, [args[1]])
        return builder.load(builder.bitcast(here, ir.IntType(32).as_pointer()), align=1)

    return signature, generate


# --- bytes ---


@part(I(BYTES, I))
def u8(b, p):
    return I(b[U(p)])


@part(I(BYTES, I))
def be16(b, p):
    return (I(b[U(p)]) << 8) | I(b[U(p + 1)])


@part(I(BYTES, I))
def le16(b, p):
    return (I(b[U(p + 1)]) << 8) | I(b[U(p)])


@part(I(BYTES, I))
def le32(b, p):
    return I(load4(b, U(p)))


@part(I(BYTES, I))
def be32(b, p):
    return (be16(b, p) << 16) | be16(b, p + 2)


@part(I(BYTES, I, I))
def u16(b, p, big):
    return be16(b, p) if big else le16(b, p)


@part(I(BYTES, I, I))
def u32(b, p, big):
    return be32(b, p) if big else le32(b, p)


# --- pcap ---

# The columns of a table of records.
R_DATA, R_CAPTURED, R_ORIGINAL, R_TIME, R_LINK, R_AT = range(6)
RECORD_COLUMNS = 6
# Why a kernel of records stopped.
MORE, FULL, GARBAGE = range(3)
# The state of a file: where to go on, rows written, why it stopped, and its format.
F_POS, F_ROWS, F_WHY, F_BIG, F_UNIT, F_HEADER, F_LINK, F_LIMIT, F_TIME, F_FORCE, F_BAD = range(11)
F_INTERFACES = 11
FILE_STATE = 12
CHAIN = 5
DAY = 86_400


@kernel(B(BYTES, I, INT64))
def pcap_header_fits(b, p, st):
    """Whether 16 bytes look like the header of a record; loosely, for the place where one must be."""
    big = st[F_BIG]
    captured = u32(b, p + 8, big)
    return captured <= st[F_LIMIT] and u32(b, p + 4, big) < 1_000_000_000 // st[F_UNIT]


@part(B(BYTES, I, INT64, I))
def pcap_header_seems(b, p, st, seconds):
    """The same where a wrong length may have led; ``seconds`` is the time of another record."""
    original = u32(b, p + 12, st[F_BIG])
    if not pcap_header_fits(b, p, st) or original > st[F_LIMIT]:
        return False
    return original >= u32(b, p + 8, st[F_BIG]) and abs(u32(b, p, st[F_BIG]) - seconds) <= DAY


@part(B(BYTES, I))
def is_pcap_magic(b, p):
    x = le32(b, p)
    known = x == 0xA1B2C3D4 or x == 0xD4C3B2A1 or x == 0xA1B23C4D or x == 0x4D3CB2A1
    return known and (le32(b, p + 4) == 0x00040002 or be32(b, p + 4) == 0x00020004)


@kernel(B(BYTES, I))
def is_section(b, p):
    if le32(b, p) != 0x0A0D0D0A:
        return False
    x = le32(b, p + 8)
    return x == 0x1A2B3C4D or x == 0x4D3C2B1A


@kernel(types.void(BYTES, I, I, I, INT64, TABLE))
def pcap_records(b, n, final, base, st, out):
    """Records from ``st[F_POS]`` on, as long as each is followed by what may be another one.

    ``base`` is where the buffer is in the file. With ``F_FORCE`` the first one is taken whatever
    comes after it.
    """
    p = st[F_POS]
    big = st[F_BIG]
    unit = st[F_UNIT]
    head = st[F_HEADER]
    rows = 0
    room = out.shape[1]
    why = MORE
    while True:
        if p + head > n:
            break
        if rows >= room:
            why = FULL
            break
        if not pcap_header_fits(b, p, st):
            why = GARBAGE
            break
        if not st[F_FORCE] and (is_pcap_magic(b, p) or is_section(b, p)):
            why = GARBAGE
            break
        captured = u32(b, p + 8, big)
        e = p + head + captured
        if e > n or (e + head > n and not final):
            break
        if e + head <= n and not st[F_FORCE]:
            if not (
                pcap_header_seems(b, e, st, u32(b, p, big))
                or is_pcap_magic(b, e)
                or is_section(b, e)
            ):
                why = GARBAGE
                break
        st[F_FORCE] = 0
        out[R_DATA, U(rows)] = p + head
        out[R_CAPTURED, U(rows)] = captured
        out[R_ORIGINAL, U(rows)] = max(u32(b, p + 12, big), captured)
        out[R_TIME, U(rows)] = u32(b, p, big) * 1_000_000_000 + u32(b, p + 4, big) * unit
        out[R_LINK, U(rows)] = st[F_LINK]
        out[R_AT, U(rows)] = base + p
        rows += 1
        p = e
    st[F_POS] = p
    st[F_ROWS] = rows
    st[F_WHY] = why


@part(I(BYTES, I, I, I, INT64))
def pcap_chain(b, p, n, final, st):
    """1 if a chain of records begins at ``p``, 0 if not, -1 if that takes more bytes to tell."""
    big = st[F_BIG]
    head = st[F_HEADER]
    before = -1
    for k in range(CHAIN):
        if p == n and final:
            return 1 if k > 0 else 0
        if p + head > n:
            if final:
                return 1 if k > 1 else 0
            return -1
        if is_pcap_magic(b, p) or is_section(b, p):
            return 1
        captured = u32(b, p + 8, big)
        seconds = u32(b, p, big)
        if captured == 0 or not pcap_header_seems(b, p, st, before if before >= 0 else seconds):
            return 0
        if st[F_TIME] > 0 and abs(seconds - st[F_TIME] // 1_000_000_000) > 3660 * DAY:
            return 0
        before = seconds
        p += head + captured
        if p > n:
            return 1 if final else -1
    return 1


@kernel(I(BYTES, I, I, I, I, INT64))
def pcap_find(b, p, n, stop, final, st):
    """Where before ``stop`` a chain of records begins: ``stop`` if nowhere, -1 - p if p is undecided."""
    while p + 16 <= n:
        if p >= stop:
            return stop
        found = pcap_chain(b, p, n, final, st)
        if found > 0:
            return p
        if found < 0:
            return -1 - p
        p += 1
    return min(n, stop) if final else -1 - p


# --- pcapng ---

# The columns of a table of interfaces.
N_LINK, N_RESOLUTION, N_OFFSET, N_SNAP = range(4)
SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 0x0A0D0D0A, 1, 2, 3, 6
BLOCK_MAX = 16 << 20


@part(I(I, I, I))
def nanoseconds(units, resolution, offset):
    """A pcapng time; ``units`` fill 64 bits, ``resolution`` is an option's byte, ``offset`` seconds."""
    exponent = resolution & 0x7F
    x = U(units)
    if resolution & 0x80:
        if exponent > 63:
            return offset * 1_000_000_000
        whole = I(x >> U(exponent))
        rest = x & ((U(1) << U(exponent)) - U(1))
        while exponent > 32:
            rest >>= U(1)
            exponent -= 1
        return (whole + offset) * 1_000_000_000 + I((rest * U(1_000_000_000)) >> U(exponent))
    while exponent < 9:
        x *= U(10)
        exponent += 1
    while exponent > 9 and x > U(0):
        x //= U(10)
        exponent -= 1
    return I(x) + offset * 1_000_000_000


@kernel(I(BYTES, I, I, I))
def block_end(b, p, n, big):
    """Where a block ends whose two lengths agree, 0 if they do not, -1 if it goes beyond ``n``."""
    if p + 12 > n:
        return -1
    if le32(b, p) == SECTION:
        if le32(b, p + 8) == 0x1A2B3C4D:
            big = 0
        elif be32(b, p + 8) == 0x1A2B3C4D:
            big = 1
        else:
            return 0
    length = u32(b, p + 4, big)
    if length < 12 or length & 3 or length > BLOCK_MAX:
        return 0
    if p + length > n:
        return -1
    return p + length if u32(b, p + length - 4, big) == length else 0


@part(types.void(BYTES, I, I, I, INT64, TABLE))
def read_interface(b, p, e, big, st, interfaces):
    k = st[F_INTERFACES]
    st[F_INTERFACES] = k + 1
    if k >= interfaces.shape[0] or e - p < 20:
        return
    link, resolution, offset = u16(b, p + 8, big), 6, I(0)
    snap = u32(b, p + 12, big)
    q = p + 16
    while q + 4 <= e - 4:
        code = u16(b, q, big)
        size = u16(b, q + 2, big)
        q += 4
        if code == 0 or q + size > e - 4:
            break
        if code == 9 and size >= 1:
            resolution = u8(b, q)
        if code == 14 and size >= 8:
            high = u32(b, q if big else q + 4, big)
            offset = (high << 32) | u32(b, q + 4 if big else q, big)
        q += (size + 3) & ~3
    interfaces[U(k), N_LINK] = link
    interfaces[U(k), N_RESOLUTION] = resolution
    interfaces[U(k), N_OFFSET] = offset
    interfaces[U(k), N_SNAP] = snap


@kernel(types.void(BYTES, I, I, INT64, TABLE, TABLE))
def pcapng_records(b, n, base, st, interfaces, out):
    """Blocks from ``st[F_POS]`` on. Those that hold no packet are passed over."""
    p = st[F_POS]
    rows = 0
    room = out.shape[1]
    why = MORE
    while True:
        if rows >= room:
            why = FULL
            break
        big = st[F_BIG]
        e = block_end(b, p, n, big)
        if e <= 0:
            if e == 0:
                why = GARBAGE
            break
        kind = u32(b, p, big)
        data = 0
        captured = 0
        if kind == SECTION:
            st[F_BIG] = 0 if le32(b, p + 8) == 0x1A2B3C4D else 1
            st[F_INTERFACES] = 0
        elif kind == INTERFACE:
            read_interface(b, p, e, big, st, interfaces)
        elif kind == ENHANCED_PACKET or kind == OLD_PACKET:
            if e - p < 32:
                st[F_BAD] += e - p
            else:
                captured = u32(b, p + 20, big)
                original = u32(b, p + 24, big)
                interface = u16(b, p + 8, big) if kind == OLD_PACKET else u32(b, p + 8, big)
                data = p + 28
                units = (u32(b, p + 12, big) << 32) | u32(b, p + 16, big)
                if captured > e - 4 - data:
                    st[F_BAD] += e - p
                    data = 0
        elif kind == SIMPLE_PACKET:
            if e - p < 16:
                st[F_BAD] += e - p
            else:
                original = u32(b, p + 8, big)
                interface = 0
                data = p + 12
                captured = min(original, e - 4 - data)
                if st[F_INTERFACES] > 0 and interfaces[0, N_SNAP] > 0:
                    captured = min(captured, interfaces[0, N_SNAP])
        if data:
            link = -1
            if interface < min(st[F_INTERFACES], interfaces.shape[0]):
                k = U(interface)
                link = interfaces[k, N_LINK]
                if kind != SIMPLE_PACKET:
                    st[F_TIME] = nanoseconds(
                        units, interfaces[k, N_RESOLUTION], interfaces[k, N_OFFSET]
                    )
            out[R_DATA, U(rows)] = data
            out[R_CAPTURED, U(rows)] = captured
            out[R_ORIGINAL, U(rows)] = max(original, captured)
            out[R_TIME, U(rows)] = st[F_TIME]
            out[R_LINK, U(rows)] = link
            out[R_AT, U(rows)] = base + p
            rows += 1
        p = e
    st[F_POS] = p
    st[F_ROWS] = rows
    st[F_WHY] = why


@kernel(I(BYTES, I, I, I, I, INT64))
def pcapng_find(b, p, n, stop, final, st):
    """Where the next section, or two blocks of known kinds, begin: as ``pcap_find``."""
    while p + 12 <= n:
        if p >= stop:
            return stop
        kind = u32(b, p, st[F_BIG])
        if kind == SECTION or kind == 0x0D0D0A0A or 1 <= kind <= 6 or is_pcap_magic(b, p):
            if is_pcap_magic(b, p):
                return p
            e = block_end(b, p, n, st[F_BIG])
            if e > 0 and kind != SECTION:
                if not (e == n and final):
                    e = block_end(b, e, n, st[F_BIG])
            if e > 0:
                return p
            if e < 0 and not final:
                return -1 - p
        p += 1
    return min(n, stop) if final else -1 - p


# --- packets ---

# The columns of a table of packets.
P_TIME, P_PROTOCOL, P_SOURCE_PORT, P_TARGET_PORT, P_SEQ, P_ACK, P_FLAGS = range(7)
P_PAYLOAD, P_LENGTH, P_MISSING, P_FAULT, P_FRAGMENT, P_FRAGMENT_ID, P_AT = range(7, 14)
PACKET_COLUMNS = 14
# ``zenwire.capture.packets.PacketFault``
OTHER_LINK, OTHER_NETWORK, OTHER_TRANSPORT, CUT, MALFORMED, FRAGMENT, INCOMPLETE = range(1, 8)
TCP, UDP = 6, 17
MORE_FRAGMENTS = 1 << 20
# Bytes of a packet whose header leaves its length open.
UNSAID_MAX = 1 << 20
MAPPED = U(0xFFFF00000000)


@part(I(BYTES, I, I, I, I, TABLE, I))
def transport_header(b, p, end, wire_end, protocol, c, i):
    """TCP or UDP at ``p``; captured up to ``end``, sent up to ``wire_end``. Gives the fault."""
    if protocol == TCP:
        if wire_end - p < 20:
            return MALFORMED
        if end - p < 20:
            return CUT
        head = (u8(b, p + 12) >> 4) * 4
        if head < 20 or head > wire_end - p:
            return MALFORMED
        c[P_SEQ, U(i)] = be32(b, p + 4)
        c[P_ACK, U(i)] = be32(b, p + 8)
        c[P_FLAGS, U(i)] = u8(b, p + 13)
    elif protocol == UDP:
        if wire_end - p < 8:
            return MALFORMED
        if end - p < 8:
            return CUT
        head = 8
        size = be16(b, p + 4)
        # 0 is a jumbogram, or what an offloading card will fill in.
        if size:
            if size < 8 or size > wire_end - p:
                return MALFORMED
            wire_end = p + size
            end = min(end, wire_end)
    else:
        return OTHER_TRANSPORT
    c[P_SOURCE_PORT, U(i)] = be16(b, p)
    c[P_TARGET_PORT, U(i)] = be16(b, p + 2)
    start = p + head
    c[P_PAYLOAD, U(i)] = min(start, end)
    c[P_LENGTH, U(i)] = max(end - start, 0)
    c[P_MISSING, U(i)] = wire_end - start - max(end - start, 0)
    return 0


@part(U(BYTES, I))
def word(b, p):
    return (U(be32(b, p)) << U(32)) | U(be32(b, p + 4))


@part(I(BYTES, I, I, I, TABLE, KEYS, I))
def internet_header(b, p, end, wire_end, c, a, i):
    """IPv4 or IPv6 at ``p``, with all headers after it. Gives the fault."""
    if end - p < 1:
        return CUT
    version = u8(b, p) >> 4
    part = 0
    if version == 4:
        if wire_end - p < 20:
            return MALFORMED
        if end - p < 20:
            return CUT
        head = (u8(b, p) & 15) * 4
        total = be16(b, p + 2)
        # 0 is what an offloading card will fill in.
        if total == 0:
            total = min(wire_end - p, UNSAID_MAX)
        if head < 20 or total < head or total > wire_end - p:
            return MALFORMED
        if end - p < head:
            return CUT
        wire_end = p + total
        protocol = u8(b, p + 9)
        a[0, U(i)] = U(0)
        a[1, U(i)] = MAPPED | U(be32(b, p + 12))
        a[2, U(i)] = U(0)
        a[3, U(i)] = MAPPED | U(be32(b, p + 16))
        bits = be16(b, p + 6)
        part = (bits & 0x1FFF) * 8
        if bits & 0x2000:
            part |= MORE_FRAGMENTS
        c[P_FRAGMENT_ID, U(i)] = be16(b, p + 4)
        p += head
    elif version == 6:
        if wire_end - p < 40:
            return MALFORMED
        if end - p < 40:
            return CUT
        size = be16(b, p + 4)
        if size > wire_end - p - 40:
            return MALFORMED
        wire_end = min(wire_end, p + 40 + (size or UNSAID_MAX))
        protocol = u8(b, p + 6)
        for k in range(2):
            a[k, U(i)] = word(b, p + 8 + 8 * k)
            a[2 + k, U(i)] = word(b, p + 24 + 8 * k)
        p += 40
        end = min(end, wire_end)
        for _ in range(16):
            if protocol == 44:
                size = 8
            elif protocol in (0, 43, 60, 135, 139, 140):
                size = -1
            elif protocol == 51:
                size = -2
            else:
                break
            if wire_end - p < 8:
                return MALFORMED
            if end - p < 8:
                return CUT
            if size == 8:
                bits = be16(b, p + 2)
                part = bits & 0xFFF8
                if bits & 1:
                    part |= MORE_FRAGMENTS
                c[P_FRAGMENT_ID, U(i)] = be32(b, p + 4)
            elif size == -1:
                size = (u8(b, p + 1) + 1) * 8
            else:
                size = (u8(b, p + 1) + 2) * 4
            protocol = u8(b, p)
            p += size
            if p > wire_end:
                return MALFORMED
            if p > end:
                return CUT
            if part & 0xFFFF:
                break
    else:
        return MALFORMED
    end = min(end, wire_end)
    c[P_PROTOCOL, U(i)] = protocol
    if part:
        c[P_FRAGMENT, U(i)] = part
        c[P_PAYLOAD, U(i)] = p
        c[P_LENGTH, U(i)] = end - p
        c[P_MISSING, U(i)] = wire_end - end
        return FRAGMENT
    return transport_header(b, p, end, wire_end, protocol, c, i)


@part(I(BYTES, I, I, I, I, TABLE, KEYS, I))
def link_header(b, link, p, end, wire_end, c, a, i):
    """A packet of any link type. Gives the fault."""
    if link == 1:
        if end - p < 14:
            return CUT
        kind = be16(b, p + 12)
        p += 14
        while kind in (0x8100, 0x88A8, 0x9100):
            if end - p < 4:
                return CUT
            kind = be16(b, p + 2)
            p += 4
    elif link == 113:
        if end - p < 16:
            return CUT
        kind = be16(b, p + 14)
        p += 16
    elif link == 276:
        if end - p < 20:
            return CUT
        kind = be16(b, p)
        p += 20
    elif link in (0, 108):
        if end - p < 4:
            return CUT
        # The address family of the machine that captured, in its byte order.
        family = le32(b, p)
        if family > 0xFFFF:
            family = be32(b, p)
        kind = 0
        if family == 2:
            kind = 0x0800
        elif family in (10, 24, 28, 30):
            kind = 0x86DD
        p += 4
    elif link in (12, 14, 101, 228, 229):
        kind = 0x0800
    else:
        return OTHER_LINK
    if kind not in (0x0800, 0x86DD):
        return OTHER_NETWORK
    return internet_header(b, p, end, wire_end, c, a, i)


@kernel(types.void(BYTES, TABLE, I, TABLE, KEYS))
def packets(b, records, n, c, a):
    """What is in ``n`` records: one row of ``c`` each, addresses in ``a``."""
    for i in range(n):
        k = U(i)
        for j in range(PACKET_COLUMNS):
            c[U(j), k] = 0
        c[P_TIME, k] = records[R_TIME, k]
        c[P_AT, k] = records[R_AT, k]
        p = records[R_DATA, k]
        end = p + records[R_CAPTURED, k]
        wire_end = p + records[R_ORIGINAL, k]
        c[P_PAYLOAD, k] = p
        fault = link_header(b, records[R_LINK, k], p, end, wire_end, c, a, i)
        c[P_FAULT, k] = fault
        if fault != 0 and fault != FRAGMENT:
            c[P_PAYLOAD, k] = p
            c[P_LENGTH, k] = end - p
            c[P_MISSING, k] = wire_end - end


@kernel(types.void(BYTES, INT64, INT64, INT64, I, TABLE))
def reassembled(b, rows, starts, ends, n, c):
    """Datagrams put together of fragments, as rows of the packets that completed them."""
    for i in range(n):
        k = rows[U(i)]
        protocol = c[P_PROTOCOL, U(k)]
        start, end = starts[U(i)], ends[U(i)]
        fault = transport_header(b, start, end, end, protocol, c, k)
        c[P_FAULT, U(k)] = fault
        if fault:
            c[P_PAYLOAD, U(k)] = start
            c[P_LENGTH, U(k)] = end - start
            c[P_MISSING, U(k)] = 0


# --- flows ---


@kernel(I(TABLE, KEYS, I, I, KEYS, INT64, INT64, INT64, INT64))
def assign(c, a, i, n, keys, slots, count, flow, side):
    """The flow of each TCP and UDP packet, -1 for others, and which end sent it.

    Gives the packet it did not come to because ``keys`` or ``slots`` are too full.
    """
    mask = U(len(slots) - 1)
    while i < n:
        k = U(i)
        if c[P_FAULT, k] != 0:
            flow[k] = -1
            i += 1
            continue
        source = U(c[P_SOURCE_PORT, k])
        target = U(c[P_TARGET_PORT, k])
        s0, s1, t0, t1 = a[0, k], a[1, k], a[2, k], a[3, k]
        turned = s0 > t0 or (s0 == t0 and (s1 > t1 or (s1 == t1 and source > target)))
        if turned:
            s0, s1, t0, t1 = t0, t1, s0, s1
            source, target = target, source
        last = (U(c[P_PROTOCOL, k]) << U(32)) | (source << U(16)) | target
        h = U(0x9E3779B97F4A7C15)
        for x in (s0, s1, t0, t1, last):
            h = (h ^ x) * U(0xBF58476D1CE4E5B9)
            h ^= h >> U(29)
        at = h & mask
        while True:
            f = slots[at]
            if f < 0:
                f = count[0]
                if f >= len(keys) or 2 * f >= len(slots):
                    return i
                slots[at] = f
                count[0] = f + 1
                key = keys[U(f)]
                key[0], key[1], key[2], key[3], key[4] = s0, s1, t0, t1, last
                break
            key = keys[U(f)]
            if key[4] == last and key[3] == t1 and key[1] == s1 and key[0] == s0 and key[2] == t0:
                break
            at = (at + U(1)) & mask
        flow[k] = f
        side[k] = I(turned)
        i += 1
    return n


@kernel(types.void(KEYS, I, INT64))
def rehash(keys, n, slots):
    """Fills a larger, empty table of slots."""
    mask = U(len(slots) - 1)
    for f in range(n):
        key = keys[U(f)]
        h = U(0x9E3779B97F4A7C15)
        for j in range(5):
            h = (h ^ key[U(j)]) * U(0xBF58476D1CE4E5B9)
            h ^= h >> U(29)
        at = h & mask
        while slots[at] >= 0:
            at = (at + U(1)) & mask
        slots[at] = f


# --- TCP reassembly ---

# The columns of a stream: one direction of a connection. Positions count from ``S_ORIGIN``, a
# sequence number; what goes out counts from ``S_START``, the position of the first byte.
S_ORIGIN, S_NEXT, S_START, S_PHASE, S_FIN, S_HEAD, S_TAIL, S_COUNT, S_BYTES = range(9)
S_SINCE, S_ISN, S_STRAY_AT, S_STRAYS, S_ENDED = range(9, 14)
STREAM_COLUMNS = 14
# Nothing seen; held back because an earlier segment may still come; in order.
UNSEEN, HELD, STARTED = range(3)
# The columns of a connection. ``C_LAST`` is what ``T_CLOCK`` was at its last packet.
C_FLOW, C_NUMBER, C_OPENER, C_LAST, C_RESET = range(5)
CONNECTION_COLUMNS = 5
# The columns of a segment that waits for one before it.
W_NEXT, W_AT, W_LENGTH, W_HOLE, W_POS, W_POOLED, W_TIME = range(7)
WAITING_COLUMNS = 7
# The columns of what comes out.
O_STREAM, O_OFFSET, O_LENGTH, O_KIND, O_POS, O_POOLED, O_TIME = range(7)
OUT_COLUMNS = 7
DATA, GAP, END = range(3)
# The state of it all: next packet, rows out, connections, first free and number of free nodes,
# bytes that wait, the latest time of any packet, and the books.
T_PACKET, T_ROWS, T_CONNECTIONS, T_FREE, T_FREE_COUNT, T_WAITING, T_CLOCK = range(7)
T_REPEATED, T_STRAY = range(7, 9)
REASSEMBLY_STATE = 9
# The limits.
L_BYTES, L_SEGMENTS, L_TIME, L_HELD_BYTES, L_HELD_SEGMENTS, L_HELD_TIME = range(6)
FIN, SYN, RST, ACK = 1, 2, 4, 16
# A segment farther away than this is of another connection, until others are near it.
WINDOW = 1 << 27
STRAYS = 3
# Nanoseconds after which nothing more comes of a connection that was closed.
LINGER = 30_000_000_000
LOW_32 = 0xFFFFFFFF


@part(I(I))
def signed32(x):
    """The nearest distance that gives ``x`` modulo 2**32."""
    x &= LOW_32
    return x - (I(1) << 32) if x & 0x80000000 else x


@part(types.void(TABLE, INT64, I, I, I, I, I, I, I))
def emit(out, st, stream, offset, length, kind, pos, pooled, time):
    r = U(st[T_ROWS])
    out[O_STREAM, r] = stream
    out[O_OFFSET, r] = offset
    out[O_LENGTH, r] = length
    out[O_KIND, r] = kind
    out[O_POS, r] = pos
    out[O_POOLED, r] = pooled
    out[O_TIME, r] = time
    st[T_ROWS] += 1


@part(types.void(TABLE, I, TABLE, INT64, TABLE, I))
def drain(s, k, nodes, st, out, time):
    """Sends out the waiting segments that are next."""
    row = s[U(k)]
    head = row[S_HEAD]
    while head >= 0 and nodes[U(head), W_AT] == row[S_NEXT]:
        node = nodes[U(head)]
        length = node[W_LENGTH]
        kind = GAP if node[W_HOLE] else DATA
        emit(
            out,
            st,
            k,
            row[S_NEXT] - row[S_START],
            length,
            kind,
            node[W_POS],
            node[W_POOLED],
            node[W_TIME],
        )
        row[S_NEXT] += length
        row[S_COUNT] -= 1
        row[S_BYTES] -= length
        st[T_WAITING] -= length
        following = node[W_NEXT]
        node[W_NEXT] = st[T_FREE]
        st[T_FREE] = head
        st[T_FREE_COUNT] += 1
        head = following
        row[S_SINCE] = time
    row[S_HEAD] = head
    if head < 0:
        row[S_TAIL] = -1


@part(types.void(TABLE, I, TABLE, INT64, TABLE, I))
def skip_gap(s, k, nodes, st, out, time):
    """Gives up on what is missing before the first waiting segment."""
    row = s[U(k)]
    first = nodes[U(row[S_HEAD]), W_AT]
    if row[S_PHASE] == HELD:
        row[S_PHASE] = STARTED
        row[S_NEXT] = first
        row[S_START] = first
    else:
        length = first - row[S_NEXT]
        emit(out, st, k, row[S_NEXT] - row[S_START], length, GAP, 0, 0, time)
        row[S_NEXT] = first
    drain(s, k, nodes, st, out, time)


@part(types.void(TABLE, I, I, I, I, I, I, TABLE, INT64))
def wait(s, k, at, length, hole, pos, time, nodes, st):
    """Puts a segment among those that wait. Of bytes that are there already, the first stay."""
    row = s[U(k)]
    end = at + length
    if row[S_PHASE] == STARTED and at < row[S_NEXT]:
        at = min(row[S_NEXT], end)
    begin = end - length
    kept = I(0)
    before = I(-1)
    node = row[S_HEAD]
    # Mostly it comes after all the others.
    tail = row[S_TAIL]
    if tail >= 0 and nodes[U(tail), W_AT] + nodes[U(tail), W_LENGTH] <= at:
        before = tail
        node = I(-1)
    while at < end:
        stop = end
        if node >= 0:
            there = nodes[U(node)]
            there_end = there[W_AT] + there[W_LENGTH]
            if there[W_AT] <= at:
                at = max(at, there_end)
                before = node
                node = there[W_NEXT]
                continue
            stop = min(end, there[W_AT])
        fresh = st[T_FREE]
        new = nodes[U(fresh)]
        st[T_FREE] = new[W_NEXT]
        st[T_FREE_COUNT] -= 1
        new[W_NEXT] = node
        new[W_AT] = at
        new[W_LENGTH] = stop - at
        new[W_HOLE] = hole
        new[W_POS] = pos + at - begin
        new[W_POOLED] = 0
        new[W_TIME] = time
        if before < 0:
            row[S_HEAD] = fresh
        else:
            nodes[U(before), W_NEXT] = fresh
        if node < 0:
            row[S_TAIL] = fresh
        if row[S_COUNT] == 0:
            row[S_SINCE] = time
        row[S_COUNT] += 1
        row[S_BYTES] += stop - at
        st[T_WAITING] += stop - at
        kept += stop - at
        before = fresh
        at = stop
    if not hole:
        st[T_REPEATED] += length - kept


@part(types.void(TABLE, I, I, TABLE, INT64, TABLE, I))
def start_at(s, k, seq, nodes, st, out, time):
    """The first byte of a stream has this sequence number."""
    row = s[U(k)]
    if row[S_PHASE] == UNSEEN:
        row[S_ORIGIN] = seq
        row[S_PHASE] = STARTED
    elif row[S_PHASE] == HELD:
        at = signed32(seq - row[S_ORIGIN])
        if row[S_HEAD] >= 0 and at > nodes[U(row[S_HEAD]), W_AT]:
            return
        row[S_NEXT] = at
        row[S_START] = at
        row[S_PHASE] = STARTED
        drain(s, k, nodes, st, out, time)


@part(types.void(TABLE, I, I, I, I, I, I, TABLE, INT64, TABLE))
def segment(s, k, seq, length, missing, pos, time, nodes, st, out):
    """Payload of one packet: sent out, kept for later, or dropped as seen before."""
    row = s[U(k)]
    if row[S_PHASE] == UNSEEN:
        row[S_PHASE] = HELD
        row[S_ORIGIN] = seq
        row[S_SINCE] = time
    near = row[S_NEXT]
    distance = signed32(seq - row[S_ORIGIN] - near)
    if abs(distance) > WINDOW:
        # Of another connection, or the capture paused for long.
        if row[S_STRAYS] and abs(signed32(seq - row[S_STRAY_AT])) < WINDOW // 8:
            row[S_STRAYS] += 1
        else:
            row[S_STRAYS] = 1
        row[S_STRAY_AT] = seq
        if row[S_STRAYS] < STRAYS:
            st[T_STRAY] += length
            return
        while row[S_HEAD] >= 0:
            skip_gap(s, k, nodes, st, out, time)
        row[S_PHASE] = STARTED
        distance = signed32(seq - row[S_ORIGIN] - row[S_NEXT])
        if distance < 0:
            distance += I(1) << 32
        emit(out, st, k, row[S_NEXT] - row[S_START], distance, GAP, 0, 0, time)
        row[S_NEXT] += distance
        near = row[S_NEXT]
        distance = 0
    row[S_STRAYS] = 0
    at = near + distance
    if row[S_PHASE] == HELD:
        row[S_NEXT] = at
    elif row[S_HEAD] < 0 and at <= near < at + length:
        emit(out, st, k, near - row[S_START], at + length - near, DATA, pos + near - at, 0, time)
        st[T_REPEATED] += near - at
        row[S_NEXT] = at + length
        if missing:
            emit(out, st, k, row[S_NEXT] - row[S_START], missing, GAP, 0, 0, time)
            row[S_NEXT] += missing
        return
    if length:
        wait(s, k, at, length, 0, pos, time, nodes, st)
    if missing:
        wait(s, k, at + length, missing, 1, 0, time, nodes, st)
    if row[S_PHASE] == STARTED:
        drain(s, k, nodes, st, out, time)


@part(types.void(TABLE, I, TABLE, INT64, TABLE, I, INT64, I))
def settle(s, k, nodes, st, out, time, limits, pool_limit):
    """Ends waiting that takes too long, and a stream whose FIN was reached."""
    row = s[U(k)]
    while row[S_HEAD] >= 0:
        if row[S_PHASE] == HELD:
            late = (
                row[S_BYTES] > limits[L_HELD_BYTES]
                or row[S_COUNT] > limits[L_HELD_SEGMENTS]
                or time - row[S_SINCE] > limits[L_HELD_TIME]
            )
        else:
            late = (
                row[S_BYTES] > limits[L_BYTES]
                or row[S_COUNT] > limits[L_SEGMENTS]
                or time - row[S_SINCE] > limits[L_TIME]
                or st[T_WAITING] > pool_limit
            )
        if not late:
            break
        skip_gap(s, k, nodes, st, out, time)
    # A FIN that data waits behind was none.
    done = row[S_PHASE] == STARTED and row[S_NEXT] == row[S_FIN] and row[S_HEAD] < 0
    if done and not row[S_ENDED]:
        row[S_ENDED] = 1
        emit(out, st, k, row[S_NEXT] - row[S_START], 0, END, 0, 0, time)


@part(types.void(TABLE, I, TABLE, INT64, TABLE, I))
def finish_stream(s, k, nodes, st, out, time):
    """Nothing more comes: what waits goes out, with gaps."""
    row = s[U(k)]
    while row[S_HEAD] >= 0:
        skip_gap(s, k, nodes, st, out, time)
    if not row[S_ENDED]:
        row[S_ENDED] = 1
        emit(out, st, k, max(row[S_NEXT] - row[S_START], 0), 0, END, 0, 0, time)


@part(B(TABLE, TABLE, I, I, I, I))
def is_another(s, nodes, k, other, seq, flags):
    """Whether a SYN begins a connection other than the one its flow has now."""
    row = s[U(k)]
    if row[S_ISN] >= 0:
        return row[S_ISN] != seq
    if row[S_PHASE] == UNSEEN:
        return not flags & ACK and s[U(other), S_PHASE] == STARTED
    # Data was seen before its SYN: they may have changed places.
    first = row[S_START]
    if row[S_PHASE] == HELD and row[S_HEAD] >= 0:
        first = nodes[U(row[S_HEAD]), W_AT]
    before = first - signed32(seq + 1 - row[S_ORIGIN])
    return not 0 <= before < (I(1) << 20)


@part(B(TABLE, TABLE, I, INT64))
def is_over(connections, s, conn, st):
    """Whether a connection was closed, and nothing came of it for so long that nothing will."""
    row = connections[U(conn)]
    closed = s[U(2 * conn), S_ENDED] and s[U(2 * conn + 1), S_ENDED]
    return (closed or row[C_RESET]) and st[T_CLOCK] - row[C_LAST] > LINGER


REASSEMBLE = types.void(TABLE, I, INT64, INT64, INT64, TABLE, TABLE, TABLE, TABLE, INT64, INT64, I)


@kernel(REASSEMBLE)
def reassemble(c, n, flow, side, current, connections, s, nodes, out, st, limits, pool_limit):
    """TCP packets from ``st[T_PACKET]`` on, in order of arrival, to ordered pieces of streams.

    Stops early where connections, nodes or ``out`` may not have room for the next packet.
    """
    # A packet may fill as many gaps as segments wait, and so may the end of its connection.
    most = 2 * (limits[L_SEGMENTS] + limits[L_HELD_SEGMENTS]) + 16
    while st[T_PACKET] < n:
        i = U(st[T_PACKET])
        if c[P_FAULT, i] != 0 or c[P_PROTOCOL, i] != TCP:
            st[T_PACKET] += 1
            continue
        if st[T_ROWS] + 2 * most > out.shape[1] or st[T_FREE_COUNT] < most:
            break
        if st[T_CONNECTIONS] >= connections.shape[0]:
            break
        st[T_PACKET] += 1
        f = U(flow[i])
        d = side[i]
        seq, flags, time = c[P_SEQ, i], c[P_FLAGS, i], c[P_TIME, i]
        length, missing = c[P_LENGTH, i], c[P_MISSING, i]
        st[T_CLOCK] = max(st[T_CLOCK], time)
        conn = current[f]
        over = conn >= 0 and is_over(connections, s, conn, st)
        new = conn < 0 or over
        if flags & SYN and not new:
            new = is_another(s, nodes, 2 * conn + d, 2 * conn + 1 - d, seq, flags)
        if new and not flags & SYN and (flags & RST or length + missing == 0):
            # What is left of a connection that is over begins no other one.
            st[T_STRAY] += length
            continue
        if new:
            # A flow without a connection has how many there were.
            number = -1 - conn
            if conn >= 0:
                number = connections[U(conn), C_NUMBER] + 1
                end = connections[U(conn), C_LAST] if over else time
                finish_stream(s, 2 * conn, nodes, st, out, end)
                finish_stream(s, 2 * conn + 1, nodes, st, out, end)
            conn = st[T_CONNECTIONS]
            st[T_CONNECTIONS] += 1
            current[f] = conn
            connections[U(conn), C_FLOW] = I(f)
            connections[U(conn), C_NUMBER] = number
            connections[U(conn), C_OPENER] = -1
            connections[U(conn), C_RESET] = 0
            for j in range(2):
                for x in range(STREAM_COLUMNS):
                    s[U(2 * conn + j), U(x)] = 0
                s[U(2 * conn + j), S_ISN] = -1
                s[U(2 * conn + j), S_HEAD] = -1
                s[U(2 * conn + j), S_TAIL] = -1
                s[U(2 * conn + j), S_FIN] = I(-1) << 62
        connections[U(conn), C_LAST] = st[T_CLOCK]
        k = 2 * conn + d
        other = 2 * conn + 1 - d
        if flags & SYN:
            s[U(k), S_ISN] = seq
            seq = (seq + 1) & LOW_32
            start_at(s, k, seq, nodes, st, out, time)
            connections[U(conn), C_OPENER] = 1 - d if flags & ACK else d
            if flags & ACK and s[U(other), S_ISN] < 0:
                first = c[P_ACK, i]
                s[U(other), S_ISN] = (first - 1) & LOW_32
                start_at(s, other, first, nodes, st, out, time)
        if flags & RST:
            # What a RST may carry is a reason, not data of the stream.
            st[T_STRAY] += length
            connections[U(conn), C_RESET] = 1
        elif length + missing:
            # A RST that data comes after was none.
            connections[U(conn), C_RESET] = 0
            if s[U(k), S_ENDED]:
                st[T_REPEATED] += length
            else:
                segment(s, k, seq, length, missing, c[P_PAYLOAD, i], time, nodes, st, out)
        if flags & FIN and s[U(k), S_PHASE] != UNSEEN:
            row = s[U(k)]
            row[S_FIN] = row[S_NEXT] + signed32(
                seq + length + missing - row[S_ORIGIN] - row[S_NEXT]
            )
        settle(s, k, nodes, st, out, time, limits, pool_limit)
        settle(s, other, nodes, st, out, time, limits, pool_limit)


@kernel(types.void(I, I, TABLE, TABLE, TABLE, TABLE, INT64, I))
def finish_all(conn, over_alone, connections, s, nodes, out, st, time):
    """Ends the streams of connections from ``conn`` on: of all, or of those that are over.

    ``st[T_PACKET]`` is the one it did not come to because ``out`` has no more room.
    """
    while conn < st[T_CONNECTIONS]:
        waiting = s[U(2 * conn), S_COUNT] + s[U(2 * conn + 1), S_COUNT]
        if st[T_ROWS] + 2 * waiting + 8 > out.shape[1]:
            break
        over = is_over(connections, s, conn, st)
        if over or not over_alone:
            end = connections[U(conn), C_LAST] if over else time
            finish_stream(s, 2 * conn, nodes, st, out, end)
            finish_stream(s, 2 * conn + 1, nodes, st, out, end)
        conn += 1
    st[T_PACKET] = conn


@kernel(types.void(TABLE, TABLE, INT64, INT64, INT64))
def gone(connections, s, st, current, out):
    """Which connections are over, or have another one after them in their flow."""
    for conn in range(st[T_CONNECTIONS]):
        followed = current[U(connections[U(conn), C_FLOW])] != conn
        out[U(conn)] = followed or is_over(connections, s, conn, st)


@kernel(I(TABLE, I, TABLE, BYTES, BYTES, BYTES))
def retain(s, streams, nodes, b, pool, kept):
    """Copies what waits out of the buffers that are about to be used again."""
    q = I(0)
    for k in range(streams):
        node = s[U(k), S_HEAD]
        while node >= 0:
            row = nodes[U(node)]
            if not row[W_HOLE]:
                source = pool if row[W_POOLED] else b
                copy(kept, U(q), source, U(row[W_POS]), U(row[W_LENGTH]))
                row[W_POOLED] = 1
                row[W_POS] = q
                q += row[W_LENGTH]
            node = row[W_NEXT]
    return q


# --- streams ---

# The columns of a piece, which is what comes out of reassembly and has not become batches yet.
# ``G_POS`` is where it is in the work buffer.
G_STREAM, G_OFFSET, G_LENGTH, G_KIND, G_POS, G_POOLED, G_TIME = range(7)


@kernel(I(TABLE, INT64, BYTES, BYTES, BYTES, BYTES))
def gather(rows, order, b, pool, carry, work):
    """Puts pieces one after the other into ``work``, and their places there into the rows."""
    q = I(0)
    for i in range(len(order)):
        k = U(order[U(i)])
        if rows[G_KIND, k] != DATA:
            rows[G_POS, k] = q
            continue
        length = rows[G_LENGTH, k]
        where = rows[G_POOLED, k]
        source = b
        if where == 1:
            source = pool
        elif where == 2:
            source = carry
        copy(work, U(q), source, U(rows[G_POS, k]), U(length))
        rows[G_POS, k] = q
        q += length
    return q


# How a batch is wrapped.
PLAIN, COMPRESSED, LOW_LATENCY = range(3)
# Facts of zenwire.wire, here because Numba's cache sees this file alone; a test holds them to
# the definitions.
W_CLOSE, W_KEEP_ALIVE, W_FRAME, W_FRAGMENT, W_NETWORK_MIN = 0x03, 0x04, 0x05, 0x06, 0x19
W_RELIABLE, W_PRIORITY_EXT, W_PRIORITY = 0x20, 0x31, 5
W_STORED, W_LZ4 = 0x00, 0x01
BATCH_MAX = 65_535
LANES = 16
SCRATCH = LANES + 2
# Sequence numbers that one batch may have, and that may be left out.
CHAIN_JUMP, LANE_JUMP = 64, 4096
# Batches of a chain: of a stream that is known to be Zenoh, and of another.
CHAIN_KNOWN, CHAIN_UNKNOWN = 3, 5


@part(B(BYTES, I, I))
def transport_fits(b, p, length):
    """Whether a batch of an open session may begin with the byte at ``p``.

    What is legal but rare (OAM, a second message after KEEP_ALIVE) is left out: such a batch is
    known by those that follow it.
    """
    h = u8(b, p)
    kind = h & 0x1F
    if kind == W_FRAME:
        return h & 0x40 == 0 and length >= 2
    if kind == W_FRAGMENT:
        return length >= 2
    if kind == W_KEEP_ALIVE:
        return h & 0x60 == 0 and (length == 1 or h & 0x80 != 0)
    return kind == W_CLOSE and h & 0x40 == 0 and (length == 2 or h & 0x80 != 0)


@part(B(BYTES, I, I, I, I))
def batch_fits(b, p, length, end, mode):
    """Whether a batch may begin with what is at ``p``, as far as ``end`` lets one see."""
    if length == 0:
        return False
    if p >= end:
        return True
    if mode == PLAIN:
        return transport_fits(b, p, length)
    h = u8(b, p)
    if mode == LOW_LATENCY:
        kind = h & 0x1F
        if kind >= W_NETWORK_MIN:
            return length >= 2
        return transport_fits(b, p, length) and kind < W_FRAME
    if h == W_STORED:
        return length >= 2 and (p + 1 >= end or transport_fits(b, p + 1, length - 1))
    if h != W_LZ4 or length < 3:
        return False
    if p + 2 >= end:
        return True
    # An LZ4 block begins with a literal, which is the first byte of a message.
    literals = u8(b, p + 1) >> 4
    if literals == 0:
        return False
    at = p + 2
    if literals == 15:
        while at < end and u8(b, at) == 255:
            at += 1
        at += 1
    return at >= end or u8(b, at) & 0x1F in (W_FRAME, W_FRAGMENT)


@part(I(BYTES, I, I, INT64, I, I))
def lane_fits(b, p, end, lanes, jump, note):
    """Whether the FRAME or FRAGMENT at ``p`` follows in its lane: 1 at once, 2 it may, 0 no.

    Up to ``jump`` numbers may be left out. With ``note``, the next one is to follow this one.
    """
    h = u8(b, p)
    kind = h & 0x1F
    if kind != W_FRAME and kind != W_FRAGMENT:
        return 2
    at = p + 1
    sn = I(0)
    shift = 0
    while True:
        if at >= end or shift > 56:
            return 2
        x = u8(b, at)
        at += 1
        sn |= (x & 0x7F) << shift
        shift += 7
        if x < 0x80:
            break
    lane = W_PRIORITY
    if h & 0x80 and at + 1 < end and u8(b, at) & 0x7F == W_PRIORITY_EXT:
        lane = u8(b, at + 1) & 7
    lane += 8 if h & W_RELIABLE else 0
    before = lanes[U(lane)]
    if before >= 0:
        step = sn - before
        if not (0 < step <= jump or (step < 0 and sn < jump)):
            return 0
    if note:
        lanes[U(lane)] = sn
    return 1 if before >= 0 and sn == before + 1 else 2


@kernel(I(BYTES, I, I, I, I, I, INT64))
def chain(b, p, end, final, mode, strict, scratch):
    """Whether batches follow one another from ``p`` on: 1 yes, 0 no, -1 too few bytes to tell.

    ``final`` says that no more bytes come. A chain of ``strict`` batches has no
    handshake, and its sequence numbers follow one another; ``scratch`` gets how many whole
    batches there are, and at its end how many of them follow another one in its lane.
    """
    prefix = 4 if mode == LOW_LATENCY else 2
    if strict:
        for j in range(LANES):
            scratch[U(1 + j)] = -1
    lanes = scratch[1 : 1 + LANES]
    whole = I(0)
    follows = I(0)
    scratch[0] = 0
    while whole < (strict or CHAIN_KNOWN):
        if p == end and final:
            return 1 if whole > 0 else 0
        if p + prefix >= end:
            if final:
                return 1 if whole > 0 else 0
            if p + prefix > end:
                return -1
        length = le32(b, p) if prefix == 4 else le16(b, p)
        if length > BATCH_MAX:
            # The reference ends a low-latency stream with a CLOSE that has the other prefix.
            closing = mode == LOW_LATENCY and p + 4 == end and le16(b, p) == 2
            return 1 if closing and final and u8(b, p + 2) & 0x5F == 3 else 0
        if p + prefix >= end and length > 0:
            return -1
        if not batch_fits(b, p + prefix, length, end, mode):
            return 0
        if strict:
            if mode == PLAIN:
                kind = u8(b, p + prefix) & 0x1F
                if kind < W_FRAME and length > 2:
                    return 0
                fits = lane_fits(b, p + prefix, min(end, p + prefix + length), lanes, CHAIN_JUMP, 1)
                if fits == 0:
                    return 0
                follows += fits == 1
        p += prefix + length
        if p > end:
            if final:
                return 1 if whole > 0 else 0
            return -1
        whole += 1
        scratch[0] = whole
        scratch[1 + LANES] = follows
    return 1


@kernel(I(BYTES, I, I, I, I, I, INT64))
def search(b, p, end, final, mode, need, scratch):
    """The next place where ``need`` strict batches begin: ``end`` if nowhere, -1 - p if p is undecided."""
    prefix = 4 if mode == LOW_LATENCY else 2
    while p + prefix < end:
        length = le32(b, p) if prefix == 4 else le16(b, p)
        if batch_fits(b, p + prefix, length, p + prefix + 1, mode):
            found = chain(b, p, end, final, mode, need, scratch)
            if found > 0:
                return p
            if found < 0:
                return -1 - p
        p += 1
    return end if final else -1 - p


# The columns of a table of batches.
B_STREAM, B_SEQUENCE, B_OFFSET, B_START, B_END, B_FIRST, B_TIME, B_MODE = range(8)
BATCH_COLUMNS = 8
# The state of framing one run of bytes: where it is, which piece that is in, rows, why it stopped.
X_POS, X_PIECE, X_ROWS, X_WHY, X_FORCE = range(5)
FRAME_STATE = 5
WANTS_MORE, NO_ROOM, IN_DOUBT = range(3)
# The columns of what framing keeps of a stream.
K_PHASE, K_MODE, K_SEQUENCE, K_LANES = range(4)
KEPT_COLUMNS = K_LANES + LANES
FRAMED = 3


@kernel(types.void(BYTES, I, I, I, I, TABLE, INT64, I, INT64, INT64, TABLE))
def frame(work, base, end, final, stream, rows, order, pieces, kept, x, out):
    """Batches of a run from ``x[X_POS]`` on, each of which is followed by what may be another.

    ``base`` is where the stream's first byte would be in ``work``; ``final`` says that the run
    goes no further. With ``X_FORCE`` the first batch is taken whatever it looks like.
    """
    mode = kept[K_MODE]
    prefix = 4 if mode == LOW_LATENCY else 2
    lanes = kept[K_LANES : K_LANES + LANES]
    p = x[X_POS]
    piece = x[X_PIECE]
    why = WANTS_MORE
    while True:
        if p + prefix > end:
            break
        if x[X_ROWS] >= out.shape[1]:
            why = NO_ROOM
            break
        length = le32(work, p) if prefix == 4 else le16(work, p)
        q = p + prefix + length
        if not x[X_FORCE]:
            if length > BATCH_MAX or not batch_fits(work, p + prefix, length, end, mode):
                why = IN_DOUBT
                break
        if q > end:
            break
        # The pieces it came in say when, and where the sender may have ended a batch.
        while piece + 1 < pieces and rows[G_POS, U(order[U(piece + 1)])] <= p:
            piece += 1
        last = piece
        first = rows[G_TIME, U(order[U(piece)])]
        time = first
        while last + 1 < pieces and rows[G_POS, U(order[U(last + 1)])] < q:
            last += 1
            time = max(time, rows[G_TIME, U(order[U(last)])])
        k = U(order[U(last)])
        if not x[X_FORCE] and rows[G_POS, k] + rows[G_LENGTH, k] != q:
            if q + prefix >= end:
                if not final:
                    break
            else:
                following = le32(work, q) if prefix == 4 else le16(work, q)
                if following > BATCH_MAX or not batch_fits(work, q + prefix, following, end, mode):
                    why = IN_DOUBT
                    break
        if mode == PLAIN and length:
            if lane_fits(work, p + prefix, q, lanes, LANE_JUMP, 1) == 0:
                if not x[X_FORCE]:
                    why = IN_DOUBT
                    break
                for j in range(LANES):
                    lanes[U(j)] = -1
        x[X_FORCE] = 0
        piece = last
        r = U(x[X_ROWS])
        out[B_STREAM, r] = stream
        out[B_SEQUENCE, r] = kept[K_SEQUENCE]
        out[B_OFFSET, r] = p - base
        out[B_START, r] = p + prefix
        out[B_END, r] = q
        out[B_FIRST, r] = first
        out[B_TIME, r] = time
        out[B_MODE, r] = mode
        kept[K_SEQUENCE] += 1
        x[X_ROWS] += 1
        p = q
    x[X_POS] = p
    x[X_PIECE] = piece
    x[X_WHY] = why


# The columns of a run: bytes of one stream in the work buffer, without a gap. Its pieces are
# ``order[U_FIRST:U_STOP]``; ``U_AFTER`` says what follows it: nothing yet, a gap, or its end.
U_STREAM, U_START, U_END, U_OFFSET, U_FIRST, U_STOP, U_AFTER, U_DONE = range(8)
RUN_COLUMNS = 8
NOTHING_YET = 0


@kernel(I(TABLE, INT64, TABLE))
def find_runs(rows, order, runs):
    """The runs of gathered pieces, sorted by stream. A gap or end with no run before it has an
    empty one.
    """
    n = I(0)
    i = I(0)
    while i < len(order):
        k = U(order[U(i)])
        stream = rows[G_STREAM, k]
        run = runs[U(n)]
        n += 1
        run[U_STREAM] = stream
        run[U_OFFSET] = rows[G_OFFSET, k]
        run[U_START] = rows[G_POS, k]
        run[U_END] = rows[G_POS, k]
        run[U_FIRST] = i
        run[U_AFTER] = NOTHING_YET
        run[U_DONE] = 0
        while i < len(order):
            k = U(order[U(i)])
            if rows[G_STREAM, k] != stream or rows[G_KIND, k] != DATA:
                break
            run[U_END] = rows[G_POS, k] + rows[G_LENGTH, k]
            i += 1
        run[U_STOP] = i
        if i < len(order) and rows[G_STREAM, k] == stream:
            run[U_AFTER] = rows[G_KIND, k]
            i += 1
    return n


@kernel(types.void(BYTES, TABLE, I, TABLE, INT64, TABLE, INT64, TABLE))
def frame_runs(work, runs, n, rows, order, kept, x, out):
    """The runs of established streams that nothing comes after yet, from run ``x[FRAME_STATE]`` on.

    What is left of a run starts at ``U_START`` afterwards; ``U_DONE`` says it needs no other look.
    """
    y = np.zeros(FRAME_STATE, np.int64)
    while x[FRAME_STATE] < n:
        at = x[FRAME_STATE]
        run = runs[U(at)]
        stream = run[U_STREAM]
        state = kept[U(stream)]
        alone = at == 0 or runs[U(at - 1), U_STREAM] != stream
        if alone and state[K_PHASE] == FRAMED and run[U_AFTER] == NOTHING_YET:
            y[X_POS] = run[U_START]
            y[X_PIECE] = run[U_FIRST]
            y[X_ROWS] = x[X_ROWS]
            y[X_FORCE] = 0
            base = run[U_START] - run[U_OFFSET]
            frame(work, base, run[U_END], 0, stream, rows, order, run[U_STOP], state, y, out)
            x[X_ROWS] = y[X_ROWS]
            run[U_OFFSET] += y[X_POS] - run[U_START]
            run[U_START] = y[X_POS]
            run[U_FIRST] = y[X_PIECE]
            if y[X_WHY] == NO_ROOM:
                return
            run[U_DONE] = y[X_WHY] == WANTS_MORE
        x[FRAME_STATE] += 1


@kernel(types.Tuple((I, I))(BYTES, TABLE, INT64, INT64, INT64, INT64, I, TABLE, BYTES, I, I))
def keep(work, rows, order, firsts, stops, starts, n, out, carry, r, q):
    """Keeps pieces ``order[first:stop]`` from ``start`` on, as rows from ``r`` and bytes from ``q``."""
    for j in range(n):
        start = starts[U(j)]
        for i in range(firsts[U(j)], stops[U(j)]):
            k = U(order[U(i)])
            at, length = rows[G_POS, k], rows[G_LENGTH, k]
            cut = I(0)
            if rows[G_KIND, k] == DATA:
                if at + length <= start:
                    continue
                cut = max(start - at, 0)
                copy(carry, U(q), work, U(at + cut), U(length - cut))
            w = U(r)
            r += 1
            out[G_STREAM, w] = rows[G_STREAM, k]
            out[G_OFFSET, w] = rows[G_OFFSET, k] + cut
            out[G_LENGTH, w] = length - cut
            out[G_KIND, w] = rows[G_KIND, k]
            out[G_POS, w] = q
            out[G_POOLED, w] = 2
            out[G_TIME, w] = rows[G_TIME, k]
            if rows[G_KIND, k] == DATA:
                q += length - cut
    return r, q


@kernel(types.void(BYTES, INT64, INT64, I, BYTES, types.Array(types.int32, 1, "C")))
def pack(work, starts, ends, n, out, offsets):
    """Batches one after the other, as the values and offsets of an Arrow array."""
    q = I(0)
    offsets[0] = 0
    for i in range(n):
        start = starts[U(i)]
        length = ends[U(i)] - start
        copy(out, U(q), work, U(start), U(length))
        q += length
        offsets[U(i + 1)] = q
