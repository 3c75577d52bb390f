// The data, and how elements, numbers and links are made. Text goes into text nodes only.

const DATA = JSON.parse(document.getElementById("data").textContent);

function make(name, attributes, ...children) {
  const node = document.createElement(name);
  return filled(node, attributes, children);
}

function draw(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  return filled(node, attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== ""));
  return node;
}

const number = (n) => (n === null || n === undefined ? "–" : n.toLocaleString("en-US"));
const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "–");
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const hex = (n) => `0x${n.toString(16).padStart(8, "0")}`;
const signed = (n) => (n === null ? "" : `${n > 0 ? "+" : ""}${number(n)}`);

function say(text) {
  document.getElementById("status").textContent = text;
}

// The place in the report that the address bar names: #/part/entry/path/function/address
function address(...parts) {
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

function link(text, ...parts) {
  return make("a", { href: address(...parts) }, text);
}

function labelled(text, control) {
  return make("label", {}, text, control);
}

function choice(options, chosen, onchange) {
  const select = make("select", { onchange: () => onchange(select.value) });
  for (const [value, text] of options) {
    select.append(make("option", { value, selected: String(value) === String(chosen) }, text));
  }
  return select;
}

function scrolled(name, content) {
  return make("div", { class: "scroll", role: "region", "aria-label": name, tabindex: 0 }, content);
}

function table(name, heads, rows) {
  const cell = (kind) => (value) => {
    const content = value && value.number !== undefined ? value.number : value;
    const right = typeof content === "number" || (value && value.number !== undefined);
    const text = typeof content === "number" ? number(content) : content;
    return make(kind, { class: right ? "number" : null }, text === null ? "" : text);
  };
  const head = make("thead", {}, make("tr", {}, heads.map((h) => make("th", { scope: "col" }, h))));
  const body = make("tbody", {}, rows.map((row) => make("tr", {}, row.map(cell("td")))));
  return scrolled(name, make("table", {}, head, body));
}

function causeColor(index) {
  return `var(--c${index})`;
}

function legend(items) {
  return make("ul", { class: "legend" }, items.map(([color, text]) => {
    const sample = make("i", { "aria-hidden": "true" });
    sample.style.background = color;
    return make("li", {}, sample, text);
  }));
}

function causeLegend(causes) {
  const used = DATA.causes.map((_, i) => i).filter((i) => causes[i]);
  return legend(used.map((i) => [causeColor(i), DATA.causes[i]]));
}

function causeBar(causes, whole) {
  const text = causes.map((c, i) => [c, DATA.causes[i]]).filter(([c]) => c)
    .map(([c, name]) => `${name} ${number(c)}`).join(", ");
  const bar = make("div", { class: "bar", role: "img", "aria-label": text, title: text });
  causes.forEach((cycles, i) => {
    if (!cycles) return;
    const part = make("span");
    part.style.width = `${(100 * cycles) / whole}%`;
    part.style.background = causeColor(i);
    bar.append(part);
  });
  return bar;
}
