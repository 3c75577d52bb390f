// A flame graph of a tree of calls and loops, root on top. Width is cycles. Only frames
// that are wide enough to be seen are elements.

const FRAME = 22; // pixels
const NARROWEST = 2; // pixels
const MOST_FRAMES = 4000;

class FlameGraph {
  constructor(tree, name, color, chosen) {
    this.tree = tree;
    this.name = name;
    this.color = color;
    this.onchosen = chosen;
    this.root = this.tree[0];
    this.at = this.tree[0];
    this.wanted = "";
    this.frames = make("div", { class: "frames", role: "presentation" });
    this.element = make("div", {
      class: "flame", role: "tree", tabindex: 0, "aria-label": name,
      onclick: (event) => this.click(event), onkeydown: (event) => this.key(event),
    }, this.frames);
    new ResizeObserver(() => this.show()).observe(this.element);
  }

  show() {
    const width = this.frames.clientWidth;
    if (!width) return;
    const scale = width / this.root.cycles;
    const visible = [];
    let above = this.root.parent;
    while (above >= 0) { visible.push(this.tree[above]); above = this.tree[above].parent; }
    const pending = [this.root];
    while (pending.length && visible.length < MOST_FRAMES) {
      const node = pending.shift();
      visible.push(node);
      for (const part of node.parts) if (part.cycles * scale >= NARROWEST) pending.push(part);
    }
    let deepest = 0;
    const elements = visible.map((node) => {
      deepest = Math.max(deepest, node.depth);
      const inside = node.depth >= this.root.depth;
      const left = inside ? (node.from - this.root.from) * scale : 0;
      const wide = inside ? node.cycles * scale : width;
      const text = `${node.label}: ${number(node.cycles)} cycles, ${percent(node.cycles, this.tree[0].cycles)}`;
      const frame = make("div", {
        class: "frame", role: "treeitem", id: this.id(node), title: text, "aria-label": text,
        "aria-level": node.depth + 1, "aria-selected": String(node === this.at),
      }, wide > 30 ? node.label : "");
      frame.dataset.node = node.index;
      frame.style.left = `${left}px`;
      frame.style.width = `${Math.max(NARROWEST, wide)}px`;
      frame.style.top = `${node.depth * FRAME}px`;
      frame.style.background = this.color(node);
      if (node === this.at) frame.classList.add("chosen");
      if (this.wanted) frame.classList.add(this.matches(node) ? "found" : "dull");
      return frame;
    });
    this.frames.replaceChildren(...elements);
    this.frames.style.height = `${(deepest + 1) * FRAME}px`;
    if (document.getElementById(this.id(this.at))) {
      this.element.setAttribute("aria-activedescendant", this.id(this.at));
    } else this.element.removeAttribute("aria-activedescendant");
  }

  id(node) {
    return `${this.name.replace(/\W/g, "")}${node.index}`;
  }

  matches(node) {
    return node.label.toLowerCase().includes(this.wanted);
  }

  // Frames whose name has `text` in it; cycles inside each other count once.
  search(text) {
    this.wanted = text.toLowerCase();
    const inside = new Set();
    let cycles = 0;
    let count = 0;
    if (this.wanted) {
      for (const node of this.tree) {
        const hit = this.matches(node);
        if (hit) count += 1;
        if (hit && !inside.has(node.parent)) cycles += node.cycles;
        if (hit || inside.has(node.parent)) inside.add(node.index);
      }
    }
    this.show();
    return { count, cycles };
  }

  next() {
    const n = this.tree.length;
    for (let k = 1; k <= n; k += 1) {
      const node = this.tree[(this.at.index + k) % n];
      if (this.wanted && this.matches(node)) { this.choose(node); return; }
    }
  }

  zoom(node) {
    this.root = node;
    this.choose(node);
  }

  choose(node) {
    this.at = node;
    const inRoot = node.from >= this.root.from && node.from + node.cycles <= this.root.from + this.root.cycles;
    if (node.depth < this.root.depth || !inRoot) this.root = node;
    this.show();
    const top = node.depth * FRAME;
    if (top < this.element.scrollTop || top + FRAME > this.element.scrollTop + this.element.clientHeight) {
      this.element.scrollTop = Math.max(0, top - FRAME);
    }
    this.onchosen(node);
  }

  click(event) {
    const frame = event.target.closest(".frame");
    if (frame) this.zoom(this.tree[Number(frame.dataset.node)]);
  }

  key(event) {
    const parent = this.at.parent >= 0 ? this.tree[this.at.parent] : null;
    const beside = parent ? parent.parts : [this.at];
    const place = beside.indexOf(this.at);
    const widest = this.at.parts.reduce((best, part) => (part.cycles > (best?.cycles ?? -1) ? part : best), null);
    const to = {
      ArrowDown: widest, ArrowUp: parent, ArrowLeft: beside[place - 1], ArrowRight: beside[place + 1],
      Home: this.tree[0],
    };
    if (event.key in to) {
      event.preventDefault();
      if (to[event.key]) this.choose(to[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.zoom(this.at);
    } else if (event.key === "Escape") {
      this.zoom(this.tree[0]);
    }
  }
}
