// How each rank spends its time, as stacked bars: horizontal for few ranks and vertical for many. All parts of
// one color are one path, so the number of paths does not grow with the number of bars.

const kLyingRanks = 16;
const timesChart = $('times-chart');
const timesSvg = makeSvg('svg', {role: 'img', 'aria-label': 'Time by rank; the table below has the numbers'});
timesChart.append(timesSvg);
const timesTooltip = new Tooltip(timesChart);
let timesByCollective = false;
let barAt = () => null;  // returns the bar at a position in the chart, or null

function collectiveNames(ranked) {
  const names = new Map();
  for (const worker of ranked) {
    for (const [collective, algorithm, , , seconds] of worker.traffic) {
      const name = algorithm ? `${collective}, ${algorithm}` : collective;
      names.set(name, (names.get(name) || 0) + seconds);
    }
  }
  return [...names].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

// Returns the parts of a bar: [{name, kind or color, seconds: function of a worker}].
function timesParts(ranked) {
  if (!timesByCollective) {
    return [{name: ranked.length <= kLyingRanks ? 'Waiting for others (% on the right)' : 'Waiting for others', kind: 'late', seconds: (w) => Math.min(w.waited, w.collectives)},
            {name: 'In collectives', kind: 'collective', seconds: (w) => Math.max(0, w.collectives - w.waited)},
            {name: 'Computing', kind: 'computing', seconds: (w) => Math.max(0, job.seconds - w.collectives)}];
  }
  return collectiveNames(ranked).map((name, color) => ({name, color, seconds: (w) => w.traffic.reduce(
    (sum, [collective, algorithm, , , seconds]) => sum + ((algorithm ? `${collective}, ${algorithm}` : collective) === name ? seconds : 0), 0)}));
}

// If there are more ranks than bars can be drawn, several ranks share a bar. It shows the one that waited
// least, because the others probably waited for it.
function timesBars(ranked, parts, most) {
  const size = Math.ceil(ranked.length / most);
  const bars = [];
  for (let i = 0; i < ranked.length; i += size) {
    const group = ranked.slice(i, i + size);
    const shown = group.reduce((least, worker) => worker.waited < least.waited ? worker : least);
    bars.push({group, shown, seconds: parts.map((part) => part.seconds(shown))});
  }
  return bars;
}

const nameOfBar = ({group, shown}) => capitalized(placeOf(shown)) +
  (group.length === 1 ? '' : ` (of ranks ${group[0].rank} to ${group[group.length - 1].rank}, the one that waited least)`);

const kindOf = (part) => () => {
  const swatch = make('span', {class: `swatch ${part.kind || ''}`});
  if (!part.kind) swatch.style.background = `var(--series-${part.color % 8})`;
  return swatch;
};

function drawTimes() {
  const width = timesChart.clientWidth;
  const ranked = rankedWorkers();
  if (width === 0) return;
  const parts = timesParts(ranked);
  if (ranked.length === 0 || parts.length === 0 || !(job.seconds > 0)) return timesSvg.replaceChildren();
  const isLying = ranked.length <= kLyingRanks;
  const left = isLying ? 64 : 44, right = isLying ? 48 : 6, bottom = 20;
  const bars = timesBars(ranked, parts, Math.floor((width - left - right) / 3));
  const length = isLying ? width - left - right : 190;
  const breadth = isLying ? 20 : Math.min(24, (width - left - right) / bars.length);
  const gap = breadth > 6 ? Math.min(6, breadth * 0.28) : breadth > 4.5 ? 1 : 0;
  const longest = timesByCollective ? Math.max(...bars.map((bar) => bar.seconds.reduce((a, b) => a + b, 0)), 1e-9) : job.seconds;
  const height = (isLying ? bars.length * breadth : length) + bottom;
  const paths = parts.map(() => []);
  const selected = [];
  bars.forEach((bar, i) => {
    const across = (isLying ? 0 : left) + i * breadth + gap / 2;
    let along = 0;
    bar.seconds.forEach((seconds, part) => {
      const size = seconds / longest * length;
      if (size < 0.2) return;
      paths[part].push(isLying ? rectangle(left + along, across, size, breadth - gap) : rectangle(across, length - along - size, breadth - gap, size));
      along += size;
    });
    if (bar.group.some((worker) => worker.i === selection.worker)) {
      selected.push(isLying ? rectangle(left, across, length, breadth - gap) : rectangle(across, 0, breadth - gap, length));
    }
  });
  timesSvg.setAttribute('height', height);
  timesSvg.replaceChildren(
    makeSvg('defs', {}, makeSvg('pattern', {id: 'hatch', width: 5, height: 5, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'},
                                makeSvg('rect', {width: 5, height: 5}), makeSvg('path', {d: 'M0 0V5'}))),
    ...timesAxis(isLying, left, length, width - right, longest, height),
    ...parts.map((part, i) => {
      const path = makeSvg('path', {class: `bar ${part.kind || ''}`, d: paths[i].join('')});
      if (!part.kind) path.style.fill = `var(--series-${part.color % 8})`;
      return path;
    }),
    makeSvg('path', {class: 'selected-rank', d: selected.join('')}), ...timesLabels(isLying, bars, left, breadth, length, width));
  barAt = (x, y) => bars[Math.floor(isLying ? y / breadth : (x - left) / breadth)] || null;
  drawTimesLegend(parts);
  fillTimesTable(ranked, parts);
}

const rectangle = (x, y, width, height) => `M${x.toFixed(1)} ${y.toFixed(1)}h${width.toFixed(2)}v${height.toFixed(2)}h${(-width).toFixed(2)}z`;

function timesAxis(isLying, left, length, end, longest, height) {
  const ticks = timesByCollective ? roundTicks(0, longest, 4).map((s) => [s / longest, formatSeconds(s)])
                                  : [0, 0.25, 0.5, 0.75, 1].map((share) => [share, formatShare(share)]);
  return ticks.flatMap(([share, text]) => isLying
    ? [makeSvg('line', {class: 'grid', x1: left + share * length, x2: left + share * length, y1: 0, y2: height - 20}),
       makeSvg('text', {x: left + share * length, y: height - 4, 'text-anchor': 'middle'}, text)]
    : [makeSvg('line', {class: 'grid', x1: left, x2: end, y1: length * (1 - share), y2: length * (1 - share)}),
       makeSvg('text', {x: left - 6, y: length * (1 - share), 'text-anchor': 'end', 'dominant-baseline': 'central'}, text)]);
}

function timesLabels(isLying, bars, left, breadth, length, width) {
  const every = isLying ? 1 : Math.ceil(bars.length / Math.max(1, Math.floor((width - left) / 44)));
  const labels = [];
  bars.forEach((bar, i) => {
    if (i % every !== 0) return;
    labels.push(isLying ? makeSvg('text', {x: left - 8, y: i * breadth + breadth / 2, 'text-anchor': 'end', 'dominant-baseline': 'central'}, nameOf(bar.group[0]))
                        : makeSvg('text', {x: left + i * breadth + breadth / 2, y: length + 15, 'text-anchor': 'middle'}, String(bar.group[0].rank)));
    if (isLying && !timesByCollective && bar.seconds[0] / job.seconds >= 0.005) {
      labels.push(makeSvg('text', {x: left + length + 6, y: i * breadth + breadth / 2, 'dominant-baseline': 'central'}, formatShare(bar.seconds[0] / job.seconds)));
    }
  });
  return labels;
}

function drawTimesLegend(parts) {
  const text = parts.map((part) => part.name).join('|');
  if ($('times-legend').dataset.shown === text) return;
  $('times-legend').dataset.shown = text;
  $('times-legend').replaceChildren(...parts.map((part) => make('span', {}, kindOf(part)(), part.name)));
}

function fillTimesTable(ranked, parts) {
  const details = $('times-table');
  if (!details.open) return;
  details.lastElementChild.replaceChildren(makeTable(
    ['Rank', 'Host', ...parts.map((part) => part.name), 'Made others wait'],
    ranked.map((worker) => [worker.rank, worker.host, ...parts.map((part) => formatSeconds(part.seconds(worker))), formatSeconds(worker.made_wait)])));
}

makeChoice([$('times-waiting'), $('times-collective')], (i) => {
  timesByCollective = i === 1;
  drawTimes();
});
$('times-table').addEventListener('toggle', drawTimes);
timesSvg.addEventListener('pointermove', (event) => {
  const box = timesSvg.getBoundingClientRect();
  const bar = barAt(event.clientX - box.left, event.clientY - box.top);
  if (!bar) return timesTooltip.hide();
  const parts = timesParts(rankedWorkers());
  timesTooltip.show(event.clientX - box.left, nameOfBar(bar), parts.map((part, i) =>
    [part.name, `${formatSeconds(bar.seconds[i] || 0)}${timesByCollective ? '' : `, ${formatShare(bar.seconds[i] / job.seconds)}`}`, kindOf(part)]));
});
timesSvg.addEventListener('pointerleave', () => timesTooltip.hide());
timesSvg.addEventListener('click', (event) => {
  const box = timesSvg.getBoundingClientRect();
  const bar = barAt(event.clientX - box.left, event.clientY - box.top);
  if (bar) select(bar.shown.i);
});
new ResizeObserver(() => drawTimes()).observe(timesChart);
selection.listeners.push(() => drawTimes());
