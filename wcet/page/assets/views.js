// The parts of the report. Each makes its elements from the address in the address bar.

const HOT = 5; // functions of an entry

function boundsView() {
  const { kernel, platform, latency } = DATA;
  const term = (name, ...text) => [make("dt", {}, name), make("dd", {}, text)];
  const most = Math.max(1, ...DATA.entries.map((e) => e.cycles));
  const used = DATA.causes.map((_, i) => i).filter((i) => DATA.entries.some((e) => e.causes[i]));
  const seen = DATA.entries.some((e) => e.interval);
  const change = new Map(DATA.comparison?.entries.map((e) => [e.name, e.cycles]));
  const compared = change.size ? ["change"] : [];
  const rows = DATA.entries.map((e, i) => {
    const bar = causeBar(e.causes, most);
    return [
      e.paths.length ? link(e.name, "path", i, 0) : e.name,
      ...seen ? [e.interval ? e.seen : ""] : [],
      e.formula ? { number: `${e.formula}; ${e.for_what}: ${number(e.cycles)}` } : e.cycles,
      { number: e.microseconds.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 }) },
      ...compared.map(() => ({ number: signed(change.get(e.name) ?? null) })),
      bar, ...used.map((cause) => e.causes[cause]),
    ];
  });
  const notes = DATA.entries.flatMap((e) => [
    e.unrealisable && `${e.name}: ${e.unrealisable}`,
    !e.optimal && `${e.name}: an upper bound, ${e.method}`,
    e.start && `${e.name}: ${e.start}`,
    e.interval && `${e.name}: ${e.interval}`,
    e.unmasking.length && `${e.name} may unmask interrupts at ${e.unmasking.join(", ")}: there is no interrupt latency`,
    ...notesOf(e).filter((note) => !note.functions.length).map((note) => `${e.name}: ${note.text}`),
  ].filter(Boolean));
  const noted = [...new Set(DATA.entries.flatMap((e) => notesOf(e).flatMap((note) => note.functions)))];
  return [
    make("h2", {}, "Bounds"),
    table("Bounds of all entries", ["entry", ...seen ? ["seen"] : [], "cycles", "µs", ...compared, "by cause", ...used.map((i) => DATA.causes[i])], rows),
    legend(used.map((i) => [causeColor(i), DATA.causes[i]])),
    DATA.unbounded.map((e) => make("p", { class: "worse" }, `${e.name} has no bound: `, linked(e.message))),
    notes.map((text) => make("p", {}, linked(text))),
    noted.length ? make("p", {}, "Notes on functions: ", noted.flatMap((fn, i) => [i ? ", " : "", link(functionName(fn), "code", entryThrough(fn), 0, fn)]), ".") : null,
    latency && make("p", {}, make("strong", {}, `Worst interrupt latency: ${number(latency.cycles)} cycles, ${latency.microseconds.toFixed(1)} µs`),
      ` = longest masked path (${latency.longest}: ${number(latency.longest_cycles)}) + `,
      `${latency.interrupts > 1 ? `${latency.interrupts} × ` : ""}interrupt path (${number(latency.interrupt_cycles)})`,
      latency.controller_cycles ? ` + controller (${number(latency.controller_cycles)})` : ""),
    hotPlaces(),
    make("p", {}, "The bounds hold under ", link(`${DATA.assumptions.length} assumptions`, "assumptions"), "."),
    make("h2", {}, "What was analysed"),
    make("dl", {},
      term("kernel", kernel.path), term("SHA-256", make("code", {}, kernel.sha256)),
      term("platform", `${platform.name}: ${platform.description}; L2 ${platform.l2 ? "on" : "off"}; ${platform.megahertz} MHz`),
      term("chosen because", platform.chosen), term("facts", DATA.facts_files.join(", ") || "none"),
      term("program", `Quoll ${DATA.version}`)),
    table("Sizes of graphs", ["entry", "contexts", "blocks", "solver", "proved by"],
      DATA.entries.map((e) => [e.name, e.contexts, e.blocks, e.solver, e.method])),
  ];
}

