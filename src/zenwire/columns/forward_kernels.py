"""The compiled kernels of forwarding: which rows go together, their times, and their bytes anew.

They stand apart from ``kernels.py``, and use nothing of it that is compiled, because Numba's cache
looks at one file only. Column numbers and bits come as arguments, out of the definitions. Indices
are unsigned where they are used, as there.
"""

# Numba types the kernels by explicit signatures; to mypy they are untyped on purpose.
# mypy: ignore-errors
# ruff: noqa: ARG001, E741, PLR0912, PLR0915, PLR0917

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from zenwire.columns.kernels import (
    BYTES,
    INT32,
    INT64_OUT,
    OPTIONS,
    OUT,
    TABLE32,
    TABLE64,
    UINT64,
    copy,
    copy16,
)

I = types.int64
U = types.uint64


@intrinsic
def store8(context, target, q, value):
    """target[q:q+8] = the integer, little-endian, unaligned and unchecked."""
    signature = types.void(target, q, value)

    def generate(context, builder, signature, args):
        out = context.make_array(signature.args[0])(context, builder, args[0])
        there = builder.gep(out.data, [args[1]])
        there = builder.bitcast(there, ir.IntType(64).as_pointer())
        builder.store(args[2], there, align=1)
        return context.get_dummy_value()

    return signature, generate


@njit(types.void(TABLE32, UINT64, UINT64, INT32, INT32, I, I, INT64_OUT), **OPTIONS)
def survey(c, present, known, route, groups, first, stop, st):
    """How far rows from ``first`` on are alike: all of them usual, or none.

    A row is unusual if its group is below 0, or if it has a bit that must not be passed on.
    ``known``: those bits, then column, bit and default of the QoS. ``st``: the end, whether they
    are unusual, the first QoS, and whether there are others.
    """
    never, of_qos, has_qos, usual = known[U(0)], known[U(1)], known[U(2)], I(known[U(3)])
    i, odd, qos, mixed = first, False, I(0), I(0)
    while i < stop:
        word = present[U(i)]
        this = groups[U(route[U(i)])] < 0 or (word & never) != U(0)
        its = I(c[of_qos, U(i)]) if word & has_qos else usual
        if i == first:
            odd, qos = this, its
        elif this != odd:
            break
        if its != qos:
            mixed = I(1)
        i += 1
    st[U(0)], st[U(1)], st[U(2)], st[U(3)] = i, I(odd), qos, mixed


@njit(
    types.void(TABLE64, UINT64, UINT64, I, I, U, U, U, UINT64, UINT64),
    **OPTIONS,
)
def stamp(t, present, known, first, stop, now, last, top, times, st):
    """Times for those rows that need one, 0 for the others, until one whose own is after ``top``.

    The clock goes on as it does for one sample after the other, if its reading is ``now`` for all.
    ``known``: column and bit of the time, where the id of a body is, and that of those who need a
    time. ``st``: the row where it ended, the last time of the clock, how many were given.
    """
    of_time, has_time, shift, body = known[U(0)], known[U(1)], known[U(2)], known[U(3)]
    i, given = first, U(0)
    while i < stop:
        word = present[U(i)]
        times[U(i)] = U(0)
        if (word >> shift) & U(0xFF) == body:
            if word & has_time:
                theirs = t[of_time, U(i)]
                if theirs > top:
                    break
                newest = max(now, last, theirs)
                last = now if newest == now else newest + U(1)
            else:
                last = max(now, last + U(1))
                times[U(i)] = last
                given += U(1)
        i += 1
    st[U(0)], st[U(1)], st[U(2)] = U(i), last, given


