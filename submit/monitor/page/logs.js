// The output of one process or of all processes, with a search field and an option to follow new lines.

const kMaxLines = 3000;  // when more lines are appended, the oldest are removed from the page
const logs = {last: 0, oldest: 1, isLoading: false, asked: 0, kept: null, isBehind: false};
const logBox = $('logs-lines');

const logQuery = (more) => {
  const query = new URLSearchParams(more);
  if ($('logs-worker').value !== '') query.set('worker', $('logs-worker').value);
  if ($('logs-search').value !== '') query.set('contains', $('logs-search').value);
  return query;
};

// Fetches lines from the server or from the kept output.
async function fetchLines(more) {
  return logs.kept === null ? (await fetch(`logs?${logQuery(more)}`)).json() : keptLines(more);
}

function keptLines(more) {
  const before = Number(more.before || Infinity), after = Number(more.after || 0);
  const found = logs.kept.filter(([number, who, , text]) => number < before && number > after && isWanted(who, text)).slice(-500);
  return {lines: found, from: found.length === 500 ? found[0][0] : 1, last: Infinity};
}

// Removes terminal sequences, such as colors and cursor movements, and control characters except tabs and
// newlines.
const plain = (text) => text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, '').replace(/[\x00-\x08\x0b-\x1f\x7f]/g, '');

function marked(text) {
  const part = $('logs-search').value.toLowerCase();
  const at = part ? text.toLowerCase().indexOf(part) : -1;
  return at < 0 ? [text] : [text.slice(0, at), make('mark', {}, text.slice(at, at + part.length)), text.slice(at + part.length)];
}

function makeLine([, who, stream, text]) {
  const worker = workers[who];
  const label = worker ? shortNameOf(worker) : '';
  const line = make('div', {class: `line ${stream}`}, make('span', {class: 'who'}, label), make('span', {class: 'text'}, ...marked(plain(text))));
  if (stream === 'err') line.title = 'standard error';
  return line;
}

// Loads the lines anew, e.g. for another worker or another search.
async function reloadLogs() {
  const asked = ++logs.asked;
  let answer = null;
  try {
    answer = await fetchLines({});
  } catch (error) {
    // The connection is lost; the event stream shows this. The lines already shown stay.
  }
  if (asked !== logs.asked) return;
  if (logs.kept !== null) answer = keptLines({});  // this is a kept page, or the job has ended in the meantime
  logs.isBehind = answer === null;
  if (logs.isBehind) return;
  logs.last = answer.last;
  logs.oldest = answer.from;
  logBox.replaceChildren(...answer.lines.map(makeLine));
  if (answer.lines.length === 0) logBox.append(make('p', {class: 'nothing'}, $('logs-search').value ? 'No line matches.' : 'No output yet.'));
  logBox.scrollTop = logBox.scrollHeight;
}

function appendLines(lines) {
  if (lines.length === 0) return;
  logBox.querySelector('.nothing')?.remove();
  logBox.append(...lines.map(makeLine));
  while (logBox.childElementCount > kMaxLines) {
    logBox.firstElementChild.remove();
    logs.oldest = null;  // the number of the first line is now unknown, so no older lines can be loaded
  }
  if ($('logs-follow').checked) logBox.scrollTop = logBox.scrollHeight;
}

// Adds the last lines of the job, which arrive with the "end" event.
function addLines(answer) {
  logs.kept = answer.lines;  // the server no longer answers
  if (logs.isBehind) return reloadLogs();
  appendLines(answer.lines.filter(([number, who, , text]) => number > logs.last && isWanted(who, text)));
}

// Whether a line matches the selected worker and the search text.
function isWanted(who, text) {
  const worker = $('logs-worker').value;
  return (worker === '' || who === Number(worker)) && text.toLowerCase().includes($('logs-search').value.toLowerCase());
}

async function followLogs() {
  if (logs.kept !== null || logs.isLoading || document.hidden || !$('logs-follow').checked) return;
  logs.isLoading = true;
  const asked = logs.asked;
  try {
    const answer = await fetchLines({after: logs.last});
    if (asked !== logs.asked) return;
    appendLines(answer.lines);
    logs.last = answer.last;
  } catch (error) {
    // The connection is lost; see reloadLogs.
  } finally {
    logs.isLoading = false;
  }
}

async function loadOlder() {
  if (logs.isLoading || logs.oldest === null || logs.oldest <= 1) return;
  logs.isLoading = true;
  const asked = logs.asked;
  try {
    const answer = await fetchLines({before: logs.oldest});
    if (asked !== logs.asked) return;
    const height = logBox.scrollHeight;
    logs.oldest = answer.from;
    logBox.prepend(...answer.lines.map(makeLine));
    logBox.scrollTop += logBox.scrollHeight - height;
  } catch (error) {
    // The connection is lost; see reloadLogs.
  } finally {
    logs.isLoading = false;
  }
}

function drawLogChoice() {
  const names = workers.map((worker) => `${nameOf(worker)}${worker.host ? ` (${worker.host})` : ''}`);
  const box = $('logs-worker');
  if (box.childElementCount !== names.length + 1) {
    box.replaceChildren(make('option', {value: ''}, 'all'), ...names.map((name, i) => make('option', {value: i}, name)));
  } else {
    names.forEach((name, i) => setText(box.children[i + 1], name));
  }
}

let searchTimer = 0;
$('logs-search').addEventListener('input', () => {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(reloadLogs, 200);
});
$('logs-worker').addEventListener('change', reloadLogs);
$('logs-follow').addEventListener('change', () => $('logs-follow').checked && reloadLogs());
logBox.addEventListener('scroll', () => {
  if (logBox.scrollTop < 40 && logBox.scrollHeight > logBox.clientHeight) loadOlder();
  const isAtEnd = logBox.scrollHeight - logBox.scrollTop - logBox.clientHeight < 30;
  if (!isAtEnd && logBox.matches(':hover')) $('logs-follow').checked = false;
});
selection.listeners.push(() => {
  $('logs-worker').value = selection.worker === null ? '' : String(selection.worker);
  reloadLogs();
});
