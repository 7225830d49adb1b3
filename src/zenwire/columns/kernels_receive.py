"""The compiled kernels of the receive path: which batches are plain, whose rows go where.

They stand apart from ``kernels.py``, and use nothing of it that is compiled, because Numba's cache
looks at one file only. Column numbers come as arguments, out of the layouts. Indices are unsigned
where they are used, as there.
"""

# Numba types the kernels by explicit signatures; to mypy they are untyped on purpose.
# mypy: ignore-errors
# ruff: noqa: E741, PLR0912, PLR0915, PLR0917, PLR1714, SIM114

from numba import njit, types

from zenwire.columns.kernels import (
    BYTES,
    INT32,
    INT32_OUT,
    INT64_OUT,
    OPTIONS,
    OUT,
    TABLE32,
    UINT64,
    copy,
    copy16,
    load8,
    pointer,
)

I = types.int64
U = types.uint64


@njit(
    types.void(INT32, INT32, I, I, TABLE32, UINT64, I, TABLE32, UINT64, I, INT32, UINT64, OUT),
    **OPTIONS,
)
def classify(starts, ends, first, stop, c, present, rows, tc, tpresent, trows, bad, known, odd):
    """``odd[k]`` of batches ``first`` to ``stop`` that hold more than FRAMEs of publications.

    ``known``: the ids of FRAME, KEEP_ALIVE and PUSH, bits that a publication must not have, and
    the columns of the FRAME in ``c`` and of the batch in ``tc``.
    """
    frame, keep_alive, push, never = known[U(0)], known[U(1)], known[U(2)], known[U(3)]
    of_frame, of_batch = known[U(4)], known[U(5)]
    for k in range(first, stop):
        odd[U(k)] = starts[U(k)] == ends[U(k)]
    for i in range(len(bad)):
        odd[U(bad[U(i)])] = 1
    for w in range(trows):
        kind = tpresent[U(w)] >> U(56)
        if kind != frame and kind != keep_alive:
            odd[U(tc[of_batch, U(w)])] = 1
    for r in range(rows):
        word = present[U(r)]
        if word >> U(56) != push or word & never:
            odd[U(tc[of_batch, U(c[of_frame, U(r)])])] = 1


@njit(
    types.void(I, OUT, TABLE32, I, TABLE32, UINT64, I, UINT64, INT64_OUT, INT64_OUT, INT64_OUT),
    **OPTIONS,
)
def admit(stop, odd, c, rows, tc, tpresent, trows, known, newest, before, st):
    """Takes batches as long as they are plain and their sequence numbers new, of one reliability.

    ``newest`` has the last number of each lane, -1 where that is not all there is to know; then
    the mask, the half of the range, and whether there are priorities. ``before`` is room to work
    in. ``known`` as above, then columns and bits of FRAME: sn, priority, its bit, that of reliable,
    and the default priority. ``st``: next batch, transport row, row; then FRAMEs, numbers missing,
    the reliability, -1 if there was no FRAME, and the first row. A batch that stops it for its
    numbers is odd.
    """
    frame, of_frame, of_batch = known[U(0)], known[U(4)], known[U(5)]
    of_sn, of_priority = known[U(6)], known[U(7)]
    has_priority, is_reliable, usual = known[U(8)], known[U(9)], I(known[U(10)])
    mask, half, qos = newest[U(16)], newest[U(17)], newest[U(18)]
    k, w, r = st[U(0)], st[U(1)], st[U(2)]
    frames, missing, reliable = I(0), I(0), I(-1)
    while w < trows and tc[of_batch, U(w)] < k:
        w += 1
    while r < rows and c[of_frame, U(r)] < w:
        r += 1
    st[U(6)] = r
    while k < stop and not odd[U(k)]:
        for lane in range(16):
            before[U(lane)] = newest[U(lane)]
        v, more, gap, way, good = w, I(0), I(0), reliable, True
        while v < trows and tc[of_batch, U(v)] == k:
            word = tpresent[U(v)]
            if word >> U(56) == frame:
                sn = I(tc[of_sn, U(v)]) & 0xFFFFFFFF
                priority = I(tc[of_priority, U(v)]) if word & has_priority else usual
                this = I(1) if word & is_reliable else I(0)
                lane = 2 * priority + this
                last = before[U(lane)]
                ahead = (sn - last) & mask
                if sn > mask or (priority != usual and not qos) or last < 0:
                    good = False
                elif ahead == 0 or ahead > half or (more and this != way):
                    good = False
                if not good:
                    break
                if not more:
                    way = this
                before[U(lane)] = sn
                gap += ahead - 1
                more += 1
            v += 1
        if not good:
            odd[U(k)] = 1
            break
        if more and reliable >= 0 and way != reliable:
            # It begins the next run.
            break
        for lane in range(16):
            newest[U(lane)] = before[U(lane)]
        if more:
            reliable = way
        frames += more
        missing += gap
        w = v
        k += 1
    # The rows of what was taken: FRAMEs count up, so it is where they reach ``w``.
    low, high = r, rows
    while low < high:
        middle = (low + high) >> 1
        if c[of_frame, U(middle)] < w:
            low = middle + 1
        else:
            high = middle
    st[U(0)], st[U(1)], st[U(2)] = k, w, low
    st[U(3)], st[U(4)], st[U(5)] = frames, missing, reliable


