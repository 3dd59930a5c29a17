// The state of the page, the actions that change it, and the first rendering.
"use strict";

const state = {
  models: [],
  budgets: null,  // The plans that the slider chooses from, if the page has them.
  shown: 0,
  arena: 0,
  step: 0,
  chosen: -1,
  hovered: -1,
  colour: "class",
  colouring: {palette: [], which: []},
  theme: "light",
  printing: false,
  marked: null,
  drawnKey: "",
};
function currentModel() { return state.models[state.shown]; }
function currentArena() { return currentModel().arenas[state.arena]; }
function longest() { return Math.max(...state.models.map(model => model.steps)); }

// ---- rendering ----------------------------------------------------------------------------------

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
  drawCurve();
}

// ---- actions ------------------------------------------------------------------------------------

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
  byId("theme-button")
      .setAttribute("aria-label", "Change to " + (theme === "dark" ? "light" : "dark"));
  if (state.models.length === 0) return;
  setColour(state.colour);
  renderClasses();
  renderTable();
}

// Shows the other of two plans.
function show(number) {
  state.shown = number;
  state.arena = 0;
  state.chosen = state.hovered = -1;
  const model = currentModel();
  document.title = model.plan.function + " · Tidemark";
  byId("title").textContent = model.plan.function;
  const isRun = model.plan.load === null;  // There is only a profile.
  byId("subtitle").textContent = state.models.length > 1 ?
      "two plans compared, " + model.letter + " is shown" :
      isRun         ? "a measured run" :
      model.profile ? "planned and measured memory" :
                      "planned memory";
  const choice = byId("arena-choice");
  choice.replaceChildren(
      ...model.arenas.map((arena, i) => make("option", {value: i}, arena.title)));
  byId("arena-label").hidden = model.arenas.length < 2;
  byId("plan-choice")
      .querySelectorAll("button")
      .forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
  byId("chart").setAttribute(
      "aria-label",
      `Bytes in use over ${model.steps} steps, at most ${bytesText(model.peak)} at step ${
          model.peakStep}`);
  byId("arena").setAttribute(
      "aria-label", `Memory layout of ${model.count} tensors over ${model.steps} steps`);
  renderTiles();
  renderClasses();
  renderCompare();
  renderBudget();
  resetView();
  state.step = Math.max(0, model.peakStep);
  setColour(state.colour);
  fillTable(table.tab);
}

// ---- start --------------------------------------------------------------------------------------

function listen() {
  const on = (id, type, action) => byId(id).addEventListener(type, action);
  listenToPointer(byId("chart"), hoverChart, place => setStep(Math.floor(place.step)));
  listenToPointer(byId("arena"), hoverArena, place => {
    setStep(Math.floor(place.step));
    choose(bufferAt(currentModel(), currentArena(), state.step, place.offset));
  });
  on("zoom-in", "click", () => zoom(0.5));
  on("zoom-out", "click", () => zoom(2));
  on("zoom-reset", "click", () => {
    resetView();
    drawSoon("pictures");
  });
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
  on("search", "input", () => {
    byId("table").scrollTop = 0;
    orderRows();
  });
  on("table", "scroll", renderTable);
  document.addEventListener("keydown", onKey);
  new ResizeObserver(() => drawSoon("pictures")).observe(byId("chart"));
  matchMedia("(prefers-color-scheme: dark)")
      .addEventListener("change", event => setTheme(event.matches ? "dark" : "light"));
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

// "#step=3&theme=dark&colour=layer": initial state from the address.
function openAt(wanted) {
  if (wanted.has("theme")) setTheme(wanted.get("theme") === "dark" ? "dark" : "light");
  if (wanted.has("colour")) {
    byId("colour-choice").value = wanted.get("colour");
    setColour(wanted.get("colour"));
  }
  if (wanted.has("budget")) setBudgetBytes(Number(wanted.get("budget")));
  if (wanted.has("tab")) fillTable(wanted.get("tab"));
  if (wanted.has("step")) setStep(Number(wanted.get("step")));
  if (wanted.has("tensor")) choose(Number(wanted.get("tensor")));
}

function start() {
  const documents = JSON.parse(byId("tidemark-data").textContent);
  const profile = documents.find(each => each.kind === "profile");
  const tradeoff = documents.find(each => each.kind === "tradeoff");
  const plans = documents.filter(each => each !== profile && each !== tradeoff);
  if (plans.length === 0) plans.push(planOfProfile(profile));
  state.models = plans.map(
      (plan, i) => Object.assign(makeModel(plan, i === 0 ? profile : null), {letter: "AB"[i]}));
  if (plans.length > 1) {
    byId("plan-choice").hidden = false;
    byId("plan-choice")
        .replaceChildren(...state.models.map(
            (model, i) => make("button", {type: "button", onclick: () => show(i)}, model.letter)));
  }
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  startBudgets(tradeoff, plans[0], profile);
  listen();
  show(0);
  const wanted = new URLSearchParams(location.hash.slice(1));
  openAt(wanted);
  drawNow();
  if (wanted.has("selftest")) selfTest();
}
