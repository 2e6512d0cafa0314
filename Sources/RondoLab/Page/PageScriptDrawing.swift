/// The second part of the page's script: draws lanes on a canvas.
///
/// Things narrower than a pixel are drawn once for each pixel and lane, so that the cost of a picture depends
/// on its width and not on the number of events.
enum PageScriptDrawing {
    static let text = #"""
        const LANE = 20, GAP = 4, HEAD = 26, AXIS = 24, MAP = 22, GUTTER = 120, LABEL = 15;
        /** The highest picture, in pixels of the page: browsers draw nothing on a canvas of 32,768 of the screen's, of which
            up to three are one of the page's. */
        const MOST_HEIGHT = 10000;
        const FONT = '"DejaVu Sans", "Noto Sans", system-ui, sans-serif';
        const GLYPHS = {12: '■', 13: '▲', 14: '●', 15: '◆', 16: '+'};

        class Painter {
          constructor(model, canvas) {
            this.model = model;
            this.canvas = canvas;
            this.context = canvas.getContext('2d');
            this.setView(...this.whole);
            this.readColours();
          }

          readColours() {
            const style = getComputedStyle(document.documentElement);
            const read = name => style.getPropertyValue('--' + name).trim();
            this.colour = {};
            for (const name of ['paper', 'ink', 'quiet', 'line', 'panel', 'none', 'on-mode', 'held', 'held-back', 'sleep', 'focus']) {
              this.colour[name] = read(name);
            }
            // Default is always blue and tracking orange; others take the rest in order.
            let next = 2;
            this.modeName = this.model.data.modes.map((name, i) => i === 0 ? 'none' : 'mode' +
              (name === 'default' ? 0 : name === 'tracking' ? 1 : next < 7 ? next++ : 7));
            this.modeColour = this.modeName.map(read);
            this.hatch = this.makeHatch();
          }

          makeHatch() {
            const tile = document.createElement('canvas');
            tile.width = tile.height = 8;
            const c = tile.getContext('2d');
            c.fillStyle = this.colour['held-back'];
            c.fillRect(0, 0, 8, 8);
            c.strokeStyle = this.colour.held;
            c.lineWidth = 1.4;
            c.beginPath();
            for (const x of [-8, 0, 8]) { c.moveTo(x, 8); c.lineTo(x + 8, 0); }
            c.stroke();
            return this.context.createPattern(tile, 'repeat');
          }

          /** Places lanes, and sizes the canvas for them. */
          layOut(width) {
            this.width = Math.max(200, width);
            this.isNarrow = this.width < 620;
            this.left = this.isNarrow ? 0 : this.gutter();
            this.plot = this.width - this.left - (this.isNarrow ? 0 : 8);
            this.rows = [];
            let y = MAP + AXIS;
            this.others = this.model.groups.length;
            for (const group of this.model.groups) {
              const height = HEAD + group.lanes.length * (LANE + GAP + (this.isNarrow ? LABEL : 0)) + 6;
              if (y + height + HEAD > MOST_HEIGHT) break;
              this.others--;
              this.rows.push({group, y, height: HEAD});
              y += HEAD;
              for (const lane of group.lanes) {
                if (this.isNarrow) y += LABEL;
                this.rows.push({lane, group, y, height: LANE});
                y += LANE + GAP;
              }
              y += 6;
            }
            if (this.others) {
              this.rows.push({group: {place: 0, title: '… and ' + this.others + ' others'}, y, height: HEAD});
              y += HEAD;
            }
            this.height = y + 4;
            const scale = Math.min(3, window.devicePixelRatio || 1);
            this.canvas.width = Math.round(this.width * scale);
            this.canvas.height = Math.round(this.height * scale);
            this.canvas.style.height = this.height + 'px';
            this.scale = scale;
          }

