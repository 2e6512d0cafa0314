/// The third part of the page's script: pointer, keys, details, and the start.
enum PageScriptControls {
    static let text = #"""
        class Timeline {
          constructor(figure, data) {
            this.figure = figure;
            this.model = new Model(data);
            this.canvas = figure.querySelector('canvas');
            this.stage = figure.querySelector('.stage');
            this.tip = figure.querySelector('.tip');
            this.details = figure.querySelector('.details');
            this.painter = new Painter(this.model, this.canvas);
            this.selected = null;
            this.pointers = new Map();
            this.listen();
            this.listModes();
            this.listHeldBack();
            this.listFacts();
            this.resize();
            figure.dataset.events = this.model.count;
            figure.dataset.lanes = this.model.groups.reduce((n, g) => n + g.lanes.length, 0);
            figure.dataset.ready = 'true';
          }

          resize() {
            this.painter.layOut(this.stage.clientWidth || 800);
            this.figure.dataset.others = this.painter.others;
            this.redraw();
          }

          redraw() {
            if (this.isAsked) return;
            this.isAsked = true;
            requestAnimationFrame(() => this.drawNow());
            if (!this.figure.dataset.drawn) this.drawNow();
          }

          drawNow() {
            this.isAsked = false;
            const began = performance.now();
            this.painter.draw(this.selected);
            this.figure.dataset.drawn = this.painter.drawn;
            return performance.now() - began;
          }

          // Moving

          zoom(factor, at) {
            const {from, to} = this.painter.view, centre = at === undefined ? (from + to) / 2 : at;
            this.painter.setView(centre - (centre - from) * factor, centre + (to - centre) * factor);
            this.redraw();
          }

          pan(fraction) {
            const {from, to} = this.painter.view, by = (to - from) * fraction;
            this.painter.setView(from + by, to + by);
            this.redraw();
          }

          fit() { this.painter.setView(...this.painter.whole); this.redraw(); }

          show(from, to) {
            const margin = Math.max((to - from) * .6, this.model.length / 2000, 1000);
            this.painter.setView(from - margin, to + margin);
            this.redraw();
          }

          // Selecting

          select(hit, mustShow) {
            this.selected = hit;
            this.details.textContent = '';
            this.details.classList.toggle('hint', !hit);
            if (hit) {
              const d = this.model.describe(hit.ref);
              this.write(this.details, d);
              if (mustShow) this.reveal(hit);
            } else this.details.textContent = this.hint;
            this.redraw();
          }

          write(element, d) {
            element.textContent = '';
            const title = document.createElement('b');
            title.textContent = d.title;
            element.append(title, d.text ? d.text + ' ' : '');
            const facts = document.createElement('div');
            for (const [name, value] of d.facts) {
              const fact = document.createElement('span');
              fact.className = 'numbers';
              fact.textContent = name + ' ' + value;
              facts.append(fact, ' ');
            }
            element.append(facts);
          }

          /** Brings what is selected into view, without changing the scale more than it must. */
          reveal(hit) {
            const from = hit.spans.from[hit.index], to = hit.spans.to[hit.index], view = this.painter.view;
            if (to - from > (view.to - view.from)) return this.show(from, to);
            if (from < view.from || to > view.to) {
              const half = (view.to - view.from) / 2, middle = (from + to) / 2;
              this.painter.setView(middle - half, middle + half);
            }
          }

          get lanes() {
            return this.painter.rows.filter(r => r.lane && r.lane.spans.count + (r.lane.held ? r.lane.held.count : 0));
          }

          /** Every span of a lane in order of beginning, held back or not, and every sleep. */
          step(by) {
            const lane = this.selected ? this.selected.lane : (this.lanes[0] || {}).lane;
            if (!lane) return;
            const all = [];
            for (const spans of [lane.spans, lane.held, lane.sleep]) {
              if (spans) for (let i = 0; i < spans.count; i++) all.push({lane, spans, index: i, ref: spans.ref[i]});
            }
            all.sort((a, b) => a.spans.from[a.index] - b.spans.from[b.index]);
            let place;
            if (this.selected) place = all.findIndex(e => e.ref === this.selected.ref) + by;
            else place = all.findIndex(e => e.spans.to[e.index] >= this.painter.view.from);
            if (all[place]) this.select(all[place], true);
          }

