// Actions and data that require the page's own address, not the address for viewers: canceling the job, taking
// stacks, listing the user's jobs, and comparing their evaluations.

const kJobsMs = 15000;      // the time between two requests for the list of jobs
const kSureMs = 5000;       // within this time, a second click cancels the job
const kStackMs = 15000;     // after this time without an answer, the stack may be requested again
let known = null;           // the latest answer to /jobs; null: not allowed, a kept page, or not loaded yet
const compared = {id: '', name: '', evaluations: []};

// --- canceling, and stacks ---------------------------------------------------------------------------------

async function post(what) {
  const answer = await fetch(what, {method: 'POST'});
  if (!answer.ok) throw new Error(await answer.text());
}

let sureTimer = 0;
function drawCancel(text, isSure) {
  setText($('cancel'), text);
  $('cancel').dataset.sure = isSure;
}

$('cancel').addEventListener('click', async () => {
  clearTimeout(sureTimer);
  if ($('cancel').dataset.sure !== 'true') {
    drawCancel('Click again to cancel the job', true);
    announce('Click again to cancel the job.');
    sureTimer = setTimeout(() => drawCancel('Cancel the job', false), kSureMs);
    return;
  }
  drawCancel('Cancelling', false);
  try {
    await post('cancel');
  } catch (error) {
    drawCancel('Cancel the job', false);
    announce(`The job cannot be cancelled: ${error.message}`);
  }
});

let stackTimer = 0;
function drawStack(changed) {
  const worker = workers[selection.worker];
  const canTake = known !== null && !job.over && worker && ['starting', 'running', 'stuck'].includes(worker.state);
  $('stack').hidden = !worker || !(canTake || worker.stack);
  if ($('stack').hidden) return;
  $('take-stack').hidden = !canTake;
  if (changed.some((one) => one === worker) && $('stack-text').textContent !== worker.stack) offerStack();
  setText($('stack-text'), worker.stack);
}

function offerStack() {
  clearTimeout(stackTimer);
  $('take-stack').disabled = false;
  setText($('take-stack'), 'Show its stack');
}

$('take-stack').addEventListener('click', async () => {
  $('take-stack').disabled = true;
  setText($('take-stack'), 'Taking its stack');
  stackTimer = setTimeout(offerStack, kStackMs);
  try {
    await post(`stack?worker=${selection.worker}`);
  } catch (error) {
    offerStack();
    setText($('stack-text'), error.message);
  }
});
selection.listeners.push(() => {
  offerStack();
  drawStack([]);
});

// --- the user's jobs ---------------------------------------------------------------------------------------

// Parses the record of a job and adds the state that `warren jobs` would show. `own`: the record of this page's
// job. Returns null if the record is invalid.
function readRecord({id, held, curves, record}, own) {
  let values = null;
  try {
    values = JSON.parse(record);
  } catch (error) {
    // This record was not written by dmlc-submit. It is ignored, like a record that is not an object.
  }
  if (values === null || typeof values !== 'object') return null;
  const isNear = own && (values.host === own.host || (values.boot && values.boot === own.boot));
  const state = values.how || (values.locked !== true ? 'unknown' : held ? 'running' : held === false && isNear ? 'killed' : 'unknown');
  return {id, curves, state, ...values};
}

const nameOfJob = (one) => String(one.name || (Array.isArray(one.command) && one.command[0]) || 'job');
const beganOf = (one) => new Date(one.began).toLocaleString();

function jobRow(one) {
  const name = one.id === known.own ? `${nameOfJob(one)} (this job)` : nameOfJob(one);
  const address = one.id === known.own ? '' : one.state === 'running' ? one.dashboard : one.page ? `jobs/${one.id}/page` : '';
  const link = address ? make('a', {href: address, target: '_blank', rel: 'noreferrer'}, name) : name;
  const seconds = one.seconds ?? (one.state === 'running' ? (Date.now() - new Date(one.began)) / 1000 : null);
  return [link, one.state, beganOf(one), seconds === null ? '-' : formatSeconds(Math.max(0, seconds)), one.workers, one.cluster];
}

function drawJobs() {
  for (const node of [$('jobs'), $('view-link')]) node.hidden = known === null;
  $('cancel').hidden = known === null || job.over;
  drawStack([]);
  if (known === null) return;
  // Behind a proxy, the path has a prefix, which must be kept. In a frame, it ends with in/TOKEN/, which must be removed.
  const base = location.pathname.replace(/in\/[0-9a-f]+\/$/, '');
  $('view-link').href = `${location.origin}${base}?token=${known.view_token}`;
  const names = ['Job', 'State', 'Began', 'Took', 'Workers', 'Cluster'];
  $('jobs-table').replaceChildren(makeTable(names, known.jobs.map(jobRow)));
  const choices = known.jobs.filter((one) => one.curves && one.id !== known.own);
  $('compare-label').hidden = choices.length === 0;
  $('compare').replaceChildren(make('option', {value: ''}, 'no other job'), ...choices.map((one) => make('option', {value: one.id}, `${nameOfJob(one)}, ${beganOf(one)}`)));
  $('compare').value = choices.some((one) => one.id === compared.id) ? compared.id : '';
}

async function loadJobs() {
  if (job.over) return;
  try {
    const answer = await fetch('jobs');
    if (answer.status === 403) return;  // this is the address for viewers
    const {view_token, own, jobs} = await answer.json();
    const record = jobs.find((one) => one.id === own);
    const ownRecord = record && readRecord(record, null);
    known = {view_token, own, jobs: jobs.map((one) => readRecord(one, ownRecord)).filter((one) => one !== null)};
  } catch (error) {
    return;  // the connection is lost; the event stream shows this
  }
  drawJobs();
  loadCompared();
}

// --- comparison --------------------------------------------------------------------------------------------

async function loadCompared() {
  const id = compared.id;
  let found = [];
  try {
    if (id !== '') found = (await (await fetch(`jobs/${id}/evaluations`)).json()).evaluations;
  } catch (error) {
    return;  // keep the curves already shown
  }
  if (id !== compared.id) return;
  compared.evaluations = Array.isArray(found) ? found.filter((one) => Array.isArray(one) && one[2] !== null && typeof one[2] === 'object') : [];
  drawEvaluation();
}

$('compare').addEventListener('change', () => {
  const one = known.jobs.find((other) => other.id === $('compare').value);
  compared.id = one ? one.id : '';
  compared.name = one ? `${nameOfJob(one)}, ${beganOf(one)}` : '';
  compared.evaluations = [];
  loadCompared();
});
