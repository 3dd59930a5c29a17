// The two charts: bytes over steps, and below it, on the same axis, offsets over steps.
"use strict";

const MARGIN = {
  left: 74,
  right: 14,
  top: 20,
  bottom: 22
};

// The visible range: steps [x0, x1), offsets [y0, y1).
const view = {
  x0: 0,
  x1: 1,
  y0: 0,
  y1: 1
};

function resetView() {
  view.x0 = 0;
  view.x1 = Math.max(1, longest());
  view.y0 = 0;
  view.y1 = Math.max(1, currentArena().height);
}

function zoom(factor, stepAt, offsetAt, withOffsets) {
  const most = Math.max(1, longest());
  const width = Math.min(most, Math.max(2, (view.x1 - view.x0) * factor));
  const at = stepAt === undefined ? state.step + 0.5 : stepAt;
  const share = Math.min(1, Math.max(0, (at - view.x0) / (view.x1 - view.x0)));
  moveTo(at - share * width, width);
  if (withOffsets) {
    const all = Math.max(1, currentArena().height);
    const height = Math.min(all, Math.max(256, (view.y1 - view.y0) * factor));
    const part = (offsetAt - view.y0) / (view.y1 - view.y0);
    moveOffsets(offsetAt - part * height, height);
  }
  drawSoon("pictures");
}
function moveTo(x0, width) {
  const most = Math.max(1, longest());
  view.x0 = Math.min(Math.max(0, x0), most - width);
  view.x1 = view.x0 + width;
}
function moveOffsets(y0, height) {
  const all = Math.max(1, currentArena().height);
  view.y0 = Math.min(Math.max(0, y0), all - height);
  view.y1 = view.y0 + height;
}
function showStep(step) {
  const width = view.x1 - view.x0;
  if (step < view.x0 || step + 1 > view.x1) moveTo(step + 0.5 - width / 2, width);
}

// ---- drawing ------------------------------------------------------------------------------------

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

// Clears a canvas at the resolution of the screen; returns its context and its size in CSS pixels.
function prepare(canvas) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  return {context, width, height, right: width - MARGIN.right, bottom: height - MARGIN.bottom};
}

function stepToX(size, step) {
  return MARGIN.left + (step - view.x0) / (view.x1 - view.x0) * (size.right - MARGIN.left);
}
function xToStep(size, x) {
  return view.x0 + (x - MARGIN.left) / (size.right - MARGIN.left) * (view.x1 - view.x0);
}
function scaleY(size, low, high) {
  return value => size.bottom - (value - low) / (high - low) * (size.bottom - MARGIN.top);
}

// Round numbers of bytes: 1, 2 or 4 … 512 of a unit.
function byteTicks(low, high, most) {
  let step = 1;
  while ((high - low) / step > most) step *= 2;
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) ticks.push(at);
  return ticks;
}
// 1, 2, 5, 10, 20 … steps apart.
function stepTicks(size) {
  const most = Math.max(2, Math.floor((size.right - MARGIN.left) / 80));
  const apart = k => [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3);
  let k = 0;
  while ((view.x1 - view.x0) / apart(k) > most) ++k;
  const ticks = [];
  for (let at = Math.ceil(view.x0 / apart(k)) * apart(k); at < view.x1; at += apart(k))
    ticks.push(at);
  return ticks;
}

function drawAxes(size, toY, low, high) {
  const {context} = size;
  context.strokeStyle = colour("line");
  context.fillStyle = colour("muted");
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const tick of byteTicks(low, high, 5)) {
    const y = Math.round(toY(tick)) + 0.5;
    context.beginPath();
    context.moveTo(MARGIN.left, y);
    context.lineTo(size.right, y);
    context.stroke();
    context.fillText(bytesText(tick).replace(".0 ", " "), MARGIN.left - 8, y);
  }
  context.textAlign = "center";
  for (const tick of stepTicks(size)) {
    const x = (stepToX(size, tick) + stepToX(size, tick + 1)) / 2;
    if (x < size.right) context.fillText(String(tick), x, size.bottom + 12);
  }
}