MIX = U(0x9E3779B97F4A7C15)


@njit(U(BYTES, U, U, U), **OPTIONS)
def hash_of(b, p, n, seed):
    """Of ``n`` bytes."""
    h = seed ^ (n * MIX)
    source, end = pointer(b), p + n
    while p + U(8) <= end:
        h = (h ^ load8(source, p)) * MIX
        h ^= h >> U(29)
        p += U(8)
    while p < end:
        h = (h ^ U(b[p])) * MIX
        p += U(1)
    return h ^ (h >> U(32))


@njit(types.boolean(BYTES, U, BYTES, U, U), **OPTIONS)
def same(a, p, b, q, n):
    """Whether ``n`` bytes are equal."""
    left, right = pointer(a), pointer(b)
    while n >= U(8):
        if load8(left, p) != load8(right, q):
            return False
        p += U(8)
        q += U(8)
        n -= U(8)
    while n:
        if a[p] != b[q]:
            return False
        p += U(1)
        q += U(1)
        n -= U(1)
    return True


@njit(
    types.void(
        BYTES,
        TABLE32,
        UINT64,
        UINT64,
        INT32,
        INT32,
        TABLE32,
        BYTES,
        U,
        INT32_OUT,
        INT32_OUT,
        INT64_OUT,
    ),
    **OPTIONS,
)
def resolve(b, c, present, known, plain, buckets, entries, texts, seed, groups, route, st):
    """The route of each row, until one whose key is not known.

    ``plain`` has the routes of keys without a suffix, by scope and mapping. The others are in a
    table by their hash: ``buckets`` of numbers of ``entries``, -1 if there is none, in which are
    scope and mapping, where the suffix is in ``texts``, how long it is, and the route. ``groups``:
    of each route. ``known``: columns and bits of scope, mapping and suffix. ``st``: next row, end;
    then the least and the greatest group and route so far.
    """
    of_scope, of_suffix, of_size = known[U(0)], known[U(1)], known[U(2)]
    is_mapped, has_suffix = known[U(3)], known[U(4)]
    i, stop = st[U(0)], st[U(1)]
    low, high, least, most = st[U(2)], st[U(3)], st[U(4)], st[U(5)]
    top = U(len(buckets) - 1)
    last = I(-1)  # the row before, if its key has a suffix
    while i < stop:
        word = present[U(i)]
        written = I(c[of_scope, U(i)]) * 2 + (I(1) if word & is_mapped else I(0))
        n = U(c[of_size, U(i)]) if word & has_suffix else U(0)
        found = I(-1)
        if n == U(0):
            if written < len(plain):
                found = I(plain[U(written)])
            last = I(-1)
        else:
            p = U(c[of_suffix, U(i)])
            if last >= 0 and U(c[of_size, U(last)]) == n:
                was = I(c[of_scope, U(last)]) * 2
                was += I(1) if present[U(last)] & is_mapped else I(0)
                if was == written and same(b, p, b, U(c[of_suffix, U(last)]), n):
                    found = I(route[U(last)])
            if found < 0:
                at = hash_of(b, p, n, seed ^ U(written)) & top
                while buckets[at] >= 0:
                    e = U(buckets[at])
                    if (
                        entries[U(0), e] == written
                        and U(entries[U(2), e]) == n
                        and same(b, p, texts, U(entries[U(1), e]), n)
                    ):
                        found = I(entries[U(3), e])
                        break
                    at = (at + U(1)) & top
            last = i
        if found < 0:
            break
        route[U(i)] = found
        group = I(groups[U(found)])
        low = min(low, group)
        high = max(high, group)
        least = min(least, found)
        most = max(most, found)
        i += 1
    st[U(0)] = i
    st[U(2)], st[U(3)], st[U(4)], st[U(5)] = low, high, least, most


@njit(I(INT32, I, I, BYTES, INT32_OUT), **OPTIONS)
def select(route, first, stop, wanted, out):
    """The rows whose route is wanted. Gives how many."""
    n = I(0)
    for i in range(first, stop):
        out[U(n)] = i
        n += I(wanted[U(route[U(i)])])
    return n


