// The chart and table of the evaluation metrics by round.

const evaluationChart = new LineChart($('evaluation-chart'), {
  label: 'Evaluation metrics by round; arrow keys move along the rounds',
  nothing: 'No evaluation results yet.', wholeX: true,
  formatX: String, formatY: formatMetric, headingX: (round) => `Round ${round}`,
});
const hiddenMetrics = new Set();
let metricNames = [];
const legendValues = new Map();

// Returns a map from the name of each metric in `evaluations` to its points.
function pointsOf(evaluations, names) {
  const byName = new Map(names.map((name) => [name, []]));
  for (const [round, , metrics] of evaluations) {
    for (const name of Object.keys(metrics)) {
      if (!byName.has(name)) byName.set(name, []);
      byName.get(name).push([round, metrics[name]]);
    }
  }
  return byName;
}

// The metrics of the job selected for comparison, in the colors of this job's metrics.
function comparedSeries() {
  return [...pointsOf(compared.evaluations, [])].map(([name, points], i) => {
    const color = metricNames.indexOf(name);
    return {name: `${name}: ${compared.name}`, color: color < 0 ? metricNames.length + i : color, points, hidden: hiddenMetrics.has(name), dashed: true};
  });
}

function drawEvaluation() {
  const byName = pointsOf(evaluations, metricNames);
  if (byName.size !== metricNames.length) {
    metricNames = [...byName.keys()];
    makeEvaluationLegend();
  }
  const own = metricNames.map((name, color) => ({name, color, points: byName.get(name), hidden: hiddenMetrics.has(name)}));
  evaluationChart.draw([...own, ...comparedSeries()],
                       $('log-scale').getAttribute('aria-pressed') === 'true');
  for (const [name, node] of legendValues) {
    const points = byName.get(name);
    setText(node, points.length ? ` ${formatMetric(points[points.length - 1][1])}` : '');
  }
  fillEvaluationTable();
}

function makeEvaluationLegend() {
  legendValues.clear();
  $('evaluation-legend').replaceChildren(...metricNames.map((name, color) => {
    const value = make('small');
    const button = make('button', {type: 'button', 'aria-pressed': !hiddenMetrics.has(name)}, strokeOf(color), name, value);
    legendValues.set(name, value);
    button.addEventListener('click', () => {
      if (!hiddenMetrics.delete(name)) hiddenMetrics.add(name);
      setAttribute(button, 'aria-pressed', !hiddenMetrics.has(name));
      drawEvaluation();
    });
    return button;
  }));
}

// Fills the table with the last 200 rounds, latest first, if the table is open.
function fillEvaluationTable() {
  const details = $('evaluation-table');
  details.hidden = evaluations.length === 0;
  if (!details.open) return;
  const rows = evaluations.slice(-200).reverse().map(([round, seconds, metrics]) =>
    [round, formatSeconds(seconds), ...metricNames.map((name) => name in metrics ? formatMetric(metrics[name]) : '')]);
  details.lastElementChild.replaceChildren(makeTable(['Round', 'After', ...metricNames], rows));
}

$('evaluation-table').addEventListener('toggle', fillEvaluationTable);
$('log-scale').addEventListener('click', () => {
  const isOn = $('log-scale').getAttribute('aria-pressed') === 'true';
  setAttribute($('log-scale'), 'aria-pressed', !isOn);
  drawEvaluation();
});
