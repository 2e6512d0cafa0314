/// The first part of the page's script: turns the recording into lanes.
enum PageScriptModel {
    static let text = #"""
        const K = {entry: 1, exit: 2, pass: 3, wait: 4, observer: 5, block: 6, source: 7, descriptor: 8, timer: 9,
          mainQueue: 10, delegate: 11, stop: 12, wakeUp: 13, perform: 14, signal: 15, add: 16, held: 17, mark: 18,
          deferred: 19, notification: 20, enqueue: 21};
        const WORDS = ['', 'entry', 'exit', 'pass', 'wait', 'observer', 'block', 'source', 'descriptor', 'timer',
          'main queue', 'delegate', 'stop', 'wakeUp', 'perform', 'signal', 'add', 'held back', 'note',
          'deferred work', 'notification', 'enqueue'];
        const isRequest = kind => kind >= K.stop && kind <= K.add || kind === K.enqueue;
        const isCall = kind => kind >= K.observer && kind <= K.delegate || kind === K.notification;
        /** Lanes of objects that have no label: what they are, and for blocks where they come from. */
        const UNLABELLED = {5: 'observers without a label', 6: 'performed blocks', 7: 'source without a label',
          8: 'descriptor without a label', 9: 'timer without a label', 11: 'delegate without a label', 20: 'notifications'};
        const ACTIVITIES = [[1, 'entry'], [2, 'beforeTimers'], [4, 'beforeSources'], [32, 'beforeWaiting'],
          [64, 'afterWaiting'], [128, 'exit']];
        const RESULTS = ['it had not ended', 'finished: the mode held nothing more', 'stopped', 'timed out',
          'a source was handled'];
        /** Lanes of one loop; what goes beyond shares one. */
        const MOST_LANES = 28;

        const activityNames = bits => ACTIVITIES.filter(a => bits & a[0]).map(a => a[1]).join(', ');

        function time(ns) {
          const size = Math.abs(ns);
          if (size < 1e3) return Math.round(ns) + ' ns';
          if (size < 1e6) return (ns / 1e3).toFixed(size < 1e4 ? 2 : 1) + ' µs';
          if (size < 1e9) return (ns / 1e6).toFixed(size < 1e7 ? 2 : 1) + ' ms';
          return (ns / 1e9).toFixed(size < 1e10 ? 3 : 2) + ' s';
        }

        /** Spans in order of beginning, as arrays; `reach` says how far any up to here goes. */
        class Spans {
          constructor() { this.from = []; this.to = []; this.ref = []; }
          add(from, to, ref) { this.from.push(from); this.to.push(to); this.ref.push(ref); }
          get count() { return this.ref.length; }
          seal() {
            this.from = Float64Array.from(this.from);
            this.to = Float64Array.from(this.to);
            this.ref = Int32Array.from(this.ref);
            this.reach = new Float64Array(this.to.length);
            let reach = -Infinity;
            for (let i = 0; i < this.to.length; i++) this.reach[i] = reach = Math.max(reach, this.to[i]);
            return this;
          }
          /** The first that ends at `t` or later. */
          firstReaching(t) {
            let low = 0, high = this.count;
            while (low < high) {
              const middle = (low + high) >> 1;
              if (this.reach[middle] < t) low = middle + 1; else high = middle;
            }
            return low;
          }
        }

        /** What the page shows of one recording. References: an event's place, or -1 - place of an activation. */
        class Model {
          constructor(data) {
            this.data = data;
            this.length = Math.max(1, data.length);
            const n = this.count = data.kind.length;
            this.from = new Float64Array(n);
            let t = 0;
            for (let i = 0; i < n; i++) this.from[i] = t += data.began[i];
            this.threadNames = this.numbered(data.threads);
            this.activations = [];
            this.groups = [];
            this.makeActivations();
            this.makeLanes();
          }

