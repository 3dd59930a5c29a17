// Keyboard control: everything that the pointer can do.
"use strict";

// Selects the live tensor above or below the selected one.
function chooseByPlace(direction) {
  const model = currentModel();
  const live =
      liveAt(model, currentArena(), state.step).sort((a, b) => model.offset[a] - model.offset[b]);
  const at = live.indexOf(state.chosen);
  const next = at < 0 ? (direction > 0 ? 0 : live.length - 1) : at + direction;
  if (next >= 0 && next < live.length) choose(live[next]);
}

function changeTab() {
  fillTable(table.tab === "buffers" ? "steps" : "buffers");
  byId("tab-" + table.tab).focus();
}
// The whole list is one Tab stop; arrow keys move inside it.
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
    ArrowLeft: () => setStep(state.step - far),
    ArrowRight: () => setStep(state.step + far),
    Home: () => setStep(0),
    End: () => setStep(currentModel().steps - 1),
    p: () => setStep(currentModel().peakStep),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    "0": () => {
      resetView();
      drawSoon("pictures");
    },
    "/": () => byId("search").focus(),
    "<": () => setBudget(state.budgets?.chosen - 1),
    ">": () => setBudget(state.budgets?.chosen + 1),
    t: () => setTheme(state.theme === "dark" ? "light" : "dark"),
    "?": () => byId("help").showModal(),
    Escape: () => choose(-1),
  };
  if (target.getAttribute("role") === "tab") actions.ArrowLeft = actions.ArrowRight = changeTab;
  if (byId("live").contains(target))
    Object.assign(actions, {
      ArrowUp: () => focusLive(target, "previousElementSibling"),
      ArrowDown: () => focusLive(target, "nextElementSibling")
    });
  if (isTable)
    Object.assign(actions, {
      ArrowUp: () => moveInTable(-1),
      ArrowDown: () => moveInTable(1),
      Enter: () => byId("pictures").scrollIntoView()
    });
  if (isPicture)
    Object.assign(actions, {ArrowUp: () => chooseByPlace(1), ArrowDown: () => chooseByPlace(-1)});
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
}
