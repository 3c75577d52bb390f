// Trees in which equal frames are one: the left-heavy view, and callers and callees of a function.
// An item is a frame `at` of the path, and the frame `weight` whose cycles count.

function mergedTree(items, next) {
  const tree = [];
  const pending = [[items, -1, 0, 0]];
  while (pending.length) {
    const [group, parent, depth, from] = pending.pop();
    const node = mergedFrame(group, { index: tree.length, parent, depth, from });
    tree.push(node);
    if (parent >= 0) tree[parent].parts.push(node);
    const groups = new Map();
    for (const item of group.flatMap(next)) {
      const key = `${item.at.fn} ${item.at.name}`;
      groups.set(key, [...(groups.get(key) ?? []), item]);
    }
    const ordered = [...groups.values()].map((one) => [one, sum(one.map((item) => item.weight.cycles))]);
    let at = from;
    for (const [one, cycles] of ordered.sort((a, b) => b[1] - a[1])) {
      pending.push([one, node.index, depth + 1, at]);
      at += cycles;
    }
  }
  for (const node of tree) node.parts.sort((a, b) => a.from - b.from);
  return tree;
}

function mergedFrame(items, place) {
  const [{ at }] = items;
  const causes = (of) => DATA.causes.map((_, cause) => sum(items.map((item) => of(item)[cause] ?? 0)));
  const itself = items.filter((item) => item.at === item.weight).map((item) => item.at);
  const frames = [...new Set(items.map((item) => item.at))];
  const limits = frames.map((frame) => frame.limit);
  return {
    ...place, fn: at.fn, name: at.name, label: at.label, where: at.where, parts: [],
    entries: sum(frames.map((frame) => frame.entries)), rounds: sum(frames.map((frame) => frame.rounds)),
    limit: limits.includes(null) ? null : Math.max(...limits),
    own: causes((item) => (item.at === item.weight ? item.at.own : [])),
    total: causes((item) => item.weight.total),
    cycles: sum(items.map((item) => item.weight.cycles)),
    blocks: itself.flatMap((frame) => frame.blocks),
  };
}

const inside = ({ at }) => at.parts.map((part) => ({ at: part, weight: part }));

function leftHeavy(path) {
  path.heavy ??= mergedTree([{ at: treeOf(path)[0], weight: treeOf(path)[0] }], inside);
  return path.heavy;
}

// The calls of a function that are not inside of another call of it.
function outermostCalls(path, fn) {
  const tree = treeOf(path);
  const within = new Set();
  return tree.filter((node) => {
    const around = node.parent >= 0 && within.has(node.parent);
    const call = node.fn === fn && !node.name;
    if (around || call) within.add(node.index);
    return call && !around;
  });
}

function calleesOf(path, fn) {
  return mergedTree(outermostCalls(path, fn).map((at) => ({ at, weight: at })), inside);
}

function callersOf(path, fn) {
  const tree = treeOf(path);
  const caller = ({ at, weight }) => {
    let around = at.parent;
    while (around >= 0 && tree[around].name) around = tree[around].parent;
    return around < 0 ? [] : [{ at: tree[around], weight }];
  };
  return mergedTree(outermostCalls(path, fn).map((at) => ({ at, weight: at })), caller);
}

// Colours of frames: the cause that takes most, the function, or the change against the baseline.

const largest = (causes) => causes.indexOf(Math.max(...causes));

// Whether one cause takes most in nearly all frames, so that its colour would not tell them apart.
function hasOneCause(tree) {
  const one = largest(tree[0].total);
  return sum(tree.filter((node) => largest(node.total) === one).map((node) => sum(node.own))) > 0.8 * tree[0].cycles;
}

function changesOf(entry) {
  const changes = new Map();
  const found = DATA.comparison?.entries.find((e) => e.name === DATA.entries[entry].name);
  for (const line of found?.lines ?? []) changes.set(line.function, (changes.get(line.function) ?? 0) + line.cycles);
  return changes;
}

function colouring(kind, path, entry) {
  if (kind === "cause") return (node) => causeColor(largest(node.total));
  if (kind === "function") {
    const order = [...callsOf(path).functions.values()].sort((a, b) => b.cycles - a.cycles).map((f) => f.fn);
    const rank = new Map(order.map((fn, i) => [fn, i % DATA.causes.length]));
    return (node) => causeColor(rank.get(node.fn) ?? 0);
  }
  const changes = changesOf(entry);
  return (node) => {
    const change = changes.get(functionName(node.fn)) ?? 0;
    return change > 0 ? causeColor(3) : change < 0 ? causeColor(4) : causeColor(6);
  };
}

function colourLegend(kind, causes) {
  if (kind === "cause") return causeLegend(causes);
  if (kind === "function") return make("p", { class: "faint" }, "Frames of a function have one colour.");
  return legend([[causeColor(3), "own lines take more than in the baseline"], [causeColor(4), "less"], [causeColor(6), "as before"]]);
}