          get kinds() { return this.data.kind; }
          to(i) { return this.kinds[i] === K.mark ? this.from[i] : this.from[i] + this.data.took[i]; }
          mode(i) { return this.data.modes[this.data.mode[i]] || ''; }
          thread(place) { return place ? this.threadNames[place] || 'thread ' + place : ''; }

          /** A loop has the name of its thread, by which it is told apart from another thread's of that name. */
          loop(place) {
            const l = this.data.loops[place];
            if (!place || !l) return '';
            return l.name && l.name === this.data.threads[l.thread] ? this.thread(l.thread) : l.name || 'loop ' + place;
          }

          /** Of several that are called the same, all but the first have a number. */
          numbered(names) {
            const seen = new Map();
            return names.map(name => {
              const n = (seen.get(name) || 0) + 1;
              seen.set(name, n);
              return name && n > 1 ? name + ' ' + n : name;
            });
          }

          makeActivations() {
            const open = new Map(), d = this.data;
            for (let i = 0; i < this.count; i++) {
              const loop = d.loop[i];
              if (this.kinds[i] === K.entry) {
                const a = {from: this.from[i], to: this.length, loop, thread: d.thread[i], mode: d.mode[i],
                  depth: d.depth[i], result: 0};
                this.activations.push(a);
                if (!open.has(loop)) open.set(loop, []);
                open.get(loop).push(a);
              } else if (this.kinds[i] === K.exit) {
                let a = (open.get(loop) || []).pop();
                if (!a) {
                  a = {from: 0, loop, thread: d.thread[i], mode: d.mode[i], depth: d.depth[i]};
                  this.activations.push(a);
                }
                a.to = this.from[i];
                a.result = d.detail[i];
              }
            }
            this.activations.sort((a, b) => a.from - b.from || b.to - a.to);
          }

          /** The activation that runs in `loop` at `t`, the innermost. */
          running(loop, t) {
            let found = null;
            for (const a of this.activations) {
              if (a.from > t) break;
              if (a.loop === loop && a.to > t && (!found || a.depth >= found.depth)) found = a;
            }
            return found;
          }

          makeLanes() {
            const d = this.data, groups = new Map(), outside = new Map();
            const group = place => {
              if (!groups.has(place)) groups.set(place, {place, title: this.loop(place), lanes: new Map()});
              return groups.get(place);
            };
            const lane = (g, key, make) => {
              if (!g.lanes.has(key)) g.lanes.set(key, Object.assign({spans: new Spans(), key}, make()));
              return g.lanes.get(key);
            };
            const ofThread = new Map(d.loops.map((l, i) => [l.thread, i]).filter(e => e[0] && e[1]));
            for (let i = 1; i < d.loops.length; i++) {
              lane(group(i), 'modes1', () => ({order: 0, title: 'mode', type: 'modes', sleep: new Spans()}));
            }
            this.activations.forEach((a, i) => {
              lane(group(a.loop), 'modes' + a.depth, () => ({order: a.depth, type: 'modes', sleep: new Spans(),
                title: a.depth > 1 ? 'nested ' + (a.depth - 1) : 'mode'})).spans.add(a.from, a.to, -1 - i);
            });
            for (let i = 0; i < this.count; i++) {
              const kind = this.kinds[i], from = this.from[i], to = this.to(i);
              if (kind === K.entry || kind === K.exit) continue;
              if (kind === K.mark) {
                const loop = ofThread.get(d.thread[i]);
                const g = loop ? group(loop) : this.threadGroup(outside, d.thread[i]);
                lane(g, 'marks', () => ({order: 900, title: 'notes', type: 'marks'})).spans.add(from, to, i);
              } else if (kind === K.wait) {
                const modes = group(d.loop[i]).lanes.get('modes' + d.depth[i]);
                if (modes) modes.sleep.add(from, to, i);
              } else if (kind === K.pass) {
                const depth = d.depth[i];
                lane(group(d.loop[i]), 'passes' + depth, () => ({order: 300 + Math.min(9, depth), type: 'passes',
                  title: depth > 1 ? 'passes, nested ' + (depth - 1) : 'passes'})).spans.add(from, to, i);
              } else if (isRequest(kind)) {
                lane(group(d.loop[i]), 'asked', () => ({order: 310, title: 'asked of it', type: 'asked'}))
                  .spans.add(from, to, i);
              } else if (kind === K.delegate && d.thread[i] !== d.loops[d.loop[i]].thread) {
                const g = this.threadGroup(outside, d.thread[i]);
                lane(g, 'calls', () => ({order: 1, title: 'delegate calls', type: 'calls'})).spans.add(from, to, i);
              } else {
                this.place(lane, group(d.loop[i]), kind, i, from, to);
              }
            }
            this.groups = [...groups.values(), ...outside.values()];
            for (const g of this.groups) g.lanes = this.chosen([...g.lanes.values()]);
            this.groups = this.groups.filter(g => g.lanes.length);
          }

