// Drawn graphs: dagre places the nodes, and SVG shows them. Of a large graph only the part around
// one node is drawn.

const MOST_NODES = 80;
const CHARACTER = 7.3; // pixels of the font of drawings
const LINE = 16;

function heatColor(share) {
  const last = DATA.heat.length - 1;
  return share > 0 ? DATA.heat[Math.max(1, Math.ceil(Math.sqrt(share) * last))] : DATA.heat[0];
}

// At most `most` nodes, nearest to `middle` first.
function around(ids, edges, middle, most) {
  if (ids.length <= most) return new Set(ids);
  const beside = new Map(ids.map((id) => [id, []]));
  for (const { from, to } of edges) { beside.get(from)?.push(to); beside.get(to)?.push(from); }
  const found = new Set([middle]);
  for (const id of found) { // a set that grows is walked to its end
    for (const next of beside.get(id) ?? []) if (found.size < most) found.add(next);
  }
  return found;
}

// `nodes`: id, lines of text, fill, kind, label. `edges`: from, to, kind, text.
function drawing(name, nodes, edges, onchosen) {
  const layout = new dagre.graphlib.Graph({ multigraph: true });
  layout.setGraph({ nodesep: 25, ranksep: 40, marginx: 15, marginy: 15 });
  layout.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) {
    const width = Math.max(...node.lines.map((line) => line.length)) * CHARACTER + 16;
    layout.setNode(String(node.id), { width, height: node.lines.length * LINE + 10 });
  }
  edges.forEach((edge, i) => {
    const label = edge.text ? { width: edge.text.length * CHARACTER, height: LINE, labelpos: "c" } : {};
    layout.setEdge(String(edge.from), String(edge.to), label, String(i));
  });
  dagre.layout(layout);
  const { width, height } = layout.graph();
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": name });
  const arrow = draw("marker", {
    id: `arrow${++lists}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8,
    orient: "auto", markerUnits: "userSpaceOnUse",
  }, draw("path", { d: "M0,0 L8,4 L0,8 z", fill: "currentColor" }));
  svg.append(draw("defs", {}, arrow));
  edges.forEach((edge, i) => {
    const placed = layout.edge(String(edge.from), String(edge.to), String(i));
    const line = placed.points.map(({ x, y }, k) => `${k ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
    svg.append(draw("path", { class: `edge ${edge.kind}`, d: line, "marker-end": `url(#${arrow.id})` }));
    if (edge.text) {
      svg.append(draw("text", { class: "label", x: placed.x, y: placed.y + 4, "text-anchor": "middle" }, edge.text));
    }
  });
  for (const node of nodes) {
    const at = layout.node(String(node.id));
    const box = draw("g", {
      class: `block ${node.kind}`, role: "button", tabindex: 0, "aria-label": node.label,
      transform: `translate(${at.x - at.width / 2},${at.y - at.height / 2})`, "data-id": node.id,
      onclick: () => onchosen(node.id),
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); onchosen(node.id); }
      },
    }, draw("rect", { width: at.width, height: at.height, rx: 4, fill: node.fill }));
    node.lines.forEach((text, k) => box.append(draw("text", { x: 8, y: 18 + k * LINE }, text)));
    svg.append(box);
  }
  const holder = make("div", { class: "drawing", role: "region", "aria-label": `${name}, scrolls`, tabindex: 0 }, svg);
  let zoom = 1;
  const scale = (factor) => {
    zoom = Math.min(3, Math.max(0.1, factor));
    svg.setAttribute("width", width * zoom);
    svg.setAttribute("height", height * zoom);
  };
  const fit = () => scale(Math.min(1, (holder.clientWidth - 4) / width));
  const tools = make("div", { class: "tools" },
    make("button", { type: "button", onclick: () => scale(zoom * 1.25) }, "Larger"),
    make("button", { type: "button", onclick: () => scale(zoom / 1.25) }, "Smaller"),
    make("button", { type: "button", onclick: fit }, "Fit the width"));
  const show = (id) => {
    for (const box of svg.querySelectorAll(".block")) box.classList.toggle("chosen", box.dataset.id === String(id));
    const at = layout.node(String(id));
    if (!at) return;
    holder.scrollTo(at.x * zoom - holder.clientWidth / 2, at.y * zoom - holder.clientHeight / 2);
  };
  return { element: make("div", {}, tools, holder), show };
}