          changeLane(by) {
            const lanes = this.lanes;
            if (!lanes.length) return;
            const at = this.selected ? lanes.findIndex(r => r.lane === this.selected.lane) : by > 0 ? -1 : lanes.length;
            const row = lanes[Math.max(0, Math.min(lanes.length - 1, at + by))];
            const view = this.painter.view;
            const t = this.selected ? this.selected.spans.from[this.selected.index] : (view.from + view.to) / 2;
            let best = null, distance = Infinity;
            for (const spans of [row.lane.spans, row.lane.held]) {
              if (!spans) continue;
              const near = spans.firstReaching(t);
              for (const i of [near - 1, near, near + 1]) {
                if (i < 0 || i >= spans.count) continue;
                const d = t < spans.from[i] ? spans.from[i] - t : t > spans.to[i] ? t - spans.to[i] : 0;
                if (d < distance) { distance = d; best = {lane: row.lane, spans, index: i, ref: spans.ref[i]}; }
              }
            }
            if (best) this.select(best, true);
          }

          nextHeldBack() {
            const order = this.painter.rows.flatMap(r => r.lane && r.lane.held ? [...r.lane.held.ref] : []);
            order.sort((a, b) => a - b);
            if (!order.length) return;
            const now = this.selected ? this.selected.ref : -1;
            this.showHeldBack(order.find(ref => ref > now) ?? order[0]);
          }

          showHeldBack(ref) {
            for (const row of this.painter.rows) {
              const held = row.lane && row.lane.held, index = held ? held.ref.indexOf(ref) : -1;
              if (index < 0) continue;
              this.select({lane: row.lane, spans: held, index, ref});
              this.show(held.from[index], held.to[index]);
              return;
            }
            // Its loop is one of those that are not drawn.
            this.select(null);
            this.details.classList.remove('hint');
            this.write(this.details, this.model.describe(ref));
          }

          key(event) {
            const actions = {
              '+': () => this.zoom(.6), '=': () => this.zoom(.6), '-': () => this.zoom(1 / .6), '0': () => this.fit(),
              ArrowLeft: () => event.shiftKey ? this.pan(-.2) : this.step(-1),
              ArrowRight: () => event.shiftKey ? this.pan(.2) : this.step(1),
              ArrowUp: () => this.changeLane(-1), ArrowDown: () => this.changeLane(1),
              PageUp: () => this.pan(-.9), PageDown: () => this.pan(.9),
              Home: () => { this.painter.setView(0, this.painter.view.to - this.painter.view.from); this.redraw(); },
              End: () => {
                const span = this.painter.view.to - this.painter.view.from;
                this.painter.setView(this.model.length - span, this.model.length);
                this.redraw();
              },
              Enter: () => this.selected && this.show(this.selected.spans.from[this.selected.index],
                this.selected.spans.to[this.selected.index]),
              Escape: () => { this.select(null); this.tip.hidden = true; },
              h: () => this.nextHeldBack(), H: () => this.nextHeldBack(),
            };
            if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
            event.preventDefault();
            actions[event.key]();
          }

          // Pointer

          listen() {
            const c = this.canvas;
            this.hint = 'Hover or tap for details. Keys: ← → along a lane, ↑ ↓ between lanes, + − 0 zoom, Shift with ← → moves, ' +
              'H goes to the next span that waits.';
            this.details.textContent = this.hint;
            this.details.classList.add('hint');
            c.addEventListener('keydown', e => this.key(e));
            c.addEventListener('wheel', e => {
              const along = Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey;
              if (!along && !e.ctrlKey && !e.metaKey) return;
              e.preventDefault();
              if (along) this.pan((e.deltaX || e.deltaY) / 800);
              else this.zoom(Math.exp(e.deltaY / 300), this.painter.t(this.place(e)[0]));
            }, {passive: false});
            c.addEventListener('dblclick', e => this.zoom(.35, this.painter.t(this.place(e)[0])));
            c.addEventListener('pointerdown', e => {
              c.setPointerCapture(e.pointerId);
              this.pointers.set(e.pointerId, this.place(e));
              this.pressed = this.place(e);
              if (this.pressed[1] < MAP) this.moveMap(this.pressed[0]);
            });
            c.addEventListener('pointermove', e => this.move(e));
            const end = e => {
              const press = this.pressed, here = this.place(e);
              this.pointers.delete(e.pointerId);
              if (press && e.type === 'pointerup' && Math.hypot(here[0] - press[0], here[1] - press[1]) < 5 && here[1] > MAP) {
                const hit = this.painter.find(...here);
                if (hit) this.select(hit); else this.select(null);
              }
              this.pressed = null;
            };
            c.addEventListener('pointerup', end);
            c.addEventListener('pointercancel', end);
            c.addEventListener('pointerleave', () => { this.tip.hidden = true; });
            for (const button of this.figure.querySelectorAll('[data-do]')) {
              button.addEventListener('click', () => ({in: () => this.zoom(.5), out: () => this.zoom(2), fit: () => this.fit(),
                left: () => this.pan(-.4), right: () => this.pan(.4), held: () => this.nextHeldBack()})[button.dataset.do]());
            }
            new ResizeObserver(() => {
              if (Math.abs(this.stage.clientWidth - this.painter.width) > 1) this.resize();
            }).observe(this.stage);
          }