          threadGroup(outside, place) {
            if (!outside.has(place)) {
              outside.set(place, {place: 0, title: 'thread ' + this.thread(place), lanes: new Map()});
            }
            return outside.get(place);
          }

          place(lane, g, kind, i, from, to) {
            const isHeld = kind === K.held, what = isHeld ? this.data.detail[i] : kind;
            const subject = this.data.subject[i], entry = this.data.subjects[subject];
            const label = subject ? entry[1] : '';
            // Objects with one label share a lane: a connection's sources, and the calls to its delegate. Observers
            // without a label share a lane too; their activities tell them apart.
            const key = label ? 'label ' + label : what + ':' + (what === K.observer ? 0 : subject);
            const l = lane(g, key, () => ({order: 400 + what * 10, type: 'calls', held: new Spans(), what,
              title: label || UNLABELLED[what] || WORDS[what],
              word: WORDS[what], isNamed: !!label}));
            if (l.isNamed && what === K.delegate) l.word = WORDS[what];
            (isHeld ? l.held : l.spans).add(from, to, i);
          }

          /** In order, and not more than can be read. */
          chosen(lanes) {
            lanes.sort((a, b) => a.order - b.order || a.title.localeCompare(b.title));
            const calls = lanes.filter(l => l.type === 'calls');
            if (calls.length > MOST_LANES) {
              const weight = l => (l.held ? l.held.count : 0) * 1000 + (l.isNamed ? 500 : 0) + l.spans.count;
              const rest = new Set(calls.slice().sort((a, b) => weight(b) - weight(a)).slice(MOST_LANES - 1));
              const merged = {order: 800, type: 'calls', title: rest.size + ' others', spans: new Spans(),
                held: new Spans(), key: 'others'};
              for (const name of ['spans', 'held']) {
                const all = [];
                for (const l of rest) {
                  const s = l[name];
                  if (s) for (let i = 0; i < s.count; i++) all.push([s.from[i], s.to[i], s.ref[i]]);
                }
                all.sort((a, b) => a[0] - b[0]).forEach(e => merged[name].add(...e));
              }
              lanes = lanes.filter(l => !rest.has(l)).concat(merged).sort((a, b) => a.order - b.order);
            }
            // Two lanes of one title are numbered.
            const seen = new Map();
            for (const l of lanes) {
              const n = (seen.get(l.title) || 0) + 1;
              seen.set(l.title, n);
              if (n > 1) l.title += ' ' + n;
              for (const s of [l.spans, l.held, l.sleep]) if (s) s.seal();
            }
            return lanes;
          }

          // Text for people about one event.

          subjectName(i, what) {
            const entry = this.data.subjects[this.data.subject[i]];
            const label = this.data.subject[i] ? entry[1] : '';
            return WORDS[what] + (label ? ' “' + label + '”' : '');
          }

