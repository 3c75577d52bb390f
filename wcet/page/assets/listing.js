// Source beside disassembly: cycles and executions of each line and instruction.

// The cycles of a block are shared among its instructions, as 'wcet path --source' does.
function shares(block, use) {
  const n = block.code.length;
  return block.code.map((_, i) => Math.floor((use.cycles * (i + 1)) / n) - Math.floor((use.cycles * i) / n));
}

// Two lists of one function. `uses` has runs and cycles by address of a block; `at` is an
// instruction to begin with.
function listing(fn, uses, at) {
  const code = [];
  const lines = new Map(); // "file line" -> cycles, runs of the block that runs most
  let most = 1;
  for (const block of fn.blocks) {
    const use = uses.get(block.address) ?? { runs: 0, cycles: 0 };
    const parts = shares(block, use);
    code.push({ block, use, head: true });
    const runs = new Set();
    block.code.forEach(([address, text, file, line], i) => {
      code.push({ block, address, text, file, line, cycles: parts[i], runs: use.runs });
      most = Math.max(most, parts[i]);
      const key = `${file} ${line}`;
      const sums = lines.get(key) ?? { cycles: 0, runs: 0, byBlock: new Map() };
      sums.cycles += parts[i];
      if (!runs.has(key)) sums.runs = Math.max(sums.runs, use.runs);
      runs.add(key);
      lines.set(key, sums);
    });
  }
  const source = sourceRows(fn, lines);
  const mostLine = Math.max(1, ...source.map((row) => row.cycles || 0));
  let marked = null;
  const isMarked = (row) => marked !== null && row.file >= 0 && `${row.file} ${row.line}` === marked;
  const heat = (element, cycles, whole) => {
    if (!cycles) return;
    element.classList.add("hot");
    element.style.setProperty("--part", `${Math.max(2, (100 * cycles) / whole)}%`);
  };
  const left = new VirtualList(`Source of ${fn.name}`, (i, element) => {
    const row = source[i];
    if (row.head) { element.append(make("span", { class: "head" }, row.head)); return; }
    element.append(column(row.cycles ? number(row.cycles) : "", 9), column(row.runs ? `${number(row.runs)}×` : "", 8, "w"),
      column(row.line, 5, "w"), row.text);
    heat(element, row.cycles, mostLine);
    if (isMarked(row)) element.classList.add("marked");
  }, (i) => mark(source[i], true));
  const right = new VirtualList(`Instructions of ${fn.name}`, (i, element) => {
    const row = code[i];
    if (row.head) {
      element.append(make("span", { class: "head" }, `${hex(row.block.address)}`),
        `  ${number(row.use.cycles)} cycles, ${number(row.use.runs)}×`,
        row.block.ends.length ? `, ${row.block.ends.join(", ")}` : "");
      return;
    }
    element.append(column(row.cycles ? number(row.cycles) : "", 9), column(hex(row.address).slice(2), 8, "w"), row.text);
    heat(element, row.cycles, most);
    if (isMarked(row)) element.classList.add("marked");
  }, (i) => mark(code[i], false));
  function mark(row, fromSource) {
    if (!row || row.head || row.file < 0) return;
    marked = `${row.file} ${row.line}`;
    left.refresh();
    right.refresh();
    if (fromSource) right.reveal(code.findIndex(isMarked));
    else left.reveal(source.findIndex((one) => !one.head && isMarked(one)));
  }
  left.onmoved = (i) => mark(source[i], true);
  right.onmoved = (i) => mark(code[i], false);
  const element = make("div", { class: "panes" },
    make("section", {}, make("h3", {}, "Source"), headings([["cycles", 9], ["runs", 8], ["line", 5]]), left.element),
    make("section", {}, make("h3", {}, "Instructions"), headings([["cycles", 9], ["address", 8]]), right.element));
  left.set(source.length);
  right.set(code.length);
  const go = (address) => {
    const i = code.findIndex((row) => (row.head ? false : row.address === address));
    if (i < 0) return;
    right.choose(i);
    mark(code[i], false);
  };
  // Only an element that is in the page has a height to scroll by.
  requestAnimationFrame(() => {
    const hottest = code.reduce((best, row) => ((row.cycles || 0) > (best?.cycles || 0) ? row : best), null);
    if (at) go(at);
    else if (hottest) { mark(hottest, false); right.reveal(code.indexOf(hottest)); }
  });
  return { element, go };
}

// The source lines of a function, file by file; files that take most first.
function sourceRows(fn, lines) {
  const files = new Map();
  for (const [key, use] of lines) {
    const [file, line] = key.split(" ").map(Number);
    if (!files.has(file)) files.set(file, new Map());
    files.get(file).set(line, use);
  }
  const cycles = (uses) => sum([...uses.values()].map((use) => use.cycles));
  const rows = [];
  for (const [file, uses] of [...files].sort((a, b) => cycles(b[1]) - cycles(a[1]))) {
    if (file < 0) { rows.push({ head: "without a source line" }); continue; }
    const { path, missing, lines: text } = DATA.files[file];
    rows.push({ head: missing ? `${path} (${missing}: --source-dir names the folder)` : path });
    const known = new Map(text);
    const shown = new Set();
    for (const line of uses.keys()) for (let k = -3; k <= 3; k += 1) if (known.has(line + k) || !k) shown.add(line + k);
    let before = null;
    for (const line of [...shown].sort((a, b) => a - b)) {
      if (before !== null && line > before + 1) rows.push({ head: "…" });
      before = line;
      const use = uses.get(line) ?? { cycles: 0, runs: 0 };
      rows.push({ file, line, text: known.get(line) ?? "", cycles: use.cycles, runs: use.runs });
    }
  }
  return rows;
}
