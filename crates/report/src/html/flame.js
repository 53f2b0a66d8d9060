// Draws flame graphs: click a frame to zoom in, search with the share that is found, icicle (root on top), callers (from the innermost
// frame out), one group of threads. Keys while the picture has the focus: arrows choose a frame, Enter zooms, Escape zooms out, i icicle,
// c callers, / search. Frames narrower than half a pixel are not drawn until they are zoomed. Without this script the widest frames stand
// as plain boxes.
(() => {
  const ROW = 18, LEAST = 0.5;

  // Numbers as the rest of the page has them: thin spaces between thousands.
  const count = n => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
  const three = n => n >= 100 ? Math.round(n).toString() : (+n.toPrecision(3)).toString();
  const scaled = (n, base, units) => {
    let at = 0;
    while (n >= base && at < units.length - 1) { n /= base; at++; }
    return `${three(n)}\u202f${units[at]}`;
  };
  const words = {
    samples: n => `${count(n)} ${n === 1 ? 'sample' : 'samples'}`,
    count: count,
    bytes: n => scaled(n, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']),
    ns: n => n >= 1e9 ? `${three(n / 1e9)}\u202fs` : scaled(n, 1000, ['ns', 'µs', 'ms']),
  };
  const percent = share => share >= 0.9995 ? '100\u202f%' : `${(share * 100).toFixed(share < 0.001 ? 3 : share < 0.1 ? 2 : 1)}\u202f%`;

  // A frame of Java without its packages, and a native one without its library, where they have no room.
  const brief = name => name.replace(/^lib[\w+-]*(?:\.[\w+-]+)*?\.so(?:\.\d+)*\./, '').replace(/^(?:[a-z_$][\w$]*[./])+(?=[A-Z])/, '');

  function graph(root) {
    const data = JSON.parse(root.querySelector('script').textContent);
    const { frames, kinds, groups, difference } = data, say = words[data.unit];

    // The tree: nodes in the order of the data, each before its callees, which end before `ends`.
    const size = (() => { let n = 0; for (let at = 0; at < data.nodes.length; n++) at += 3 + 2 * data.nodes[at + 2]; return n; })();
    const frame = new Uint32Array(size), parent = new Int32Array(size), ends = new Uint32Array(size), first = new Uint32Array(size + 1);
    const group = [], weight = [];
    {
      const path = [];
      for (let node = 0, at = 0; node < size; node++) {
        const depth = data.nodes[at], weights = data.nodes[at + 2];
        while (path.length > depth) ends[path.pop()] = node;
        parent[node] = path.length ? path[path.length - 1] : -1;
        path.push(node);
        frame[node] = data.nodes[at + 1];
        first[node] = group.length;
        for (let n = 0; n < weights; n++) { group.push(data.nodes[at + 3 + 2 * n]); weight.push(data.nodes[at + 4 + 2 * n]); }
        at += 3 + 2 * weights;
      }
      for (const node of path) ends[node] = size;
      first[size] = group.length;
      data.nodes = null;
    }

    // Weights of a group, or of all for -1.
    function weigh(of) {
      const own = new Float64Array(size), total = new Float64Array(size);
      let all = 0;
      for (let node = 0; node < size; node++)
        for (let at = first[node]; at < first[node + 1]; at++) if (of < 0 || group[at] === of) own[node] += weight[at];
      for (let node = size - 1; node >= 0; node--) {
        total[node] += own[node];
        if (parent[node] >= 0) total[parent[node]] += total[node]; else all += total[node];
      }
      return { own, total, all };
    }
    const sides = difference ? [weigh(0), weigh(1)] : null;
    let chosen = difference ? 1 : -1, now = difference ? sides[1] : weigh(-1);

    // From the root out: a node is its number. `below` visits its callees; that of null are the roots.
    const down = {
      below(node, visit) {
        for (let at = node === null ? 0 : node + 1, end = node === null ? size : ends[node]; at < end; at = ends[at]) if (now.total[at] > 0) visit(at);
      },
      weight: node => now.total[node],
      own: node => now.own[node],
      frame: node => frame[node],
      above: node => parent[node] < 0 ? null : parent[node],
      both: node => [sides[0].total[node], sides[1].total[node]],
    };

    // From the innermost frame out: a node is a list of places in the tree, with the weight that ends in the stack that they are of.
    // It is parted by caller only where that is looked at.
    function callers() {
      const part = (members, above) => {
        const parts = new Map();
        for (let n = 0; n < members.length; n += 2) {
          const place = members[n], leaf = members[n + 1];
          if (place < 0) continue;
          let made = parts.get(frame[place]);
          if (!made) parts.set(frame[place], made = { frame: frame[place], weight: 0, members: [], above, parts: null, sides: [0, 0] });
          made.weight += now.own[leaf];
          if (difference) { made.sides[0] += sides[0].own[leaf]; made.sides[1] += sides[1].own[leaf]; }
          made.members.push(parent[place], leaf);
        }
        return [...parts.values()].sort((a, b) => b.weight - a.weight);
      };
      const leaves = [];
      for (let node = 0; node < size; node++) if (now.own[node] > 0) leaves.push(node, node);
      const roots = part(leaves, null);
      return {
        below(node, visit) { (node === null ? roots : node.parts ??= part(node.members, node)).forEach(visit); },
        weight: node => node.weight,
        own: node => node.above ? 0 : node.weight,
        frame: node => node.frame,
        above: node => node.above,
        both: node => node.sides,
      };
    }

    // What is shown.
    let model = down, zoomed = null, icicle = false, isCallers = false, picked = null, over = null, hits = null;
    let rows = [], queued = false, colours = {}, wide = 0, tall = 0;

    const element = (tag, properties = {}) => Object.assign(document.createElement(tag), properties);
    const tools = element('div', { className: 'tools' });
    const button = (text, title, act) => {
      const made = element('button', { type: 'button', textContent: text, title });
      made.onclick = act;
      tools.append(made);
      return made;
    };
    const reset = button('All', 'Zoom out (Escape)', () => zoom(null));
    const icicleButton = button('Icicle', 'Root on top (i)', () => flip());
    const callersButton = button('Callers', 'From the innermost frame to its callers (c)', () => turn());
    let select = null;
    if (difference || groups.length > 1) {
      select = element('select');
      select.setAttribute('aria-label', difference ? 'Profile that widths are of' : 'Threads');
      const groupWeights = new Float64Array(groups.length);
      group.forEach((of, at) => { groupWeights[of] += weight[at]; });
      const choices = difference ? [['1', 'widths: after'], ['0', 'widths: before']]
        : [['-1', `all ${groups.length} thread groups`], ...groups.map((name, at) => {
          const share = groupWeights[at] / Math.max(now.all, 1);
          return [String(at), `${name || 'no thread'} (${percent(share)})`];
        })];
      for (const [value, text] of choices) select.append(element('option', { value, textContent: text }));
      select.onchange = () => {
        chosen = +select.value;
        now = difference ? sides[chosen] : weigh(chosen);
        model = isCallers ? callers() : down;
        zoomed = picked = over = null;
        layout();
        found();
      };
      tools.append(select);
    }
    const search = element('input', { type: 'search', placeholder: 'Search (text or regular expression)', spellcheck: false });
    search.setAttribute('aria-label', 'Search frames');
    search.oninput = () => { found(); paint(); };
    search.onkeydown = event => {
      if (event.key === 'Escape') { search.value = ''; found(); paint(); canvas.focus(); event.preventDefault(); }
      if (event.key === 'Enter') { canvas.focus(); event.preventDefault(); }
    };
    const share = element('output', { className: 'found' });
    share.setAttribute('aria-live', 'polite');
    tools.append(search, share);
    const view = element('div', { className: 'view' }), pad = element('div'), canvas = element('canvas'), about = element('output', { className: 'about' });
    canvas.tabIndex = 0;
    canvas.setAttribute('role', 'application');
    canvas.setAttribute('aria-label', 'Flame graph. Arrows choose a frame, Enter zooms in, Escape zooms out, i icicle, c callers, / search.');
    about.setAttribute('aria-live', 'polite');
    pad.append(canvas);
    view.append(pad);
    root.append(tools, view, about);
    root.classList.add('drawn');
    const pen = canvas.getContext('2d');

    function dye() {
      const style = getComputedStyle(root), value = name => style.getPropertyValue(name).trim();
      colours = {
        kinds: [0, 1, 2, 3, 4].map(at => value(`--k${at}`)), text: value('--kt'), hit: value('--hit'), hitText: value('--hit-t'),
        ground: value('--bg'), focus: value('--text'), up: value('--up'), down: value('--down'), even: value('--even'),
        font: `11.5px ${style.fontFamily}`,
      };
    }

    // Of a difference: how much a share grew, by colour and strength.
    function shift(node) {
      const [before, after] = model.both(node).map((weight, at) => weight / Math.max(sides[at].all, 1));
      const most = Math.max(before, after);
      return { before, after, grown: most > 0 ? (after - before) / most : 0 };
    }
    function mixed(grown) {
      const from = colours.even.split(',').map(Number), to = (grown > 0 ? colours.up : colours.down).split(',').map(Number);
      const part = Math.min(1, Math.abs(grown));
      return `rgb(${from.map((value, at) => Math.round(value + (to[at] - value) * part)).join(',')})`;
    }

    // Places all frames that are wide enough.
    function layout() {
      wide = Math.max(view.clientWidth, 50);
      rows = [];
      const place = (node, depth, x, width, isAbove) => (rows[depth] ??= []).push({ node, x, width, isAbove });
      const above = [];
      for (let node = zoomed; node !== null; node = model.above(node)) above.unshift(node);
      above.forEach((node, depth) => place(node, depth, 0, wide, node !== zoomed));
      const scale = wide / Math.max(zoomed === null ? now.all : model.weight(zoomed), 1e-9);
      const left = [[zoomed, above.length, 0]];
      while (left.length) {
        const [node, depth, x] = left.pop();
        let at = x;
        model.below(node, child => {
          const width = model.weight(child) * scale;
          if (width >= LEAST) {
            place(child, depth, at, width, false);
            left.push([child, depth + 1, at]);
          }
          at += width;
        });
      }
      for (const row of rows) row.sort((a, b) => a.x - b.x);
      tall = Math.max(rows.length, 1) * ROW;
      pad.style.height = `${tall}px`;
      const shown = Math.min(tall, view.clientHeight || tall), ratio = devicePixelRatio || 1;
      canvas.style.height = `${shown}px`;
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(shown * ratio);
      reset.disabled = zoomed === null;
      view.scrollTop = icicle ? 0 : tall;
      draw();
      tell();
    }

    const top = depth => icicle ? depth * ROW : tall - (depth + 1) * ROW;

    function draw() {
      const ratio = devicePixelRatio || 1, from = view.scrollTop, until = from + canvas.height / ratio;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, wide, until - from);
      pen.font = colours.font;
      pen.textBaseline = 'middle';
      const each = pen.measureText('abcdefghijklmnopqrstuvwxyz.ABCDE').width / 32;
      rows.forEach((row, depth) => {
        const y = top(depth) - from;
        if (y + ROW < 0 || y > until - from) return;
        for (const box of row) {
          const at = model.frame(box.node), isHit = hits && hits[at];
          pen.globalAlpha = box.isAbove ? 0.55 : 1;
          pen.fillStyle = isHit ? colours.hit : difference ? mixed(shift(box.node).grown) : colours.kinds[kinds[at]];
          pen.fillRect(box.x, y + 0.5, Math.max(box.width - (box.width > 3 ? 1 : 0), 0.5), ROW - 1);
          const room = Math.floor((box.width - 7) / each);
          if (room >= 3) {
            let text = frames[at];
            if (text.length > room) text = brief(text);
            if (text.length > room) text = `${text.slice(0, room - 1)}…`;
            pen.fillStyle = isHit ? colours.hitText : colours.text;
            pen.fillText(text, box.x + 4, y + ROW / 2 + 0.5, box.width - 6);
          }
          if (box.node === picked || box.node === over) {
            pen.globalAlpha = 1;
            pen.strokeStyle = colours.focus;
            pen.lineWidth = box.node === picked ? 2 : 1;
            pen.strokeRect(box.x + 1, y + 1.5, Math.max(box.width - 2, 1), ROW - 3);
          }
        }
      });
      pen.globalAlpha = 1;
    }

    function paint() {
      if (queued) return;
      queued = true;
      requestAnimationFrame(() => { queued = false; draw(); });
    }

    // The frame under the pointer, or the chosen one, in words.
    function tell() {
      const node = over ?? picked ?? zoomed;
      about.textContent = '';
      if (node === null) {
        about.textContent = `All: ${say(now.all)}. Click a frame to zoom in.`;
        return;
      }
      const name = element('b', { textContent: frames[model.frame(node)] }), total = model.weight(node);
      let text = `: ${percent(total / Math.max(now.all, 1))} of ${root.dataset.quantity}, ${say(total)}`;
      if (zoomed !== null && node !== zoomed) text += `, ${percent(total / Math.max(model.weight(zoomed), 1e-9))} of the zoomed frame`;
      if (!isCallers) text += `; itself ${percent(model.own(node) / Math.max(now.all, 1))}`;
      if (difference) {
        const { before, after } = shift(node), points = (after - before) * 100;
        text = `: before ${percent(before)}, after ${percent(after)}, ${points < 0 ? '−' : '+'}${Math.abs(points).toFixed(2)} percentage points`;
      }
      about.append(name, text);
    }

    // A stack counts once, however many of its frames are found.
    function found() {
      const text = search.value.trim();
      hits = null;
      share.textContent = '';
      if (!text) return;
      let matches;
      try {
        const pattern = new RegExp(text, 'i');
        matches = name => pattern.test(name);
      } catch {
        const lower = text.toLowerCase();
        matches = name => name.toLowerCase().includes(lower);
      }
      hits = Uint8Array.from(frames, name => matches(name) ? 1 : 0);
      let sum = 0;
      for (let node = 0; node < size;) {
        if (hits[frame[node]]) { sum += now.total[node]; node = ends[node]; } else node++;
      }
      const names = hits.reduce((sum, hit) => sum + hit, 0);
      share.textContent = names ? `found ${percent(sum / Math.max(now.all, 1))} in ${count(names)} ${names === 1 ? 'frame' : 'frames'}` : 'nothing found';
    }

    function zoom(node) {
      zoomed = node;
      picked = node;
      over = null;
      layout();
    }
    function flip() {
      icicle = !icicle;
      icicleButton.setAttribute('aria-pressed', icicle);
      layout();
    }
    function turn() {
      isCallers = !isCallers;
      callersButton.setAttribute('aria-pressed', isCallers);
      model = isCallers ? callers() : down;
      zoomed = picked = over = null;
      layout();
    }
    icicleButton.setAttribute('aria-pressed', false);
    callersButton.setAttribute('aria-pressed', false);

    function under(event) {
      const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top + view.scrollTop;
      const depth = icicle ? Math.floor(y / ROW) : Math.floor((tall - y) / ROW), row = rows[depth] ?? [];
      let low = 0, high = row.length - 1;
      while (low < high) { const middle = (low + high + 1) >> 1; if (row[middle].x <= x) low = middle; else high = middle - 1; }
      const hit = row[low];
      return hit && x >= hit.x && x <= hit.x + Math.max(hit.width, 1) ? hit.node : null;
    }
    canvas.onpointermove = event => {
      const node = under(event);
      if (node !== over) { over = node; paint(); tell(); }
    };
    canvas.onpointerleave = () => { over = null; paint(); tell(); };
    canvas.onclick = event => {
      const node = under(event);
      if (node !== null) zoom(node === zoomed ? model.above(node) : node);
    };

    // The place of the chosen frame among those that are drawn.
    function placed(node) {
      for (let depth = 0; depth < rows.length; depth++) {
        const at = rows[depth].findIndex(box => box.node === node);
        if (at >= 0) return [depth, at];
      }
      return null;
    }
    function choose(depth, at) {
      const row = rows[depth];
      if (!row) return;
      picked = row[Math.min(Math.max(at, 0), row.length - 1)].node;
      over = null;
      const y = top(depth);
      if (y < view.scrollTop) view.scrollTop = y;
      if (y + ROW > view.scrollTop + view.clientHeight) view.scrollTop = y + ROW - view.clientHeight;
      paint();
      tell();
    }
    canvas.onkeydown = event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const place = picked === null ? null : placed(picked), outward = icicle ? 'ArrowDown' : 'ArrowUp', inward = icicle ? 'ArrowUp' : 'ArrowDown';
      const keys = {
        [outward]() {
          if (!place) return choose(0, 0);
          const mine = rows[place[0]][place[1]], row = rows[place[0] + 1] ?? [];
          let widest = -1;
          row.forEach((box, at) => {
            const isBelow = box.x >= mine.x - 0.01 && box.x < mine.x + mine.width && model.above(box.node) === picked;
            if (isBelow && (widest < 0 || box.width > row[widest].width)) widest = at;
          });
          if (widest >= 0) choose(place[0] + 1, widest);
        },
        [inward]() {
          const above = place && model.above(picked), at = above === null || above === undefined ? null : placed(above);
          if (at) choose(...at);
        },
        ArrowLeft() { place ? choose(place[0], place[1] - 1) : choose(0, 0); },
        ArrowRight() { place ? choose(place[0], place[1] + 1) : choose(0, 0); },
        Enter() { if (picked !== null) zoom(picked); },
        Escape() { zoom(null); },
        i: flip,
        c: turn,
        '/'() { search.focus(); },
      };
      if (!Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      keys[event.key]();
    };
    view.onscroll = paint;
    new ResizeObserver(() => { if (view.clientWidth !== wide) layout(); }).observe(view);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { dye(); draw(); });
    dye();
    layout();
  }

  document.querySelectorAll('.flame').forEach(graph);
})();