          /** Wide enough for the titles, as long as the lanes keep most of the width. */
          gutter() {
            const c = this.context;
            c.font = '11.5px ' + FONT;
            let widest = 0;
            for (const group of this.model.groups) {
              for (const {title, isNamed, word} of group.lanes) {
                widest = Math.max(widest, c.measureText(title + (isNamed && word ? '   ' + word : '')).width);
              }
            }
            return Math.round(Math.min(Math.max(GUTTER, widest + 30), Math.max(GUTTER, this.width * .25)));
          }

          /** All of it, and a little around, so that what stands at an edge can be read. */
          get whole() { return [-.01 * this.model.length, 1.01 * this.model.length]; }

          x(t) { return this.left + (t - this.view.from) / (this.view.to - this.view.from) * this.plot; }
          t(x) { return this.view.from + (x - this.left) / this.plot * (this.view.to - this.view.from); }

          setView(from, to) {
            const whole = this.model.length, least = Math.min(whole, 200);
            let span = Math.min(Math.max(to - from, least), whole * 1.02);
            let start = from + (to - from - span) / 2;
            const margin = span * .02;
            start = Math.max(-margin, Math.min(start, whole + margin - span));
            this.view = {from: start, to: start + span};
          }

          draw(selected) {
            const c = this.context;
            this.drawn = 0;
            c.setTransform(this.scale, 0, 0, this.scale, 0, 0);
            c.fillStyle = this.colour.paper;
            c.fillRect(0, 0, this.width, this.height);
            this.drawAxis();
            c.save();
            c.beginPath();
            c.rect(this.left, MAP, this.plot, this.height);
            c.clip();
            for (const row of this.rows) if (row.lane) this.drawLane(row);
            if (selected) this.drawSelection(selected);
            c.restore();
            this.drawLabels();
            this.drawMap();
          }

          drawAxis() {
            const c = this.context, span = this.view.to - this.view.from;
            const wish = span / Math.max(2, this.plot / 110), power = 10 ** Math.floor(Math.log10(wish));
            const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= wish);
            c.font = '11px ' + FONT;
            c.textBaseline = 'middle';
            for (let t = Math.ceil(this.view.from / step) * step; t <= this.view.to; t += step) {
              const x = Math.round(this.x(t)) + .5;
              c.strokeStyle = this.colour.line;
              c.lineWidth = 1;
              c.beginPath();
              c.moveTo(x, MAP + AXIS - 5);
              c.lineTo(x, this.height);
              c.stroke();
              c.fillStyle = this.colour.quiet;
              c.textAlign = x < this.left + 20 ? 'left' : x > this.width - 24 ? 'right' : 'center';
              c.fillText(this.tick(t, step), x, MAP + 10);
            }
          }

          tick(t, step) {
            const [unit, size] = step >= 1e9 ? ['s', 1e9] : step >= 1e6 ? ['ms', 1e6] : step >= 1e3 ? ['µs', 1e3] : ['ns', 1];
            const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
            return (t / size).toFixed(Math.min(digits, 3)) + ' ' + unit;
          }

          drawLabels() {
            const c = this.context;
            c.textAlign = 'left';
            c.textBaseline = 'middle';
            for (const row of this.rows) {
              if (!row.lane) {
                c.fillStyle = this.colour.panel;
                c.fillRect(0, row.y + 2, this.width, HEAD - 5);
                c.fillStyle = this.colour.ink;
                c.font = '600 12px ' + FONT;
                c.fillText(this.cut((row.group.place ? 'run loop of ' : '') + row.group.title, this.width - 20), 8,
                  row.y + HEAD / 2);
                continue;
              }
              c.fillStyle = this.colour.quiet;
              c.font = '11.5px ' + FONT;
              const word = row.lane.isNamed && row.lane.word ? row.lane.word + ' ' : '';
              if (this.isNarrow) c.fillText(this.cut(word + row.lane.title, this.width - 16), 6, row.y - LABEL / 2 + 1);
              else {
                c.fillStyle = this.colour.ink;
                const width = Math.min(c.measureText(row.lane.title).width, this.left - 22);
                c.fillText(this.cut(row.lane.title, this.left - 20), 12, row.y + LANE / 2);
                c.fillStyle = this.colour.quiet;
                if (word && width + c.measureText(word).width < this.left - 26) {
                  c.textAlign = 'right';
                  c.fillText(word.trim(), this.left - 10, row.y + LANE / 2);
                  c.textAlign = 'left';
                }
              }
            }
          }

