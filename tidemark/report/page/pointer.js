// Pointer input on the charts: hover, click, zoom and pan.
"use strict";

function sizeOf(canvas) {
  return {right: canvas.clientWidth - MARGIN.right, bottom: canvas.clientHeight - MARGIN.bottom};
}
function placeOf(canvas, event) {
  const box = canvas.getBoundingClientRect(), size = sizeOf(canvas);
  const x = event.clientX - box.left, y = event.clientY - box.top;
  const share = (size.bottom - y) / (size.bottom - MARGIN.top);
  return {
    x,
    y,
    size,
    step: xToStep(size, x),
    offset: view.y0 + share * (view.y1 - view.y0),
    inside: x >= MARGIN.left && x <= size.right && y >= MARGIN.top && y <= size.bottom
  };
}

function showTip(event, head, ...lines) {
  const tip = byId("tip");
  tip.replaceChildren(make("b", {}, head), ...lines.map(line => make("div", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 16 + box.width > window.innerWidth ? event.clientX - 16 - box.width :
                                                                    event.clientX + 16;
  const top = Math.min(event.clientY + 16, window.innerHeight - box.height - 8);
  tip.style.left = Math.max(8, left) + "px";
  tip.style.top = Math.max(8, top) + "px";
}
function hideTip() { byId("tip").hidden = true; }

function hoverChart(event) {
  const place = placeOf(byId("chart"), event), number = Math.floor(place.step);
  const step = currentModel().plan.timeline[number];
  if (!place.inside || !step) return hideTip();
  const lines =
      ["step " + number + ", " + lineAndLayer(step), bytesText(step.in_use) + " in use, planned"];
  if (currentModel().seen) lines.push(bytesText(currentModel().seen[number]) + " in use, measured");
  showTip(event, step.step, ...lines);
}

function hoverArena(event) {
  const place = placeOf(byId("arena"), event);
  const found = place.inside ?
      bufferAt(currentModel(), currentArena(), Math.floor(place.step), place.offset) :
      -1;
  if (found !== state.hovered) {
    state.hovered = found;
    drawSoon("pictures");
  }
  if (found < 0) return hideTip();
  const b = currentModel().list[found];
  showTip(
      event, b.type, bytesText(b.bytes) + " at offset " + numberText(b.offset),
      "steps " + b.begin + " to " + (b.end - 1), b.reason, lineAndLayer(b));
}

// A click selects; a drag marks the range to zoom into, or pans with Shift.
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
    if (Math.abs(place.x - start.place.x) + Math.abs(place.y - start.place.y) > 4)
      start.moved = true;
    if (!start.moved) return;
    hideTip();
    if (start.moves) {
      const width = start.view.x1 - start.view.x0, height = start.view.y1 - start.view.y0;
      moveTo(
          start.view.x0 - (place.x - start.place.x) / (place.size.right - MARGIN.left) * width,
          width);
      if (canvas.id === "arena")
        moveOffsets(
            start.view.y0 + (place.y - start.place.y) / (place.size.bottom - MARGIN.top) * height,
            height);
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
    if (!was.moved)
      click(place);
    else if (!was.moves)
      zoomToMarked(canvas, was.place, place);
    drawSoon("pictures");
  });
  canvas.addEventListener("pointerleave", () => {
    hideTip();
    if (state.hovered >= 0) drawSoon("pictures");
    state.hovered = -1;
  });
  canvas.addEventListener("dblclick", () => {
    resetView();
    drawSoon("pictures");
  });
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;  // Let the page scroll.
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
  return {
    left: xs[0],
    right: xs[1],
    top: isArena ? ys[0] : MARGIN.top,
    bottom: isArena ? ys[1] : arena.bottom
  };
}
function zoomToMarked(canvas, from, to) {
  const steps = [from.step, to.step].sort((a, b) => a - b),
        offsets = [from.offset, to.offset].sort((a, b) => a - b);
  moveTo(
      Math.floor(Math.max(0, steps[0])),
      Math.min(Math.max(2, Math.ceil(steps[1] - steps[0])), Math.max(1, longest())));
  if (canvas.id !== "arena") return;
  const all = Math.max(1, currentArena().height);
  moveOffsets(offsets[0], Math.min(all, Math.max(256, offsets[1] - offsets[0])));
}