// Calls visit(x, value) for the corners of a step function. If steps are narrower than a pixel, once
// per pixel with the highest value.
function alongSteps(size, values, visit) {
  const first = Math.max(0, Math.floor(view.x0)),
        last = Math.min(values.length, Math.ceil(view.x1));
  const pixels = size.right - MARGIN.left;
  if (last - first <= pixels) {
    for (let i = first; i < last; ++i) {
      visit(Math.max(MARGIN.left, stepToX(size, i)), values[i]);
      visit(Math.min(size.right, stepToX(size, i + 1)), values[i]);
    }
    return;
  }
  for (let pixel = 0; pixel < pixels; ++pixel) {
    const from = Math.floor(xToStep(size, MARGIN.left + pixel));
    const to =
        Math.min(last, Math.max(from + 1, Math.floor(xToStep(size, MARGIN.left + pixel + 1))));
    let highest = -Infinity;
    for (let i = Math.max(first, from); i < to; ++i) highest = Math.max(highest, values[i]);
    if (highest > -Infinity) visit(MARGIN.left + pixel, highest);
  }
}

function strokeSteps(size, toY, values, style, dashes, width) {
  const {context} = size;
  context.beginPath();
  let started = false;
  alongSteps(size, values, (x, value) => {
    if (started)
      context.lineTo(x, toY(value));
    else
      context.moveTo(x, toY(value));
    started = true;
  });
  context.strokeStyle = style;
  context.setLineDash(dashes);
  context.lineWidth = width;
  context.lineJoin = "round";
  context.stroke();
  context.setLineDash([]);
}
function fillSteps(size, toY, values, style) {
  const {context} = size;
  let last = null;
  context.beginPath();
  alongSteps(size, values, (x, value) => {
    if (last === null) context.moveTo(x, size.bottom);
    context.lineTo(x, toY(value));
    last = x;
  });
  if (last === null) return;
  context.lineTo(last, size.bottom);
  context.closePath();
  context.fillStyle = style;
  context.fill();
}

function drawTidemark(size, y, text, style) {
  const {context} = size;
  context.strokeStyle = style;
  context.lineWidth = 1.5;
  context.setLineDash([7, 5]);
  context.beginPath();
  context.moveTo(MARGIN.left, y);
  context.lineTo(size.right, y);
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = style;
  context.textAlign = "right";
  context.font = "600 11px system-ui, sans-serif";
  context.fillText(text, size.right - 2, y - 8);
  context.font = "11px system-ui, sans-serif";
}

function drawCursor(size) {
  const {context} = size;
  const left = stepToX(size, state.step), right = stepToX(size, state.step + 1);
  if (currentModel().steps === 0 || right < MARGIN.left || left > size.right) return;
  const from = Math.max(MARGIN.left, left), to = Math.min(size.right, Math.max(right, left + 1.5));
  context.globalAlpha = 0.16;
  context.fillStyle = colour("ink");
  context.fillRect(from, MARGIN.top, to - from, size.bottom - MARGIN.top);
  context.globalAlpha = 1;
  context.fillRect(Math.max(MARGIN.left, (left + right) / 2 - 0.5), size.bottom, 1, 4);
}

// Loops, branches and maps: a bar below the steps of their bodies.
function drawBodies(size) {
  const {context} = size;
  const open = [];
  context.fillStyle = colour("other");
  currentModel().plan.timeline.forEach((step, i) => {
    while (open.length > 0 && open[open.length - 1] <= i) open.pop();
    if (!step.body_end) return;
    const from = Math.max(MARGIN.left, stepToX(size, i)),
          to = Math.min(size.right, stepToX(size, step.body_end));
    if (to > from)
      context.fillRect(from, size.bottom + 1 + 3 * Math.min(open.length, 1), to - from, 2);
    open.push(step.body_end);
  });
}

