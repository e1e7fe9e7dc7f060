"use strict";
// Elements are made here and nowhere else: texts become text nodes, never markup.

const byId = (id) => document.getElementById(id);

/** An element with a class and children; strings become text. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const child of children) {
    if (child !== null && child !== undefined && child !== "") element.append(child);
  }
  return element;
}

function button(label, className, act) {
  const element = make("button", className, label);
  element.type = "button";
  element.addEventListener("click", act);
  return element;
}

/** The text in lines, each with the class of its first character when it is a diff. */
function code(text, isDiff) {
  const pre = make("pre", "code");
  pre.tabIndex = 0;
  pre.dir = "auto";
  if (!isDiff) {
    pre.append(text);
    return pre;
  }
  pre.dir = "ltr";
  pre.classList.add("diff");
  for (const line of text.split("\n")) {
    pre.append(make("span", diffClass(line), line === "" ? " " : line));
  }
  return pre;
}

function diffClass(line) {
  if (/^(diff |index |--- |\+\+\+ |new file|deleted file|rename |similarity |old mode|new mode)/.test(line)) return "meta";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "plus";
  if (line.startsWith("-")) return "minus";
  return "same";
}

function table(caption, head, rows) {
  const columns = head.map((name) => {
    const cell = make("th", "", name);
    cell.scope = "col";
    return cell;
  });
  const body = rows.map((row) => make("tr", "", ...row.map((cell) => make("td", "", cell))));
  return make("table", "", make("caption", "unseen", caption),
    make("thead", "", make("tr", "", ...columns)), make("tbody", "", ...body));
}

function seconds(value) {
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 60) return `${Math.round(value)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
}

function money(value) {
  return value >= 1 ? `$${value.toFixed(2)}` : `$${Number(value.toPrecision(2))}`;
}

function tokens(value) {
  if (value < 1000) return String(value);
  return value < 1e6 ? `${Number((value / 1e3).toFixed(1))}k` : `${Number((value / 1e6).toFixed(2))}M`;
}
