// One session: its outcome, tools over time, and the transcript, drawn in slices and folded.

const SLICE = 250;
let opened = null;

function badge(status) {
  return make("span", `badge is-${status}`, status);
}

function isolated(text) {
  return make("bdi", "", text);
}

function section(title, ...children) {
  return make("section", "part", make("h2", "", title), ...children);
}

function facts(pairs) {
  const list = make("dl", "facts card");
  for (const [name, value] of pairs) {
    list.append(make("div", "", make("dt", "", name), make("dd", "", isolated(value))));
  }
  return list;
}

function checks(found) {
  if (!found.length) return null;
  const list = make("ul", "checks card flush");
  for (const check of found) {
    const line = [badge(check.ok ? "passed" : "failed"), make("b", "", isolated(check.name)),
      make("span", "note", `${check.kind} · ${check.took}`), check.why ? isolated(check.why) : null];
    list.append(make("li", "", make("div", "line", ...line),
      check.out ? folded("Output", () => [code(check.out, false)], !check.ok) : null));
  }
  return section("Checks", list);
}

function patch(found) {
  if (!found) return null;
  const paths = make("ul", "paths", ...found.paths.map((path) => make("li", "", make("code", "", isolated(path)))));
  return section("Change", make("p", "", found.title, found.why ? ": " : "", found.why ? isolated(found.why) : null), paths,
    found.t ? folded("Diff", () => [code(found.t, true)], found.t.length < 20000) : null);
}

/** A fold whose inside is made when it is opened first. */
function folded(title, inside, isOpen) {
  const details = make("details", "fold", make("summary", "", title));
  const fill = () => {
    if (details.dataset.full) return;
    details.dataset.full = "1";
    details.append(...inside());
  };
  details.fill = fill;
  details.addEventListener("toggle", () => { if (details.open) fill(); });
  if (isOpen) {
    fill();
    details.open = true;
  }
  return details;
}

function timeline(data) {
  const calls = [...data.requests, ...data.tools].filter((call) => call.at !== null);
  if (!calls.length) return null;
  const lanes = [...new Set(calls.map((call) => call.tool))];
  const failed = calls.filter((call) => call.status !== "completed").length;
  const said = `${data.requests.length} model requests and ${data.tools.length} tool calls, ${failed} not completed.`;
  const canvas = make("canvas", "");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Time line. ${said}`);
  const box = make("div", "canvas", canvas);
  box.style.height = `${Math.min(lanes.length * 26 + 84, 560)}px`;
  const ordered = [...calls].sort((a, b) => a.at - b.at);
  const figure = make("figure", "card chart", make("figcaption", "", make("p", "", said)), box,
    folded("Figures", () => [make("div", "scroll", table("Time line", ["Start", "What", "Took", "Status", "Error"],
      ordered.map((call) => [seconds(call.at), isolated(call.tool), seconds(call.s), isolated(call.status), isolated(call.why)])))], false));
  figure.draw = () => show(canvas, { kind: "timeline", lanes, calls });
  return section("Time line", figure);
}

const shapes = {
  attempt: (block) => make("h3", "attempt", block.t),
  head: (block) => make("div", `head ${block.who === "User" ? "user" : ""}`, make("b", "", isolated(block.who)),
    make("span", "note", isolated(block.about)), make("time", "note", block.at)),
  text: (block) => make("div", "said", block.title ? make("p", "note", block.title) : null, prose(block.t)),
  think: (block) => folded(isolated(block.title), () => [prose(block.t)], false),
  usage: (block) => make("p", "used note", isolated(block.t)),
  error: (block) => make("p", "notice is-failed", make("b", "", "Error. "), isolated(block.t)),
  cut: (block) => make("p", "notice is-errored", block.t),
  child: (block) => {
    const link = make("a", "", isolated(block.id));
    link.href = `#s=${encodeURIComponent(block.id)}`;
    return make("div", "said", make("p", "", make("b", "", "Child session "), sources.has(block.id) ? link : isolated(block.id),
      make("span", "note", " ", isolated(block.title))), prose(block.t));
  },
  tool: (block) => {
    const summary = make("span", "line", make("code", "tool", isolated(block.title)), make("span", "gist", isolated(block.about)),
      make("span", block.ok ? "fate note" : "fate bad", block.fate));
    const details = folded(summary, () => [...block.in, ...block.out].map((one) =>
      make("div", "", make("p", "note", isolated(one.name)), code(one.t, one.diff))), false);
    details.classList.add("call");
    return details;
  },
};

function prose(text) {
  const element = make("div", "prose", text);
  element.dir = "auto";
  return element;
}

/** Blocks are drawn in slices so that a long transcript opens at once; `upTo` draws further now. */
function transcript(blocks) {
  const list = make("div", "transcript");
  const nodes = [];
  const upTo = (count) => {
    const part = document.createDocumentFragment();
    for (let index = nodes.length; index < Math.min(count, blocks.length); index += 1) {
      const node = shapes[blocks[index].k](blocks[index]);
      node.classList.add("block");
      nodes.push(node);
      part.append(node);
    }
    list.append(part);
  };
  const more = () => {
    if (!list.isConnected || nodes.length >= blocks.length) return;
    upTo(nodes.length + SLICE);
    setTimeout(more, 0);
  };
  upTo(SLICE);
  setTimeout(more, 0);
  return { list, nodes, upTo };
}

