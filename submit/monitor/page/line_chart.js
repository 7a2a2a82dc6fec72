// A chart of lines over one x axis, with a crosshair that follows the pointer and the arrow keys.

const kChartHeight = 230;
const kMargin = {left: 56, right: 12, top: 8, bottom: 24};

// Returns about `count` round numbers between low and high.
function roundTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(i * step);
  return ticks;
}

function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const factor of [1, 2, 5]) ticks.push(factor * 10 ** power);
  }
  const inside = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  return inside.length > 8 ? inside.filter((tick) => /^1/.test(tick.toExponential())) : inside;
}

class LineChart {
  // `names`: texts (label, nothing), functions that format values (formatX, formatY, headingX), and options
  // (fromZero, wholeX).
  constructor(chart, names) {
    this.chart = chart;
    this.names = names;
    this.series = [];
    this.at = null;  // the x of the crosshair; null: hidden
    this.svg = makeSvg('svg', {height: kChartHeight, tabindex: 0, role: 'img', 'aria-label': names.label});
    this.frame = makeSvg('g');
    this.lines = makeSvg('g');
    this.cross = makeSvg('line', {class: 'cross', y1: kMargin.top, y2: kChartHeight - kMargin.bottom, visibility: 'hidden'});
    this.svg.append(this.frame, this.lines, this.cross);
    this.nothing = make('p', {class: 'nothing', hidden: ''}, names.nothing);
    chart.append(this.svg, this.nothing);
    this.tooltip = new Tooltip(chart);
    new ResizeObserver(() => this.redraw()).observe(chart);
    this.svg.addEventListener('pointermove', (event) => {
      const x = event.clientX - this.svg.getBoundingClientRect().left;
      this.moveTo(this.nearest(this.low + (x - kMargin.left) / this.scaleX));
    });
    this.svg.addEventListener('pointerleave', () => this.leave());
    this.svg.addEventListener('blur', () => this.leave());
    this.svg.addEventListener('keydown', (event) => this.onKey(event));
  }

  // `series`: [{name, color, points: [[x, y], ...], hidden, dashed}], with the points in ascending order of x.
  draw(series, isLog = false) {
    this.series = series.filter((one) => !one.hidden);
    this.isLog = isLog;
    this.redraw();
  }

  usable(y) {
    return y !== null && Number.isFinite(y) && (!this.isLog || y > 0);
  }

  redraw() {
    const width = this.chart.clientWidth;
    if (width === 0) return;
    let low = Infinity, high = -Infinity, bottom = Infinity, top = -Infinity;
    for (const {points} of this.series) {
      for (const [x, y] of points) {
        if (!this.usable(y)) continue;
        low = Math.min(low, x);
        high = Math.max(high, x);
        bottom = Math.min(bottom, y);
        top = Math.max(top, y);
      }
    }
    const isEmpty = low > high;
    this.nothing.hidden = !isEmpty;
    this.svg.style.display = isEmpty ? 'none' : '';
    if (isEmpty) return this.leave();
    if (high === low) high = low + 1;
    if (this.names.fromZero) [bottom, top] = [0, top * 1.15];
    if (top === bottom) [bottom, top] = this.isLog ? [bottom / 2, top * 2] : [bottom - (Math.abs(bottom) / 2 || 1), top + (Math.abs(top) / 2 || 1)];
    this.low = low;
    this.scaleX = (width - kMargin.left - kMargin.right) / (high - low);
    const heightOf = this.isLog ? Math.log : (y) => y;
    const room = kChartHeight - kMargin.top - kMargin.bottom;
    const pad = this.isLog || this.names.fromZero ? 0 : (top - bottom) * 0.04;
    const least = heightOf(bottom - pad), scaleY = room / (heightOf(top + pad) - least);
    this.x = (x) => kMargin.left + (x - low) * this.scaleX;
    this.y = (y) => kChartHeight - kMargin.bottom - (heightOf(y) - least) * scaleY;
    this.drawFrame(width, roundTicks(low, high, Math.max(4, (width - kMargin.left) / 90)), this.isLog ? logTicks(bottom, top) : roundTicks(bottom, top, 5));
    this.lines.replaceChildren(...this.series.flatMap((one) => {
      const path = makeSvg('path', {class: 'series', d: this.pathOf(one.points)});
      path.style.stroke = `var(--series-${one.color % 8})`;
      if (one.color >= 8 || one.dashed) path.style.strokeDasharray = '5 3';
      return this.names.fromZero && this.series.length === 1 ? [path, this.areaOf(one, path)] : [path];
    }));
    if (this.at !== null) this.moveTo(this.at);
  }