// The notes of an entry on code, each with the functions that it names.
function notesOf(e) {
  const texts = [
    ...e.never_returning.map((text) => `it never returns: ${text}`),
    ...e.proved.map((text) => `proved: ${text}`),
  ];
  return texts.map((text) => ({ text, functions: [...new Set(functionsNamed(text))] }));
}

// The functions that take most of the worst path of each entry.
function hotPlaces() {
  const rows = DATA.entries.flatMap((e, i) => {
    const loads = e.paths.length ? [...loadsOf(e.paths[0])].sort((a, b) => b[1].cycles - a[1].cycles) : [];
    return loads.slice(0, HOT).map(([fn, load]) => [
      e.name, link(functionName(fn), "code", i, 0, fn), load.cycles, { number: percent(load.cycles, e.paths[0].cycles) },
    ]);
  });
  return rows.length ? [make("h2", {}, "Where the cycles go"), table("Functions with most cycles of their own", ["entry", "function", "own cycles", "share"], rows)] : null;
}

// Which entry and which of its paths a part of the report is about.
function pathChoice(entry, path, go) {
  const entries = DATA.entries.map((e, i) => [i, `${e.name}: ${number(e.cycles)}`]).filter(([i]) => DATA.entries[i].paths.length);
  const paths = DATA.entries[entry].paths.map((p, i) => [i, p.title]);
  return [
    labelled("Entry", choice(entries, entry, (value) => go(value, 0))),
    paths.length > 1 ? labelled("Path", choice(paths, path, (value) => go(entry, value))) : null,
  ];
}

// Where there is no path: what can be chosen instead.
function noPath(part, entry) {
  const others = DATA.entries.map((e, i) => [e, i]).filter(([e]) => e.paths.length);
  return [
    make("p", {}, `No counts are known that reach the bound of ${DATA.entries[entry]?.name ?? "this entry"}: there is no path to show.`),
    make("ul", {}, others.map(([e, i]) => make("li", {}, link(e.name, part, i, 0)))),
  ];
}

const FIRST = Math.max(0, DATA.entries.findIndex((e) => e.paths.length)); // entry with a path

// The first entry whose worst path runs through a function; else the first one.
function entryThrough(fn) {
  return Math.max(FIRST, DATA.entries.findIndex((e) => e.paths[0] && loadsOf(e.paths[0]).get(fn)?.cycles));
}

// The graphs of a view, each with its heading.
function viewed(view, path, fn) {
  if (view === "heavy") return [["Equal calls together, most cycles first", leftHeavy(path)]];
  if (view === "sandwich") return [["Callers", callersOf(path, fn)], ["Callees", calleesOf(path, fn)]];
  return [["Calls and loops of the worst path", treeOf(path)]];
}

