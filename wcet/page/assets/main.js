// Which part is shown: the address bar decides, so that links, Back and Forward work.

const PARTS = [
  ["bounds", "Bounds", boundsView], ["path", "Worst path", pathView], ["code", "Functions", codeView],
  ["calls", "Calls", callsView], ["loops", "Loops", loopsView],
  ...(DATA.entries.some((e) => e.caches.length) ? [["caches", "Caches", cachesView]] : []),
  ["assumptions", "Assumptions", assumptionsView],
  ...(DATA.comparison ? [["comparison", "Comparison", comparisonView]] : []),
  ["about", "About", aboutView],
];

function show() {
  const [name, ...words] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const [part, title, view] = PARTS.find(([one]) => one === name) ?? PARTS[0];
  const tabs = PARTS.map(([one, text]) => make("li", {}, make("a", { href: address(one), "aria-current": one === part ? "page" : null }, text)));
  document.getElementById("tabs").replaceChildren(...tabs);
  const main = document.getElementById("view");
  main.replaceChildren(...view(words.map((word) => (/^\d+$/.test(word) ? Number(word) : undefined))).flat(9).filter(Boolean));
  say(title);
}

window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#/")) { show(); document.getElementById("view").focus({ preventScroll: true }); window.scrollTo(0, 0); }
});
show();
document.documentElement.dataset.ready = "true";