          cut(text, width) {
            const c = this.context;
            if (c.measureText(text).width <= width) return text;
            let low = 0, high = text.length;
            while (low < high) {
              const middle = (low + high + 1) >> 1;
              if (c.measureText(text.slice(0, middle) + '…').width <= width) low = middle; else high = middle - 1;
            }
            return low ? text.slice(0, low) + '…' : '';
          }

          /** Calls `paint(ref, x, width)` for what can be seen of `spans`. */
          each(spans, paint) {
            const {from, to} = this.view, right = this.left + this.plot;
            let filled = -1;
            for (let i = spans.firstReaching(from); i < spans.count && spans.from[i] <= to; i++) {
              const x0 = Math.max(this.x(spans.from[i]), this.left - 3), x1 = Math.min(this.x(spans.to[i]), right + 3);
              if (x1 < this.left) continue;
              if (x1 - x0 < 1) {
                const pixel = Math.floor(x0);
                if (pixel <= filled) continue;
                filled = pixel;
                paint(spans.ref[i], pixel, 1.5);
              } else paint(spans.ref[i], x0, x1 - x0);
              this.drawn++;
            }
          }

          drawLane(row) {
            const c = this.context, lane = row.lane, y = row.y;
            c.fillStyle = this.colour.line;
            c.fillRect(this.left, y + LANE - .5, this.plot, .5);
            if (lane.type === 'modes') return this.drawModes(lane, y);
            if (lane.type === 'passes') return this.drawPasses(lane, y);
            if (lane.held) this.drawHeld(lane.held, y);
            if (lane.type === 'asked' || lane.type === 'marks') return this.drawTicks(lane, y);
            this.each(lane.spans, (ref, x, width) => {
              const inset = Math.min(3, Math.max(0, this.model.data.depth[ref] - 1)) * 2.5;
              c.fillStyle = this.modeColour[this.model.data.mode[ref]] || this.colour.none;
              c.fillRect(x, y + 2 + inset, width, LANE - 5 - inset * 2);
              // A call to a delegate lies inside the call to the source that brought it.
              if (this.model.data.kind[ref] === K.delegate && width > 6) {
                c.strokeStyle = this.colour['on-mode'];
                c.lineWidth = 1;
                c.strokeRect(x + 1.5, y + 4.5 + inset, width - 3, LANE - 10 - inset * 2);
              }
              if (width > 46) this.write(this.model.describe(ref).title, x, width, y, this.colour['on-mode']);
            });
          }

          write(text, x, width, y, colour, weight = '') {
            const c = this.context, from = Math.max(x, this.left) + 5;
            c.font = weight + ' 11px ' + FONT;
            const shown = this.cut(text, x + width - from - 4);
            if (!shown) return;
            c.fillStyle = colour;
            c.textAlign = 'left';
            c.textBaseline = 'middle';
            c.fillText(shown, from, y + LANE / 2);
          }

          drawModes(lane, y) {
            const c = this.context;
            if (!lane.spans.count) {
              return this.write('never ran', this.left, this.plot, y, this.colour.quiet, 'italic');
            }
            const wide = [];
            this.each(lane.spans, (ref, x, width) => {
              const a = this.model.activations[-1 - ref];
              c.fillStyle = this.modeColour[a.mode];
              c.fillRect(x, y + 1, width, LANE - 3);
              if (width > 3) c.clearRect(x + width - .6, y + 1, .6, LANE - 3);
              if (width > 24) wide.push([this.model.data.modes[a.mode], x, width]);
            });
            c.fillStyle = this.colour.sleep;
            this.each(lane.sleep, (ref, x, width) => { if (width > 1.5) c.fillRect(x, y + 7, width, LANE - 9); });
            for (const [text, x, width] of this.merged(wide)) {
              c.font = '600 11px ' + FONT;
              const from = Math.max(x, this.left) + 4, shown = this.cut(text, x + width - from - 8);
              if (!shown || (shown !== text && shown.length < 5)) continue;
              const w = c.measureText(shown).width;
              c.fillStyle = this.modeColour[this.model.data.modes.indexOf(text)];
              c.fillRect(from - 3, y + 1, w + 8, LANE - 3);
              this.write(text, x - 1, width, y, this.colour['on-mode'], '600');
            }
          }

