// Charts: the library draws, the figures come from the page. Redrawn when the colours change.

const drawn = new Map();
const canvases = [];

/** The colour that a CSS variable has now, light or dark. */
function colour(name) {
  const probe = make("span", "");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function statusColour(status) {
  const known = ["passed", "failed", "errored", "cancelled", "skipped", "cached"];
  return colour(known.includes(status) ? status : "skipped");
}

function axis(format, more) {
  return {
    beginAtZero: true,
    border: { display: false },
    grid: { color: colour("line") },
    ticks: { color: colour("soft"), maxTicksLimit: 6, callback: format, maxRotation: 0, autoSkipPadding: 14 },
    ...more,
  };
}

/** An axis of time, with steps that a clock has. */
function clock(longest) {
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200];
  const step = steps.find((one) => longest / one <= 6) ?? 86400;
  const found = axis(seconds, { type: "linear" });
  return { ...found, ticks: { ...found.ticks, stepSize: step, maxTicksLimit: 12 } };
}

function names() {
  return {
    grid: { display: false },
    border: { display: false },
    ticks: { color: colour("text"), autoSkip: false, callback(value) {
      const name = String(this.getLabelForValue(value));
      return name.length > 26 ? `${name.slice(0, 25)}…` : name;
    } },
  };
}

function legend(position) {
  return { display: true, position, labels: { color: colour("text"), boxWidth: 10, boxHeight: 10, usePointStyle: true } };
}

const kinds = {
  outcome: (data) => ({
    type: "doughnut",
    data: {
      labels: data.labels,
      datasets: [{
        data: data.values,
        backgroundColor: data.labels.map(statusColour),
        borderColor: colour("card"),
        borderWidth: 2,
      }],
    },
    options: { cutout: "62%", plugins: { legend: legend("right") } },
  }),
  spend: (data) => ({
    type: "line",
    data: {
      datasets: [{
        data: data.at.map((x, index) => ({ x, y: data.values[index] })),
        borderColor: colour("accent"),
        backgroundColor: colour("accent-soft"),
        fill: true,
        stepped: "before",
        pointRadius: 0,
        pointHitRadius: 12,
        borderWidth: 2,
      }],
    },
    options: {
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: { x: clock(data.at.at(-1)), y: axis(money) },
      plugins: { tooltip: { callbacks: {
        title: (items) => `after ${seconds(items[0].parsed.x)}`,
        label: (item) => money(item.parsed.y),
      } } },
    },
  }),
  models: (data) => ({
    type: "bar",
    data: {
      labels: data.labels,
      datasets: [{ data: data.values, backgroundColor: colour("accent"), borderRadius: 4, maxBarThickness: 26 }],
    },
    options: {
      indexAxis: "y",
      scales: { x: axis(money), y: names() },
      plugins: { tooltip: { callbacks: { label: (item) => money(item.parsed.x) } } },
    },
  }),
  cache: (data) => ({
    type: "bar",
    data: {
      labels: data.labels,
      datasets: [
        { label: "from cache", data: data.cached, backgroundColor: colour("cached") },
        { label: "fresh", data: data.fresh, backgroundColor: colour("accent") },
        { label: "out", data: data.out, backgroundColor: colour("errored") },
      ].map((set) => ({ ...set, maxBarThickness: 26 })),
    },
    options: {
      indexAxis: "y",
      scales: { x: axis(tokens, { stacked: true }), y: { ...names(), stacked: true } },
      plugins: {
        legend: legend("bottom"),
        tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${tokens(item.parsed.x)}` } },
      },
    },
  }),
  timeline: (data) => ({
    type: "bar",
    data: {
      labels: data.lanes,
      datasets: ["completed", "failed"].map((fate) => ({
        label: fate,
        data: data.calls.filter((call) => (call.status === "completed") === (fate === "completed"))
          .map((call) => ({ x: [call.at, call.at + call.s], y: call.tool, call })),
        backgroundColor: colour(fate === "completed" ? "accent" : "failed"),
        grouped: false,
        minBarLength: 3,
        borderRadius: 2,
        borderSkipped: false,
        barThickness: 14,
      })),
    },
    options: {
      indexAxis: "y",
      scales: { x: clock(Math.max(...data.calls.map((call) => call.at + call.s))), y: names() },
      plugins: {
        legend: legend("bottom"),
        tooltip: { callbacks: {
          title: (items) => items[0].raw.call.tool,
          label: (item) => `${item.raw.call.status}, ${seconds(item.raw.call.s)} from ${seconds(item.raw.call.at)}`,
        } },
      },
    },
  }),
};

function draw(canvas, data) {
  const settings = kinds[data.kind](data);
  const plugins = { legend: { display: false }, ...settings.options.plugins };
  drawn.get(canvas)?.destroy();
  drawn.set(canvas, new Chart(canvas, {
    ...settings,
    options: { ...settings.options, plugins, animation: false, responsive: true, maintainAspectRatio: false },
  }));
}

/** Draw now, and again when the colours change. */
function show(canvas, data) {
  canvases.push([canvas, data]);
  draw(canvas, data);
}

function redraw() {
  for (let index = canvases.length - 1; index >= 0; index -= 1) {
    const [canvas, data] = canvases[index];
    if (canvas.isConnected) {
      draw(canvas, data);
    } else {
      drawn.get(canvas)?.destroy();
      drawn.delete(canvas);
      canvases.splice(index, 1);
    }
  }
}

function drawOverview() {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  const data = JSON.parse(byId("chart-data").textContent);
  for (const figure of document.querySelectorAll("[data-chart]")) {
    show(figure.querySelector("canvas"), data[figure.dataset.chart]);
  }
}

function watchColours() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const toggle = byId("theme");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const tell = () => toggle.setAttribute("aria-pressed", String(isDark()));
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    tell();
    redraw();
  });
  dark.addEventListener("change", () => { tell(); redraw(); });
  tell();
  const sized = () => { for (const chart of drawn.values()) chart.resize(); };
  addEventListener("beforeprint", sized);
  addEventListener("afterprint", sized);
}
