// The events of the job, latest first.

function drawEvents() {
  const latest = events[events.length - 1];
  if (latest && latest[1] !== 'info') announce(latest[2]);
  $('events').replaceChildren(...events.slice().reverse().map(([seconds, severity, text]) =>
    make('li', {class: severity}, make('time', {}, formatSeconds(seconds)),
         make('span', {class: 'what'}, `${{error: '✕ ', warning: '! '}[severity] || ''}${text}`))));
  if (events.length === 0) $('events').append(make('p', {class: 'nothing'}, 'No events yet.'));
}

// Makes screen readers read a text. Used for the job's state and for new problems, but not for every number.
function announce(text) {
  setText($('announcement'), text);
}
