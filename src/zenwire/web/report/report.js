
"use strict";
(() => {
  // Everything that comes from a capture is set as text, never as markup.
  const data = JSON.parse(document.getElementById("data").textContent);
  const make = (tag, text, name) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (name) e.className = name;
    return e;
  };
  const thin = "\u202f";
  const number = n => Math.round(n).toLocaleString("en-US");
  const scaled = (n, units, step) => {
    let i = 0;
    while (n >= step && i < units.length - 1) { n /= step; i++; }
    const digits = n >= 100 || Number.isInteger(n) ? 0 : n >= 10 ? 1 : 2;
    return n.toFixed(digits) + thin + units[i];
  };
  const bytes = n => scaled(n, ["B", "kB", "MB", "GB", "TB"], 1000);
  const rate = n => scaled(n, ["/s", "k/s", "M/s", "G/s"], 1000);
  const span = ns => {
    if (ns >= 120e9) return number(ns / 60e9) + thin + "min";
    if (ns === 0) return "0" + thin + "s";
    const [size, unit] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
    return String(+(ns / size).toPrecision(4)) + thin + unit;
  };
  const short = n => n.includes(":") || n.length <= 10 ? n : n.slice(0, 8);
  // The same as the page does to foreign text.
  const visible = t => t.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, c => "\\u{" + c.codePointAt(0).toString(16) + "}");

  // Charts: a step under the pointer, or a span that was dragged over; arrow keys do the same.
  const line = data.timeline;
  const charts = line ? [...document.querySelectorAll("[data-chart]")] : [];
  let from = -1, to = -1;
  const show = () => {
    const a = Math.min(from, to), b = Math.max(from, to);
    for (const chart of charts) {
      const brush = chart.querySelector(".brush"), out = chart.querySelector(".readout");
      out.replaceChildren();
      brush.setAttribute("width", from < 0 ? "0" : 100 * (b - a + 1) / line.bins + "%");
      if (from < 0) continue;
      brush.setAttribute("x", 100 * a / line.bins + "%");
      const name = chart.dataset.chart, long = (b - a + 1) * line.width / 1e9;
      const sums = line[name].map(values => values.slice(a, b + 1).reduce((x, y) => x + y, 0));
      const total = sums.reduce((x, y) => x + y, 0);
      const told = n => name === "bytes" ? bytes(n) : number(n);
      out.append(make("b", `${span(a * line.width)} – ${span((b + 1) * line.width)}`));
      const perSecond = name === "bytes" ? bytes(total / long) + "/s" : rate(total / long);
      out.append(make("b", `${told(total)} ${name === "bytes" ? "" : "messages"} (${perSecond})`));
      line.kinds.forEach((kind, i) => {
        if (!sums[i]) return;
        const entry = make("span");
        entry.append(make("span", "", "swatch k-" + kind), `${kind} ${told(sums[i])}`);
        out.append(entry);
      });
    }
  };
  for (const chart of charts) {
    const plot = chart.querySelector(".plot");
    let dragging = false;
    const at = event => {
      const box = plot.getBoundingClientRect();
      const part = (event.clientX - box.left) / box.width;
      return Math.min(Math.max(Math.floor(part * line.bins), 0), line.bins - 1);
    };
    chart.tabIndex = 0;
    chart.setAttribute("role", "group");
    chart.setAttribute("aria-label", chart.querySelector("figcaption").textContent +
      ": arrow keys read the steps, with shift they sum up a span");
    let kept = false;
    plot.addEventListener("pointerdown", event => {
      dragging = true; kept = false; from = to = at(event);
      plot.setPointerCapture(event.pointerId);
      show();
    });
    plot.addEventListener("pointermove", event => {
      if (dragging) { to = at(event); kept = kept || to !== from; }
      else if (kept) return;
      else from = to = at(event);
      show();
    });
    plot.addEventListener("pointerup", () => { dragging = false; });
    plot.addEventListener("pointerleave", () => { if (!dragging && !kept) { from = to = -1; show(); } });
    chart.addEventListener("keydown", event => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") { from = to = -1; kept = false; }
      else if (event.key === "Home") from = to = 0;
      else if (event.key === "End") from = to = line.bins - 1;
      else if (!step) return;
      else if (from < 0) from = to = step > 0 ? 0 : line.bins - 1;
      else {
        to = Math.min(Math.max(to + step, 0), line.bins - 1);
        if (!event.shiftKey) from = to;
      }
      event.preventDefault();
      show();
    });
  }

  // Topology: what is pointed at or focused is told beside the drawing.
  const map = document.querySelector("svg.topology");
  if (map) {
    const told = document.querySelector(".panel .told");
    const edges = data.sessions.edges.rows;
    const parts = [...map.querySelectorAll(".node, .edge")];
    parts.sort((a, b) => b.classList.contains("node") - a.classList.contains("node"));
    const list = (title, entries) => {
      const dl = make("dl");
      for (const [name, value] of entries) {
        if (value === "" || value === null) continue;
        dl.append(make("dt", name), make("dd", visible(String(value))));
      }
      told.replaceChildren(make("h3", visible(title)), dl);
    };
    const lower = mode => mode ? mode.toLowerCase() : "not known";
    const ends = g => edges[g.dataset.edge];
    const pick = part => {
      map.classList.toggle("picked", !!part);
      for (const p of parts) p.classList.remove("on", "near");
      if (!part) { told.replaceChildren(); return; }
      part.classList.add("on");
      if (part.classList.contains("edge")) {
        const e = ends(part);
        for (const p of parts)
          if (p.dataset.name === e.connector || p.dataset.name === e.acceptor) p.classList.add("near");
        list(`${short(e.connector)} → ${short(e.acceptor)}`, [
          ["link", e.link], ["sessions", number(e.sessions)],
          ["closed", number(e.closed)],
          ["there", bytes(e.bytes_to_acceptor)], ["back", bytes(e.bytes_to_connector)],
          ["agreed", e.agreed.join(", ") || "nothing beyond the basics, or not captured"],
          ["from", e.addresses[0]], ["to", e.addresses[1]]]);
        return;
      }
      const name = part.dataset.name, near = new Set();
      let sent = 0, received = 0, sessions = 0, mode = null;
      for (const p of parts) {
        if (!p.classList.contains("edge")) continue;
        const e = ends(p), out = e.connector === name;
        if (!out && e.acceptor !== name) continue;
        p.classList.add("on");
        near.add(out ? e.acceptor : e.connector);
        mode = mode || (out ? e.connector_mode : e.acceptor_mode);
        sent += out ? e.bytes_to_acceptor : e.bytes_to_connector;
        received += out ? e.bytes_to_connector : e.bytes_to_acceptor;
        sessions += e.sessions;
      }
      for (const p of parts) if (near.has(p.dataset.name)) p.classList.add("near");
      list(name, [["mode", lower(mode)], ["sessions", number(sessions)],
        ["neighbours", number(near.size)], ["sent", bytes(sent)], ["received", bytes(received)]]);
    };
    for (const [i, part] of parts.entries()) {
      part.addEventListener("pointerenter", () => pick(part));
      part.addEventListener("pointerleave", () => pick(document.activeElement.closest(".node, .edge")));
      part.addEventListener("focus", () => pick(part));
      part.addEventListener("blur", () => pick(null));
      part.addEventListener("keydown", event => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") part.blur();
        if (!step) return;
        event.preventDefault();
        const next = parts[(i + step + parts.length) % parts.length];
        part.tabIndex = -1; next.tabIndex = 0; next.focus();
      });
    }
  }

  // Tables: headings sort; numbers by value, largest first.
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const sortable = [...body.rows].some(row => row.cells[i] && row.cells[i].dataset.v !== undefined);
      if (!sortable) return;
      const button = make("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const numbers = [...body.rows].every(row => !isNaN(parseFloat(row.cells[i].dataset.v)));
        const down = head.ariaSort ? head.ariaSort === "ascending" : numbers;
        for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const value = row => row.cells[i].dataset.v ?? "";
        const order = (a, b) => numbers ? value(a) - value(b) : value(a).localeCompare(value(b));
        body.append(...[...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)));
      });
    });
  }

  // Keys: a field that leaves those that contain what is typed.
  const keys = document.getElementById("key-table");
  if (keys && keys.tBodies[0].rows.length > 10) {
    const field = make("input");
    field.type = "search";
    field.placeholder = "Find a key…";
    field.setAttribute("aria-label", "Show only keys that contain");
    const tools = make("p", undefined, "tools");
    tools.append(field);
    keys.parentNode.before(tools);
    field.addEventListener("input", () => {
      for (const row of keys.tBodies[0].rows)
        row.hidden = !row.cells[0].textContent.includes(field.value);
    });
  }
})();
