// The state of the page, what changes it, and the first drawing.
"use strict";

const state = {
  models: [], shown: 0, arena: 0, step: 0, chosen: -1, hovered: -1, colour: "class", colouring: {palette: [], which: []},
  theme: "light", printing: false, marked: null, drawnKey: "",
};
function currentModel() { return state.models[state.shown]; }
function currentArena() { return currentModel().arenas[state.arena]; }
function longest() { return Math.max(...state.models.map(model => model.steps)); }

// ---- drawing what changed -----------------------------------------------------------------------

const stale = new Set();
function drawSoon(what) {
  if (stale.size === 0) requestAnimationFrame(drawNow);
  stale.add(what);
}
function drawNow() {
  if (stale.has("step")) {
    renderStep();
    renderBlame();
    renderTable();
  }
  stale.clear();
  drawChart();
  drawArena();
}

// ---- what one can do ----------------------------------------------------------------------------

function setStep(step) {
  const last = Math.max(0, currentModel().steps - 1);
  state.step = Math.min(last, Math.max(0, Math.round(step) || 0));
  showStep(state.step);
  drawSoon("step");
}

function choose(i) {
  const model = currentModel();
  state.chosen = i;
  if (i >= 0) {
    const arena = model.arenas.findIndex(group => group.members.includes(i));
    if (arena !== state.arena) setArena(arena);
    if (state.step < model.begin[i] || state.step >= model.end[i]) setStep(model.begin[i]);
  }
  drawSoon("step");
}

function setArena(number) {
  state.arena = number;
  byId("arena-choice").value = String(number);
  state.hovered = -1;
  resetView();
  drawSoon("step");
}

function setColour(by) {
  state.colour = by;
  state.drawnKey = "";
  state.colouring = colouring(currentModel());
  renderLegends();
  drawSoon("step");
}

function setTheme(theme) {
  state.theme = theme;
  document.documentElement.dataset.theme = theme;
  byId("theme-button").textContent = theme === "dark" ? "Light" : "Dark";
  byId("theme-button").setAttribute("aria-label", "Change to " + (theme === "dark" ? "light" : "dark"));
  if (state.models.length === 0) return;
  setColour(state.colour);
  renderClasses();
  renderTable();
}

// Another plan of the two.
function show(number) {
  state.shown = number;
  state.arena = 0;
  state.chosen = state.hovered = -1;
  const model = currentModel();
  document.title = model.plan.function + " · Tidemark";
  byId("title").textContent = model.plan.function;
  const isRun = model.plan.load === null;  // A profile alone.
  byId("subtitle").textContent = state.models.length > 1 ? "two plans compared, " + model.letter + " is shown" :
      isRun ? "a measured run" : model.profile ? "planned and measured memory" : "planned memory";
  const choice = byId("arena-choice");
  choice.replaceChildren(...model.arenas.map((arena, i) => make("option", {value: i}, arena.title)));
  byId("arena-label").hidden = model.arenas.length < 2;
  byId("plan-choice").querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
  byId("chart").setAttribute("aria-label", `Bytes in use over ${model.steps} steps, at most ${bytesText(model.peak)} at step ${model.peakStep}`);
  byId("arena").setAttribute("aria-label", `Where ${model.count} tensors lie over ${model.steps} steps`);
  renderTiles();
  renderClasses();
  renderCompare();
  resetView();
  state.step = Math.max(0, model.peakStep);
  setColour(state.colour);
  fillTable(table.tab);
}

// ---- pointers -----------------------------------------------------------------------------------

function sizeOf(canvas) {
  return {right: canvas.clientWidth - MARGIN.right, bottom: canvas.clientHeight - MARGIN.bottom};
}
function placeOf(canvas, event) {
  const box = canvas.getBoundingClientRect(), size = sizeOf(canvas);
  const x = event.clientX - box.left, y = event.clientY - box.top;
  const share = (size.bottom - y) / (size.bottom - MARGIN.top);
  return {
    x, y, size, step: xToStep(size, x), offset: view.y0 + share * (view.y1 - view.y0),
    inside: x >= MARGIN.left && x <= size.right && y >= MARGIN.top && y <= size.bottom
  };
}