          place(e) {
            const box = this.canvas.getBoundingClientRect();
            return [e.clientX - box.left, e.clientY - box.top];
          }

          moveMap(x) {
            const {from, to} = this.painter.view;
            const t = (x - this.painter.left) / this.painter.plot * this.model.length;
            this.painter.setView(t - (to - from) / 2, t + (to - from) / 2);
            this.redraw();
          }

          move(e) {
            const here = this.place(e), before = this.pointers.get(e.pointerId);
            if (!before) return this.hover(here);
            this.tip.hidden = true;
            this.pointers.set(e.pointerId, here);
            const view = this.painter.view, scale = (view.to - view.from) / this.painter.plot;
            if (this.pressed && this.pressed[1] < MAP) return this.moveMap(here[0]);
            if (this.pointers.size === 2) {
              const other = [...this.pointers].find(p => p[0] !== e.pointerId)[1];
              const was = Math.abs(before[0] - other[0]), is = Math.abs(here[0] - other[0]);
              if (was > 8 && is > 8) this.zoom(was / is, this.painter.t((here[0] + other[0]) / 2));
            } else {
              const by = (before[0] - here[0]) * scale;
              this.painter.setView(view.from + by, view.to + by);
              this.redraw();
            }
          }

          hover(here) {
            const hit = here[1] > MAP ? this.painter.find(...here) : null;
            this.tip.hidden = !hit;
            if (!hit) return;
            this.write(this.tip, this.model.describe(hit.ref));
            const width = this.tip.offsetWidth, height = this.tip.offsetHeight;
            this.tip.style.left = Math.max(4, Math.min(here[0] + 14, this.painter.width - width - 4)) + 'px';
            this.tip.style.top = (here[1] + 20 + height > this.painter.height ? here[1] - height - 12 : here[1] + 20) + 'px';
          }

          // Texts

          /** The colour of each mode that ran. */
          listModes() {
            const list = this.figure.querySelector('.modes');
            for (const mode of new Set(this.model.activations.map(a => a.mode))) {
              const swatch = document.createElement('i'), item = document.createElement('li');
              swatch.style.background = 'var(--' + this.painter.modeName[mode] + ')';
              item.append(swatch, this.model.data.modes[mode]);
              list.append(item);
            }
          }

          listHeldBack() {
            const box = this.figure.querySelector('.waiting'), held = this.model.heldBack;
            if (!held.length) { box.remove(); this.figure.querySelector('[data-do=held]').remove(); return; }
            // An object that waited several times is listed once, with its longest time.
            const subjects = new Map();
            for (const ref of held) {
              const key = [this.model.data.loop[ref], this.model.data.detail[ref], this.model.data.subject[ref]].join();
              const entry = subjects.get(key) || {ref, count: 0, took: 0};
              entry.count++;
              entry.took += this.model.data.took[ref];
              subjects.set(key, entry);
            }
            const list = box.querySelector('ul'), most = 8, entries = [...subjects.values()].sort((a, b) => b.took - a.took);
            for (const {ref, count, took} of entries.slice(0, most)) {
              const item = document.createElement('li'), button = document.createElement('button');
              const d = this.model.describe(ref);
              button.type = 'button';
              button.textContent = 'Show';
              button.setAttribute('aria-label', 'Show ' + d.title);
              button.addEventListener('click', () => { this.showHeldBack(ref); this.canvas.focus({preventScroll: true}); });
              const text = document.createElement('span');
              text.textContent = this.model.subjectName(ref, this.model.data.detail[ref]) + ': ' +
                d.text.replace(/^It/, 'it') + (count > 1 ? ' So it was ' + count + ' times, ' + time(took) + ' in all.' : '');
              item.append(button, text);
              list.append(item);
            }
            if (entries.length > most) {
              const item = document.createElement('li');
              item.textContent = 'And ' + (entries.length - most) + ' others.';
              list.append(item);
            }
          }

