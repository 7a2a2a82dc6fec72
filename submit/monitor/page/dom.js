// Makes and updates elements. An update that changes nothing does not touch the element. Text is always
// inserted as plain text, because workers can write anything.

const $ = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const makeSvg = (tag, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// Keeps exactly one of the buttons pressed. When one is clicked, calls `choose` with its index.
function makeChoice(buttons, choose) {
  buttons.forEach((button, i) => button.addEventListener('click', () => {
    buttons.forEach((other) => setAttribute(other, 'aria-pressed', other === button));
    choose(i);
  }));
}

// The cells of `rows` are elements or plain values.
function makeTable(names, rows) {
  const cells = (tag, values) => values.map((value) => make(tag, tag === 'th' ? {scope: 'col'} : {}, value));
  return make('table', {}, make('thead', {}, make('tr', {}, ...cells('th', names))),
              make('tbody', {}, ...rows.map((row) => make('tr', {}, ...cells('td', row)))));
}
