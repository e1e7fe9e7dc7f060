// The table of sessions: filtered by words and outcome, sorted by its heads.

const rows = [...document.querySelectorAll("#session-table tbody tr")];
const sources = new Map([...document.querySelectorAll("script.data")].map((node) => [node.dataset.id, node]));
const words = new Map();
const chosen = new Set();

/** What the session's data says; parsed when it is asked for. */
function dataOf(id) {
  const source = sources.get(id);
  return source ? JSON.parse(source.textContent) : null;
}

/** All texts of a session in one lower-case string. */
function wordsOf(id) {
  if (!words.has(id)) {
    const found = [];
    const gather = (value) => {
      if (typeof value === "string") found.push(value.toLowerCase());
      else if (value && typeof value === "object") Object.values(value).forEach(gather);
    };
    gather(dataOf(id));
    words.set(id, found.join("\n"));
  }
  return words.get(id);
}

function filterSessions() {
  const wanted = byId("filter").value.trim().toLowerCase();
  const deep = byId("deep").checked;
  let shown = 0;
  for (const row of rows) {
    const fits = (!chosen.size || chosen.has(row.dataset.status))
      && (!wanted || row.textContent.toLowerCase().includes(wanted)
        || (deep && wordsOf(row.dataset.id).includes(wanted)));
    row.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  byId("none").hidden = shown > 0;
  byId("shown").textContent = shown === rows.length ? "" : `${shown} of ${rows.length}`;
}

/** Texts are in the cells, numbers in the row's data. */
function sortSessions(control) {
  const key = control.dataset.sort;
  const head = control.closest("th");
  const column = [...head.parentNode.children].indexOf(head);
  const isText = key === "item" || key === "model";
  const first = isText || key === "n" ? "ascending" : "descending";
  const current = head.getAttribute("aria-sort");
  const turned = { ascending: "descending", descending: "ascending" };
  const order = current === "none" ? first : turned[current];
  for (const other of head.parentNode.querySelectorAll("[aria-sort]")) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", order);
  const value = isText
    ? (row) => row.children[column].textContent
    : (row) => Number(row.dataset[key]);
  const compare = isText
    ? (a, b) => value(a).localeCompare(value(b), undefined, { numeric: true })
    : (a, b) => value(a) - value(b);
  const sign = order === "ascending" ? 1 : -1;
  rows.sort((a, b) => sign * compare(a, b) || a.dataset.n - b.dataset.n);
  document.querySelector("#session-table tbody").append(...rows);
}

function watchSessions() {
  if (!rows.length) return;
  byId("session-tools").hidden = false;
  byId("filter").addEventListener("input", filterSessions);
  byId("deep").addEventListener("change", filterSessions);
  for (const chip of document.querySelectorAll(".chip")) {
    chip.addEventListener("click", () => {
      const status = chip.dataset.status;
      if (!chosen.delete(status)) chosen.add(status);
      chip.setAttribute("aria-pressed", String(chosen.has(status)));
      filterSessions();
    });
  }
  for (const control of document.querySelectorAll("[data-sort]")) {
    control.addEventListener("click", () => sortSessions(control));
  }
}

/** The session beside `id` among those that are shown. */
function neighbour(id, step) {
  const visible = rows.filter((row) => !row.hidden);
  const here = visible.findIndex((row) => row.dataset.id === id);
  const next = visible[here < 0 ? (step > 0 ? 0 : visible.length - 1) : here + step];
  return next?.dataset.id;
}
