// Functions, blocks and paths by what names them.

const FUNCTIONS = new Map(DATA.functions.map((f) => [f.address, f]));

function functionName(address) {
  return FUNCTIONS.get(address)?.name ?? hex(address);
}

// The block with the instruction at `address`, as [function, block]; null if none is analysed.
let starts = null; // [address, function, block] by address; a block may be in several functions
function blockAt(address) {
  starts ??= DATA.functions.flatMap((f) => f.blocks.map((b) => [b.address, f, b])).sort((a, b) => a[0] - b[0]);
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle][0] <= address) low = middle + 1; else high = middle;
  }
  // Blocks of other functions may begin inside of the one that is looked for.
  for (let i = low - 1; i >= 0 && i >= low - 8; i -= 1) {
    if (starts[i][2].code.some(([at]) => at === address)) return [starts[i][1], starts[i][2]];
  }
  return null;
}

function lineOf(address) {
  const found = blockAt(address);
  const insn = found && found[1].code.find(([at]) => at === address);
  return insn && insn[2] >= 0 ? `${baseName(DATA.files[insn[2]].path)}:${insn[3]}` : hex(address);
}

const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

// A path's rows as a tree, made when it is first shown.
function treeOf(path) {
  if (path.tree) return path.tree;
  path.tree = path.rows.map(([parent, fn, where, name, entries, rounds, limit, own, blocks], index) => ({
    index, parent, fn, where, name, entries, rounds, limit, own, blocks, parts: [], depth: 0,
    total: own.slice(),
  }));
  for (const node of path.tree) {
    if (node.parent >= 0) {
      path.tree[node.parent].parts.push(node);
      node.depth = path.tree[node.parent].depth + 1;
    }
  }
  for (let i = path.tree.length - 1; i > 0; i -= 1) { // parts come after what they are in
    const node = path.tree[i];
    const around = path.tree[node.parent].total;
    node.total.forEach((cycles, cause) => { around[cause] += cycles; });
  }
  for (const node of path.tree) {
    node.cycles = sum(node.total);
    node.label = node.name || functionName(node.fn);
  }
  let start = 0;
  const place = (root) => {
    const pending = [[root, start]];
    while (pending.length) {
      const [node, from] = pending.pop();
      node.from = from;
      let at = from;
      for (const part of node.parts) { pending.push([part, at]); at += part.cycles; }
    }
  };
  place(path.tree[0]);
  return path.tree;
}

// Runs, cycles and waits for memory by address of a block; a block may stand in several turns.
function usesOf(blocks) {
  const uses = new Map();
  for (const [at, runs, cycles, waits] of blocks) {
    if (!uses.has(at)) uses.set(at, { runs: 0, cycles: 0, waits: new Map() });
    const use = uses.get(at);
    use.runs += runs;
    use.cycles += cycles;
    for (const [position, wait] of waits ?? []) use.waits.set(position, (use.waits.get(position) ?? 0) + wait);
  }
  return uses;
}

// What a path does in each function: blocks and edges with counts, and bounds of loops.
function loadsOf(path) {
  if (!path.byFunction) {
    path.byFunction = new Map(path.loads.map(([fn, blocks, edges, loops]) => [fn, {
      blocks: new Map(),
      edges: new Map(edges.map(([from, to, count]) => [`${from} ${to}`, count])),
      loops: new Map(loops.map(([at, low, high]) => [at, low === high ? `${high}` : `${low} to ${high}`])),
      cycles: sum(blocks.map((b) => b[2])),
    }]));
    const rows = new Map(); // function -> its blocks in all contexts
    for (const [, fn, , , , , , , blocks] of path.rows) {
      if (!rows.has(fn)) rows.set(fn, []);
      for (const block of blocks) rows.get(fn).push(block);
    }
    for (const [fn, load] of path.byFunction) load.blocks = usesOf(rows.get(fn) ?? []);
  }
  return path.byFunction;
}

const NO_LOAD = { blocks: new Map(), edges: new Map(), loops: new Map(), cycles: 0 };

// The calls of a path by function: how often each is called, own cycles, and those of all it calls.
// A function that is active already is not counted again.
function callsOf(path) {
  if (path.calls) return path.calls;
  const functions = new Map();
  const edges = new Map();
  const of = (fn) => {
    if (!functions.has(fn)) functions.set(fn, { fn, calls: 0, own: 0, cycles: 0 });
    return functions.get(fn);
  };
  const tree = treeOf(path);
  for (const node of tree) {
    const found = of(node.fn);
    found.own += sum(node.own);
    if (node.name) continue;
    found.calls += node.entries;
    let outermost = true;
    for (let p = node.parent; p >= 0; p = tree[p].parent) if (!tree[p].name && tree[p].fn === node.fn) outermost = false;
    if (outermost) found.cycles += node.cycles;
    if (node.parent >= 0) {
      const key = `${tree[node.parent].fn} ${node.fn}`;
      const edge = edges.get(key) ?? { from: tree[node.parent].fn, to: node.fn, calls: 0, cycles: 0 };
      edge.calls += node.entries;
      edge.cycles += node.cycles;
      edges.set(key, edge);
    }
  }
  path.calls = { functions, edges: [...edges.values()] };
  return path.calls;
}

// The functions with blocks at the addresses that a text names.
function functionsNamed(text) {
  const blocks = [...text.matchAll(/0x[0-9a-f]{3,8}/g)].map(([part]) => blockAt(parseInt(part, 16)));
  return blocks.filter(Boolean).map(([fn]) => fn.address);
}

// Text with its addresses as links to the code there.
function linked(text) {
  return text.split(/(0x[0-9a-f]{3,8})/).map((part, i) => {
    if (i % 2 === 0) return part;
    const found = blockAt(parseInt(part, 16));
    return found ? link(part, "code", entryThrough(found[0].address), 0, found[0].address, parseInt(part, 16)) : part;
  });
}