@njit(
    U(
        BYTES,
        TABLE32,
        UINT64,
        INT32,
        UINT64,
        INT32,
        I,
        I,
        INT32,
        INT32,
        BYTES,
        BYTES,
        BYTES,
        UINT64,
        U,
        OUT,
        TABLE32,
        INT64_OUT,
    ),
    **OPTIONS,
)
def forward(
    b,
    c,
    known,
    route,
    times,
    rows,
    first,
    n,
    starts,
    sizes,
    heads,
    id,
    around,
    frame,
    limit,
    out,
    cuts,
    st,
):
    """Rows as batches for others, from the start of ``out`` until it is full.

    Row ``x`` is ``rows[x]``, or ``first + x`` if there are no rows. What stands before the body is
    ``heads[starts[r]:][:sizes[r]]`` for its route ``r``; a route that starts below 0 is not for
    them. A time goes in front of what follows the body's header, with ``id`` behind it; there are
    none if there are no ``times``. ``known``: columns of a body's start and of the end, the bit of
    a header that says that there is a time, and how long ``id`` is. ``limit`` bounds the messages
    of a batch. ``around``: what is before the number of a FRAME, and after it; ``frame``: how long
    both are, the first number, their mask, and the bytes of a length before each batch. ``cuts``:
    where the messages of each batch begin, where they end, and how many they are. ``st``: the next
    of ``n``, batches, messages, and the size of a message that is larger than a batch. Gives the
    end. ``heads``, ``around`` and ``id`` have 32 bytes more than that.
    """
    of_body, of_end, has_time, id_size = known[U(0)], known[U(1)], known[U(2)], known[U(3)]
    before, after, sn, mask, prefix = (
        frame[U(0)],
        frame[U(1)],
        frame[U(2)],
        frame[U(3)],
        frame[U(4)],
    )
    chosen, stamped = len(rows) > 0, len(times) > 0
    safe, room = U(len(b)), U(len(out)) - U(128)
    most = cuts.shape[1]
    i, batches, count, total, larger = st[U(0)], I(0), I(0), I(0), I(0)
    q, begin, body, opened = U(0), U(0), U(0), False
    while i < n:
        r = U(rows[U(i)]) if chosen else U(first + i)
        x = U(route[r])
        if starts[x] < 0:
            i += 1
            continue
        p, size = U(starts[x]), U(sizes[x])
        at, end = U(c[of_body, r]), U(c[of_end, r])
        time = times[r] if stamped else U(0)
        need = size + (end - at)
        if time:
            need += U(9) + id_size
        if opened and q - body + need > limit:
            cuts[U(0), U(batches)], cuts[U(1), U(batches)] = I(body), I(q)
            cuts[U(2), U(batches)] = count
            for j in range(prefix):
                out[begin + U(j)] = ((q - begin - prefix) >> (U(j) * U(8))) & U(0xFF)
            batches += 1
            total += count
            opened = False
        if not opened and need > limit:
            larger = I(need)
            break
        if q + need > room or (not opened and batches == most):
            break
        if not opened:
            opened, begin, count = True, q, I(0)
            q += prefix
            copy16(out, q, around, U(0))
            q += before
            v = sn
            while v > U(0x7F):
                out[q] = (v & U(0x7F)) | U(0x80)
                v >>= U(7)
                q += U(1)
            out[q] = v
            q += U(1)
            copy16(out, q, around, before)
            q += after
            sn = (sn + U(1)) & mask
            body = q
        # Sixteen bytes at once may write more than there is; what comes next writes over it.
        copy16(out, q, heads, p)
        if size > U(16):
            copy16(out, q + U(16), heads, p + U(16))
            if size > U(32):
                copy(out, q + U(32), heads, p + U(32), size - U(32))
        q += size
        if time:
            out[q] = U(b[at]) | has_time
            q += U(1)
            at += U(1)
            v = time
            if v >> U(56):
                # Seven bits to a byte, by halves: the ninth byte has eight.
                w = (v & U(0x0FFFFFFF)) | (((v >> U(28)) & U(0x0FFFFFFF)) << U(32))
                w = (w & U(0x00003FFF00003FFF)) | ((w & U(0x0FFFC0000FFFC000)) << U(2))
                w = (w & U(0x007F007F007F007F)) | ((w & U(0x3F803F803F803F80)) << U(1))
                store8(out, q, w | U(0x8080808080808080))
                out[q + U(8)] = v >> U(56)
                q += U(9)
            else:
                while v > U(0x7F):
                    out[q] = (v & U(0x7F)) | U(0x80)
                    v >>= U(7)
                    q += U(1)
                out[q] = v
                q += U(1)
            copy16(out, q, id, U(0))
            copy16(out, q + U(16), id, U(16))
            q += id_size
        left = end - at
        if left > U(256) or end + U(16) > safe:
            copy(out, q, b, at, left)
        else:
            k = U(0)
            while k < left:
                copy16(out, q + k, b, at + k)
                k += U(16)
        q += left
        count += 1
        i += 1
    if opened:
        cuts[U(0), U(batches)], cuts[U(1), U(batches)] = I(body), I(q)
        cuts[U(2), U(batches)] = count
        for j in range(prefix):
            out[begin + U(j)] = ((q - begin - prefix) >> (U(j) * U(8))) & U(0xFF)
        batches += 1
        total += count
    st[U(0)], st[U(1)], st[U(2)], st[U(3)] = i, batches, total, larger
    return q