@njit(types.UniTuple(U, 2)(UINT64, INT32, I, I, I, UINT64), **OPTIONS)
def words(present, rows, first, n, q, out):
    """The presence words of rows, those in ``rows`` or ``n`` from ``first`` on, to ``out[q:]``.

    Gives the bits that any has, and those that all have.
    """
    some, every = U(0), ~U(0)
    chosen = len(rows) > 0
    for i in range(n):
        r = I(rows[U(i)]) if chosen else first + i
        word = present[U(r)]
        out[U(q + i)] = word
        some |= word
        every &= word
    return some, every


@njit(types.void(UINT64, I, U, U, U, U, OUT), **OPTIONS)
def kinds(present, n, shift, body, there, other, out):
    """``there`` for rows whose body is ``body``, else ``other``."""
    for i in range(n):
        out[U(i)] = there if (present[U(i)] >> shift) & U(0xFF) == body else other


@njit(types.void(INT32, UINT64, U, INT32, I, I, I, INT32_OUT), **OPTIONS)
def numbers(column, present, bit, rows, first, n, q, out):
    """A column of integers, of the same rows; 0 where there is none."""
    chosen = len(rows) > 0
    for i in range(n):
        r = I(rows[U(i)]) if chosen else first + i
        out[U(q + i)] = column[U(r)] if present[U(r)] & bit else 0


@njit(types.void(INT32, UINT64, U, INT32, I, I, I, INT64_OUT), **OPTIONS)
def numbers_wide(column, present, bit, rows, first, n, q, out):
    """The same for unsigned values of 32 bits."""
    chosen = len(rows) > 0
    for i in range(n):
        r = I(rows[U(i)]) if chosen else first + i
        out[U(q + i)] = I(column[U(r)]) & 0xFFFFFFFF if present[U(r)] & bit else 0


@njit(types.void(UINT64, UINT64, U, INT32, I, I, I, UINT64), **OPTIONS)
def numbers64(column, present, bit, rows, first, n, q, out):
    """The same for values of 64 bits."""
    chosen = len(rows) > 0
    for i in range(n):
        r = I(rows[U(i)]) if chosen else first + i
        out[U(q + i)] = column[U(r)] if present[U(r)] & bit else U(0)


@njit(types.void(UINT64, I, U, U, INT32, I), **OPTIONS)
def forget(present, n, bit, unless, column, default):
    """Values that are the default count as absent, but for rows with the bit ``unless``."""
    for i in range(n):
        if column[U(i)] == default and not present[U(i)] & unless:
            present[U(i)] &= ~bit


@njit(I(BYTES, INT32, INT32, UINT64, U, INT32, I, I, I, I, INT32_OUT, OUT), **OPTIONS)
def spans(b, starts, sizes, present, bit, rows, first, n, q, used, offsets, out):
    """The bytes of a column, of the same rows, to ``out[used:]``; their ends to ``offsets``.

    Gives how much of ``out`` is used then. It has 64 bytes more than that.
    """
    chosen = len(rows) > 0
    safe = I(len(b)) - 64
    for i in range(n):
        r = I(rows[U(i)]) if chosen else first + i
        if present[U(r)] & bit:
            size, p = I(sizes[U(r)]), I(starts[U(r)])
            if size <= 16 and p <= safe:
                copy16(out, used, b, p)
            elif size <= 64 and p <= safe:
                # Sixteen bytes at once may copy more than the span; the next one writes over it.
                copy16(out, used, b, p)
                copy16(out, used + 16, b, p + 16)
                if size > 32:
                    copy16(out, used + 32, b, p + 32)
                    copy16(out, used + 48, b, p + 48)
            else:
                copy(out, used, b, p, size)
            used += size
        offsets[U(q + i + 1)] = used
    return used


@njit(I(INT32, INT32, I, I, INT32, BYTES, I, I, INT32_OUT, OUT), **OPTIONS)
def texts(route, rows, first, n, ends, keys, q, used, offsets, out):
    """The same for keys: that of route ``x`` is ``keys[ends[x]:ends[x + 1]]``, with 64 behind."""
    chosen = len(rows) > 0
    for i in range(n):
        x = U(route[U(rows[U(i)])]) if chosen else U(route[U(first + i)])
        p = I(ends[x])
        size = I(ends[x + U(1)]) - p
        if size <= 16:
            copy16(out, used, keys, p)
        elif size <= 64:
            copy16(out, used, keys, p)
            copy16(out, used + 16, keys, p + 16)
            if size > 32:
                copy16(out, used + 32, keys, p + 32)
                copy16(out, used + 48, keys, p + 48)
        else:
            copy(out, used, keys, p, size)
        used += size
        offsets[U(q + i + 1)] = used
    return used
