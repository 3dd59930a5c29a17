// The table of all tensors or all steps. Only visible rows are in the DOM, so that 20,000 rows are as
// fast as 20; all rows have the same height.
"use strict";

const ROW_HEIGHT = 28, SPARE_ROWS = 8;

function byteCell(value) {
  return make("td", {class: "number", title: numberText(value) + " bytes"}, bytesText(value));
}
function numberCell(value) { return make("td", {class: "number"}, numberText(value)); }
function textCell(text) { return make("td", {class: "text", title: text}, text); }
function wideCell(text) { return make("td", {class: "wide", title: text}, text); }
function codeCell(text) { return make("td", {class: "mono", title: text}, text); }
function classCell(name) {
  return make("td", {}, make("span", {class: "class"}, swatch(styleOfClass(name)), name));
}

const BUFFER_COLUMNS = [
  {title: "Bytes", of: b => b.bytes, cell: byteCell, number: true},
  {title: "Type", of: b => b.type, cell: codeCell},
  {title: "Class", of: b => b.class, cell: classCell},
  {title: "Made by", of: b => b.name, cell: textCell},
  {title: "Line", of: b => b.line, cell: codeCell},
  {title: "Layer", of: b => b.layer, cell: codeCell},
  {title: "From step", of: b => b.begin, cell: numberCell, number: true},
  {title: "to", of: b => b.end - 1, cell: numberCell, number: true},
  {title: "Offset", of: b => b.offset, cell: numberCell, number: true},
  {title: "Reason", of: b => b.reason, cell: wideCell},
];
const STEP_COLUMNS = [
  {title: "Step", of: s => s.number, cell: numberCell, number: true},
  {title: "Does", of: s => s.step, cell: wideCell},
  {title: "Line", of: s => s.line, cell: codeCell},
  {title: "Layer", of: s => s.layer, cell: codeCell},
  {title: "In use, planned", of: s => s.in_use, cell: byteCell, number: true},
];
const MEASURED_COLUMNS = [
  {title: "In use, measured", of: s => s.seen, cell: byteCell, number: true},
  {title: "Runs", of: s => s.runs, cell: numberCell, number: true},
  {
    title: "Time",
    of: s => s.time_ns,
    number: true,
    cell: ns => make("td", {class: "number"}, timeText(ns))
  },
];

const table = {
  tab: "buffers",
  columns: [],
  rows: [],
  order: [],
  texts: [],
  sort: 0,
  down: true,
  cursor: -1
};

function fillTable(tab) {
  const model = currentModel();
  table.tab = model.count === 0 ? "steps" : tab;
  if (table.tab === "buffers") {
    table.columns = BUFFER_COLUMNS;
    table.rows = model.list;
    table.sort = 0;
    table.down = true;
  } else {
    table.columns = model.seen ? [...STEP_COLUMNS, ...MEASURED_COLUMNS] : STEP_COLUMNS;
    table.rows = model.plan.timeline.map((step, number) => {
      const seen = model.seen ? model.profile.steps[number] : {};
      return {...step, number, seen: seen.in_use, runs: seen.runs, time_ns: seen.time_ns};
    });
    table.sort = 0;
    table.down = false;
  }
  table.texts = table.rows.map(
      row => table.columns.filter(c => !c.number).map(c => c.of(row)).join(" ").toLowerCase());
  table.cursor = -1;
  for (const [id, name] of [["tab-buffers", "buffers"], ["tab-steps", "steps"]]) {
    byId(id).setAttribute("aria-selected", String(table.tab === name));
    byId(id).tabIndex = table.tab === name ? 0 : -1;
  }
  byId("tab-buffers").disabled = model.count === 0;
  byId("table").scrollTop = 0;
  orderRows();
}