          /** Neighbours of one mode are named once. */
          merged(bars) {
            const found = [];
            for (const bar of bars) {
              const last = found[found.length - 1];
              if (last && last[0] === bar[0] && bar[1] - (last[1] + last[2]) < 3) last[2] = bar[1] + bar[2] - last[1];
              else found.push(bar.slice());
            }
            return found;
          }

          drawPasses(lane, y) {
            const c = this.context, d = this.model.data;
            this.each(lane.spans, (ref, x, width) => {
              const colour = this.modeColour[d.mode[ref]] || this.colour.none;
              if (width < 5) {
                c.fillStyle = colour;
                c.fillRect(x, y + 4, Math.max(1, width - .7), LANE - 9);
                return;
              }
              c.strokeStyle = colour;
              c.lineWidth = 1.5;
              c.strokeRect(x + .75, y + 2.5, width - 2, LANE - 6);
              if (width > 58) this.writeStages(ref, x, width, y);
            });
          }

          /** T S at the beginning, W and A around the wait. */
          writeStages(ref, x, width, y) {
            const c = this.context, d = this.model.data, bits = d.detail[ref];
            c.font = '600 9.5px ' + FONT;
            c.textBaseline = 'middle';
            c.textAlign = 'left';
            const from = Math.max(x, this.left) + 4;
            c.fillStyle = this.colour.ink;
            c.fillText('T S', from, y + LANE / 2);
            if (!(bits & 32)) return;
            const wait = this.waitIn(ref);
            if (!wait) return c.fillText('W A', from + 24, y + LANE / 2);
            const w = Math.max(this.x(wait[0]), from + 24), a = this.x(wait[1]);
            c.fillText('W', w - 2, y + LANE / 2);
            if (a > w + 12 && a < x + width - 8) c.fillText('A', a, y + LANE / 2);
            c.fillStyle = this.colour.quiet;
            if (a - w > 70) c.fillText('asleep', w + 14, y + LANE / 2);
          }

          waitIn(pass) {
            const m = this.model;
            for (const row of this.rows) {
              const lane = row.lane;
              if (!lane || lane.type !== 'modes' || row.group.place !== m.data.loop[pass]) continue;
              for (let i = lane.sleep.firstReaching(m.from[pass]); i < lane.sleep.count; i++) {
                if (lane.sleep.from[i] > m.to(pass)) break;
                const ref = lane.sleep.ref[i];
                if (m.data.depth[ref] === m.data.depth[pass] && lane.sleep.from[i] >= m.from[pass]) {
                  return [lane.sleep.from[i], lane.sleep.to[i]];
                }
              }
            }
            return null;
          }

          drawHeld(spans, y) {
            const c = this.context;
            this.each(spans, (ref, x, width) => {
              c.fillStyle = this.hatch;
              c.fillRect(x, y + 2, Math.max(2, width), LANE - 5);
              c.strokeStyle = this.colour.held;
              c.lineWidth = 1.2;
              c.strokeRect(x + .6, y + 2.6, Math.max(1, width - 1.2), LANE - 6.2);
              if (width > 120) {
                c.font = '600 11px ' + FONT;
                const text = this.cut('waits, not deliverable', Math.min(width, this.x(this.view.to) - x) - 16);
                const from = Math.max(x, this.left) + 6;
                c.fillStyle = this.colour['held-back'];
                c.fillRect(from - 2, y + 4, c.measureText(text).width + 6, LANE - 9);
                this.write(text, from - 4, width, y, this.colour.held, '600');
              }
            });
          }