  drawFrame(width, ticksX, ticksY) {
    const parts = [];
    for (const tick of ticksY) {
      const y = this.y(tick).toFixed(1);
      parts.push(makeSvg('line', {class: 'grid', x1: kMargin.left, x2: width - kMargin.right, y1: y, y2: y}),
                 makeSvg('text', {x: kMargin.left - 8, y, 'text-anchor': 'end', 'dominant-baseline': 'central'}, this.names.formatY(Number(tick.toPrecision(6)))));
    }
    for (const tick of ticksX) {
      if (this.names.wholeX && !Number.isInteger(Number(tick.toPrecision(9)))) continue;
      parts.push(makeSvg('text', {x: this.x(tick).toFixed(1), y: kChartHeight - 6, 'text-anchor': 'middle'}, this.names.formatX(Number(tick.toPrecision(9)))));
    }
    this.frame.replaceChildren(...parts);
  }

  areaOf(one, path) {
    const line = path.getAttribute('d'), ground = this.y(0), points = one.points;
    const area = makeSvg('path', {class: 'area', d: `${line}V${ground}H${this.x(points[0][0])}Z`});
    area.style.fill = `var(--series-${one.color % 8})`;
    return area;
  }

  // Returns the SVG path of a line. Of all points in one pixel column, only the first, lowest, highest and last
  // are drawn.
  pathOf(points) {
    const out = [];
    let column = null, pen = 'M', first, least, greatest, last;
    const flush = () => {
      if (column === null) return;
      for (const y of new Set([first, least, greatest, last])) {
        out.push(`${pen}${column} ${y.toFixed(1)}`);
        pen = 'L';
      }
      column = null;
    };
    for (const [x, y] of points) {
      if (!this.usable(y)) {
        flush();
        pen = 'M';
        continue;
      }
      const here = this.x(x).toFixed(0), height = this.y(y);
      if (here !== column) {
        flush();
        column = here;
        first = least = greatest = height;
      }
      least = Math.min(least, height);
      greatest = Math.max(greatest, height);
      last = height;
    }
    flush();
    return out.join('');
  }

  // Returns the x of the point nearest to `wanted`; null if there are no points.
  nearest(wanted) {
    let best = null;
    for (const {points} of this.series) {
      let from = 0, to = points.length - 1;
      while (from < to) {
        const middle = (from + to) >> 1;
        if (points[middle][0] < wanted) from = middle + 1; else to = middle;
      }
      for (const i of [from - 1, from]) {
        if (i < 0 || i >= points.length) continue;
        if (best === null || Math.abs(points[i][0] - wanted) < Math.abs(best - wanted)) best = points[i][0];
      }
    }
    return best;
  }

  moveTo(x) {
    this.at = x;
    if (x === null) return this.leave();
    const here = this.x(x);
    setAttribute(this.cross, 'x1', here);
    setAttribute(this.cross, 'x2', here);
    setAttribute(this.cross, 'visibility', 'visible');
    const lines = [];
    for (const one of this.series) {
      const point = one.points.find((other) => other[0] === x);
      if (point) lines.push([one.name, this.names.formatY(point[1]), () => strokeOf(one.color, one.dashed)]);
    }
    this.tooltip.show(here, this.names.headingX(x), lines);
  }

  leave() {
    this.at = null;
    setAttribute(this.cross, 'visibility', 'hidden');
    this.tooltip.hide();
  }

  onKey(event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity};
    if (event.key === 'Escape') return this.leave();
    if (!(event.key in steps) || this.series.length === 0) return;
    event.preventDefault();
    const points = this.series[0].points;
    const index = this.at === null ? points.length - 1 : points.findIndex((point) => point[0] === this.at) + steps[event.key];
    this.moveTo(points[Math.min(points.length - 1, Math.max(0, index))][0]);
  }
}

function strokeOf(color, dashed = false) {
  const swatch = make('span', {class: 'swatch stroke'});
  swatch.style.borderTopColor = `var(--series-${color % 8})`;
  if (color >= 8 || dashed) swatch.style.borderTopStyle = 'dashed';
  return swatch;
}