          /** {title, text, facts} of a reference. */
          describe(ref) {
            if (ref < 0) return this.describeActivation(this.activations[-1 - ref]);
            const d = this.data, kind = this.kinds[ref], name = d.names[d.name[ref]] || '';
            const facts = [['at', time(this.from[ref])]];
            if (kind !== K.mark && !isRequest(kind)) facts.push(['took', time(d.took[ref])]);
            if (d.depth[ref] > 1) facts.push(['depth', d.depth[ref]]);
            const mode = this.mode(ref), loop = this.loop(d.loop[ref]), thread = this.thread(d.thread[ref]);
            if (loop) facts.push(['loop', loop]);
            if (thread && thread !== loop) facts.push(['thread', thread]);
            const inMode = mode ? ' in ' + mode : '';
            if (kind === K.held) return this.describeHeld(ref, facts);
            if (kind === K.mark) {
              return {title: name || 'note', text: d.took[ref] ? 'Its value: ' + d.took[ref] + '.' : '', facts};
            }
            if (kind === K.wait) return {title: 'Asleep' + inMode, text: 'Nothing was ready in ' + mode + '.', facts};
            if (kind === K.pass) {
              const bits = d.detail[ref];
              return {title: 'A pass' + inMode, facts, text: 'It went through ' + activityNames(bits) + '. ' +
                (bits & 32 ? 'It was free to sleep.' : 'It did not sleep: a source had been served, or it only looked.')};
            }
            if (kind === K.deferred) {
              const count = d.detail[ref];
              return {title: 'Deferred work' + inMode, facts, text: 'What loads, streams and connections had deferred was done: ' +
                count + (count === 1 ? ' piece.' : ' pieces.')};
            }
            if (isRequest(kind)) {
              const asked = {12: 'stop()', 13: 'wakeUp()', 14: 'perform', 15: 'signal()', 16: 'add', 21: 'enqueue'}[kind];
              return {title: asked + (name ? ' “' + name + '”' : '') + (kind > 13 && mode ? ' for ' + mode : ''), facts,
                text: 'Asked of the loop' + (loop ? ' of ' + loop : '') + (thread ? ' by thread ' + thread : '') +
                  (d.depth[ref] ? '.' : ', which was not running.')};
            }
            if (kind === K.observer) {
              return {title: this.subjectName(ref, kind) + ': ' + activityNames(d.detail[ref]), text: 'Called' + inMode + '.',
                facts};
            }
            if (kind === K.notification) return {title: name, text: 'A notification that was enqueued, posted' + inMode + '.', facts};
            if (kind === K.delegate) {
              return {title: name, facts, text: 'The ' + this.subjectName(ref, kind).replace('delegate', 'delegate of') + ' was called' +
                (mode && d.thread[ref] === d.loops[d.loop[ref]].thread ? inMode : ' on thread ' + thread) + '.'};
            }
            return {title: this.subjectName(ref, kind), text: 'Called' + inMode + '.', facts};
          }

          describeActivation(a) {
            const mode = this.data.modes[a.mode] || '';
            return {title: 'Running in ' + mode, facts: [['at', time(a.from)], ['for', time(a.to - a.from)],
              ['depth', a.depth], ['loop', this.loop(a.loop)]],
              text: (a.depth > 1 ? 'A nested run: the run around it stands still. ' : '') + 'How it ended: ' +
                RESULTS[a.result] + '.'};
          }

          describeHeld(ref, facts) {
            const d = this.data, mode = this.mode(ref), loop = d.loop[ref];
            const inside = this.running(loop, this.from[ref] + d.took[ref] / 2);
            const why = !inside
              ? (this.activations.some(a => a.loop === loop) ? 'its loop was not running' : 'its loop was never run')
              : 'its loop ran in ' + (this.data.modes[inside.mode] || 'another mode');
            const name = this.subjectName(ref, d.detail[ref]);
            return {title: name + ': waiting, and not deliverable', facts,
              text: 'It was ready for ' + time(d.took[ref]) + ' and is scheduled in ' + mode + ', but ' + why + '.'};
          }

          /** The spans held back, the longest first. */
          get heldBack() {
            const found = [];
            for (let i = 0; i < this.count; i++) if (this.kinds[i] === K.held) found.push(i);
            return found.sort((a, b) => this.data.took[b] - this.data.took[a]);
          }
        }
        """#
}
