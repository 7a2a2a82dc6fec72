// Throughput: rounds per second from the evaluations, and values recorded only while this page is open: rows
// read, and bytes moved by collectives.

const throughputChart = new LineChart($('throughput-chart'), {
  label: 'Throughput over time; arrow keys move along it',
  nothing: 'No measurements yet.', fromZero: true,
  formatX: formatSeconds, headingX: (seconds) => `After ${formatSeconds(seconds)}`,
  formatY: (value) => throughputKinds[throughputKind].format(value),
});
const kBuckets = 90;
let throughputKind = null;
let throughputWasChosen = false;

// The rates between points of [seconds, count], over steps that are long enough to be steady.
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

const throughputKinds = {
  rounds: {name: 'Rounds', format: (value) => `${formatCount(value)}/s`, points: () => rates(evaluations.map(([round, seconds]) => [seconds, round]))},
  rows: {name: 'Rows', format: (value) => `${formatCount(value)}/s`, points: () => history.map(([seconds, rows]) => [seconds, rows])},
  bytes: {name: 'Collectives', format: (value) => `${formatBytes(value)}/s`, points: () => rates(history.map(([seconds, , bytes]) => [seconds, bytes]))},
};

function drawThroughput() {
  const known = [];
  if (evaluations.length > 1) known.push('rounds');
  if (history.some(([, rows]) => rows > 0)) known.push('rows');
  if (history.length > 2 && history[history.length - 1][2] > 0) known.push('bytes');
  if (!throughputWasChosen || !known.includes(throughputKind)) throughputKind = known[0] || 'rounds';
  const box = $('throughput-choice');
  const text = `${known} ${throughputKind}`;
  if (box.dataset.shown !== text) {
    box.dataset.shown = text;
    const buttons = known.map((kind) => make('button', {type: 'button', 'aria-pressed': kind === throughputKind}, throughputKinds[kind].name));
    box.replaceChildren(...buttons);
    makeChoice(buttons, (i) => {
      throughputKind = known[i];
      throughputWasChosen = true;
      drawThroughput();
    });
  }
  throughputChart.draw([{name: throughputKinds[throughputKind].name, color: 0, points: throughputKinds[throughputKind].points()}]);
}
