// The data of the page, as the charts need it: plain arrays with one entry for each buffer.
"use strict";

const CLASSES = ["temporaries", "saved", "outputs", "workspace", "shadow"];
const BESIDE =
    ["arguments", "variables", "constants", "packed"];  // Allocated before the call, not part of the peak.

// A profile without a plan has steps but no buffers: it is shown as a plan without buffers.
function planOfProfile(profile) {
  const timeline =
      profile.steps.map(s => ({step: s.step, line: s.line, layer: s.layer, in_use: s.planned}));
  let peakStep = -1;
  timeline.forEach((s, i) => {
    if (peakStep < 0 || s.in_use > timeline[peakStep].in_use) peakStep = i;
  });
  return {
    function: profile.function,
    peak: profile.planned,
    arena: null,
    load: null,
    threads: null,
    classes: {},
    memories: [],
    peak_step: peakStep,
    at_peak: [],
    timeline,
    buffers: []
  };
}

function makeModel(plan, profile) {
  const list = plan.buffers || [];
  const count = list.length;
  const model = {
    plan,
    profile,
    count,
    list,
    steps: plan.timeline.length,
    begin: new Float64Array(count),
    end: new Float64Array(count),
    offset: new Float64Array(count),
    bytes: new Float64Array(count),
    inUse: Float64Array.from(plan.timeline, s => s.in_use),
    seen: profile ? Float64Array.from(profile.steps, s => s.in_use) : null,
    peak: plan.peak,
    peakStep: plan.peak_step,
  };
  list.forEach((b, i) => {
    model.begin[i] = b.begin;
    model.end[i] = b.end;
    model.offset[i] = b.offset;
    model.bytes[i] = b.bytes;
  });
  model.arenas = arenasOf(model);
  return model;
}

// The arena of the call first, then those of map bodies and of other memories.
function arenasOf(model) {
  const found = new Map();
  model.list.forEach((b, i) => {
    const memory = b.memory || "host", arena = b.arena || 0;
    const key = memory + "/" + arena;
    if (!found.has(key)) {
      const title = memory !== "host" ? "memory " + memory :
          arena === 0                 ? "the call" :
                                        "a body of map " + arena;
      found.set(key, {title, isCall: memory === "host" && arena === 0, members: [], height: 0});
    }
    const group = found.get(key);
    group.members.push(i);
    group.height = Math.max(group.height, b.offset + b.bytes);
  });
  const arenas = [...found.values()].sort((a, b) => Number(b.isCall) - Number(a.isCall));
  if (arenas.length === 0) arenas.push({title: "the call", isCall: true, members: [], height: 0});
  if (arenas[0].isCall) arenas[0].height = Math.max(arenas[0].height, model.peak);
  for (const group of arenas) group.members = Int32Array.from(group.members);
  return arenas;
}

// The live buffers of a step, largest first. A linear search: 20,000 buffers take far less than a
// frame, so no index is needed.
function liveAt(model, arena, step) {
  const live = [];
  for (const i of arena.members)
    if (model.begin[i] <= step && step < model.end[i]) live.push(i);
  return live.sort((a, b) => model.bytes[b] - model.bytes[a] || model.offset[a] - model.offset[b]);
}

// The buffer at a point of the chart, or -1.
function bufferAt(model, arena, step, offset) {
  for (const i of arena.members) {
    if (model.begin[i] <= step && step < model.end[i] && model.offset[i] <= offset &&
        offset < model.offset[i] + model.bytes[i])
      return i;
  }
  return -1;
}

// Bytes in use at a step by line or by layer, largest first.
function blameAt(model, step, field) {
  const sums = new Map();
  for (const i of liveAt(model, model.arenas[0], step)) {
    const where = model.list[i][field];
    const sum = sums.get(where) || {where, bytes: 0, tensors: 0};
    sum.bytes += model.bytes[i];
    ++sum.tensors;
    sums.set(where, sum);
  }
  return [...sums.values()].sort((a, b) => b.bytes - a.bytes);
}

// ---- text ---------------------------------------------------------------------------------------

// Rounds to one decimal, ties to even, as the library does. Byte counts are often ties, which
// toFixed rounds differently.
function oneDigit(value) {
  const tenths = value * 10, below = Math.floor(tenths);
  const up = tenths - below > 0.5 || (tenths - below === 0.5 && below % 2 !== 0);
  return ((up ? below + 1 : below) / 10).toFixed(1);
}
// In the format of the library: "64.0 MiB".
function bytesText(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = count, unit = 0;
  while (unit < 5 && Math.abs(value) >= 1024) {
    value /= 1024;
    ++unit;
  }
  return (unit === 0 ? value.toFixed(0) : oneDigit(value)) + " " + units[unit];
}
function numberText(n) { return n.toLocaleString("en-US"); }
function timeText(ns) {
  if (ns < 1e3) return ns + " ns";
  if (ns < 1e6) return (ns / 1e3).toFixed(1) + " µs";
  if (ns < 1e9) return (ns / 1e6).toFixed(2) + " ms";
  return (ns / 1e9).toFixed(2) + " s";
}
function layerText(layer) { return layer === "" ? "outside any layer" : layer; }
function lineAndLayer(b) { return b.line + (b.layer ? ", in " + b.layer : ""); }
function percentText(part, whole) {
  return whole > 0 ? (100 * part / whole).toFixed(1) + " %" : "";
}
