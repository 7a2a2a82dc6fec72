// The box next to the pointer or crosshair: a heading, and lines with a name and a value each.

class Tooltip {
  constructor(chart) {
    this.chart = chart;
    this.box = make('div', {class: 'tooltip', role: 'status', hidden: ''});
    chart.append(this.box);
  }

  // `x`: in pixels, relative to the chart.
  show(x, heading, lines) {
    this.box.replaceChildren(make('b', {}, heading), ...lines.map(([name, value, kind]) => {
      const line = make('div');
      if (kind) line.append(kind());
      line.append(name, make('span', {class: 'value'}, value));
      return line;
    }));
    this.box.hidden = false;
    const width = this.box.offsetWidth, room = this.chart.clientWidth;
    const left = x + 14 + width <= room ? x + 14 : Math.max(0, x - 14 - width);
    this.box.style.transform = `translate(${left}px, 6px)`;
  }

  hide() {
    this.box.hidden = true;
  }
}