function pathView([entry = FIRST, number_ = 0, chosen = 0]) {
  const path = DATA.entries[entry]?.paths[number_];
  if (!path) return [make("h2", {}, "Worst path"), noPath("path", entry)];
  const detail = make("section", { "aria-label": "The chosen frame" });
  const found = make("span", { class: "faint" });
  const holder = make("div", {});
  const functions = [...callsOf(path).functions.values()].filter((f) => f.calls).sort((a, b) => b.cycles - a.cycles);
  let view = "order";
  let color = hasOneCause(treeOf(path)) ? "function" : "cause";
  let fn = functions[Math.min(1, functions.length - 1)].fn;
  let flames = [];
  const field = make("input", {
    type: "search", placeholder: "Search functions", "aria-label": "Search functions in the flame graph",
    oninput: () => {
      const { count, cycles } = flames.map((flame) => flame.search(field.value)).at(-1);
      found.textContent = field.value ? `${number(count)} found: ${number(cycles)} cycles, ${percent(cycles, path.cycles)}` : "";
    },
    onkeydown: (event) => { if (event.key === "Enter") flames.at(-1).next(); },
  });
  const about = labelled("Function", choice(functions.map((f) => [f.fn, functionName(f.fn)]), fn, (value) => { fn = Number(value); redraw(); }));
  const redraw = () => {
    about.hidden = view !== "sandwich";
    flames = viewed(view, path, fn).map(([name, tree]) => new FlameGraph(tree, name, colouring(color, path, entry), (node) => {
      if (view === "order") history.replaceState(null, "", address("path", entry, number_, node.index));
      showPart(detail, path, node, entry, number_);
      say(`${node.label}: ${number(node.cycles)} cycles`);
    }));
    const heads = view === "sandwich" ? flames.map((flame) => make("h3", {}, flame.name)) : [];
    holder.replaceChildren(colourLegend(color, flames[0].tree[0].total), ...flames.flatMap((flame, i) => [heads[i] ?? "", flame.element]));
    const last = flames.at(-1);
    requestAnimationFrame(() => last.choose(last.tree[view === "order" ? chosen : 0] ?? last.tree[0]));
  };
  const views = [["order", "calls in order"], ["heavy", "left-heavy"], ["sandwich", "sandwich"]];
  const colors = [["cause", "cause"], ["function", "function"], ...changesOf(entry).size ? [["change", "change"]] : []];
  redraw();
  return [
    make("h2", {}, path.title.replace(/^w/, "W")),
    make("p", {}, `${number(path.cycles)} cycles`, path.cycles !== DATA.entries[entry].cycles && number_ === 0
      ? `; the bound is ${number(DATA.entries[entry].cycles)}` : "", ". A frame is a call in its context, or a loop; its width is cycles. ",
    "Click, or Enter, zooms; arrow keys move; Escape shows all."),
    make("div", { class: "tools" }, pathChoice(entry, number_, (e, p) => { location.hash = address("path", e, p); }),
      labelled("View", choice(views, view, (value) => { view = value; redraw(); })), about,
      labelled("Colour", choice(colors, color, (value) => { color = value; redraw(); })),
      field, make("button", { type: "button", onclick: () => flames.at(-1).next() }, "Next"), found,
      make("button", { type: "button", onclick: () => { for (const flame of flames) flame.zoom(flame.tree[0]); } }, "Show all")),
    holder, detail,
  ];
}

// The chosen frame: its figures, and the code of its function with what this frame runs.
function showPart(place, path, node, entry, number_) {
  const uses = usesOf(node.blocks);
  const fn = FUNCTIONS.get(node.fn);
  const own = sum(node.own);
  const site = node.name ? `in ${functionName(node.fn)}` : node.where === null ? "" : `called from ${lineOf(node.where)}`;
  place.replaceChildren(
    make("h3", {}, `${node.label} ${site}`),
    causeBar(node.total, node.cycles || 1),
    make("p", {}, `${number(node.cycles)} cycles (${percent(node.cycles, path.cycles)}), ${number(own)} without what is inside. `,
      node.name ? `Entered ${number(node.entries)}×, ${number(node.rounds)} rounds${node.limit === null ? "" : `, at most ${number(node.limit)} each`}. `
        : `Called ${number(node.entries)}×. `,
      fn ? link("All contexts of the function", "code", entry, number_, node.fn) : null),
    fn ? listing(fn, uses).element : "",
  );
}

function codeView([entry = FIRST, number_ = 0, fnAddress, at]) {
  const path = DATA.entries[entry]?.paths[number_];
  if (!path) return [make("h2", {}, "Functions"), noPath("code", entry)];
  const loads = loadsOf(path);
  const load = (f) => loads.get(f.address) ?? NO_LOAD;
  const sorted = DATA.functions.slice().sort((a, b) => load(b).cycles - load(a).cycles);
  const fn = FUNCTIONS.get(Number(fnAddress)) ?? sorted[0];
  const list = filtered("Functions", sorted, (f) => f.name, (f, element) => {
    element.append(column(number(load(f).cycles), 10), column(percent(load(f).cycles, path.cycles), 8, "w"), f.name);
    if (f === fn) element.classList.add("marked");
  }, (f) => { location.hash = address("code", entry, number_, f.address); }, [["own cycles", 10], ["share", 8], ["function"]]);
  const use = load(fn);
  const code = listing(fn, use.blocks, Number(at) || 0);
  const holder = make("div", {});
  let middle = at && blockAt(Number(at))?.[0] === fn ? blockAt(Number(at))[1].address : fn.address;
  if (!fn.blocks.some((b) => b.address === middle)) middle = fn.blocks[0].address;
  let picture = null;
  const redraw = () => {
    picture = controlFlow(fn, use, middle, (id) => {
      code.go(id);
      if (picture.shown.size < fn.blocks.length) { middle = id; redraw(); }
      picture.show(id);
      say(`Block ${hex(id)}`);
    });
    holder.replaceChildren(picture.element);
  };
  redraw();
  requestAnimationFrame(() => picture.show(middle));
  return [
    make("h2", {}, `Function ${fn.name}`),
    make("div", { class: "tools" }, pathChoice(entry, number_, (e, p) => { location.hash = address("code", e, p, fn.address); })),
    make("p", {}, `${number(use.cycles)} cycles in its own blocks over all contexts, ${percent(use.cycles, path.cycles)} of the path; ${number(fn.blocks.length)} blocks.`),
    ...functionNotes(fn.address).map((text) => make("p", { class: "note" }, linked(text))),
    make("div", { class: "panes" }, make("section", {}, make("h3", {}, "All functions"), list),
      make("section", {}, make("h3", {}, "Control flow"), holder)),
    code.element,
  ];
}