          drawTicks(lane, y) {
            const c = this.context, d = this.model.data;
            let free = -Infinity, named = null;
            // A note is written as far as there is room before the next.
            const write = to => {
              if (!named || to - named[1] < 26) return;
              c.textAlign = 'left';
              c.font = '11px ' + FONT;
              c.fillText(this.cut(named[0], Math.min(200, to - named[1] - 8)), named[1] + 4, y + LANE / 2);
            };
            this.each(lane.spans, (ref, x) => {
              const kind = d.kind[ref];
              c.fillStyle = kind === K.stop ? this.colour.held : this.colour.ink;
              c.font = '11px ' + FONT;
              c.textAlign = 'center';
              c.textBaseline = 'middle';
              if (x < free - 6) return c.fillRect(x, y + 5, 1, LANE - 10);
              if (GLYPHS[kind]) { c.fillText(GLYPHS[kind], x, y + LANE / 2); free = x + 12; return; }
              write(x);
              c.fillRect(x, y + 2, 1.5, LANE - 5);
              named = [d.names[d.name[ref]] || '', x];
            });
            write(this.left + this.plot);
          }

          drawSelection(selected) {
            const c = this.context, row = this.rows.find(r => r.lane === selected.lane);
            if (!row) return;
            const s = selected.spans, x0 = this.x(s.from[selected.index]), x1 = this.x(s.to[selected.index]);
            const from = Math.max(x0 - 3, this.left + 1), to = Math.min(x1 + 3, this.left + this.plot - 1);
            c.strokeStyle = this.colour.focus;
            c.lineWidth = 2.5;
            c.strokeRect(from, row.y - .5, Math.max(6, to - from), LANE);
          }

          /** The whole time in one strip, and where the view is. */
          drawMap() {
            const c = this.context, whole = this.model.length, x = t => this.left + t / whole * this.plot;
            c.fillStyle = this.colour.panel;
            c.fillRect(0, 0, this.width, MAP);
            let pixel = -1;
            for (const a of this.model.activations) {
              const from = x(a.from), to = x(Math.min(a.to, whole));
              if (to - from < 1 && Math.floor(from) <= pixel) continue;
              pixel = Math.floor(from);
              c.fillStyle = this.modeColour[a.mode];
              c.fillRect(from, 5 + Math.min(2, a.depth - 1) * 3, Math.max(1, to - from), 11 - Math.min(2, a.depth - 1) * 3);
            }
            const from = x(Math.max(0, this.view.from)), to = x(Math.min(whole, this.view.to));
            c.strokeStyle = this.colour.ink;
            c.lineWidth = 1.5;
            c.strokeRect(from + .75, 1.5, Math.max(3, to - from - 1.5), MAP - 4);
          }

          /** What stands at a point: the shortest span there, or the nearest tick. */
          find(x, y) {
            const row = this.rows.find(r => r.lane && y >= r.y - (this.isNarrow ? LABEL : 0) && y < r.y + r.height + GAP);
            if (!row || x < this.left) return null;
            const slack = 5 / this.plot * (this.view.to - this.view.from), t = this.t(x);
            let best = null, length = Infinity;
            for (const spans of [row.lane.spans, row.lane.held, row.lane.sleep]) {
              if (!spans) continue;
              for (let i = spans.firstReaching(t - slack); i < spans.count && spans.from[i] <= t + slack; i++) {
                if (spans.to[i] < t - slack) continue;
                const size = spans.to[i] - spans.from[i] + Math.abs((spans.from[i] + spans.to[i]) / 2 - t) * 1e-3;
                if (size < length) { length = size; best = {lane: row.lane, spans, index: i, ref: spans.ref[i]}; }
              }
            }
            return best;
          }
        }
        """#
}
