// The job's state as received by this page (format: submit/monitor/page_state.h). Each update returns the parts
// of the page to draw again.

let job = {};
let workers = [];
let evaluations = [];
let events = [];
// Values recorded only while the page is open: [seconds, rows per second, bytes of collectives so far].
const history = [];
const kMaxHistory = 3600;
// The cores and memory used by each worker over time (format: submit/monitor/usage_history.h).
let usage = {seconds: [], cores: [], mib: []};
const kMaxUsage = 600;
const kMaxEvents = 256;

function bytesOfCollectives() {
  let sum = 0;
  for (const worker of workers) for (const traffic of worker.traffic) sum += traffic[3];
  return sum;
}

function remember() {
  history.push([job.seconds, job.rows_per_second, bytesOfCollectives()]);
  if (history.length > kMaxHistory) history.shift();
  rememberUsage();
}

function takeUsage(known) {
  usage = known;
}

// Adds the current usage of the workers. Beyond kMaxUsage points in time, every second point is dropped.
function rememberUsage() {
  if (job.over || usage.cores.length !== workers.length || job.seconds <= (usage.seconds[usage.seconds.length - 1] ?? -1)) return;
  usage.seconds.push(job.seconds);
  for (const worker of workers) {
    usage.cores[worker.i].push(worker.cores);
    usage.mib[worker.i].push(worker.mib);
  }
  if (usage.seconds.length <= kMaxUsage) return;
  const half = (values) => values.filter((_, at) => at % 2 === 0);
  usage = {seconds: half(usage.seconds), cores: usage.cores.map(half), mib: usage.mib.map(half)};
}

function takeState(state) {
  ({job, workers, evaluations, events} = state);
  remember();
  return {all: true, workers, places: true, evaluations: true, events: true};
}

function takeEvaluations(changed) {
  for (const one of changed) {
    let at = evaluations.length;
    while (at > 0 && evaluations[at - 1][0] >= one[0]) --at;
    const isKnown = at < evaluations.length && evaluations[at][0] === one[0];
    evaluations.splice(at, isKnown ? 1 : 0, one);
  }
}

function takeChange(change) {
  Object.assign(job, change.job);
  const changed = change.workers.map((one) => Object.assign(workers[one.i], one));
  if (change.all_evaluations) evaluations = [];
  takeEvaluations(change.evaluations);
  events = events.concat(change.events).slice(-kMaxEvents);
  remember();
  const places = change.workers.some((one) => 'rank' in one || 'host' in one);
  return {all: false, workers: changed, places, evaluations: change.evaluations.length > 0, events: change.events.length > 0};
}

const nameOf = (worker) => worker.rank === null ? worker.name : `rank ${worker.rank}`;
const placeOf = (worker) => `${nameOf(worker)}${worker.host ? ` on ${worker.host}` : ''}`;
const shortNameOf = (worker) => {
  if (worker.rank !== null) return String(worker.rank);
  return worker.role === 'worker' ? worker.name.replace('worker ', '') : worker.role[0].toUpperCase();
};

// The workers that have ranks, in rank order.
const rankedWorkers = () => workers.filter((worker) => worker.rank !== null).sort((a, b) => a.rank - b.rank);

// The worker that is selected in all parts of the page: an index, or null.
const selection = {worker: null, listeners: []};
function select(worker) {
  selection.worker = selection.worker === worker ? null : worker;
  for (const listener of selection.listeners) listener();
}
