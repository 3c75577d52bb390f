// A list of any length: only the rows in view are elements. It is a list box, so that arrow keys
// choose a row and a screen reader is told which.

const ROW = 22; // pixels; the style has the same
let lists = 0;

class VirtualList {
  // `row(i, element)` fills in the element of row i; `chosen(i)` is told what the reader chooses.
  constructor(name, row, chosen) {
    this.id = `list${++lists}`;
    this.fill = row;
    this.onchosen = chosen || (() => {});
    this.count = 0;
    this.at = -1;
    this.inner = make("div", { role: "presentation" });
    this.element = make("div", {
      class: "list", role: "listbox", tabindex: 0, "aria-label": name,
      onscroll: () => this.show(), onkeydown: (event) => this.key(event),
      onclick: (event) => this.click(event),
    }, this.inner);
    new ResizeObserver(() => this.show()).observe(this.element);
  }

  set(count, at = -1) {
    this.count = count;
    this.at = at;
    this.first = this.last = -1;
    this.inner.style.height = `${count * ROW}px`;
    this.element.style.height = count < 12 ? `${count * ROW + 14}px` : "";
    this.rows = new Map();
    this.inner.replaceChildren();
    if (at >= 0) this.reveal(at);
    this.show();
  }

  show() {
    const height = this.element.clientHeight || 400;
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - 8);
    const last = Math.min(this.count, Math.ceil((this.element.scrollTop + height) / ROW) + 8);
    for (const [i, row] of this.rows) {
      if (i < first || i >= last) { row.remove(); this.rows.delete(i); }
    }
    for (let i = first; i < last; i += 1) {
      if (this.rows.has(i)) continue;
      const row = make("div", {
        class: "row", role: "option", id: `${this.id}-${i}`, "aria-posinset": i + 1,
        "aria-setsize": this.count, "aria-selected": String(i === this.at),
      });
      row.style.top = `${i * ROW}px`;
      row.dataset.at = i;
      this.fill(i, row);
      this.rows.set(i, row);
      this.inner.append(row);
    }
    if (this.rows.has(this.at)) {
      this.element.setAttribute("aria-activedescendant", `${this.id}-${this.at}`);
    } else {
      this.element.removeAttribute("aria-activedescendant");
    }
  }

  reveal(i) {
    const height = this.element.clientHeight || 400;
    const top = i * ROW;
    if (top < this.element.scrollTop || top + 2 * ROW > this.element.scrollTop + height) {
      this.element.scrollTop = Math.max(0, top - height / 3);
    }
  }

  choose(i) {
    if (i < 0 || i >= this.count) return;
    this.rows.get(this.at)?.setAttribute("aria-selected", "false");
    this.at = i;
    this.reveal(i);
    this.show();
    this.rows.get(i)?.setAttribute("aria-selected", "true");
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row || event.target.closest("a")) return;
    this.choose(Number(row.dataset.at));
    this.onchosen(this.at);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const to = {
      ArrowDown: this.at + 1, ArrowUp: Math.max(0, this.at - 1), PageDown: this.at + page,
      PageUp: this.at - page, Home: 0, End: this.count - 1,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.choose(Math.min(this.count - 1, Math.max(0, to)));
      this.onmoved?.(this.at);
    } else if ((event.key === "Enter" || event.key === " ") && this.at >= 0) {
      event.preventDefault();
      this.onchosen(this.at);
    }
  }

  // Fill in the rows again, after what they show has changed.
  refresh() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.show();
  }
}

// A list with a field that leaves out what does not match. `text(item)` is what is searched.
function filtered(name, items, text, row, chosen, heads) {
  let shown = items;
  const list = new VirtualList(name, (i, element) => row(shown[i], element),
    (i) => chosen && chosen(shown[i]));
  const count = make("span", { class: "faint" });
  const field = make("input", {
    type: "search", "aria-label": `Search: ${name}`, placeholder: "Search",
    oninput: () => {
      const wanted = field.value.toLowerCase();
      shown = wanted ? items.filter((item) => text(item).toLowerCase().includes(wanted)) : items;
      count.textContent = `${number(shown.length)} of ${number(items.length)}`;
      list.element.scrollTop = 0;
      list.set(shown.length);
    },
  });
  count.textContent = number(items.length);
  list.set(items.length);
  return make("div", {}, make("div", { class: "tools" }, field, count), headings(heads), list.element);
}

// Names over the columns of a list: [name, width], the last one without a width.
function headings(heads) {
  const texts = heads.map(([name, width]) => (width ? `${name.padStart(width)}  ` : name));
  return make("div", { class: "headings" }, texts.join(""));
}

// A number in a column of `width` characters.
function column(value, width, kind = "n") {
  return make("span", { class: kind }, String(value).padStart(width), "  ");
}