function textsOf(block) {
  const found = [];
  const gather = (value, key) => {
    if (typeof value === "string" && key !== "k") found.push(value);
    else if (value && typeof value === "object") Object.entries(value).forEach(([name, inner]) => gather(inner, name));
  };
  gather(block, "");
  return found.join("\n").toLowerCase();
}

function unmark(node) {
  for (const mark of [...node.querySelectorAll("mark")]) {
    const parent = mark.parentNode;
    mark.replaceWith(...mark.childNodes);
    parent.normalize();
  }
}

/** Marks what was found, in text nodes only. */
function markIn(node, wanted) {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) if (walker.currentNode.data.toLowerCase().includes(wanted)) found.push(walker.currentNode);
  for (let text of found.slice(0, 500)) {
    let at = text.data.toLowerCase().indexOf(wanted);
    while (at >= 0) {
      const hit = text.splitText(at);
      text = hit.splitText(wanted.length);
      const mark = make("mark", "");
      hit.replaceWith(mark);
      mark.append(hit);
      at = text.data.toLowerCase().indexOf(wanted);
    }
  }
  return node.querySelector("mark");
}

/** Scrolls there, and again for some frames: what comes into view gets its true height only then. */
function reach(element, frames) {
  element.scrollIntoView({ block: "center" });
  if (frames) requestAnimationFrame(() => { if (element.isConnected) reach(element, frames - 1); });
}

/** The search of one transcript: it looks through the data, and draws and unfolds what it found. */
function search(blocks, told) {
  const input = make("input", "");
  input.type = "search";
  input.id = "find";
  input.placeholder = "Search the transcript";
  input.setAttribute("aria-label", "Search the transcript");
  input.autocomplete = "off";
  input.spellcheck = false;
  const count = make("span", "note count-found");
  count.setAttribute("role", "status");
  let texts = null;
  let hits = [];
  let here = -1;
  let marked = null;
  const go = (step) => {
    if (marked) unmark(marked);
    marked = null;
    if (!hits.length) {
      count.textContent = input.value ? "nothing found" : "";
      return;
    }
    here = (here + step + hits.length) % hits.length;
    count.textContent = `${here + 1} of ${hits.length}`;
    told.upTo(hits[here] + 1);
    const node = told.nodes[hits[here]];
    if (node.fill) {
      node.fill();
      node.open = true;
    }
    marked = node;
    reach(markIn(node, input.value.trim().toLowerCase()) ?? node, 6);
  };
  const look = () => {
    const wanted = input.value.trim().toLowerCase();
    texts ??= blocks.map(textsOf);
    hits = wanted ? texts.flatMap((text, index) => (text.includes(wanted) ? [index] : [])) : [];
    here = -1;
    go(1);
  };
  input.addEventListener("input", look);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      go(event.shiftKey ? -1 : 1);
    }
  });
  return { input, count, go };
}

function foldAll(told, isOpen) {
  const folds = told.nodes.filter((node) => node.fill);
  for (const node of isOpen ? folds.slice(0, 1000) : folds) {
    if (isOpen) node.fill();
    node.open = isOpen;
  }
}

function titleOf(data) {
  const heading = make("h1", "", isolated(data.item));
  heading.id = "session-title";
  heading.tabIndex = -1;
  return heading;
}

/** The whole view of a session, in place of the report. */
function openSession(id) {
  const data = dataOf(id);
  if (!data) return false;
  const told = transcript(data.blocks);
  const finder = search(data.blocks, told);
  const back = make("a", "back", "← Report");
  back.href = data.parent ? `#s=${encodeURIComponent(data.parent)}` : "#sessions";
  if (data.parent) back.textContent = "← Parent session";
  const tools = make("div", "toolbar", finder.input,
    button("Previous", "", () => finder.go(-1)), button("Next", "", () => finder.go(1)), finder.count,
    make("span", "spring"), button("Unfold all", "", () => foldAll(told, true)), button("Fold all", "", () => foldAll(told, false)));
  tools.setAttribute("role", "search");
  const line = timeline(data);
  const heading = titleOf(data);
  byId("session").replaceChildren(...[
    make("p", "crumbs", back),
    make("div", `verdict is-${data.status}`, heading, make("p", "", badge(data.status), " ", data.why ? isolated(data.why) : null)),
    facts(data.facts),
    data.tried.length ? section("Earlier attempts", make("ul", "card", ...data.tried.map((said) => make("li", "", isolated(said))))) : null,
    checks(data.checks),
    data.answer ? section("Answer", code(data.answer, false)) : null,
    patch(data.patch),
    line,
    section("Transcript", tools, data.blocks.length ? told.list : make("p", "empty card", "Nothing was said in this session.")),
    data.files.length ? section("Files", make("ul", "paths", ...data.files.map((file) => make("li", "", make("code", "", isolated(file)))))) : null,
  ].filter(Boolean));
  byId("report").hidden = true;
  byId("session").hidden = false;
  line?.querySelector("figure").draw();
  opened = { id, told, finder };
  document.title = `${data.item} · harness-batch`;
  scrollTo(0, 0);
  heading.focus({ preventScroll: true });
  return true;
}