function drawChart() {
  const canvas = document.getElementById("chart");
  const size = prepare(canvas);
  const models = state.models;
  const high = highestPeak() * 1.06;
  const toY = scaleY(size, 0, high);
  const current = currentModel();
  fillSteps(size, toY, current.inUse, colour("water"));
  drawAxes(size, toY, 0, high);
  drawBodies(size);
  for (const model of models)
    if (model !== current) strokeSteps(size, toY, model.inUse, colour("other"), [], 1.5);
  strokeSteps(size, toY, current.inUse, colour("planned"), [], 1.75);
  if (current.seen) strokeSteps(size, toY, current.seen, colour("measured"), [4, 5], 1.75);
  for (const model of models) {
    const text =
        (models.length > 1 ? model.letter + ": " : "") + "tidemark " + bytesText(model.peak);
    drawTidemark(size, toY(model.peak), text, colour(model === current ? "tide" : "other"));
  }
  drawCursor(size);
}

// ---- the arena ----------------------------------------------------------------------------------

// The colour of each buffer, as an index of the palette, and the legend.
function colouring(model) {
  const palette = [];
  const which = new Int16Array(model.count);
  if (state.colour === "class") {
    const classes = CLASSES.filter(name => model.list.some(b => b.class === name));
    classes.forEach(name => palette.push({name, style: colour(name)}));
    const number = new Map(classes.map((name, i) => [name, i]));
    palette.push({name: "other", style: colour("other")});
    model.list.forEach((b, i) => {
      which[i] = number.has(b.class) ? number.get(b.class) : classes.length;
    });
    if (!model.list.some(b => !number.has(b.class))) palette.pop();
    return {palette, which};
  }
  // Bytes times steps: the groups with the largest area have their own colour.
  const weight = new Map();
  model.list.forEach(b => {
    const key = b[state.colour];
    weight.set(key, (weight.get(key) || 0) + b.bytes * (b.end - b.begin));
  });
  const heaviest = [...weight.keys()].sort((a, b) => weight.get(b) - weight.get(a));
  const shown = heaviest.slice(0, 12);
  shown.forEach(
      (key, i) => palette.push(
          {name: state.colour === "layer" ? layerText(key) : key, style: colour("c" + i)}));
  if (heaviest.length > 12)
    palette.push({name: (heaviest.length - 12) + " more", style: colour("other")});
  const number = new Map(shown.map((key, i) => [key, i]));
  model.list.forEach((b, i) => {
    const found = number.get(b[state.colour]);
    which[i] = found === undefined ? 12 : found;
  });
  return {palette, which};
}

const arenaLayer = document.createElement("canvas");  // The rectangles, redrawn only when they change.

function drawRectangles(size, scale) {
  arenaLayer.width = Math.round(size.width * scale);
  arenaLayer.height = Math.round(size.height * scale);
  const context = arenaLayer.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  const model = currentModel(), arena = currentArena();
  const {palette, which} = state.colouring;
  const toY = scaleY(size, view.y0, view.y1);
  const perStep = (size.right - MARGIN.left) / (view.x1 - view.x0);
  const perByte = (size.bottom - MARGIN.top) / (view.y1 - view.y0);
  const labels = [];
  context.save();
  context.beginPath();
  context.rect(MARGIN.left, MARGIN.top, size.right - MARGIN.left, size.bottom - MARGIN.top);
  context.clip();
  // Grouped by colour: changing the fill style costs more than a rectangle.
  for (let number = 0; number < palette.length; ++number) {
    context.fillStyle = palette[number].style;
    for (const i of arena.members) {
      if (which[i] !== number || model.end[i] <= view.x0 || model.begin[i] >= view.x1) continue;
      if (model.offset[i] >= view.y1 || model.offset[i] + model.bytes[i] <= view.y0) continue;
      const x = MARGIN.left + (model.begin[i] - view.x0) * perStep;
      const wide = (model.end[i] - model.begin[i]) * perStep, tall = model.bytes[i] * perByte;
      const y = toY(model.offset[i]) - tall;
      // A thin line between neighbours, if there is room.
      context.fillRect(
          x, y, Math.max(0.7, wide - (wide > 3 ? 1 : 0)), Math.max(0.7, tall - (tall > 3 ? 1 : 0)));
      if (wide > 64 && tall > 15) labels.push(i);
    }
  }
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = colour("on-colour");
  for (const i of labels.slice(0, 500)) {
    const left = Math.max(MARGIN.left, MARGIN.left + (model.begin[i] - view.x0) * perStep);
    const right = Math.min(size.right, MARGIN.left + (model.end[i] - view.x0) * perStep);
    const top = Math.max(MARGIN.top, toY(Math.min(view.y1, model.offset[i] + model.bytes[i])));
    const bottom = Math.min(size.bottom, toY(Math.max(view.y0, model.offset[i])));
    const text = fitted(
        context, [model.list[i].name + "  " + model.list[i].type, model.list[i].name],
        right - left - 12);
    if (text && bottom - top > 13) context.fillText(text, left + 6, (top + bottom) / 2);
  }
  context.restore();
}
// The first text that fits, else the last one shortened, or nothing.
function fitted(context, texts, width) {
  const whole = texts.find(text => context.measureText(text).width <= width);
  if (whole) return whole;
  const last = texts[texts.length - 1];
  const letters = Math.floor(last.length * width / context.measureText(last).width) - 2;
  return letters < 5 ? "" : last.slice(0, letters).trimEnd() + "…";
}

