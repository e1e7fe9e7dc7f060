// Which view is shown, by the address; keys; everything begins here.

const title = document.title;

function closeSession() {
  if (!opened) return;
  const id = opened.id;
  opened = null;
  byId("session").hidden = true;
  byId("session").replaceChildren();
  byId("report").hidden = false;
  document.title = title;
  redraw();
  const row = rows.find((one) => one.dataset.id === id);
  row?.querySelector("a").focus({ preventScroll: true });
}

function route() {
  const wanted = location.hash.startsWith("#s=") ? decodeURIComponent(location.hash.slice(3)) : null;
  if (wanted !== null && openSession(wanted)) return;
  closeSession();
  const target = location.hash ? byId(location.hash.slice(1)) : null;
  target?.scrollIntoView();
}

function goTo(id) {
  if (id) location.hash = `s=${encodeURIComponent(id)}`;
}

const keys = {
  "/": () => (opened ? byId("find") : byId("filter"))?.focus(),
  j: () => goTo(neighbour(opened?.id, 1)),
  k: () => goTo(neighbour(opened?.id, -1)),
  n: () => opened?.finder.go(1),
  p: () => opened?.finder.go(-1),
  e: () => opened && foldAll(opened.told, true),
  c: () => opened && foldAll(opened.told, false),
  "?": () => byId("help").showModal(),
};

function watchKeys() {
  const help = byId("help");
  byId("keys").hidden = false;
  byId("keys").addEventListener("click", () => help.showModal());
  addEventListener("keydown", (event) => {
    if (help.open || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input[type=search]");
    if (event.key === "Escape") {
      if (typing) typing.blur();
      else if (opened) location.hash = "sessions";
      return;
    }
    const act = keys[event.key];
    if (!act || typing || !byId("single").checked) return;
    event.preventDefault();
    act();
  });
}

watchSessions();
watchColours();
watchKeys();
drawOverview();
addEventListener("hashchange", route);
if (location.hash) route();
