// Formats numbers for people.

function formatSeconds(seconds) {
  if (seconds < 60) return `${seconds < 9.95 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const two = (number) => String(number).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)} min`;
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)} h`;
}

// Three significant digits, with the unit k, M, G, T or P if the number is large.
function formatCount(number) {
  const units = ['', ' k', ' M', ' G', ' T', ' P'];
  let i = 0;
  while (Math.abs(number) >= 999.5 && i + 1 < units.length) {
    number /= 1000;
    ++i;
  }
  return `${Number(number.toPrecision(3))}${units[i]}`;
}

function formatBytes(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  while (bytes >= 1023.5 && i + 1 < units.length) {
    bytes /= 1024;
    ++i;
  }
  return `${Number(bytes.toPrecision(3))} ${units[i]}`;
}

const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const formatShare = (share) => `${share >= 0.0995 || share === 0 ? Math.round(share * 100) : (share * 100).toFixed(1)}\u00a0%`;

function formatMetric(value) {
  if (value === null || !Number.isFinite(value)) return 'not a number';
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-4 || size >= 1e7) ? value.toExponential(3) : String(Number(value.toPrecision(6)));
}
