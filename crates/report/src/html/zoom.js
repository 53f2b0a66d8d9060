// Zooms all pictures over time at once: drag over one, or use the buttons, the keys + - and the arrows while
// the buttons have the focus, Escape or a double click for all again. What is shown stands in words beside the buttons, and
// in the address: #from=10&to=60, in seconds of the axis, is a link to a range. Without this script the pictures just stand.
(() => {
  const pictures = [...document.querySelectorAll('svg.time')];
  if (!pictures.length) return;
  const start = +pictures[0].dataset.from, end = +pictures[0].dataset.until;
  const whole = end - start, least = whole / 10000;
  const resting = pictures.map(picture => picture.querySelector('.ticks').innerHTML);
  let from = start, to = end;

  const zoomed = () => to - from < whole;
  const digits = step => Math.min(6, Math.max(0, Math.ceil(-Math.log10(step))));

  // 1:06:40 or 1:06:40.25, as the ticks of the resting pictures say it.
  function clock(seconds, places) {
    const unit = 10 ** places, all = Math.round(seconds * unit);
    const minutes = Math.floor(all / unit / 60), rest = (all - minutes * 60 * unit) / unit;
    const tail = rest.toFixed(places);
    return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}:${rest < 10 ? '0' : ''}${tail}`;
  }

  function length(seconds) {
    if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${Math.round(seconds % 3600 / 60)} min`;
    if (seconds >= 60) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
    return seconds >= 1 ? `${+seconds.toPrecision(3)} s` : `${+(seconds * 1000).toPrecision(3)} ms`;
  }

  function step(raw) {
    const clockwise = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
    if (raw >= 1) return clockwise.find(step => step >= raw) || Math.ceil(raw / 86400) * 86400;
    const power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].find(lead => lead * power >= raw * 0.999) * power;
  }

  function ticks(picture, height) {
    const each = step((to - from) * 95 / Math.max(picture.clientWidth, 200)), places = digits(each);
    let marks = '';
    for (let n = Math.ceil(from / each - 1e-9); n * each <= to + each * 1e-9; n++) {
      const at = (n * each - from) / (to - from) * 100, anchor = at > 97 ? 'end' : 'middle';
      marks += `<line class="tick" x1="${at}%" x2="${at}%" y1="${height}" y2="${height + 4}"/>`
        + `<text x="${at}%" y="${height + 18}" text-anchor="${anchor}">${clock(n * each, places)}</text>`;
    }
    return marks;
  }

  function draw() {
    document.documentElement.classList.toggle('zoomed', zoomed());
    pictures.forEach((picture, index) => {
      for (const inner of picture.querySelectorAll('.zoom')) {
        const [, , , down] = inner.getAttribute('viewBox').split(' ');
        inner.setAttribute('viewBox', `${(from - start) / whole * 1e5} 0 ${(to - from) / whole * 1e5} ${down}`);
      }
      for (const label of picture.querySelectorAll('[data-at]')) {
        const at = (label.dataset.at - from) / (to - from);
        label.setAttribute('x', `${at * 100}%`);
        label.style.visibility = at < 0 || at > 1 ? 'hidden' : '';
      }
      const height = +picture.getAttribute('height');
      picture.querySelector('.ticks').innerHTML = zoomed() ? ticks(picture, height) : resting[index];
    });
    const places = digits((to - from) / 100);
    shown.textContent = zoomed()
      ? `${clock(from, places)} to ${clock(to, places)}: ${length(to - from)} of ${length(whole)}`
      : `All ${length(whole)}. Drag over a picture to look closer.`;
  }

  // Keeps the range inside the axis and no shorter than can be drawn.
  function show(a, b, told) {
    const wide = Math.min(Math.max(b - a, least), whole);
    from = Math.min(Math.max(a, start), end - wide);
    to = from + wide;
    draw();
    if (told) return;
    const places = digits(wide / 1000);
    const address = zoomed() ? `#from=${from.toFixed(places)}&to=${to.toFixed(places)}` : location.pathname + location.search;
    try { history.replaceState(null, '', address); } catch { /* an address that may not change is no reason to stop */ }
  }

  const ways = {
    earlier: () => show(from - (to - from) / 2, to - (to - from) / 2),
    later: () => show(from + (to - from) / 2, to + (to - from) / 2),
    closer: () => show(from + (to - from) / 4, to - (to - from) / 4),
    wider: () => show(from - (to - from) / 2, to + (to - from) / 2),
    all: () => show(start, end),
  };
  const keys = { ArrowLeft: 'earlier', ArrowRight: 'later', '+': 'closer', '=': 'closer', '-': 'wider', '0': 'all' };

  const bar = document.createElement('div'), shown = document.createElement('output');
  bar.className = 'range';
  bar.setAttribute('role', 'group');
  bar.setAttribute('aria-label', 'Time range of the charts');
  for (const [way, sign, name] of [['earlier', '←', 'Earlier'], ['later', '→', 'Later'], ['closer', '+', 'Zoom in'], ['wider', '−', 'Zoom out'], ['all', 'All', 'Full time range']]) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = sign;
    button.setAttribute('aria-label', name);
    button.onclick = ways[way];
    bar.append(button);
  }
  shown.setAttribute('aria-live', 'polite');
  bar.append(shown);
  pictures[0].closest('figure').before(bar);
  bar.onkeydown = event => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    ways[keys[event.key]]();
  };
  addEventListener('keydown', event => { if (event.key === 'Escape' && zoomed()) ways.all(); });

  // A drag that begins in a picture may end anywhere.
  let drag = null;
  const place = event => {
    const box = drag.picture.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  const drop = () => { drag?.shade.remove(); drag = null; };
  for (const picture of pictures) {
    picture.addEventListener('pointerdown', event => {
      if (event.button) return;
      drop();
      const shade = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
      shade.setAttribute('class', 'pick');
      shade.setAttribute('height', '100%');
      picture.append(shade);
      drag = { picture, shade };
      drag.at = place(event);
    });
    picture.addEventListener('dblclick', ways.all);
  }
  addEventListener('pointermove', event => {
    if (!drag) return;
    const at = place(event);
    drag.shade.setAttribute('x', `${Math.min(at, drag.at) * 100}%`);
    drag.shade.setAttribute('width', `${Math.abs(at - drag.at) * 100}%`);
  });
  addEventListener('pointerup', event => {
    if (!drag) return;
    const ends = [drag.at, place(event)].sort((a, b) => a - b), wide = to - from, base = from;
    const far = (ends[1] - ends[0]) * drag.picture.clientWidth;
    drop();
    // A hand that shakes means a click.
    if (far > 6) show(base + ends[0] * wide, base + ends[1] * wide);
  });
  addEventListener('pointercancel', drop);

  // An address without a range is a link to a section and changes nothing here.
  function go() {
    const asked = new URLSearchParams(location.hash.slice(1)), ends = ['from', 'to'].map(end => parseFloat(asked.get(end)));
    if (ends.every(isFinite) && ends[0] < ends[1]) show(...ends, true);
  }
  addEventListener('hashchange', go);
  addEventListener('resize', draw);
  document.documentElement.classList.add('zooms');
  draw();
  go();
})();
