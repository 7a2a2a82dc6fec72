// The workers, grouped by host: one cell per worker, colored and marked by its state.

const kMarks = {waiting: '', starting: '', running: '', stuck: '!', succeeded: '✓', failed: '✕'};
const kDense = 96;  // from this number of workers on, cells are small and show only a mark
const kMostTroubles = 4;
const cells = [];
let layout = '';  // the hosts and workers for which the cells were made

// Makes the cells, but only if there are none or workers have moved to other hosts. Returns whether it has made
// them.
function makeHosts() {
  const byHost = new Map();
  for (const worker of workers) {
    const host = worker.host || 'not placed yet';
    if (!byHost.has(host)) byHost.set(host, []);
    byHost.get(host).push(worker.i);
  }
  const wanted = JSON.stringify([...byHost]);
  if (wanted === layout) return false;
  layout = wanted;
  const focused = cells.findIndex((cell) => cell === document.activeElement);
  $('hosts').classList.toggle('dense', workers.length >= kDense);
  cells.length = 0;
  $('hosts').replaceChildren(...[...byHost].map(([host, indices]) => {
    const group = make('div', {class: 'cells'}, ...indices.map((i) => {
      cells[i] = make('button', {type: 'button', 'data-i': i, tabindex: -1});
      return cells[i];
    }));
    return make('div', {class: 'host'}, make('h3', {}, host), group);
  }));
  const first = $('hosts').querySelector('button');
  if (first) first.tabIndex = 0;
  if (focused >= 0) cells[focused].focus();
  return true;
}

function drawCell(worker) {
  const cell = cells[worker.i];
  const mark = kMarks[worker.state];
  const isDense = workers.length >= kDense;
  const text = isDense ? mark : shortNameOf(worker) + mark;
  const restarts = worker.restarts > 0 ? String(worker.restarts) : '';
  if (cell.dataset.shown === `${worker.state} ${text} ${restarts}`) return;
  cell.dataset.shown = `${worker.state} ${text} ${restarts}`;
  cell.className = `cell ${worker.state}`;
  cell.replaceChildren(text, ...(restarts ? [make('span', {class: 'badge'}, restarts)] : []));
  const label = `${nameOf(worker)}, ${worker.state}${worker.host ? `, on ${worker.host}` : ''}` +
                (restarts ? `, restarted ${restarts === '1' ? 'once' : `${restarts} times`}` : '');
  cell.setAttribute('aria-label', label);
  cell.title = label;
}

function drawStates() {
  const counts = {};
  for (const worker of workers) counts[worker.state] = (counts[worker.state] || 0) + 1;
  const text = JSON.stringify(counts);
  if ($('states').dataset.shown === text) return;
  $('states').dataset.shown = text;
  $('states').replaceChildren(...Object.keys(kMarks).filter((state) => counts[state]).map((state) =>
    make('span', {}, make('span', {class: `key ${state}`, 'aria-hidden': 'true'}, kMarks[state]), `${counts[state]} ${state}`)));
}

function drawWorkers(changed) {
  const isNew = changed.places && makeHosts();
  for (const worker of isNew ? workers : changed.workers) drawCell(worker);
  if (isNew) drawSelection();
  drawStates();
  drawTroubles();
  drawSelectedWorker();
}

// Lists the first workers with problems, whose cells may be far down in a big job.
function drawTroubles() {
  const troubled = workers.filter((worker) => worker.trouble !== '');
  const shown = troubled.slice(0, kMostTroubles).map((worker) => [worker.i, `${capitalized(placeOf(worker))}: ${worker.trouble}`]);
  const text = JSON.stringify([shown, troubled.length]);
  if ($('troubles').dataset.shown === text) return;
  $('troubles').dataset.shown = text;
  const more = troubled.length - shown.length;
  $('troubles').replaceChildren(...shown.map(([, sentence]) => make('li', {}, sentence)), ...(more > 0 ? [make('li', {}, `and ${more} more`)] : []));
}

function drawSelection() {
  for (const cell of cells) setAttribute(cell, 'aria-pressed', Number(cell.dataset.i) === selection.worker);
}

function drawSelectedWorker() {
  const box = $('worker');
  const worker = workers[selection.worker];
  if (!worker) return setText(box, 'Select a worker to see its state here and its output in the logs.');
  const fact = (name, value, isWide) => make('div', isWide ? {class: 'full'} : {}, make('dt', {}, name), make('dd', {}, value));
  const facts = [fact('Host', worker.host || '-'), fact('Process', worker.pid ? String(worker.pid) : '-'),
                 fact('Cores used', worker.cores.toFixed(1)), fact('Memory', formatBytes(worker.mib * 1048576)),
                 fact('Processor time', formatSeconds(worker.cpu)), fact('In collectives', formatSeconds(worker.collectives)),
                 fact('Waited for others', formatSeconds(worker.waited)), fact('Made others wait', formatSeconds(worker.made_wait))];
  if (worker.call) {
    const where = worker.inside >= 1 ? ` (for ${formatSeconds(worker.inside)})` : '';
    facts.push(fact(worker.inside >= 0 ? 'In the collective' : 'Last collective', worker.call + where, true));
  }
  if (worker.reads) facts.push(fact('Reads', `${worker.reads}: ${formatCount(worker.rows)} rows` + (worker.read_share ? `, ${formatShare(worker.read_share)}` : ''), true));
  const heading = make('h3', {}, `${nameOf(worker)}: ${worker.state}`);
  box.replaceChildren(heading, make('dl', {}, ...facts));
}

// --- keyboard and pointer ----------------------------------------------------------------------------------

function cellBelow(cell, direction) {
  const here = cell.getBoundingClientRect();
  let best = null, bestScore = Infinity;
  for (const other of cells) {
    const there = other.getBoundingClientRect();
    const down = (there.top - here.top) * direction;
    if (down < here.height / 2) continue;
    const score = down * 1000 + Math.abs(there.left - here.left);
    if (score < bestScore) [best, bestScore] = [other, score];
  }
  return best;
}

$('hosts').addEventListener('keydown', (event) => {
  const inOrder = [...$('hosts').querySelectorAll('button')];
  const at = inOrder.indexOf(document.activeElement);
  if (at < 0) return;
  const next = {
    ArrowRight: () => inOrder[at + 1], ArrowLeft: () => inOrder[at - 1], Home: () => inOrder[0],
    End: () => inOrder[inOrder.length - 1], ArrowDown: () => cellBelow(inOrder[at], 1), ArrowUp: () => cellBelow(inOrder[at], -1),
  }[event.key];
  if (!next) return;
  event.preventDefault();
  const cell = next();
  if (!cell) return;
  inOrder[at].tabIndex = -1;
  cell.tabIndex = 0;
  cell.focus();
});
$('hosts').addEventListener('click', (event) => {
  const cell = event.target.closest('button');
  if (cell) select(Number(cell.dataset.i));
});
selection.listeners.push(drawSelection, drawSelectedWorker);