          listFacts() {
            const m = this.model, d = m.data, body = this.figure.querySelector('.facts tbody');
            const rows = d.loops.map(() => ({modes: new Map(), asleep: 0, passes: 0, calls: 0, longest: 0}));
            for (const a of m.activations) {
              const row = rows[a.loop];
              row.modes.set(a.mode, (row.modes.get(a.mode) || 0) + a.to - a.from);
            }
            for (let i = 0; i < m.count; i++) {
              const row = rows[d.loop[i]], kind = d.kind[i];
              if (!row) continue;
              if (kind === K.wait) row.asleep += d.took[i];
              if (kind === K.pass) row.passes++;
              if (isCall(kind)) { row.calls++; row.longest = Math.max(row.longest, d.took[i]); }
            }
            rows.forEach((row, i) => {
              if (!i) return;
              const modes = [...row.modes].map(([mode, ns]) => d.modes[mode] + ' ' + time(ns)).join(', ') || 'never ran';
              const cells = [m.loop(i), modes, time(row.asleep), row.passes, row.calls, row.calls ? time(row.longest) : '–'];
              const line = document.createElement('tr');
              cells.forEach((text, place) => {
                const cell = document.createElement(place ? 'td' : 'th');
                if (place > 1) cell.className = 'numbers';
                cell.textContent = text;
                line.append(cell);
              });
              body.append(line);
            });
          }

          /** Draws at many scales, as when a user zooms: how long a picture takes, in milliseconds. */
          measure() {
            const times = [];
            let most = 0;
            for (let i = 0; i < 60; i++) {
              const span = this.model.length * .85 ** (i % 30);
              this.painter.setView(this.model.length * .3, this.model.length * .3 + span);
              times.push(this.drawNow());
              most = Math.max(most, this.painter.drawn);
            }
            times.sort((a, b) => a - b);
            this.figure.dataset.medianFrame = times[times.length >> 1].toFixed(2);
            this.figure.dataset.mostDrawn = most;
            this.painter.setView(...this.painter.whole);
            this.drawNow();
          }
        }

        const timelines = [];
        for (const figure of document.querySelectorAll('figure.timeline')) {
          const data = document.getElementById(figure.dataset.recording);
          timelines.push(new Timeline(figure, JSON.parse(data.textContent)));
        }
        const renew = () => { for (const t of timelines) { t.painter.readColours(); t.resize(); t.drawNow(); } };
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', renew);
        addEventListener('beforeprint', () => {
          document.documentElement.classList.add('printing');
          for (const d of document.querySelectorAll('details')) { d.dataset.was = d.open; d.open = true; }
          renew();
        });
        addEventListener('afterprint', () => {
          document.documentElement.classList.remove('printing');
          for (const d of document.querySelectorAll('details')) d.open = d.dataset.was === 'true';
          renew();
        });
        for (const quiz of document.querySelectorAll('fieldset.quiz')) {
          const answer = quiz.parentElement.querySelector('details.answer'), out = quiz.querySelector('output');
          // Arrow keys choose while they move, so only the opened answer judges.
          const judge = () => {
            const chosen = quiz.querySelector('input:checked');
            if (!chosen) return;
            const isRight = chosen.value === quiz.dataset.answer;
            out.className = isRight ? 'good' : 'bad';
            out.textContent = isRight ? 'That is what happens. See why below.'
              : 'It is another one. See the timeline, then why.';
          };
          quiz.addEventListener('change', () => {
            if (answer.open) judge();
          });
          answer.addEventListener('toggle', () => { if (answer.open) judge(); });
        }
        if (location.hash === '#measure') for (const t of timelines) t.measure();
        document.documentElement.dataset.ready = 'true';
        """#
}
