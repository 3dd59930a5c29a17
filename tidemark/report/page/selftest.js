// For tests: opened at "#selftest", the page reads back what it shows.
"use strict";

function textOf(id) { return byId(id).textContent; }
function rowsShown() {
  return [...byId("table").querySelectorAll("tbody tr:not(.gap)")].map(
      row => [...row.cells].map(cell => cell.textContent));
}
function press(key, target) {
  (target || document.body).dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  drawNow();
}

// The number of distinct colours inside a canvas: an empty chart has few.
function coloursOf(id) {
  const canvas = byId(id),
        data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const found = new Set();
  for (let i = 0; i < data.length; i += 4 * 7)
    if (data[i + 3] > 0) found.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
  return found.size;
}

// A pointer at the middle of a buffer's rectangle.
function pointAt(i, type) {
  const model = currentModel(), canvas = byId("arena"), box = canvas.getBoundingClientRect(),
        size = sizeOf(canvas);
  const x = stepToX(size, (model.begin[i] + model.end[i]) / 2);
  const y = scaleY(size, view.y0, view.y1)(model.offset[i] + model.bytes[i] / 2);
  const event = new PointerEvent(
      type, {clientX: box.left + x, clientY: box.top + y, button: 0, pointerId: 1, bubbles: true});
  canvas.setPointerCapture = () => {};
  canvas.dispatchEvent(event);
}

// Milliseconds, for information only: no test depends on them.
function timed(action) {
  const begin = performance.now();
  action();
  return Math.round((performance.now() - begin) * 10) / 10;
}

// What the page shows for each place of the slider, from the fewest bytes to the most.
function budgetsSeen() {
  const slider = byId("budget");
  const start = Number(slider.value);
  const seen = [];
  for (let i = 0; i <= Number(slider.max); ++i) {
    slider.value = String(i);
    slider.dispatchEvent(new Event("input"));
    drawNow();
    seen.push({
      tile: byId("tiles").querySelector(".tile").innerText,
      says: textOf("budget-says"),
      decisions: byId("decisions").querySelectorAll("tbody tr").length,
      steps: currentModel().steps,
      arenaTop: currentArena().height,
      peakStep: state.step,
      isMeasured: currentModel().seen !== null,
    });
  }
  press("<");
  const smaller = state.budgets.chosen;
  press(">");
  return {start, seen, smaller, larger: state.budgets.chosen, colours: coloursOf("curve")};
}

function selfTest() {
  const model = currentModel();
  const seen = {
    title: textOf("title"),
    tiles: [...byId("tiles").querySelectorAll(".tile")].map(each => each.innerText),
    step: state.step,
    stepTitle: textOf("step-title"),
    says: textOf("step-says"),
    live: textOf("live-title"),
    byLine: blameAt(model, state.step, "line"),
    byLayer: blameAt(model, state.step, "layer"),
    lineBars: byId("by-line").children.length,
    rows: rowsShown().length,
    count: textOf("table-count"),
    chartColours: coloursOf("chart"),
    arenaColours: model.count > 0 ? coloursOf("arena") : 0,
    first: rowsShown()[0],
    compared: [...document.querySelectorAll(".compared tr")].map(
        row => [...row.cells].map(cell => cell.textContent)),
  };
  press("ArrowLeft");
  seen.before = state.step;
  press("ArrowRight");
  seen.back = state.step;
  press("Home");
  seen.home = state.step;
  press("End");
  seen.end = state.step;
  press("p");
  seen.peak = state.step;
  if (model.count > 0) {
    const largest = liveAt(model, currentArena(), state.step)[0];
    pointAt(largest, "pointermove");
    seen.hovered = state.hovered;
    seen.tip = textOf("tip");
    hideTip();
    pointAt(largest, "pointerdown");
    pointAt(largest, "pointerup");
    drawNow();
    seen.chosen = state.chosen;
    seen.largest = largest;
    seen.chosenText = textOf("chosen");
    press("ArrowUp", byId("arena"));
    seen.above = state.chosen;
    const word = model.list[largest].name;
    byId("search").value = word;
    byId("search").dispatchEvent(new Event("input"));
    seen.searched = {
      word,
      count: table.order.length,
      wanted: table.texts.filter(text => text.includes(word.toLowerCase())).length
    };
    byId("search").value = "";
    orderRows();
    sortBy(6);
    seen.sorted = table.order.slice(0, 50).map(i => model.begin[i]);
    zoom(0.25);
    drawNow();
    seen.zoomed = view.x1 - view.x0;
    resetView();
  }
  const middle = Math.floor(model.steps / 2);
  seen.ms = {
    pictures: timed(() => {
      state.drawnKey = "";
      drawNow();
    }),
    step: timed(() => {
      setStep(middle);
      drawNow();
    }),
    hover: timed(() => bufferAt(model, currentArena(), middle, currentArena().height)),
    search: timed(() => {
      byId("search").value = "zz";
      orderRows();
      byId("search").value = "";
      orderRows();
    }),
    sort: timed(() => sortBy(1)),
  };
  if (model.count > 0) {
    fillTable("buffers");
    press("ArrowRight", byId("tab-buffers"));
    seen.tab = table.tab;
  }
  fillTable("steps");
  seen.stepRows = table.order.length;
  press("t");
  seen.theme = document.documentElement.dataset.theme;
  if (state.budgets) seen.budgets = budgetsSeen();
  const pre = make("pre", {id: "selftest"}, JSON.stringify(seen));
  document.body.append(pre);
}

window.addEventListener(
    "error",
    event => document.body.append(make("pre", {class: "error"}, "error: " + event.message)));
start();
