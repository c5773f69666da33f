(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const summary = data.summary;
  const byId = id => document.getElementById(id);

  // Making nodes. Texts of the data only ever become text nodes.
  const SVG = 'http://www.w3.org/2000/svg';
  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
    }
    node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
    return node;
  };
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  // Writing numbers.
  const whole = n => Math.round(n).toLocaleString('en-US');
  const plural = (n, noun) => `${whole(n)} ${noun}${n === 1 ? '' : (/(ch|s)$/.test(noun) ? 'es' : 's')}`;
  const duration = us => us >= 1e6 ? `${(us / 1e6).toFixed(us >= 1e8 ? 0 : 2)} s` : us >= 1e3 ? `${(us / 1e3).toFixed(us >= 1e5 ? 0 : 1)} ms` : `${us.toFixed(0)} µs`;
  const bytes = n => n >= 2 ** 30 ? `${(n / 2 ** 30).toFixed(1)} GiB` : n >= 2 ** 20 ? `${(n / 2 ** 20).toFixed(1)} MiB` : `${whole(n / 1024)} KiB`;
  const scientific = x => Number.isFinite(Number(x)) ? Number(x).toExponential(2) : 'not finite';
  const greatest = (numbers, least) => numbers.reduce((most, n) => n > most ? n : most, least);
  const smallest = (numbers, most) => numbers.reduce((least, n) => n < least ? n : least, most);
  const percent = x => `${(100 * x).toFixed(x < .1 ? 1 : 0)}%`;

  // What the data says, by step.
  const primary = data.backends[0];
  const steps = data.steps.map((parts, number) => {
    const step = { number, parts, decode: 0, text: 0, image: 0 };
    for (const part of parts) {
      const request = data.requests[part.request];
      part.decode = part.first >= request.prompt_tokens;
      part.image = overlap(request.images, part.first, part.first + part.count - 1);
      if (part.decode) step.decode += part.count;
      else {
        step.image += part.image;
        step.text += part.count - part.image;
      }
    }
    step.tokens = step.decode + step.text + step.image;
    return step;
  });
  const batches = data.backends.map(() => steps.map(() => []));
  for (const batch of data.batches) batches[batch.backend][batch.step][batch.group] = batch;
  const took = batch => batch.build_us + batch.write_us + batch.forward_us;
  const stepTook = (backend, step) => batches[backend][step].reduce((sum, batch) => sum + took(batch), 0);
  const imageSteps = steps.filter(step => step.image > 0).map(step => step.number);
  const phase = step => step.decode === 0 ? 'prefill' : step.decode === step.tokens ? 'decode' : 'mixed';
  const reasonOf = (batch, r) => batch.reasons.length ? data.reasons[batch.reasons[r]] : null;
  const childOf = (batch, r) => batch.children ? batch.children[r] : null;

  /** Calls back when a node's width has changed, outside of the browser's own layout. */
  function onWidth(node, changed) {
    let width = node.clientWidth;
    new ResizeObserver(() => requestAnimationFrame(() => {
      if (node.clientWidth !== width) {
        width = node.clientWidth;
        changed();
      }
    })).observe(node);
  }

  function overlap(images, first, last) {
    let tokens = 0;
    for (let i = 0; i < images.length; i += 2) {
      tokens += Math.max(0, Math.min(last, images[i + 1]) - Math.max(first, images[i]) + 1);
    }
    return tokens;
  }

  const ROUTES = { A: 'var(--a)', B: 'var(--b)', SPLIT: 'var(--split)', LOWERED: 'var(--lowered)' };
  const routeColour = route => ROUTES[route] || 'var(--other)';
  const kernelColour = (kernel, backend) => {
    const children = (data.backends[backend].children.length ? data.backends[backend] : primary).children;
    return kernel === children[0] ? 'var(--a)' : kernel === children[1] ? 'var(--b)' : 'var(--split)';
  };
  const chip = (label, colour) => h('span', { class: 'chip' + (colour ? '' : ' quiet'), style: colour && `background:${colour}` }, label);
  const swatch = colour => h('i', { class: 'swatch', style: `background:${colour}` });

  headline();
  why();
  times();
  checks();
  accepted();
  selections();
  run();
  timeline();

  // The head of the page.
  function headline() {
    const verdict = byId('verdict');
    verdict.textContent = data.passed ? '✓ All checks passed' : '✗ A check failed';
    if (!data.passed) verdict.className = 'verdict failed';
    byId('title').textContent = `${plural(summary.trace.requests, 'request')} through ${primary.name}`;
    const layers = summary.model.layers_per_group * data.groups.length;
    byId('subtitle').textContent = `${summary.model.id} in ${summary.model.dtype}, ${plural(layers, 'layer')} in ${plural(data.groups.length, 'group')} (${data.groups.map(g => g.name).join(', ')}); ${summary.trace.name} from row ${summary.trace.first_row}`;
    byId('started').textContent = data.invocation.started.replace('T', ' ').replace('Z', ' UTC');
    const first = summary.backends[0];
    const check = summary.checks[0];
    const tile = (value, text, wide) => h('div', { class: 'tile' + (wide ? ' wide' : '') }, h('b', {}, value), h('span', {}, text));
    const tiles = [
      tile(`${whole(first.tokens_per_second)} tokens/s`, `${whole(summary.query_tokens)} query tokens in ${first.seconds.toFixed(1)} s of attention`),
      tile(plural(summary.steps, 'step'), `${whole(summary.image_steps)} hold an image query; ${plural(summary.trace.images, 'image')} of ${summary.trace.image_tokens} tokens`),
      tile(scientific(check.worst_error), `worst error against the reference, bound ${scientific(check.bound)}; ${whole(check.compared)} outputs compared`),
    ];
    if (summary.comparable) {
      for (const ratio of summary.ratios) tiles.push(tile(`${ratio.ratio.toFixed(2)}×`, `as fast as ${ratio.than} on the same steps`));
    }
    if (summary.routes.length) tiles.push(routeTile());
    byId('tiles').replaceChildren(...tiles);
  }

  function routeTile() {
    const stacks = data.groups.map(group => {
      const counts = summary.routes.filter(count => count.group === group.name);
      const all = counts.reduce((sum, count) => sum + count.batches, 0);
      return h('div', {},
        h('div', { class: 'stack thin', 'aria-hidden': 'true' }, counts.map(count => h('i', { style: `width:${100 * count.batches / all}%;background:${routeColour(count.route)}` }))),
        h('span', {}, `${group.name}: `, counts.map((count, i) => `${i ? ', ' : ''}${whole(count.batches)} ${count.route}`)));
    });
    return h('div', { class: 'tile' }, h('span', {}, 'Batches by route'), stacks);
  }

  // The timeline.
  function timeline() {
    const state = { backend: 0, byTime: true, selected: imageSteps.reduce((best, n) => steps[n].parts.length > steps[best].parts.length ? n : best, imageSteps[0] || 0), edges: [], left: 0, width: 0 };
    const tracks = byId('tracks');
    const slider = byId('step');
    slider.max = Math.max(0, steps.length - 1);

    const scaleButtons = [['time', true], ['steps', false]].map(([label, byTime]) =>
      h('button', { type: 'button', 'aria-pressed': String(byTime === state.byTime), onclick: event => {
        state.byTime = byTime;
        scaleButtons.forEach(button => button.setAttribute('aria-pressed', String(button === event.target)));
        draw();
      } }, label));
    const controls = [h('span', { role: 'group', 'aria-label': 'Scale of the timeline' }, 'Scale by ', scaleButtons)];
    if (data.backends.length > 1) {
      controls.push(h('label', {}, 'Backend ', h('select', { onchange: event => { state.backend = Number(event.target.value); draw(); inspect(); } },
        data.backends.map((backend, i) => h('option', { value: i }, backend.name)))));
    }
    byId('controls').append(...controls);
    legend();

    const select = (number, say) => {
      state.selected = Math.max(0, Math.min(steps.length - 1, number));
      slider.value = state.selected;
      const step = steps[state.selected];
      slider.setAttribute('aria-valuetext', `step ${step.number}, ${phase(step)}, ${describe(step)}`);
      byId('back').disabled = !imageSteps.some(n => n < state.selected);
      byId('forth').disabled = !imageSteps.some(n => n > state.selected);
      moveCursor();
      inspect();
      if (say) byId('said').textContent = slider.getAttribute('aria-valuetext');
    };
    slider.addEventListener('input', () => select(Number(slider.value)));
    byId('back').addEventListener('click', () => select(imageSteps.findLast(n => n < state.selected), true));
    byId('forth').addEventListener('click', () => select(imageSteps.find(n => n > state.selected), true));
    document.addEventListener('pick', event => {
      select(event.detail);
      byId('timeline').scrollIntoView({ block: 'start', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
      slider.focus({ preventScroll: true });
    });

    let drawn = 0;
    draw();
    onWidth(tracks, draw);
    select(state.selected);

    function legend() {
      const entries = [['decode', 'var(--decode)'], ['text prefill', 'var(--text)'], ['image', 'var(--image)']];
      const routes = [...new Set(data.batches.map(batch => batch.route).filter(Boolean))];
      const names = {
        A: `A: ${primary.children[0]}, the general child`, B: `B: ${primary.children[1]}, the fast child`,
        SPLIT: 'SPLIT: by request, to both', LOWERED: 'LOWERED: images as runs on B',
      };
      byId('legend').append(
        ...entries.map(([name, colour]) => h('span', {}, swatch(colour), name)),
        ...Object.keys(ROUTES).filter(route => primary.children.length && ('AB'.includes(route) || routes.includes(route))).map(route => h('span', {}, swatch(ROUTES[route]), names[route])));
    }

    function draw() {
      drawn = tracks.clientWidth;
      const left = narrow() ? 62 : 142;
      const right = 8;
      const width = Math.max(120, drawn - left - right);
      const weights = steps.map(step => state.byTime ? stepTook(state.backend, step.number) : 1);
      const total = weights.reduce((sum, weight) => sum + weight, 0) || 1;
      const edges = [left];
      for (const weight of weights) edges.push(edges[edges.length - 1] + width * weight / total);
      Object.assign(state, { edges, left, width });

      const parts = [];
      let y = 6;
      const title = (text, ...details) => {
        parts.push(s('text', { class: 'name', x: 0, y: y + 12 }, narrow() ? text.replace('Query tokens', 'Tokens').slice(0, 8) : text));
        if (!narrow()) details.forEach((detail, i) => parts.push(s('text', { x: 0, y: y + 26 + 13 * i }, detail)));
      };
      y = tokens(parts, title, y, 92) + 16;
      y = requests(parts, title, y) + 18;
      data.groups.forEach((group, g) => { y = routes(parts, title, y, g) + 16; });
      if (!state.byTime) y = milliseconds(parts, title, y, 56) + 14;
      y = axis(parts, y, total);

      const hover = s('rect', { class: 'hover', y: 0, height: y, width: 0 });
      const cursor = s('path', { class: 'cursor' });
      const svg = s('svg', { viewBox: `0 0 ${drawn} ${y}`, height: y, role: 'img', 'aria-label': spoken() }, hatch(), parts, hover, cursor);
      svg.addEventListener('pointermove', event => point(event, svg, hover));
      svg.addEventListener('pointerleave', () => { hover.setAttribute('width', 0); byId('tip').hidden = true; });
      svg.addEventListener('click', event => { const step = at(event, svg); if (step !== null) select(step); });
      tracks.replaceChildren(svg);
      state.cursor = cursor;
      state.height = y;
      moveCursor();
    }

    function narrow() {
      return drawn < 560;
    }

    function spoken() {
      const counts = summary.routes.map(count => `${count.group} ${count.route} ${count.batches}`).join(', ');
      return `Timeline of ${steps.length} steps, ${imageSteps.length} of them with image queries. Batches by route: ${counts || 'none'}. The slider below walks through the steps.`;
    }

    function hatch() {
      const stripes = (id, colour, other) => s('pattern', { id, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
        s('rect', { width: 6, height: 6, style: `fill:${colour}` }), s('rect', { width: 2, height: 6, style: `fill:${other}` }));
      return s('defs', {}, stripes('image', 'var(--image)', 'color-mix(in srgb, var(--image) 62%, var(--panel))'),
        stripes('split', 'var(--split)', 'color-mix(in srgb, var(--split) 62%, var(--panel))'));
    }

    function box(i, top, bottom) {
      const x = state.edges[i];
      const gap = state.edges[i + 1] - x > 4 ? 1 : 0;
      const w = Math.max(.7, state.edges[i + 1] - x - gap);
      return `M${x.toFixed(2)} ${top.toFixed(2)}h${w.toFixed(2)}V${bottom.toFixed(2)}h${(-w).toFixed(2)}z`;
    }

    function tokens(parts, title, top, height) {
      const most = greatest(steps.map(step => step.tokens), 1);
      title('Query tokens', 'of each step');
      const bottom = top + height;
      parts.push(s('path', { class: 'axis', d: `M${state.left} ${bottom}h${state.width}M${state.left} ${top}h${state.width}` }),
        s('text', { x: state.left - 6, y: top + 4, 'text-anchor': 'end' }, whole(most)), s('text', { x: state.left - 6, y: bottom, 'text-anchor': 'end' }, '0'));
      const paths = { decode: '', text: '', image: '' };
      for (const step of steps) {
        let base = bottom;
        for (const kind of ['decode', 'text', 'image']) {
          if (step[kind]) {
            const next = base - Math.max(1, height * step[kind] / most);
            paths[kind] += box(step.number, next, base);
            base = next;
          }
        }
      }
      parts.push(s('path', { d: paths.decode, style: 'fill:var(--decode)' }), s('path', { d: paths.text, style: 'fill:var(--text)' }), s('path', { d: paths.image, fill: 'url(#image)' }));
      return bottom;
    }

    function requests(parts, title, top) {
      const row = Math.max(3, Math.min(11, 190 / data.requests.length));
      title('Requests', 'one row each');
      const paths = { decode: '', text: '', image: '' };
      for (const step of steps) {
        for (const part of step.parts) {
          const upper = top + part.request * row;
          const lower = upper + row - (row > 4 ? 1.5 : .5);
          const cut = lower - (lower - upper) * part.image / part.count;
          paths[part.decode ? 'decode' : 'text'] += part.image < part.count ? box(step.number, upper, cut) : '';
          paths.image += part.image ? box(step.number, cut, lower) : '';
        }
      }
      parts.push(s('path', { d: paths.decode, style: 'fill:var(--decode)' }), s('path', { d: paths.text, style: 'fill:var(--text)' }), s('path', { d: paths.image, style: 'fill:var(--image)' }));
      return top + Math.max(28, row * data.requests.length);
    }

    function routes(parts, title, top, g) {
      title(data.groups[g].name, ...data.groups[g].mask.split(', ').slice(-2));
      const height = 24;
      let i = 0;
      while (i < steps.length) {
        const route = batches[state.backend][i][g].route;
        let end = i + 1;
        while (end < steps.length && batches[state.backend][end][g].route === route) end++;
        const x = state.edges[i];
        const w = Math.max(.8, state.edges[end] - x - (state.edges[end] - x > 3 ? .75 : 0));
        parts.push(s('rect', { x, y: top, width: w, height, rx: w > 6 ? 2 : 0, ...(route === 'SPLIT' ? { fill: 'url(#split)' } : { style: `fill:${routeColour(route)}` }) }));
        const label = route || 'whole';
        if (w > 9 * label.length + 8) parts.push(s('text', { class: 'on', x: x + w / 2, y: top + 16, 'text-anchor': 'middle' }, label));
        i = end;
      }
      // Under the strip: how many of the step's query tokens each child got.
      const shareTop = top + height + 2;
      const shareHeight = 9;
      let a = '';
      let b = '';
      for (const step of steps) {
        const batch = batches[state.backend][step.number][g];
        if (!batch.children) continue;
        const onA = step.parts.reduce((sum, part, r) => sum + (batch.children[r] === 'A' ? part.count : 0), 0);
        const cut = shareTop + shareHeight * onA / step.tokens;
        if (onA > 0) a += box(step.number, shareTop, cut);
        if (onA < step.tokens) b += box(step.number, cut, shareTop + shareHeight);
      }
      parts.push(s('path', { d: a, style: 'fill:var(--a)' }), s('path', { d: b, style: 'fill:var(--b)' }));
      return Math.max(shareTop + shareHeight, top + (narrow() ? 0 : 40));
    }

    function milliseconds(parts, title, top, height) {
      title('Time', 'of each step');
      const most = greatest(steps.map(step => stepTook(state.backend, step.number)), 1e-9);
      const bottom = top + height;
      parts.push(s('path', { class: 'axis', d: `M${state.left} ${bottom}h${state.width}` }), s('text', { x: state.left - 6, y: top + 8, 'text-anchor': 'end' }, duration(most)));
      const paths = {};
      for (const step of steps) {
        let base = bottom;
        const add = (colour, us) => {
          if (us > 0) {
            const next = base - height * us / most;
            paths[colour] = (paths[colour] || '') + box(step.number, next, base);
            base = next;
          }
        };
        let rest = stepTook(state.backend, step.number);
        data.kernels.forEach((kernel, k) => {
          const us = batches[state.backend][step.number].reduce((sum, batch) => sum + batch.kernel_us[k], 0);
          rest -= us;
          add(kernelColour(kernel, state.backend), us);
        });
        add('var(--other)', rest);
      }
      for (const [colour, d] of Object.entries(paths)) parts.push(s('path', { d, style: `fill:${colour}` }));
      return bottom;
    }

    function axis(parts, top, total) {
      parts.push(s('path', { class: 'axis', d: `M${state.left} ${top}h${state.width}` }));
      const rough = total / Math.max(2, state.width / 110);
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = Math.max(state.byTime ? 0 : 1, [1, 2, 5, 10].map(n => n * power).find(n => n >= rough));
      for (let value = 0; value <= total; value += step) {
        const x = state.left + state.width * value / total;
        const edge = x > state.left + state.width - 30;
        parts.push(s('path', { class: 'axis', d: `M${x} ${top}v4` }),
          s('text', { x, y: top + 16, 'text-anchor': edge ? 'end' : value === 0 ? 'start' : 'middle' }, state.byTime ? tick(value, step) : value === 0 ? 'step 0' : whole(value)));
      }
      return top + 22;
    }

    function tick(us, step) {
      const [unit, name] = unitFor(step);
      return us === 0 ? '0' : `${Number((us / unit).toPrecision(4))} ${name}`;
    }

    function unitFor(step) {
      return step >= 1e5 ? [1e6, 's'] : step >= 100 ? [1e3, 'ms'] : [1, 'µs'];
    }

    function at(event, svg) {
      const bounds = svg.getBoundingClientRect();
      const x = (event.clientX - bounds.left) * drawn / bounds.width;
      if (x < state.left || x > state.left + state.width || !steps.length) return null;
      let low = 0;
      let high = steps.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (state.edges[middle + 1] < x) low = middle + 1; else high = middle;
      }
      return low;
    }

    function point(event, svg, hover) {
      const tip = byId('tip');
      const number = at(event, svg);
      tip.hidden = number === null;
      if (number === null) return;
      const step = steps[number];
      hover.setAttribute('x', state.edges[number]);
      hover.setAttribute('width', Math.max(1.5, state.edges[number + 1] - state.edges[number]));
      tip.textContent = `step ${number}, ${phase(step)}: ${describe(step)}\n`
        + data.groups.map((group, g) => `${group.name} ${batches[state.backend][number][g].route || 'whole'}`).join(' · ')
        + ` · ${duration(stepTook(state.backend, number))}`;
      const box = tip.getBoundingClientRect();
      tip.style.left = `${Math.max(6, Math.min(innerWidth - box.width - 6, event.clientX + 14))}px`;
      tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
    }

    function moveCursor() {
      if (!state.cursor || !steps.length) return;
      const x = (state.edges[state.selected] + state.edges[state.selected + 1]) / 2;
      state.cursor.setAttribute('d', `M${x} 0V${state.height - 20}`);
    }

    // One step's batch, request by request.
    function inspect() {
      if (!steps.length) return;
      const step = steps[state.selected];
      const all = batches[state.backend][step.number];
      const longest = greatest(step.parts.map(part => part.first + part.count), 1);
      const rows = step.parts.map((part, r) => [
        h('div', {}, h('b', {}, `request ${part.request}`), h('span', { class: 'muted' }, ` ${part.decode ? 'decodes' : `queries ${whole(part.first)}–${whole(part.first + part.count - 1)}`}`)),
        lanes(part, r, all, longest),
        h('div', { class: 'where' }, same(all, r)
          ? h('div', {}, all[0].children ? chip(childOf(all[0], r), routeColour(childOf(all[0], r))) : chip('–'), h('span', {}, all[0].children ? reasonOf(all[0], r).text : 'not routed'))
          : all.map((batch, g) => h('div', {}, h('span', { class: 'group' }, data.groups[g].name), chip(childOf(batch, r), routeColour(childOf(batch, r))), h('span', {}, reasonOf(batch, r).text)))),
      ]);
      byId('inspector').replaceChildren(
        h('h3', {}, `Step ${step.number}: ${phase(step)}, ${describe(step)}, ${duration(stepTook(state.backend, step.number))} `,
          all.map((batch, g) => [' ', h('span', { class: 'muted' }, data.groups[g].name + ' '), chip(batch.route || 'whole', batch.route && routeColour(batch.route))])),
        h('div', { class: 'inspect' },
          h('div', { class: 'head' }, `${plural(step.parts.length, 'request')}`), h('div', { class: 'head' }, `its keys, 0–${whole(longest - 1)}: queries by child, one lane per group; images framed`), h('div', { class: 'head' }, 'child and reason'),
          rows));
    }

    function same(all, r) {
      return all.every(batch => !batch.children || (childOf(batch, r) === childOf(all[0], r) && batch.reasons[r] === all[0].reasons[r]));
    }

    function lanes(part, r, all, longest) {
      const images = data.requests[part.request].images;
      const end = part.first + part.count;
      const height = 26;
      const lane = (height - 6) / all.length;
      const shapes = [s('rect', { x: 0, y: 3, width: end, height: height - 6, style: 'fill:var(--soft)' })];
      all.forEach((batch, g) => shapes.push(s('rect', { x: part.first, y: 3 + g * lane, width: Math.max(part.count, longest / 250), height: lane - .75, style: `fill:${routeColour(childOf(batch, r))}` })));
      for (let i = 0; i < images.length; i += 2) {
        if (images[i] < end) {
          shapes.push(s('rect', { x: images[i], y: 1.2, width: Math.min(end, images[i + 1] + 1) - images[i], height: height - 2.4, 'vector-effect': 'non-scaling-stroke', style: 'fill:var(--image);fill-opacity:.3;stroke:var(--image);stroke-width:2' }));
        }
      }
      return s('svg', { class: 'lanes', viewBox: `0 0 ${longest} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, shapes);
    }
  }

  function describe(step) {
    return [step.decode && `${plural(step.decode, 'decode')}`, step.text && `${whole(step.text)} text`, step.image && `${whole(step.image)} image tokens`].filter(Boolean).join(', ');
  }

  // Reasons, and every batch that holds an image query.
  function why() {
    const routed = summary.reasons.length > 0;
    byId('reasons').append(...(routed ? data.groups.map(reasonsOf) : [h('p', { class: 'note' }, `${primary.name} does not route: it runs every batch whole.`)]));
    if (!routed) {
      byId('routed').hidden = true;
      return;
    }
    const rows = [];
    for (const number of imageSteps) {
      steps[number].parts.forEach((part, r) => {
        if (part.image && !part.decode) rows.push({ number, part, r });
      });
    }
    if (!rows.length) {
      byId('routed').replaceChildren(h('p', { class: 'muted', style: 'margin:0' }, 'No batch of this run holds an image query.'));
      return;
    }
    const body = h('tbody', {});
    const show = most => body.replaceChildren(...rows.slice(0, most).map(row), ...(rows.length > most
      ? [h('tr', {}, h('td', { colspan: 4 + data.groups.length }, h('button', { type: 'button', onclick: () => show(rows.length) }, `Show all ${whole(rows.length)}`)))] : []));
    show(60);
    byId('routed').append(h('table', {}, h('caption', { class: 'hidden' }, 'Requests with image queries, by step'),
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Step'), h('th', { scope: 'col' }, 'Request'), h('th', { scope: 'col' }, 'Queries'), h('th', { scope: 'col', class: 'n' }, 'Image tokens'),
        data.groups.map(group => h('th', { scope: 'col' }, `${group.name}: child and reason`)))), body));
    byId('routed').tabIndex = 0;
    byId('routed').setAttribute('role', 'region');
    byId('routed').setAttribute('aria-label', 'Requests with image queries');

    function row({ number, part, r }) {
      return h('tr', {},
        h('td', {}, h('button', { type: 'button', class: 'link', 'aria-label': `Look into step ${number}`, onclick: () => document.dispatchEvent(new CustomEvent('pick', { detail: number })) }, String(number))),
        h('td', { class: 'nowrap' }, `${part.request} (row ${data.requests[part.request].row})`),
        h('td', { class: 'nowrap' }, `${whole(part.first)}–${whole(part.first + part.count - 1)}`),
        h('td', { class: 'n' }, whole(part.image)),
        data.groups.map((group, g) => {
          const batch = batches[0][number][g];
          return h('td', { class: 'why' }, chip(childOf(batch, r), routeColour(childOf(batch, r))), ' ', reasonOf(batch, r).text, batch.route === 'SPLIT' ? h('span', { class: 'muted' }, ' (split batch)') : null);
        }));
    }
  }

  function reasonsOf(group) {
    const counts = summary.reasons.filter(count => count.group === group.name).sort((x, y) => y.requests - x.requests);
    const all = counts.reduce((sum, count) => sum + count.requests, 0);
    return h('div', { class: 'panel' }, h('h3', {}, `${group.name} `, h('span', { class: 'muted' }, group.mask)),
      h('table', {}, h('caption', { class: 'hidden' }, `Requests of all batches of ${group.name} by reason`),
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'To'), h('th', { scope: 'col' }, 'Because'), h('th', { scope: 'col', class: 'n' }, 'Requests'), h('th', { scope: 'col', class: 'n' }, ''))),
        h('tbody', {}, counts.map(count => h('tr', {}, h('td', {}, chip(count.child, routeColour(count.child))), h('td', {}, words(count.reason)), h('td', { class: 'n' }, whole(count.requests)), h('td', { class: 'n muted' }, percent(count.requests / all)))))));
  }

  function words(code) {
    return code.toLowerCase().replaceAll('_', ' ');
  }

  // Time by child and phase.
  function times() {
    const most = greatest(summary.backends.map(backend => backend.seconds), 1e-9);
    byId('times').append(...summary.backends.map((backend, b) => {
      const kernels = backend.by_child.map(kernel => ({ name: `attention in ${kernel.backend}`, seconds: kernel.milliseconds / 1e3, colour: kernelColour(kernel.backend, b) }));
      const inKernels = kernels.reduce((sum, kernel) => sum + kernel.seconds, 0);
      const parts = kernels.concat(
        { name: 'around the kernels', seconds: Math.max(0, backend.forward_seconds - inKernels), colour: 'var(--text)' },
        { name: 'cache writes', seconds: backend.write_seconds, colour: 'var(--decode)' },
        { name: 'metadata and routing', seconds: backend.build_seconds, colour: 'var(--image)' }).filter(part => part.seconds > 0.0005 * backend.seconds);
      const phases = backend.by_phase.filter(entry => entry.steps > 0);
      return h('div', { class: 'meter' },
        h('div', { class: 'top' }, h('h3', {}, backend.backend), h('span', { class: 'muted' }, `${backend.seconds.toFixed(2)} s, ${whole(backend.tokens_per_second)} tokens/s`)),
        h('div', { class: 'stack', 'aria-hidden': 'true', style: `width:${100 * backend.seconds / most}%` }, parts.map(part => h('i', { style: `width:${100 * part.seconds / backend.seconds}%;background:${part.colour}` }))),
        h('div', { class: 'grid two', style: 'margin:8px 0 0' },
          h('table', {}, h('caption', { class: 'hidden' }, `Time of ${backend.backend} by part`), h('tbody', {}, parts.map(part => h('tr', {}, h('td', {}, swatch(part.colour), ' ', part.name), h('td', { class: 'n' }, `${part.seconds.toFixed(2)} s`), h('td', { class: 'n muted' }, percent(part.seconds / backend.seconds)))))),
          h('table', {}, h('caption', { class: 'hidden' }, `Time of ${backend.backend} by phase`), h('tbody', {}, phases.map(entry => h('tr', {}, h('td', {}, `${entry.phase.toLowerCase()} steps`), h('td', { class: 'n muted' }, whole(entry.steps)), h('td', { class: 'n' }, `${(entry.milliseconds / 1e3).toFixed(2)} s`), h('td', { class: 'n muted' }, percent(entry.milliseconds / 1e3 / backend.seconds))))))));
    }));
    const notes = [];
    if (summary.comparable) summary.ratios.forEach(ratio => notes.push(h('p', { class: 'note' }, `${primary.name} is ${ratio.ratio.toFixed(2)} times as fast as ${ratio.than} on the same steps, queries, keys and values.`)));
    else if (summary.ratios.length) notes.push(h('p', { class: 'note' }, `No ratio: only ${plural(summary.image_steps, 'step')} hold an image query; from 20 on a ratio means something.`));
    byId('compared').append(...notes);
  }

  // Comparisons with the reference and among backends.
  function checks() {
    const panel = byId('errors');
    panel.append(h('h3', {}, 'Worst error of each batch against the reference'), h('div', { class: 'dots' }),
      h('table', {}, h('caption', { class: 'hidden' }, 'Comparison with the reference'),
        h('thead', {}, h('tr', {}, ['Backend', 'Verdict'].map(text => h('th', { scope: 'col' }, text)), ['Worst error', 'Bound', 'Outputs', 'Query tokens', 'Batches'].map(text => h('th', { scope: 'col', class: 'n' }, text)))),
        h('tbody', {}, summary.checks.map(check => h('tr', {}, h('td', {}, check.backend), h('td', {}, check.passed ? '✓ passed' : '✗ FAILED'), [scientific(check.worst_error), scientific(check.bound), whole(check.compared), whole(check.query_tokens), whole(check.batches)].map(text => h('td', { class: 'n' }, text)))))));
    const plot = panel.querySelector('.dots');
    const draw = () => plot.replaceChildren(dots(Math.max(200, plot.clientWidth)));
    draw();
    onWidth(plot, draw);
    const agreed = summary.agreements.length ? [h('div', { class: 'panel' }, h('h3', {}, 'Checksums against those of ' + primary.name), h('table', {}, h('tbody', {},
      summary.agreements.map(agreement => h('tr', {}, h('td', {}, agreement.backend), h('td', {}, agreement.group), h('td', {}, agreement.within ? '✓ agrees' : '✗ FAILED'), h('td', { class: 'n' }, Number(agreement.distance) === 0 ? 'identical' : `differs by ${scientific(agreement.distance)}`), h('td', { class: 'n muted' }, `bound ${scientific(agreement.bound)}`))))))] : [];
    const shadowed = summary.shadow ? [shadowPanel(summary.shadow)] : [];
    byId('agreements').append(...agreed, ...shadowed, h('details', { class: 'panel' }, h('summary', {}, 'Checksums'), summary.checksums.map(sum => h('div', {}, h('h3', { style: 'margin-top:10px' }, `${sum.backend}, ${sum.group}: norm ${Number(sum.norm).toExponential(6)}`), h('code', {}, sum.projections.map(value => Number(value).toExponential(4)).join(' '))))));
  }

  function shadowPanel(shadow) {
    const at = shadow.at;
    return h('div', { class: 'panel' }, h('h3', {}, `${shadow.backend} in the shadow of ${primary.name}`),
      h('dl', {},
        h('dt', {}, 'verdict'), h('dd', {}, shadow.within ? '✓ agrees' : '✗ FAILED'),
        h('dt', {}, 'worst'), h('dd', {}, `${scientific(shadow.worst_error)}, bound ${scientific(shadow.bound)}`, at ? [`: request ${at.request}, position ${whole(at.position)}, head ${at.head}, ${at.group} layer ${at.layer}, `, h('button', { type: 'button', class: 'link', onclick: () => document.dispatchEvent(new CustomEvent('pick', { detail: at.step })) }, `step ${at.step}`)] : ': no difference anywhere'),
        h('dt', {}, 'compared'), h('dd', {}, `${whole(shadow.compared)} outputs of ${plural(shadow.batches, 'batch')}`),
        shadow.recorded ? [h('dt', {}, 'worst request'), h('dd', {}, h('code', {}, `bifocal attend --in ${shadow.recorded} --out out.safetensors --check`))] : [],
        shadow.failures.length ? [h('dt', {}, 'did not run'), h('dd', {}, shadow.failures.slice(0, 3).join('; '))] : []));
  }

  function dots(width) {
    const bound = summary.checks[0].bound;
    const shown = data.batches.filter(batch => batch.worst !== null);
    const finite = shown.map(batch => Number(batch.worst)).filter(error => error > 0 && Number.isFinite(error));
    const low = Math.floor(Math.log10(smallest(finite, bound / 100)));
    const high = Math.ceil(Math.log10(greatest(finite, bound)) + .1);
    const height = 130;
    const left = 46;
    const x = step => left + 4 + (width - left - 8) * (step + .5) / Math.max(1, steps.length);
    const y = error => {
      const power = !(error > 0) ? low : Number.isFinite(error) ? Math.log10(error) : high;
      return 6 + (height - 24) * (high - Math.max(low, Math.min(high, power))) / Math.max(1, high - low);
    };
    const parts = [];
    for (let power = low; power <= high; power++) {
      parts.push(s('path', { class: 'axis', d: `M${left} ${y(10 ** power)}H${width}` }), s('text', { x: left - 6, y: y(10 ** power) + 4, 'text-anchor': 'end' }, `1e${power}`));
    }
    shown.forEach(batch => parts.push(s('circle', { cx: x(batch.step), cy: y(Number(batch.worst)), r: batch.backend ? 2 : 2.4, style: (Number(batch.worst) <= bound ? `stroke:${routeColour(batch.route)}` : 'stroke:var(--bad)') + `;stroke-width:1.2;fill:${batch.backend ? 'none' : Number(batch.worst) <= bound ? routeColour(batch.route) : 'var(--bad)'};fill-opacity:.65` })));
    parts.push(s('path', { d: `M${left} ${y(bound)}H${width}`, style: 'stroke:var(--bad);stroke-dasharray:5 4;stroke-width:1.4' }), s('text', { x: width, y: y(bound) - 4, 'text-anchor': 'end' }, `bound ${scientific(bound)}`),
      s('text', { x: left, y: height - 2 }, 'step 0'), s('text', { x: width, y: height - 2, 'text-anchor': 'end' }, `step ${Math.max(0, steps.length - 1)}; coloured by route${data.backends.length > 1 ? '; hollow: compared backends' : ''}`));
    return s('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': `Worst error of each of ${shown.length} compared batches; the largest is ${scientific(greatest(shown.map(batch => Number(batch.worst)), 0))}, the bound ${scientific(bound)}.` }, parts);
  }

  // Backends.
  function accepted() {
    byId('backends').append(h('table', {}, h('caption', { class: 'hidden' }, 'Backends that ran, and those refused'),
      h('thead', {}, h('tr', {}, ['Backend', 'Children and policy', 'Here', 'Cache agreed on'].map(text => h('th', { scope: 'col' }, text)))),
      h('tbody', {},
        data.backends.map((backend, b) => h('tr', {},
          h('td', {}, h('b', {}, backend.name), h('div', { class: 'muted' }, b ? 'compared' : 'replayed')),
          h('td', {}, backend.children.length ? [h('div', {}, chip('A', ROUTES.A), ' ', backend.children[0]), h('div', { style: 'margin-top:3px' }, chip('B', ROUTES.B), ' ', backend.children[1]), h('div', { class: 'muted' }, backend.policy)] : 'runs every batch whole'),
          h('td', {}, backend.execution),
          h('td', {}, backend.caches.map(cache => h('div', {}, `${cache.group}: ${cache.layout}, ${cache.dtype}, blocks of ${cache.block_size} tokens (${bytes(cache.block_bytes)})`))))),
        summary.refused.map(refused => h('tr', {}, h('td', {}, h('b', {}, refused.backend), h('div', { class: 'muted' }, 'refused')), h('td', { colspan: 3 }, h('ul', {}, refused.reasons.map(reason => h('li', {}, reason)))))))));
  }

  // What selection says when nobody names a backend.
  function selections() {
    byId('selections').append(...data.selections.map(selection => h('div', { class: 'panel scroll' },
      h('h3', {}, `Selection for ${selection.group} `, h('span', { class: 'muted' }, selection.chosen ? `would take ${selection.chosen}` : 'finds none valid')),
      h('table', {}, h('caption', { class: 'hidden' }, `Candidates for ${selection.group}`),
        h('tbody', {}, selection.candidates.map(candidate => h('tr', {},
          h('td', { class: 'n muted' }, candidate.priority === null ? '' : String(candidate.priority)),
          h('td', { class: 'nowrap' }, candidate.backend === selection.chosen ? h('b', {}, candidate.backend) : candidate.backend),
          h('td', { class: 'nowrap' }, candidate.valid ? '✓ valid' : '✗ refused'),
          h('td', {}, candidate.reasons.join('; '), candidate.hint ? h('div', { class: 'muted' }, candidate.hint) : null))))))));
  }

  // What was run.
  function run() {
    const trace = summary.trace;
    const list = entries => h('dl', {}, entries.filter(entry => entry[1] !== null && entry[1] !== '').map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
    const code = h('code', {}, data.invocation.command);
    const copy = h('button', { type: 'button', onclick: () => {
      const selection = getSelection();
      selection.selectAllChildren(code);
      const done = navigator.clipboard ? navigator.clipboard.writeText(data.invocation.command) : Promise.reject();
      done.then(() => { copy.textContent = 'Copied'; }, () => { copy.textContent = 'Selected'; });
    } }, 'Copy');
    byId('facts').append(
      h('div', { class: 'panel' }, h('h3', {}, 'Command'), h('div', { class: 'command' }, code, copy),
        list([['version', data.invocation.version], ['started', data.invocation.started], ['took', `${summary.seconds.toFixed(1)} s, making of tensors and checks included`], ['processor', data.machine.processor], ['threads', whole(data.machine.processors)], ['system', data.machine.system], ['Java', data.machine.java], ['heap', `at most ${bytes(data.machine.memory_bytes)}`]])),
      h('div', { class: 'panel' }, h('h3', {}, 'Workload'),
        list([['trace', `${trace.name}, rows ${trace.first_row}–${trace.first_row + trace.requests - 1}`], ['requests', `${trace.requests}, ${trace.image_requests} with images`], ['tokens', `${whole(trace.prompt_tokens)} of prompts, ${whole(trace.output_tokens)} of answers`], ['images', `${trace.images} of ${trace.image_tokens} tokens at seeded places, counts read as ${trace.image_count}; ${trace.images_left_out} left out for want of room`], ['waits', `${whole(summary.deferrals)} for an image's room`], ['seed', String(trace.seed)], ['layers', data.groups.map(group => h('div', {}, `${group.name}: ${plural(group.layers, 'layer')}, ${group.heads} heads over ${group.kv_heads}, head size ${group.head_size}, ${group.mask}`))]])),
      summary.cautions.length || trace.attribution ? h('div', { class: 'panel' }, h('h3', {}, 'Before you quote these figures'), h('ul', {}, summary.cautions.map(caution => h('li', {}, caution))), trace.attribution ? h('p', { class: 'muted', style: 'margin:8px 0 0;font-size:13.5px' }, `Source: ${trace.attribution}`) : null) : null);
    byId('requests').append(h('table', {}, h('thead', {}, h('tr', {}, ['Request', 'Row', 'Prompt', 'Answer'].map(text => h('th', { scope: 'col', class: 'n' }, text)), ['Arrived', 'Images'].map(text => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, data.requests.map((request, i) => h('tr', {}, [i, request.row, request.prompt_tokens, request.output_tokens].map(n => h('td', { class: 'n' }, whole(n))), h('td', {}, request.timestamp), h('td', {}, pairs(request.images)))))));
    byId('words').textContent = data.text;
    byId('footer').textContent = `Written by ${data.invocation.version}. This file holds all its data and fetches nothing; steps.jsonl beside it has every batch, one a line.`;
  }

  function pairs(images) {
    const texts = [];
    for (let i = 0; i < images.length; i += 2) texts.push(`${images[i]}–${images[i + 1]}`);
    return texts.join(', ') || 'none';
  }
})();