// The notes of all entries on a function, each once.
function functionNotes(fn) {
  const notes = DATA.entries.flatMap((e) => notesOf(e).filter((note) => note.functions.includes(fn)));
  return [...new Set(notes.map((note) => note.text))];
}

function callsView([entry = FIRST, number_ = 0]) {
  const path = DATA.entries[entry]?.paths[number_];
  if (!path) return [make("h2", {}, "Calls"), noPath("calls", entry)];
  const { functions, edges } = callsOf(path);
  const open = (fn) => { location.hash = address("code", entry, number_, fn); };
  const holder = make("div", {});
  const redraw = (least) => holder.replaceChildren(callGraph(path, Number(least), least === "all", open));
  redraw(0.01);
  const rows = [...functions.values()].sort((a, b) => b.cycles - a.cycles);
  const callers = (fn) => edges.filter((edge) => edge.to === fn).map((edge) => functionName(edge.from)).join(", ");
  return [
    make("h2", {}, "Calls on the worst path"),
    make("div", { class: "tools" }, pathChoice(entry, number_, (e, p) => { location.hash = address("calls", e, p); }),
      labelled("Functions from", choice([[0.1, "10 %"], [0.01, "1 %"], [0.001, "0.1 %"], [0, "0 %"], ["all", "all, on the path or not"]], 0.01, redraw))),
    holder,
    make("h3", {}, "Functions on the path, cycles with those that they call"),
    filtered("Functions on the path", rows, (f) => `${functionName(f.fn)} ${callers(f.fn)}`, (f, element) => {
      element.append(column(number(f.cycles), 10), column(percent(f.cycles, path.cycles), 8, "w"), column(number(f.own), 10),
        column(`${number(f.calls)}×`, 8, "w"), functionName(f.fn), make("span", { class: "w" }, `  < ${callers(f.fn)}`));
    }, (f) => open(f.fn), [["cycles", 10], ["share", 8], ["own cycles", 10], ["called", 8], ["function  < callers"]]),
  ];
}

function loopsView() {
  const bound = (l) => (l.high === null ? "none" : l.low === l.high ? `${l.high}` : `${l.low}..${l.high}`);
  const detail = make("section", { "aria-label": "The chosen loop" });
  const show = (l) => {
    detail.replaceChildren(
      make("h3", {}, `Loop ${l.place}`),
      make("p", {}, `At most ${bound(l)} executions of its header each time it is entered; ${l.exact ? "an execution needs that many" : "it is not known whether an execution needs that many"}. `,
        `Its header runs ${number(l.executions)}× on the worst path of ${DATA.entries[l.entry].name}, in ${number(l.contexts)} contexts.`),
      make("p", {}, l.method ? `Evidence (${l.method}): ` : "", l.evidence),
      l.assumptions.length ? make("p", {}, "Rests on: ", l.assumptions.map((n) => [link(`assumption ${n + 1}`, "assumptions", n), " "])) : "",
      make("p", {}, link("The code", "code", l.entry, 0, l.function, l.header)));
  };
  return [
    make("h2", {}, "Loops"),
    make("p", {}, "Enter, or a click, shows the evidence. Executions are those of the header on the worst path."),
    DATA.loops.length ? filtered("Loops", DATA.loops, (l) => `${l.place} ${l.evidence} ${l.method} ${DATA.entries[l.entry].name}`, (l, element) => {
      element.append(column(bound(l), 9), column(l.method || "none", 7, "w"), column(number(l.contexts), 8), column(`${number(l.executions)}×`, 9, "w"),
        l.place, make("span", { class: "w" }, `  ${DATA.entries[l.entry].name}`));
    }, show, [["bound", 9], ["method", 7], ["contexts", 8], ["executed", 9], ["place  entry"]]) : make("p", {}, "There are none."),
    detail,
  ];
}