// The rows that contain every word of the search, in the selected order.
function orderRows() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(word => word !== "");
  const column = table.columns[table.sort], sign = table.down ? -1 : 1;
  const keys = table.rows.map(column.of);
  const compare = column.number ? (a, b) => keys[a] - keys[b] :
                                  (a, b) => keys[a] < keys[b] ? -1 :
          keys[a] > keys[b]                                   ? 1 :
                                                                0;
  table.order = [];
  table.texts.forEach((text, i) => {
    if (words.every(word => text.includes(word))) table.order.push(i);
  });
  table.order.sort((a, b) => sign * compare(a, b) || a - b);
  const all = table.rows.length, shown = table.order.length;
  byId("table-count").textContent =
      shown === all ? numberText(all) + " rows" : numberText(shown) + " of " + numberText(all);
  renderTable();
}

function sortBy(column) {
  table.down = table.sort === column ? !table.down : table.columns[column].number === true;
  table.sort = column;
  byId("table").scrollTop = 0;
  orderRows();
  byId("table").querySelectorAll("th button")[column].focus();
}

function headRow() {
  return make(
      "tr", {},
      ...table.columns.map(
          (column, i) => make(
              "th", {
                scope: "col",
                class: column.number ? "number" : "",
                "aria-sort": table.sort === i ? (table.down ? "descending" : "ascending") : null
              },
              make("button", {type: "button", onclick: () => sortBy(i)}, column.title))));
}

function dataRow(i, place) {
  const row = table.rows[i];
  const isChosen = table.tab === "buffers" ? i === state.chosen : i === state.step;
  return make(
      "tr",
      {"aria-selected": String(isChosen), "aria-rowindex": place + 2, onclick: () => showRow(i)},
      ...table.columns.map(column => column.cell(column.of(row))));
}

function gapRow(rows) {
  return make(
      "tr", {class: "gap", "aria-hidden": "true"},
      make("td", {colspan: table.columns.length, style: `height: ${rows * ROW_HEIGHT}px`}));
}

function renderTable() {
  const box = byId("table");
  const total = table.order.length;
  let first = 0, last = total;
  if (state.printing) {
    last = Math.min(total, 60);
    byId("print-note").textContent =
        last < total ? `The first ${last} of ${numberText(total)} rows.` : "";
  } else {
    first = Math.max(0, Math.floor(box.scrollTop / ROW_HEIGHT) - SPARE_ROWS);
    last = Math.min(total, first + Math.ceil(box.clientHeight / ROW_HEIGHT) + 2 * SPARE_ROWS);
  }
  const rows = table.order.slice(first, last).map((i, k) => dataRow(i, first + k));
  if (first > 0) rows.unshift(gapRow(first));
  if (last < total && !state.printing) rows.push(gapRow(total - last));
  const body = make("tbody", {}, ...rows);
  const known = box.querySelector("table");
  // Headings are not rebuilt while scrolling, so they keep the focus.
  if (known && known.dataset.key === tableKey()) {
    known.tBodies[0].replaceWith(body);
  } else {
    box.replaceChildren(make(
        "table", {class: "data", "data-key": tableKey(), "aria-rowcount": total + 1},
        make("thead", {}, headRow()), body));
  }
}
function tableKey() {
  return [
    table.tab, table.sort, table.down, table.columns.length, table.order.length, state.theme
  ].join();
}

function showRow(i) {
  if (table.tab === "buffers")
    choose(i);
  else
    setStep(i);
}

// Arrow keys in the table move the selection, and the chart follows.
function moveInTable(by) {
  if (table.order.length === 0) return;
  const chosen = table.tab === "buffers" ? state.chosen : state.step;
  const at = table.order.indexOf(chosen);
  const next = at < 0 ? 0 : Math.min(table.order.length - 1, Math.max(0, at + by));
  const box = byId("table"), top = next * ROW_HEIGHT;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + 2 * ROW_HEIGHT > box.scrollTop + box.clientHeight)
    box.scrollTop = top + 2 * ROW_HEIGHT - box.clientHeight;
  showRow(table.order[next]);
}
