// Values over time: rounds per second, computed from the evaluations; the cores and the memory of each worker;
// and values recorded only while this page is open: rows read, and bytes moved by collectives.

const timeChart = new LineChart($('over-time-chart'), {
  label: 'Values over time; arrow keys move along it',
  nothing: 'No measurements yet.', fromZero: true,
  formatX: formatSeconds, headingX: (seconds) => `After ${formatSeconds(seconds)}`,
  formatY: (value) => timeKinds[timeKind].format(value),
});
const kBuckets = 90;
const kMostLines = 8;  // the number of series colors
let timeKind = null;
let timeKindWasChosen = false;

// Converts points [seconds, count] to points [seconds, rate]. Each rate is the average over at least 1/kBuckets
// of the whole time, so that it is steady.
function rates(points) {
  if (points.length < 2) return [];
  const step = (points[points.length - 1][0] - points[0][0]) / kBuckets;
  const out = [];
  let [since, before] = points[0];
  for (const [seconds, count] of points) {
    if (count < before || seconds < since) {  // the job has been restarted
      [since, before] = [seconds, count];
    } else if (seconds - since >= step && seconds > since) {
      out.push([seconds, (count - before) / (seconds - since)]);
      [since, before] = [seconds, count];
    }
  }
  return out;
}

// One line for the selected worker or, without a selection, for each of the kMostLines workers that use most
// now.
function linesOfWorkers(values) {
  const latest = (worker) => values[worker.i][values[worker.i].length - 1];
  const shown = selection.worker !== null ? [workers[selection.worker]]
    : workers.slice().sort((a, b) => latest(b) - latest(a)).slice(0, kMostLines).sort((a, b) => a.i - b.i);
  return shown.map((worker, color) => ({name: nameOf(worker), color, points: usage.seconds.map((seconds, at) => [seconds, values[worker.i][at]])}));
}

const line = (points) => [{name: timeKinds[timeKind].name, color: 0, points}];
const timeKinds = {
  rounds: {name: 'Rounds', format: (value) => `${formatCount(value)}/s`, lines: () => line(rates(evaluations.map(([round, seconds]) => [seconds, round])))},
  cores: {name: 'Cores', format: formatCount, lines: () => linesOfWorkers(usage.cores)},
  memory: {name: 'Memory', format: (value) => formatBytes(value * 1048576), lines: () => linesOfWorkers(usage.mib)},
  rows: {name: 'Rows', format: (value) => `${formatCount(value)}/s`, lines: () => line(history.map(([seconds, rows]) => [seconds, rows]))},
  bytes: {name: 'Collectives', format: (value) => `${formatBytes(value)}/s`, lines: () => line(rates(history.map(([seconds, , bytes]) => [seconds, bytes])))},
};

function drawOverTime() {
  const known = [];
  if (evaluations.length > 1) known.push('rounds');
  if (usage.seconds.length > 1) known.push('cores', 'memory');
  if (history.some(([, rows]) => rows > 0)) known.push('rows');
  if (history.length > 2 && history[history.length - 1][2] > 0) known.push('bytes');
  if (!timeKindWasChosen || !known.includes(timeKind)) timeKind = known[0] || 'rounds';
  const box = $('over-time-choice');
  const text = `${known} ${timeKind}`;
  if (box.dataset.shown !== text) {
    box.dataset.shown = text;
    const buttons = known.map((kind) => make('button', {type: 'button', 'aria-pressed': kind === timeKind}, timeKinds[kind].name));
    box.replaceChildren(...buttons);
    makeChoice(buttons, (i) => {
      timeKind = known[i];
      timeKindWasChosen = true;
      drawOverTime();
    });
  }
  timeChart.draw(timeKinds[timeKind].lines());
}

selection.listeners.push(drawOverTime);