function cachesView([entry = 0]) {
  const entries = DATA.entries.map((e, i) => [i, e.name]);
  return [
    make("h2", {}, "Caches"),
    make("p", {}, "A square is a set. Its number is how many different lines compete in it over all contexts; its colour is the share of cycles that references to it cost on the worst path, of the set that costs most."),
    make("div", { class: "tools" }, labelled("Entry", choice(entries, entry, (value) => { location.hash = address("caches", value); }))),
    (DATA.entries[entry]?.caches ?? []).map((cache) => cacheSection(cache, entry)),
  ];
}

function cacheSection(cache, entry) {
  const cycles = cache.sets.map((lines) => sum(lines.map((line) => line[2])));
  const most = Math.max(1, ...cycles);
  const detail = make("div", {});
  const show = (i) => {
    grid.querySelector('[aria-pressed="true"]')?.setAttribute("aria-pressed", "false");
    grid.children[i].setAttribute("aria-pressed", "true");
    const lines = cache.sets[i].slice().sort((a, b) => b[2] - a[2]);
    detail.replaceChildren(make("h3", {}, `Set ${i}`), table(`Lines of set ${i}`, ["line", "cycles", "references", "code"],
      lines.map(([at, runs, cost]) => [make("code", {}, hex(at)), cost, runs, codeOfLine(at, cache.line_bytes, entry)])));
  };
  const grid = make("div", { class: "sets", role: "group", "aria-label": `Sets of the ${cache.name}` }, cache.sets.map((lines, i) => {
    const text = `Set ${i}: ${lines.length} lines, ${number(cycles[i])} cycles`;
    const cell = make("button", { type: "button", "aria-pressed": "false", "aria-label": text, title: text, onclick: () => show(i) }, String(lines.length));
    cell.style.background = cycles[i] ? heatColor(cycles[i] / most) : "";
    return cell;
  }));
  const told = cache.all_sets === cache.sets.length ? "" : ` that the offset in a page tells apart, of ${cache.all_sets},`;
  return make("section", {}, make("h3", {}, cache.name),
    make("p", {}, `${cache.sets.length} sets${told} of ${cache.line_bytes}-byte lines, ${cache.ways} ways; ${number(sum(cycles))} cycles in known lines, `,
      `${number(cache.unknown[1])} in ${number(cache.unknown[0])} references whose line is not known.`), grid, detail);
}

function codeOfLine(address_, size, entry) {
  const names = new Set();
  const found = [];
  for (let at = address_; at < address_ + size; at += 2) {
    const block = blockAt(at);
    if (block && !names.has(block[0].name)) {
      names.add(block[0].name);
      found.push(link(block[0].name, "code", entry, 0, block[0].address, at), " ");
    }
  }
  return found.length ? make("span", {}, found) : "";
}

