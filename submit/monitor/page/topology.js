// The links between ranks as a ring or a tree, with one color per host. If there are many ranks, only the ring
// is drawn, and each node stands for consecutive ranks of one host. If there are many hosts as well, nothing
// is drawn, and a sentence gives the numbers of ranks and hosts.

const kMostNodes = 64;
let topologyShown = '';
let topologyIsTree = false;

// Returns the nodes in ring order: [{text, host, title, worker or null}].
function topologyNodes(ranked) {
  if (ranked.length <= kMostNodes) {
    return ranked.map((worker) => ({text: String(worker.rank), host: worker.host, worker: worker.i, title: `${nameOf(worker)} on ${worker.host}`}));
  }
  const nodes = [];
  for (const worker of ranked) {
    const last = nodes[nodes.length - 1];
    if (last && last.host === worker.host) {
      last.text = String(++last.count);
    } else {
      nodes.push({text: '1', host: worker.host, count: 1, worker: null, title: worker.host});
    }
  }
  return nodes;
}

function drawTopology() {
  const box = $('topology');
  const width = box.clientWidth;
  const ranked = rankedWorkers();
  const wanted = JSON.stringify([ranked.map((worker) => [worker.rank, worker.host]), width, topologyIsTree, selection.worker]);
  if (wanted === topologyShown || width === 0) return;
  topologyShown = wanted;
  if (ranked.length === 0) return box.replaceChildren(make('p', {class: 'nothing'}, 'No ranks assigned yet.'));
  const nodes = topologyNodes(ranked);
  const isTree = topologyIsTree && nodes[0].worker !== null && job.tree.length === ranked.length;
  const hosts = [...new Set(nodes.map((node) => node.host))];
  if (nodes.length > 2 * kMostNodes) {
    return box.replaceChildren(make('p', {class: 'nothing'}, `A ring of ${ranked.length} ranks on ${hosts.length} hosts.`));
  }
  const drawn = isTree ? placeTree(nodes, width) : placeRing(nodes, width);
  const svg = makeSvg('svg', {height: drawn.height, role: 'img',
    'aria-label': `${isTree ? 'Tree' : 'Ring'} of ${ranked.length} ranks on ${hosts.length} hosts`});
  svg.style.width = `${Math.max(width, drawn.width || 0)}px`;
  for (const [a, b] of drawn.links) svg.append(makeSvg('path', {class: 'link', d: `M${nodes[a].x} ${nodes[a].y}L${nodes[b].x} ${nodes[b].y}`}));
  for (const node of nodes) {
    const circle = makeSvg('circle', {r: drawn.radius});
    circle.style.stroke = `var(--series-${hosts.indexOf(node.host) % 8})`;
    svg.append(makeSvg('g', {class: node.worker !== null && node.worker === selection.worker ? 'node picked' : 'node', transform: `translate(${node.x} ${node.y})`},
                       makeSvg('title', {}, node.title), circle, makeSvg('text', {}, node.text)));
  }
  const legend = hosts.length > 12 ? [] : hosts.map((host, color) => make('span', {}, strokeOf(color % 8), host));
  box.replaceChildren(svg, make('div', {class: 'legend'}, ...legend));
}

// Places the nodes of the ring in two rows: one from left to right, and one back.
function placeRing(nodes, width) {
  const half = Math.ceil(nodes.length / 2);
  const rows = Math.max(1, Math.ceil(half * 34 / (width - 40)));
  const perRow = Math.ceil(half / rows);
  const step = Math.min(80, (width - 40) / Math.max(1, perRow));
  // A ring that does not fit in two rows winds through more rows.
  const columns = rows === 1 ? half : Math.floor((width - 40) / 34);
  nodes.forEach((node, i) => {
    if (rows === 1) {
      const isBack = i >= half;
      node.x = 24 + (isBack ? nodes.length - 1 - i : i) * step;
      node.y = isBack ? 76 : 22;
    } else {
      const row = Math.floor(i / columns), column = i % columns;
      node.x = 24 + (row % 2 ? columns - 1 - column : column) * 34;
      node.y = 20 + row * 40;
    }
  });
  const links = nodes.length < 2 ? [] : nodes.map((_, i) => [i, (i + 1) % nodes.length]).slice(0, nodes.length === 2 ? 1 : undefined);
  return {links, radius: 13, height: rows === 1 ? 100 : 20 + Math.ceil(nodes.length / columns) * 40};
}

function placeTree(nodes, width) {
  const children = nodes.map(() => []);
  job.tree.forEach((parent, rank) => {
    if (parent >= 0) children[parent].push(rank);
  });
  const levels = [];
  const visit = (rank, depth) => {
    (levels[depth] = levels[depth] || []).push(rank);
    nodes[rank].depth = depth;
    for (const child of children[rank]) visit(child, depth + 1);
  };
  visit(0, 0);
  // Leaves are placed side by side, parents above the middle of their children.
  let next = 0;
  const place = (rank) => {
    children[rank].forEach(place);
    const below = children[rank].map((child) => nodes[child].slot);
    nodes[rank].slot = below.length === 1 ? below[0] : below.length ? (below[0] + below[below.length - 1]) / 2 : next++;
  };
  place(0);
  const step = Math.min(70, Math.max(22, (width - 40) / Math.max(1, next)));
  for (const node of nodes) {
    node.x = 20 + (node.slot + 0.5) * step;
    node.y = 20 + node.depth * 48;
  }
  return {links: job.tree.flatMap((parent, rank) => parent >= 0 ? [[parent, rank]] : []), radius: Math.min(13, step / 2 - 1), width: 40 + next * step, height: 44 + (levels.length - 1) * 48};
}

makeChoice([$('topology-ring'), $('topology-tree')], (i) => {
  topologyIsTree = i === 1;
  drawTopology();
});
new ResizeObserver(() => drawTopology()).observe($('topology'));
selection.listeners.push(() => drawTopology());
