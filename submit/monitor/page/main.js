// The head of the page, and the source of the state: events from the server, or the state in a kept page.

const kSilenceMs = 15000;  // after this time without a message, the connection counts as lost
let lastHeard = Date.now();

function jobState() {
  if (job.over) return job.exit_code === 0 ? 'succeeded' : 'failed';
  if (workers.some((worker) => worker.state === 'stuck')) return 'stuck';
  if (workers.some((worker) => worker.state === 'running')) return 'running';
  return 'starting';
}

// The sentence about the slowest rank, with the same numbers as on the terminal: for the last half minute while
// the job runs, for the whole job after its end.
function stragglerSentence() {
  const share = (worker) => job.over ? worker.makes_wait : worker.makes_wait_now;
  let slowest = null;
  for (const worker of rankedWorkers()) if (slowest === null || share(worker) > share(slowest)) slowest = worker;
  if (slowest === null || share(slowest) < 0.05) return '';
  const percent = Math.round(100 * share(slowest));
  return `${capitalized(placeOf(slowest))} ${job.over ? 'made' : 'makes'} the others wait ${percent}\u00a0% of the time.`;
}

function showIf(node, text) {
  node.hidden = text === '';
  setText(node, text);
}

function drawHead() {
  const state = jobState();
  setText($('name'), job.name || 'job');
  setText($('command'), job.command);
  if (!$('state').classList.contains(state)) announce(`The job is ${state}.`);
  setText($('state'), state === 'stuck' ? 'running, a worker is stuck' : state);
  $('state').className = `pill ${state}`;
  showIf($('story'), job.story);
  showIf($('straggler'), stragglerSentence());
  const share = job.rounds > 0 ? job.round / job.rounds : 0;
  $('round').replaceChildren(job.round > 0 || job.rounds > 0 ? String(job.round) : '-',
                             make('small', {}, job.rounds > 0 ? ` of ${job.rounds}, ${formatShare(share)}` : ''));
  $('progress').firstElementChild.style.width = `${Math.min(100, share * 100)}%`;
  setAttribute($('progress'), 'aria-valuenow', Math.round(share * 100));
  $('progress').hidden = job.rounds === 0;
  if (job.over) $('cancel').hidden = true;
  setText($('elapsed'), formatSeconds(job.seconds));
  setText($('left-name'), job.over ? 'Exit code' : 'Time left');
  setText($('left'), job.over ? String(job.exit_code) : job.seconds_left === null ? '-' : formatSeconds(job.seconds_left));
  const ofWorkers = workers.filter((worker) => worker.role === 'worker');
  const running = ofWorkers.filter((worker) => worker.state === 'running').length;
  $('running').replaceChildren(String(running), make('small', {}, ` of ${ofWorkers.length}`));
  setText($('restarts'), String(job.restarts + workers.reduce((sum, worker) => sum + worker.restarts, 0)));
  $('generation').parentElement.hidden = !(job.generation > 1);  // hidden until the workers of an elastic job change
  $('generation').replaceChildren(String(job.generation), make('small', {}, `, changes took ${formatSeconds(job.between_generations)}`));
  $('rows').parentElement.hidden = !(job.rows_per_second > 0);  // hidden if no data is being read
  setText($('rows'), `${formatCount(job.rows_per_second)}/s`);
  setText($('memory'), formatBytes(workers.reduce((sum, worker) => sum + worker.mib, 0) * 1048576));
  document.title = `${job.over ? state : share > 0 ? formatShare(share) : state} - ${job.name}`;
}

function draw(changed) {
  drawHead();
  drawWorkers(changed);
  if (changed.evaluations) drawEvaluation();
  drawTimes();
  drawOverTime();
  drawStack(changed.workers);
  if (changed.places) {
    drawTopology();
    drawLogChoice();
  }
  if (changed.events) drawEvents();
}

function showConnection(state, text) {
  $('connection').className = state;
  setText($('connection'), text);
}

async function loadUsage() {
  try {
    takeUsage(await (await fetch('usage')).json());
  } catch (error) {
    return;  // the connection is lost; the event stream shows this
  }
  drawOverTime();
}

function endedText() {
  return `ended after ${formatSeconds(job.seconds)}`;
}

function connect() {
  const source = new EventSource('events');
  const take = (how) => (event) => {
    lastHeard = Date.now();
    showConnection('live', 'live');
    draw(how(JSON.parse(event.data)));
    if (job.over) return;  // the last lines come with the "end" event
    if (how === takeChange) return followLogs();
    reloadLogs();
    loadUsage();
    loadJobs();
  };
  source.addEventListener('state', take(takeState));
  source.addEventListener('change', take(takeChange));
  source.addEventListener('end', (event) => {
    source.close();
    addLines(JSON.parse(event.data));
    showConnection('ended', endedText());
  });
  source.addEventListener('error', () => {
    if (job.over) {
      source.close();
      return showConnection('ended', endedText());
    }
    showConnection('lost', 'connection lost, trying again');
    // A browser gives up after an invalid answer, e.g. from another program at this port.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  });
}

if ($('kept')) {
  const kept = JSON.parse($('kept').textContent);
  logs.kept = kept.logs.flatMap((one) => one.lines).sort((a, b) => a[0] - b[0]);
  $('logs-follow').parentElement.hidden = true;
  takeUsage(kept.usage);
  draw(takeState(kept.state));
  reloadLogs();
  showConnection('ended', `saved when the job ended, ${new Date(job.began + job.seconds * 1000).toLocaleString()}`);
} else {
  connect();
  setInterval(() => document.hidden || loadJobs(), kJobsMs);
  setInterval(() => {
    if (!job.over && Date.now() - lastHeard > kSilenceMs) showConnection('lost', 'no updates for a while');
  }, 5000);
}