function assumptionsView([chosen]) {
  const of = (a) => (a.entries.length ? a.entries.map((i) => [DATA.entries[i].paths.length ? link(DATA.entries[i].name, "path", i, 0) : DATA.entries[i].name, " "]) : "the interrupt latency");
  const loops = DATA.assumptions.map(() => []);
  for (const l of DATA.loops) for (const n of l.assumptions) loops[n].push(l);
  const items = DATA.assumptions.map((a, i) => make("li", { id: `assumption${i}`, tabindex: -1 }, linked(a.text),
    make("details", { open: i === chosen }, make("summary", {}, `kind: ${a.kind}; ${a.entries.length} entries${loops[i].length ? `, ${loops[i].length} loops` : ""}`),
      make("dl", {}, make("dt", {}, "bounds of"), make("dd", {}, of(a)),
        loops[i].length ? [make("dt", {}, "loops"), make("dd", {}, loops[i].slice(0, 50).map((l) => [link(lineOf(l.header), "code", l.entry, 0, l.function, l.header), " "]),
          loops[i].length > 50 ? `and ${loops[i].length - 50} more` : "")] : [],
        make("dt", {}, "proved by"), make("dd", {}, a.proved_by), make("dt", {}, "refuted by"), make("dd", {}, a.refuted_by),
        make("dt", {}, "checked by"), make("dd", {}, a.checked_by)))));
  requestAnimationFrame(() => {
    const item = document.getElementById(`assumption${chosen}`);
    if (item) { item.scrollIntoView(); item.focus(); }
  });
  return [
    make("h2", {}, "Assumptions"),
    make("p", {}, "Every bound rests on these. Addresses lead to the code."),
    make("ol", { class: "texts" }, items),
    make("h2", {}, "Facts"),
    DATA.facts.length ? table("Facts", ["fact", "state", "where it stands", "what it is about"], DATA.facts.map((f) => [
      make("code", {}, f.text), f.label, f.source, make("span", {}, f.places.map((at) => {
        const found = blockAt(at);
        return [found ? link(`${found[0].name} ${lineOf(at)}`, "code", entryThrough(found[0].address), 0, found[0].address, at) : hex(at), " "];
      })),
    ])) : make("p", {}, "No facts were stated."),
  ];
}

function comparisonView() {
  const found = DATA.comparison;
  const figure = (value) => (typeof value === "number" ? value : { number: value || "–" });
  return [
    make("h2", {}, "Comparison with the baseline"),
    table("Entries before and now", ["entry", "before", "now", "change", "verdict"], found.entries.map((e) => [
      e.name, figure(e.before), figure(e.after), { number: signed(e.cycles) },
      make("span", { class: e.fails ? "worse" : e.cycles < 0 ? "better" : null }, e.verdict),
    ])),
    found.entries.filter((e) => e.lines.length || e.loops.length || e.reason).map((e) => make("section", {},
      make("h3", {}, e.name), e.reason ? make("p", {}, e.reason) : "", e.loops.map((text) => make("p", {}, text)),
      filtered(`Lines of ${e.name} that changed`, e.lines, (l) => `${l.function} ${l.place} ${l.text}`, (l, element) => {
        const runs = l.runs[0] === l.runs[1] ? "" : `${number(l.runs[0])} → ${number(l.runs[1])} runs`;
        element.append(column(signed(l.cycles), 10), `${l.function} ${l.place}  ${l.text}  `, make("span", { class: "w" }, runs));
      }, null, [["cycles", 10], ["function, line"]]))),
    [["Compared although the questions differ", found.differences], ["New assumptions", found.new_assumptions], ["No longer assumed", found.gone_assumptions]].map(([head, texts]) =>
      (texts.length ? [make("h3", {}, head), make("ul", {}, texts.map((text) => make("li", {}, text)))] : [])),
  ];
}

function aboutView() {
  return [
    make("h2", {}, "About this report"),
    make("p", {}, `Written by Quoll ${DATA.version}. All of it is in this file: nothing is loaded, and no script from elsewhere can run.`),
    make("p", {}, "A share of cycles is of the path that is shown. Waits for memory are with the instruction that waits; other cycles of a block, and those of lines fetched ahead and of first misses in loops, are shared evenly among its instructions. A function's control flow has the edges of all calling contexts; those that no context takes are dotted, or left out if their block is never reached."),
    make("h3", {}, "Keys"),
    make("dl", {}, [["Tab", "to the next list, drawing or field"], ["arrow keys, Page Up, Page Down, Home, End", "to another row, or another frame"],
      ["Enter, Space", "open the row; zoom to the frame"], ["Escape", "show the whole flame graph"]].map(([key, text]) => [make("dt", {}, key), make("dd", {}, text)])),
    make("h3", {}, "Parts of others in this file"),
    DATA.licences.map((part) => make("section", {}, make("p", {}, make("strong", {}, part.name), ` ${part.purpose}; ${part.licence}; from the npm package ${part.package}; ${part.home}`),
      make("details", {}, make("summary", {}, `Licence of ${part.name}`), make("pre", {}, part.notice)))),
  ];
}