function drawArena() {
  const part = document.getElementById("arena-part");
  part.hidden = currentModel().count === 0;
  if (part.hidden) return;
  const size = prepare(document.getElementById("arena"));
  const {context} = size;
  const toY = scaleY(size, view.y0, view.y1);
  const scale = window.devicePixelRatio || 1;
  const key = [
    size.width, size.height, scale, view.x0, view.x1, view.y0, view.y1, state.colour, state.theme,
    state.arena, state.shown
  ].join();
  drawAxes(size, toY, view.y0, view.y1);
  if (key !== state.drawnKey) drawRectangles(size, scale);
  state.drawnKey = key;
  context.drawImage(arenaLayer, 0, 0, size.width, size.height);
  drawOutline(size, toY, state.hovered, 1.5, colour("ink"));
  drawOutline(size, toY, state.chosen, 2.5, colour("ink"));
  const model = currentModel(), arena = currentArena();
  if (arena.isCall) {
    if (model.peak <= view.y1)
      drawTidemark(size, toY(model.peak), "tidemark " + bytesText(model.peak), colour("tide"));
    const boundary = model.plan.arena;
    if (boundary < model.peak && boundary > view.y0 && boundary < view.y1) {
      context.strokeStyle = colour("ink");
      context.globalAlpha = 0.5;
      context.lineWidth = 1;
      context.setLineDash([2, 3]);
      context.beginPath();
      context.moveTo(MARGIN.left, toY(boundary));
      context.lineTo(size.right, toY(boundary));
      context.stroke();
      context.setLineDash([]);
      context.globalAlpha = 1;
    }
  }
  drawCursor(size);
  if (state.marked) drawMarked(size);
}

function drawOutline(size, toY, i, width, style) {
  if (i < 0) return;
  const model = currentModel(), {context} = size;
  if (!currentArena().members.includes(i)) return;
  const left = Math.max(MARGIN.left - 2, stepToX(size, model.begin[i]));
  const right = Math.min(size.right + 2, stepToX(size, model.end[i]));
  const top = Math.max(MARGIN.top - 2, toY(model.offset[i] + model.bytes[i]));
  const bottom = Math.min(size.bottom + 2, toY(model.offset[i]));
  if (right <= left || bottom < top) return;
  context.strokeStyle = style;
  context.lineWidth = width;
  context.strokeRect(left, top, Math.max(2, right - left), Math.max(2, bottom - top));
}

function drawMarked(size) {
  const {context} = size, {left, top, right, bottom} = state.marked;
  context.fillStyle = colour("accent");
  context.globalAlpha = 0.18;
  context.fillRect(left, top, right - left, bottom - top);
  context.globalAlpha = 1;
  context.strokeStyle = colour("accent");
  context.lineWidth = 1;
  context.strokeRect(left, top, right - left, bottom - top);
}