function showTip(event, head, ...lines) {
  const tip = byId("tip");
  tip.replaceChildren(make("b", {}, head), ...lines.map(line => make("div", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 16 + box.width > window.innerWidth ? event.clientX - 16 - box.width : event.clientX + 16;
  const top = Math.min(event.clientY + 16, window.innerHeight - box.height - 8);
  tip.style.left = Math.max(8, left) + "px";
  tip.style.top = Math.max(8, top) + "px";
}
function hideTip() { byId("tip").hidden = true; }

function hoverChart(event) {
  const place = placeOf(byId("chart"), event), number = Math.floor(place.step);
  const step = currentModel().plan.timeline[number];
  if (!place.inside || !step) return hideTip();
  const lines = ["step " + number + ", " + lineAndLayer(step), bytesText(step.in_use) + " in use, planned"];
  if (currentModel().seen) lines.push(bytesText(currentModel().seen[number]) + " in use, measured");
  showTip(event, step.step, ...lines);
}

function hoverArena(event) {
  const place = placeOf(byId("arena"), event);
  const found = place.inside ? bufferAt(currentModel(), currentArena(), Math.floor(place.step), place.offset) : -1;
  if (found !== state.hovered) {
    state.hovered = found;
    drawSoon("pictures");
  }
  if (found < 0) return hideTip();
  const b = currentModel().list[found];
  showTip(event, b.type, bytesText(b.bytes) + " at offset " + numberText(b.offset), "steps " + b.begin + " to " + (b.end - 1),
          b.reason, lineAndLayer(b));
}

// A click chooses; a drag marks what to zoom into, or moves with Shift.
function listenToPointer(canvas, hover, click) {
  let start = null;
  canvas.addEventListener("pointerdown", event => {
    const place = placeOf(canvas, event);
    if (event.button !== 0 || !place.inside) return;
    start = {place, view: {...view}, moves: event.shiftKey, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    if (!start) return hover(event);
    const place = placeOf(canvas, event);
    if (Math.abs(place.x - start.place.x) + Math.abs(place.y - start.place.y) > 4) start.moved = true;
    if (!start.moved) return;
    hideTip();
    if (start.moves) {
      const width = start.view.x1 - start.view.x0, height = start.view.y1 - start.view.y0;
      moveTo(start.view.x0 - (place.x - start.place.x) / (place.size.right - MARGIN.left) * width, width);
      if (canvas.id === "arena")
        moveOffsets(start.view.y0 + (place.y - start.place.y) / (place.size.bottom - MARGIN.top) * height, height);
    } else {
      state.marked = markedBox(canvas, start.place, place);
    }
    drawSoon("pictures");
  });
  canvas.addEventListener("pointerup", event => {
    if (!start) return;
    const place = placeOf(canvas, event), was = start;
    start = null;
    state.marked = null;
    if (!was.moved) click(place);
    else if (!was.moves) zoomToMarked(canvas, was.place, place);
    drawSoon("pictures");
  });
  canvas.addEventListener("pointerleave", () => {
    hideTip();
    if (state.hovered >= 0) drawSoon("pictures");
    state.hovered = -1;
  });
  canvas.addEventListener("dblclick", () => { resetView(); drawSoon("pictures"); });
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;  // The page scrolls.
    event.preventDefault();
    const place = placeOf(canvas, event);
    zoom(Math.exp(event.deltaY * 0.002), place.step, place.offset, canvas.id === "arena");
  }, {passive: false});
}
function markedBox(canvas, from, to) {
  const {size} = from, isArena = canvas.id === "arena";
  const within = (value, low, high) => Math.min(high, Math.max(low, value));
  const xs = [from.x, within(to.x, MARGIN.left, size.right)].sort((a, b) => a - b);
  const ys = [from.y, within(to.y, MARGIN.top, size.bottom)].sort((a, b) => a - b);
  const arena = sizeOf(byId("arena"));
  return {left: xs[0], right: xs[1], top: isArena ? ys[0] : MARGIN.top, bottom: isArena ? ys[1] : arena.bottom};
}
function zoomToMarked(canvas, from, to) {
  const steps = [from.step, to.step].sort((a, b) => a - b), offsets = [from.offset, to.offset].sort((a, b) => a - b);
  moveTo(Math.floor(Math.max(0, steps[0])), Math.min(Math.max(2, Math.ceil(steps[1] - steps[0])), Math.max(1, longest())));
  if (canvas.id !== "arena") return;
  const all = Math.max(1, currentArena().height);
  moveOffsets(offsets[0], Math.min(all, Math.max(256, offsets[1] - offsets[0])));
}

// ---- keys ---------------------------------------------------------------------------------------

// The next tensor in use above or below the chosen one.
function chooseByPlace(direction) {
  const model = currentModel();
  const live = liveAt(model, currentArena(), state.step).sort((a, b) => model.offset[a] - model.offset[b]);
  const at = live.indexOf(state.chosen);
  const next = at < 0 ? (direction > 0 ? 0 : live.length - 1) : at + direction;
  if (next >= 0 && next < live.length) choose(live[next]);
}

function changeTab() {
  fillTable(table.tab === "buffers" ? "steps" : "buffers");
  byId("tab-" + table.tab).focus();
}
// One stop of the Tab key for the whole list; arrows move inside it.
function focusLive(button, sibling) {
  const next = button.parentElement[sibling];
  if (next && next.firstElementChild) next.firstElementChild.focus();
}

function onKey(event) {
  const target = event.target, isText = target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (isText && event.key === "Escape") target.blur();
  if (isText) return;
  const far = event.shiftKey ? 10 : 1;
  const isTable = target.id === "table", isPicture = target.tagName === "CANVAS";
  const actions = {
    ArrowLeft: () => setStep(state.step - far), ArrowRight: () => setStep(state.step + far),
    Home: () => setStep(0), End: () => setStep(currentModel().steps - 1),
    p: () => setStep(currentModel().peakStep), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
    "0": () => { resetView(); drawSoon("pictures"); }, "/": () => byId("search").focus(),
    t: () => setTheme(state.theme === "dark" ? "light" : "dark"), "?": () => byId("help").showModal(),
    Escape: () => choose(-1),
  };
  if (target.getAttribute("role") === "tab") actions.ArrowLeft = actions.ArrowRight = changeTab;
  if (byId("live").contains(target)) Object.assign(actions, {ArrowUp: () => focusLive(target, "previousElementSibling"), ArrowDown: () => focusLive(target, "nextElementSibling")});
  if (isTable) Object.assign(actions, {ArrowUp: () => moveInTable(-1), ArrowDown: () => moveInTable(1), Enter: () => byId("pictures").scrollIntoView()});
  if (isPicture) Object.assign(actions, {ArrowUp: () => chooseByPlace(1), ArrowDown: () => chooseByPlace(-1)});
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

// ---- the start ----------------------------------------------------------------------------------

function listen() {
  const on = (id, type, action) => byId(id).addEventListener(type, action);
  listenToPointer(byId("chart"), hoverChart, place => setStep(Math.floor(place.step)));
  listenToPointer(byId("arena"), hoverArena, place => {
    setStep(Math.floor(place.step));
    choose(bufferAt(currentModel(), currentArena(), state.step, place.offset));
  });
  on("zoom-in", "click", () => zoom(0.5));
  on("zoom-out", "click", () => zoom(2));
  on("zoom-reset", "click", () => { resetView(); drawSoon("pictures"); });
  on("step-back", "click", () => setStep(state.step - 1));
  on("step-on", "click", () => setStep(state.step + 1));
  on("step-peak", "click", () => setStep(currentModel().peakStep));
  on("step-number", "change", event => setStep(Number(event.target.value)));
  on("colour-choice", "change", event => setColour(event.target.value));
  on("arena-choice", "change", event => setArena(Number(event.target.value)));
  on("theme-button", "click", () => setTheme(state.theme === "dark" ? "light" : "dark"));
  on("help-button", "click", () => byId("help").showModal());
  on("tab-buffers", "click", () => fillTable("buffers"));
  on("tab-steps", "click", () => fillTable("steps"));
  on("search", "input", () => { byId("table").scrollTop = 0; orderRows(); });
  on("table", "scroll", renderTable);
  document.addEventListener("keydown", onKey);
  new ResizeObserver(() => drawSoon("pictures")).observe(byId("chart"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", event => setTheme(event.matches ? "dark" : "light"));
  let before = "light";
  window.addEventListener("beforeprint", () => {
    before = state.theme;
    state.printing = true;
    document.documentElement.classList.add("printing");
    setTheme("light");
    stale.add("step");
    drawNow();
  });
  window.addEventListener("afterprint", () => {
    state.printing = false;
    document.documentElement.classList.remove("printing");
    setTheme(before);
  });
}

// "#step=3&theme=dark&colour=layer": a page can be opened at a place.
function openAt(wanted) {
  if (wanted.has("theme")) setTheme(wanted.get("theme") === "dark" ? "dark" : "light");
  if (wanted.has("colour")) {
    byId("colour-choice").value = wanted.get("colour");
    setColour(wanted.get("colour"));
  }
  if (wanted.has("step")) setStep(Number(wanted.get("step")));
  if (wanted.has("tensor")) choose(Number(wanted.get("tensor")));
}

function start() {
  const documents = JSON.parse(byId("tidemark-data").textContent);
  const profile = documents.find(each => each.kind === "profile");
  const plans = documents.filter(each => each.kind !== "profile");
  if (plans.length === 0) plans.push(planOfProfile(profile));
  state.models = plans.map((plan, i) => Object.assign(makeModel(plan, i === 0 ? profile : null), {letter: "AB"[i]}));
  if (plans.length > 1) {
    byId("plan-choice").hidden = false;
    byId("plan-choice").replaceChildren(...state.models.map((model, i) =>
        make("button", {type: "button", onclick: () => show(i)}, model.letter)));
  }
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  listen();
  show(0);
  const wanted = new URLSearchParams(location.hash.slice(1));
  openAt(wanted);
  drawNow();
  if (wanted.has("selftest")) selfTest();
}
