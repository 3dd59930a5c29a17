// Bytes against work: the curve of all points, a slider over the plans that the page has, and what
// the shown plan does to stay within its budget.
"use strict";

// The plans from the fewest bytes to the most, so that the slider goes to the right for more.
function startBudgets(tradeoff, shown, profile) {
  if (!tradeoff) return;
  const plans = [...tradeoff.plans].reverse();
  const distance = each => Math.abs(each.plan.peak - shown.peak);
  const chosen = plans.reduce(
      (best, each, i) => distance(each) < distance(plans[best]) ? i : best, 0);
  state.budgets = {points: tradeoff.points, plans, chosen, profile};
  byId("budget").max = String(plans.length - 1);
  byId("budget").value = String(chosen);
  byId("budget").addEventListener("input", event => setBudget(Number(event.target.value)));
  byId("curve").addEventListener("click", event => setBudget(planNear(event)));
}

function setBudget(number) {
  if (!state.budgets) return;
  const {plans} = state.budgets;
  const chosen = Math.min(plans.length - 1, Math.max(0, number));
  state.budgets.chosen = chosen;
  byId("budget").value = String(chosen);
  const {plan} = plans[chosen];
  state.models[0] = Object.assign(makeModel(plan, profileOf(plan)), {letter: "A"});
  show(0);
}

// The run of the page, if it is one of this plan.
function profileOf(plan) {
  const {profile} = state.budgets;
  const isOfPlan =
      profile && profile.planned === plan.peak && profile.steps.length === plan.timeline.length;
  return isOfPlan ? profile : null;
}

// The plan with the most bytes within a budget, or with the fewest if there is none.
function setBudgetBytes(bytes) {
  const {plans} = state.budgets || {plans: []};
  setBudget(plans.findLastIndex(each => each.plan.peak <= bytes));
}

// The highest peak that the page can show: charts of different budgets have one scale.
function highestPeak() {
  const peaks = state.budgets ? state.budgets.points.map(point => point.peak) : [];
  return Math.max(1, ...peaks, ...state.models.map(model => model.peak));
}

// ---- text ---------------------------------------------------------------------------------------

function moreWorkText(share) {
  if (!(share > 0)) return "no more work";
  return share < 0.0005 ? "less than 0.1 % more work" : percentText(share, 1) + " more work";
}

function renderBudget() {
  const {plan} = currentModel();
  const decisions = plan.decisions || [];
  byId("budget-card").hidden = !state.budgets && decisions.length === 0;
  if (byId("budget-card").hidden) return;
  byId("curve").hidden = byId("budget").parentElement.hidden = !state.budgets;
  byId("budget-title").textContent = state.budgets ? "Bytes against work" : "Within the budget";
  byId("budget").setAttribute("aria-valuetext", bytesText(plan.peak));
  const usual = plan.usual_peak;
  byId("budget-says").replaceChildren(
      make("b", {}, bytesText(plan.peak)), " at once",
      plan.peak < usual ?
          `, ${percentText(plan.peak, usual)} of the usual ${bytesText(usual)}, with ${
              moreWorkText(plan.more_work)}.` :
          ": the usual plan.");
  byId("decisions").replaceChildren(...(decisions.length > 0 ? [decisionTable(decisions)] : []));
}

function decisionTable(decisions) {
  const head = ["does", "times", "where", "frees", "more work"];
  const row = each => {
    const where = [each.layer, each.line].filter(text => text !== "").join(", ");
    const number = text => make("td", {class: "number"}, each.op ? text : "");
    return make(
        "tr", {}, make("td", {title: each.what}, each.what), number(numberText(each.times)),
        make("td", {class: "mono", title: where}, where), number(bytesText(each.bytes)),
        number(percentText(each.more_work, 1)));
  };
  return make(
      "table", {},
      make("thead", {}, make("tr", {}, ...head.map(text => make("th", {scope: "col"}, text)))),
      make("tbody", {}, ...decisions.map(row)));
}

// ---- the curve ----------------------------------------------------------------------------------

// From bytes and shares of work to pixels.
function curveScale(size) {
  const {points} = state.budgets;
  const most = highestPeak() * 1.04;
  const work = Math.max(0.01, ...points.map(point => point.more_work)) * 1.1;
  return {
    most,
    work,
    x: bytes => MARGIN.left + bytes / most * (size.right - MARGIN.left),
    y: share => size.bottom - share / work * (size.bottom - MARGIN.top)
  };
}

function workTicks(most) {
  const step = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10].find(
                   each => most / each <= 5) || most / 4;
  const ticks = [];
  for (let at = 0; at <= most; at += step) ticks.push(at);
  return ticks;
}

function drawCurveAxes(size, scale) {
  const {context} = size;
  context.strokeStyle = colour("line");
  context.fillStyle = colour("muted");
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const share of workTicks(scale.work)) {
    const y = Math.round(scale.y(share)) + 0.5;
    context.beginPath();
    context.moveTo(MARGIN.left, y);
    context.lineTo(size.right, y);
    context.stroke();
    const percent = Number((100 * share).toFixed(1)) + " %";
    context.fillText(share > 0 ? "+" + percent : percent, MARGIN.left - 8, y);
  }
  context.textAlign = "left";
  context.fillText("more work", MARGIN.left, MARGIN.top - 10);
  context.textAlign = "center";
  for (const bytes of byteTicks(0, scale.most, 6))
    context.fillText(bytesText(bytes).replace(".0 ", " "), scale.x(bytes), size.bottom + 12);
}

function dot(context, x, y, radius, style) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = style;
  context.fill();
}

function drawCurve() {
  if (!state.budgets) return;
  const size = prepare(byId("curve")), scale = curveScale(size), {context} = size;
  const {points, plans, chosen} = state.budgets;
  drawCurveAxes(size, scale);
  context.beginPath();
  points.forEach(point => context.lineTo(scale.x(point.peak), scale.y(point.more_work)));
  context.strokeStyle = colour("planned");
  context.lineWidth = 1.75;
  context.lineJoin = "round";
  context.stroke();
  plans.forEach((each, i) => {
    const point = points[each.point];
    const isChosen = i === chosen;
    dot(context, scale.x(point.peak), scale.y(point.more_work), isChosen ? 6 : 3.5,
        colour(isChosen ? "tide" : "planned"));
  });
  byId("curve").setAttribute(
      "aria-label", `Bytes against work: ${points.length} points from ${
          bytesText(points[points.length - 1].peak)} to ${bytesText(points[0].peak)}`);
}

// The plan whose point is nearest to a click, by bytes.
function planNear(event) {
  const canvas = byId("curve"), scale = curveScale(sizeOf(canvas));
  const x = event.clientX - canvas.getBoundingClientRect().left;
  const {points, plans} = state.budgets;
  const distance = each => Math.abs(scale.x(points[each.point].peak) - x);
  return plans.reduce((best, each, i) => distance(each) < distance(plans[best]) ? i : best, 0);
}
