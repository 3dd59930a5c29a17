// Summary, lists and bars. Data are only inserted as text: nothing here parses HTML.
"use strict";

function byId(id) { return document.getElementById(id); }

// make("li", {class: "note"}, "text", node…)
function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "style")
      node.style.cssText = value;
    else if (name.startsWith("on"))
      node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined)
      node.setAttribute(name, value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

function styleOfClass(name) { return colour(CLASSES.includes(name) ? name : "other"); }

// ---- figures ------------------------------------------------------------------------------------

function tile(label, figure, small, kind) {
  return make(
      "dl", {class: "tile " + (kind || ""), style: "margin: 0"}, make("dt", {}, label),
      make("dd", {}, figure, make("small", {}, small || "")));
}

function renderTiles() {
  const model = currentModel(), {plan, profile} = model;
  const tiles = [tile(
      "Tidemark (peak)", bytesText(model.peak), numberText(model.peak) + " bytes", "tide")];
  if (profile) {
    const same = profile.touched === profile.planned;
    const measured = tile(
        "Measured in a run", bytesText(profile.touched),
        same ? "as planned, to the byte" :
               bytesText(profile.planned - profile.touched) + " less than planned");
    measured.querySelector("small").className = same ? "good" : "";
    tiles.push(measured);
  }
  if (plan.load !== null) {
    const results = model.peak - plan.arena, least = plan.load + results;
    tiles.push(tile(
        "Load (lower bound)", bytesText(least),
        model.peak === least ? "reached by this plan" :
                               percentText(model.peak - least, least) + " below the tidemark"));
    tiles.push(tile(
        "Arena", bytesText(plan.arena),
        results > 0 ? "and results of " + bytesText(results) : "no new results"));
  }
  tiles.push(tile(
      "Steps", numberText(model.steps),
      model.count > 0 ? numberText(model.count) + " tensors placed" : ""));
  if (profile)
    tiles.push(tile(
        "Time of that run", timeText(profile.time_ns),
        profile.function === plan.function ? "measured as it ran" : profile.function));
  else if (plan.threads !== null)
    tiles.push(tile("Threads", String(plan.threads), "that workspaces are planned for"));
  byId("tiles").replaceChildren(...tiles);
}

function renderClasses() {
  const {plan} = currentModel();
  const counted = CLASSES.filter(name => plan.classes[name] > 0);
  byId("classes-card").hidden = counted.length === 0;
  const sum = counted.reduce((total, name) => total + plan.classes[name], 0);
  const part = name =>
      make("span", {style: `flex: ${plan.classes[name]} 0 0; background: ${styleOfClass(name)}`});
  byId("classes-bar").replaceChildren(...counted.map(part));
  byId("classes-bar")
      .setAttribute(
          "aria-label", counted.map(n => n + " " + bytesText(plan.classes[n])).join(", "));
  byId("classes-legend")
      .replaceChildren(...counted.map(
          name => make(
              "li", {}, swatch(styleOfClass(name)), name,
              make("b", {}, bytesText(plan.classes[name])), percentText(plan.classes[name], sum))));
  const beside = BESIDE.filter(name => plan.classes[name] > 0);
  byId("classes-beside").textContent = beside.length === 0 ? "" :
                                                             "Allocated before the call, not counted: " +
          beside.map(name => name + " " + bytesText(plan.classes[name])).join(", ") + ".";
}
function swatch(style) { return make("span", {class: "swatch", style: "background: " + style}); }

function renderLegends() {
  const model = currentModel();
  const stroke = (style, dashed, text) => make(
      "li", {},
      make("span", {class: "stroke" + (dashed ? " dashed" : ""), style: "border-color: " + style}),
      text);
  const lines = [stroke(
      colour("planned"), false, state.models.length > 1 ? "planned, " + model.letter : "planned")];
  for (const other of state.models)
    if (other !== model) lines.push(stroke(colour("other"), false, "planned, " + other.letter));
  if (model.seen) lines.push(stroke(colour("measured"), true, "measured"));
  lines.push(stroke(colour("tide"), true, "tidemark"));
  byId("chart-legend").replaceChildren(...lines);
  byId("arena-legend")
      .replaceChildren(
          ...state.colouring.palette.map(entry => make("li", {}, swatch(entry.style), entry.name)));
}

// ---- a step -------------------------------------------------------------------------------------

const MOST_LIVE = 120, MOST_PRINTED = 16;

function renderStep() {
  const model = currentModel(), step = model.plan.timeline[state.step];
  const isPeak = state.step === model.peakStep;
  byId("step-title").textContent =
      model.steps === 0 ? "No steps" : "Step " + state.step + (isPeak ? ", the peak" : "");
  byId("step-number").value = String(state.step);
  const says = [];
  if (step) {
    says.push(
        make("b", {}, step.step), " at ", make("code", {}, lineAndLayer(step)), ". ",
        make("b", {}, bytesText(step.in_use)), " in use");
    if (model.seen) {
      const seen = model.profile.steps[state.step];
      says.push(
          seen.in_use === step.in_use ? ", measured the same" :
                                        ", measured " + bytesText(seen.in_use));
      says.push(
          seen.runs === 0 ?
              "; it did not run" :
              "; ran " + (seen.runs === 1 ? "once" : numberText(seen.runs) + " times") + " in " +
                  timeText(seen.time_ns));
    }
    says.push(".");
  }
  byId("step-says").replaceChildren(...says);
  renderChosen();
  const live = liveAt(model, currentArena(), state.step);
  const sum = live.reduce((total, i) => total + model.bytes[i], 0);
  byId("live-title").textContent = model.count === 0 ?
      "" :
      live.length + (live.length === 1 ? " tensor" : " tensors") + ", " + bytesText(sum);
  const most = state.printing ? MOST_PRINTED : MOST_LIVE;
  const rows = live.slice(0, most).map(liveRow);
  if (rows.length > 0)
    rows[Math.max(0, live.indexOf(state.chosen)) % rows.length].firstElementChild.tabIndex = 0;
  if (live.length > most)
    rows.push(make("li", {class: "note"}, `and ${numberText(live.length - most)} smaller ones`));
  const hadFocus = byId("live").contains(document.activeElement);
  byId("live").replaceChildren(...rows);
  if (hadFocus) byId("live").querySelector("[tabindex='0']")?.focus();
}

function liveRow(i) {
  const b = currentModel().list[i];
  return make(
      "li", {},
      make(
          "button", {
            type: "button",
            tabindex: -1,
            "aria-current": String(i === state.chosen),
            onclick: () => choose(i)
          },
          make(
              "i",
              {style: "background: " + state.colouring.palette[state.colouring.which[i]].style}),
          make("span", {class: "mono", title: b.type}, b.type),
          make("span", {class: "bytes"}, bytesText(b.bytes)),
          make("small", {class: "mono"}, lineAndLayer(b)),
          make("small", {title: b.reason}, b.reason)));
}

function renderChosen() {
  const box = byId("chosen");
  box.hidden = state.chosen < 0;
  if (box.hidden) return;
  const b = currentModel().list[state.chosen];
  const row = (label, text) => [make("dt", {}, label), make("dd", {}, text)];
  box.replaceChildren(
      make("b", {class: "mono"}, b.type),
      make(
          "dl", {}, ...row("bytes", numberText(b.bytes) + " (" + bytesText(b.bytes) + ")"),
          ...row("class", b.class), ...row("made by", b.name), ...row("line", b.line),
          ...row("layer", layerText(b.layer)), ...row("reason", b.reason),
          ...row("steps", b.begin + " to " + (b.end - 1)), ...row("offset", numberText(b.offset))));
}

// ---- blame --------------------------------------------------------------------------------------

function renderBlame() {
  const model = currentModel();
  byId("blames").hidden = model.count === 0;
  const where = state.step === model.peakStep ? "at the peak" : "at step " + state.step;
  byId("lines-title").textContent = "By source line, " + where;
  byId("layers-title").textContent = "By layer, " + where;
  renderBars(byId("by-line"), blameAt(model, state.step, "line"), text => text);
  renderBars(byId("by-layer"), blameAt(model, state.step, "layer"), layerText);
}

function renderBars(list, sums, words) {
  const most = sums.length > 0 ? sums[0].bytes : 1, shown = 12;
  const rows = sums.slice(0, shown).map(
      sum => make(
          "li", {title: sum.tensors + (sum.tensors === 1 ? " tensor" : " tensors")},
          make("span", {class: "mono", title: words(sum.where)}, words(sum.where)),
          make(
              "span", {class: "track"}, make("span", {style: `width: ${100 * sum.bytes / most}%`})),
          make("span", {class: "bytes"}, bytesText(sum.bytes))));
  if (sums.length > shown) {
    const rest = sums.slice(shown).reduce((total, sum) => total + sum.bytes, 0);
    rows.push(make(
        "li", {class: "note"}, `and ${numberText(sums.length - shown)} more, ${bytesText(rest)}`));
  }
  if (sums.length === 0) rows.push(make("li", {class: "note"}, "Nothing is in use."));
  list.replaceChildren(...rows);
}

// ---- two plans ----------------------------------------------------------------------------------

function renderCompare() {
  const [a, b] = state.models;
  byId("compare-card").hidden = !b;
  if (!b) return;
  const row = (label, before, after, show) => {
    const change = after - before;
    const text = change === 0 ? "the same" :
                                (change > 0 ? "+" : "−") + show(Math.abs(change)) +
            (before > 0 ? ` (${change > 0 ? "+" : "−"}${percentText(Math.abs(change), before)})` :
                          "");
    return make(
        "tr", {}, make("td", {class: "mono"}, label), make("td", {}, show(before)),
        make("td", {}, show(after)),
        make(
            "td",
            {class: change < 0 ? "good" :
                 change > 0    ? "bad" :
                                 ""},
            text));
  };
  const group = text => make("tr", {class: "group"}, make("td", {colspan: 4}, text));
  const rows = [
    row("tidemark", a.peak, b.peak, bytesText), row("load", a.plan.load, b.plan.load, bytesText),
    row("arena", a.plan.arena, b.plan.arena, bytesText), row("steps", a.steps, b.steps, numberText),
    row("tensors", a.count, b.count, numberText), group("at the peak, by class")
  ];
  for (const name of CLASSES) {
    const before = a.plan.classes[name] || 0, after = b.plan.classes[name] || 0;
    if (before + after > 0) rows.push(row(name, before, after, bytesText));
  }
  for (const [field, title] of [
           ["line", "at the peak, by source line"], ["layer", "at the peak, by layer"]]) {
    const changes = changesOf(a, b, field);
    rows.push(group(title + (changes.length > 10 ? ", the ten that changed most" : "")));
    for (const each of changes.slice(0, 10))
      rows.push(
          row(field === "layer" ? layerText(each.where) : each.where, each.before, each.after,
              bytesText));
  }
  const head = make(
      "tr", {}, make("th", {scope: "col"}, ""), make("th", {scope: "col"}, "A: " + a.plan.function),
      make("th", {scope: "col"}, "B: " + b.plan.function),
      make("th", {scope: "col"}, "B compared with A"));
  byId("compare").replaceChildren(
      make("table", {class: "compared"}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

// The bytes of each line or layer at both peaks, largest change first.
function changesOf(a, b, field) {
  const found = new Map();
  const add = (model, side) => {
    for (const sum of blameAt(model, model.peakStep, field)) {
      const each = found.get(sum.where) || {where: sum.where, before: 0, after: 0};
      each[side] = sum.bytes;
      found.set(sum.where, each);
    }
  };
  add(a, "before");
  add(b, "after");
  const change = each => Math.abs(each.after - each.before);
  return [...found.values()].sort((x, y) => change(y) - change(x) || y.after - x.after);
}