// The control flow of a function on a path, around one block.
function controlFlow(fn, load, middle, onchosen) {
  const edges = fn.edges.map(([from, to, kind]) => {
    const count = load.edges.get(`${from} ${to}`);
    return { from, to, kind: count ? `${kind} path` : kind, text: count ? `${number(count)}×` : "" };
  });
  const shown = around(fn.blocks.map((b) => b.address), edges, middle, MOST_NODES);
  const most = Math.max(1, ...[...load.blocks.values()].map((use) => use.cycles));
  const nodes = fn.blocks.filter((b) => shown.has(b.address)).map((block) => {
    const use = load.blocks.get(block.address);
    const bound = load.loops.get(block.address);
    const lines = [`${hex(block.address)} ${lineOf(block.address)}`];
    if (bound !== undefined) lines.push(`loop: at most ${bound}`);
    for (const callee of block.calls) lines.push(`call ${functionName(callee)}`);
    lines.push(...block.ends);
    if (use) lines.push(`${number(use.cycles)} cycles, ${number(use.runs)}×`);
    return {
      id: block.address, lines, label: `Block ${lines.join(", ")}${use ? "" : ", not on the worst path"}`,
      fill: use ? heatColor(use.cycles / most) : DATA.legend[0][0], kind: use ? "on" : "off",
    };
  });
  const inside = edges.filter(({ from, to }) => shown.has(from) && shown.has(to));
  const picture = drawing(`Control flow of ${fn.name}`, nodes, inside, onchosen);
  const note = shown.size < fn.blocks.length
    ? make("p", { class: "faint" }, `${number(fn.blocks.length)} blocks: the ${shown.size} nearest to ${hex(middle)} are drawn.`) : null;
  return { element: make("div", {}, note, heatLegend(), picture.element), show: picture.show, shown };
}

function heatLegend() {
  return make("div", {}, legend(DATA.legend), make("p", { class: "faint" }, "Thick edges are on the worst path, n× is how often; dashed: over a call; dotted: no execution takes it."));
}

// Who calls whom on a path, from a share of the cycles on; with `all` also who else may be called,
// as far as it is drawn, around the function that the path starts with.
function callGraph(path, share, all, onchosen) {
  const least = all ? 0 : share;
  const { functions, edges } = callsOf(path);
  const found = new Map(functions);
  const calls = edges.map((edge) => ({ ...edge, kind: "path", text: `${number(edge.calls)}× ${percent(edge.cycles, path.cycles)}` }));
  if (all) {
    const known = new Set(edges.map((edge) => `${edge.from} ${edge.to}`));
    for (const f of DATA.functions) {
      if (!found.has(f.address)) found.set(f.address, { fn: f.address, calls: 0, own: 0, cycles: 0 });
      for (const to of new Set(f.blocks.flatMap((b) => b.calls))) {
        if (FUNCTIONS.has(to) && !known.has(`${f.address} ${to}`)) calls.push({ from: f.address, to, kind: "across", text: "" });
      }
    }
  }
  const wanted = [...found.values()].sort((a, b) => b.cycles - a.cycles).filter((f) => f.cycles >= least * path.cycles);
  const shown = all ? around(wanted.map((f) => f.fn), calls, treeOf(path)[0].fn, MOST_NODES)
    : new Set(wanted.slice(0, MOST_NODES).map((f) => f.fn));
  const nodes = wanted.filter((f) => shown.has(f.fn)).map((f) => ({
    id: f.fn, kind: f.calls ? "on" : "off", fill: f.calls ? heatColor(f.cycles / path.cycles) : DATA.legend[0][0],
    lines: f.calls ? [functionName(f.fn), `${percent(f.cycles, path.cycles)}, own ${percent(f.own, path.cycles)}`, `called ${number(f.calls)}×`]
      : [functionName(f.fn)],
    label: f.calls ? `${functionName(f.fn)}, ${percent(f.cycles, path.cycles)} of the cycles, own ${percent(f.own, path.cycles)}, called ${number(f.calls)} times`
      : `${functionName(f.fn)}, not on the worst path`,
  }));
  const inside = calls.filter(({ from, to }) => shown.has(from) && shown.has(to) && from !== to);
  const note = `${number(nodes.length)} of ${number(wanted.length)} functions are drawn.`;
  const picture = drawing("Calls", nodes, inside, onchosen);
  return make("div", {}, make("p", { class: "faint" }, note), picture.element);
}
