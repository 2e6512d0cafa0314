/// The style sheet of every page of the lab.
enum PageStyle {
    static let text = #"""
        :root {
          color-scheme: light dark;
          --paper: #fbfaf7; --ink: #1d2430; --quiet: #5c6675; --line: #d9d6cd; --panel: #f1efe8;
          --mode0: #2f63c4; --mode1: #b85b0e; --mode2: #23804d; --mode3: #7b46b8; --mode4: #a8325f;
          --mode5: #566f10; --mode6: #147a8c; --mode7: #6f5f4f; --none: #7c8491;
          --on-mode: #ffffff; --held: #c21f3a; --held-back: #f6d5d8; --sleep: rgba(255,255,255,.72);
          --good: #1d7a46; --bad: #b3212f; --focus: #0b62ff;
        }
        @media (prefers-color-scheme: dark) { :root:not(.printing) {
          --paper: #14181f; --ink: #e7e9ee; --quiet: #a0a8b5; --line: #323a46; --panel: #1c222b;
          --mode0: #7ba4f4; --mode1: #f0a057; --mode2: #6fca97; --mode3: #bf97ee; --mode4: #ee86ab;
          --mode5: #b5cf62; --mode6: #62c8da; --mode7: #c4b29f; --none: #8e97a5;
          --on-mode: #10141a; --held: #ff7a8c; --held-back: #4a2129; --sleep: rgba(20,24,31,.66);
          --good: #6fd39b; --bad: #ff8a94; --focus: #8ab4ff;
        } }
        * { box-sizing: border-box; }
        html { background: var(--paper); color: var(--ink); -webkit-text-size-adjust: 100%; }
        body { margin: 0 auto; max-width: 76rem; padding: 1.25rem clamp(.75rem, 3vw, 2rem) 4rem;
          font: 1rem/1.5 system-ui, "Noto Sans", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
        h1 { font-size: clamp(1.5rem, 4vw, 2.1rem); line-height: 1.2; margin: 0 0 .4rem; }
        h2 { font-size: clamp(1.2rem, 3vw, 1.5rem); line-height: 1.25; margin: 2.75rem 0 .4rem; }
        h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
        p, ul, ol, dl { max-width: 46rem; margin: .5rem 0; }
        a { color: var(--mode0); }
        code, pre, .numbers { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .875em; }
        pre { background: var(--panel); border: 1px solid var(--line); border-radius: .4rem; padding: .75rem 1rem;
          overflow-x: auto; line-height: 1.45; }
        .quiet { color: var(--quiet); }
        .good { color: var(--good); } .bad { color: var(--bad); }
        .badge { display: inline-block; border: 1.5px solid currentColor; border-radius: 1rem; padding: 0 .7em;
          font-weight: 600; font-size: .875rem; white-space: nowrap; }
        .badge.good::before { content: "\2713\00a0"; } .badge.bad::before { content: "\2717\00a0"; }
        .question { font-size: 1.1rem; font-weight: 600; }
        fieldset { min-width: 0; border: 1px solid var(--line); border-radius: .4rem; margin: .75rem 0; padding: .4rem 1rem .7rem;
          max-width: 46rem; }
        legend { color: var(--quiet); padding: 0 .4rem; }
        fieldset label { display: flex; gap: .5rem; align-items: baseline; padding: .25rem 0; min-height: 1.75rem; }
        fieldset output { display: block; font-weight: 600; } fieldset output:empty { display: none; }
        .checks { list-style: none; padding: 0; } .checks li { padding-left: 1.6rem; position: relative; margin: .25rem 0; }
        .checks li::before { position: absolute; left: 0; font-weight: 700; }
        .checks .good::before { content: "\2713"; } .checks .bad::before { content: "\2717"; }
        .checks li span { color: var(--ink); }
        table { border-collapse: collapse; font-size: .9rem; } th, td { text-align: left; padding: .25rem .9rem .25rem 0;
          border-bottom: 1px solid var(--line); vertical-align: top; } td.numbers, th.numbers { text-align: right; }
        .scroll { overflow-x: auto; } .scroll table { overflow-wrap: normal; } .scroll .numbers { white-space: nowrap; }

        figure.timeline { margin: 1rem 0; border: 1px solid var(--line); border-radius: .5rem; background: var(--paper);
          overflow: hidden; }
        figure.timeline figcaption { padding: .5rem .75rem; border-bottom: 1px solid var(--line); display: flex;
          flex-wrap: wrap; gap: .4rem .5rem; align-items: center; background: var(--panel); }
        figure.timeline .title { font-weight: 600; margin-right: auto; }
        .modes { flex-basis: 100%; max-width: none; display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: 0; padding: 0;
          list-style: none; font-size: .85rem; } .modes:empty { display: none; }
        .modes i { display: inline-block; width: 1.4em; height: .8em; border-radius: 2px; margin-right: .4em;
          print-color-adjust: exact; -webkit-print-color-adjust: exact; }
        button { font: inherit; font-size: .875rem; color: inherit; background: var(--paper); cursor: pointer;
          border: 1px solid var(--line); border-radius: .35rem; padding: .2rem .6rem; min-height: 2rem; min-width: 2rem; }
        button:hover { border-color: var(--quiet); }
        :focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
        .stage { position: relative; touch-action: pan-y; }
        .stage canvas { display: block; width: 100%; cursor: crosshair; }
        .stage canvas:focus-visible { outline-offset: -3px; }
        .tip { position: absolute; pointer-events: none; z-index: 2; max-width: min(22rem, 90%); background: var(--ink);
          color: var(--paper); border-radius: .35rem; padding: .35rem .6rem; font-size: .8125rem; line-height: 1.35; }
        .tip[hidden] { display: none; }
        .details { display: block; padding: .6rem .75rem; border-top: 1px solid var(--line); background: var(--panel);
          min-height: 4.6rem; font-size: .9rem; }
        .details b, .tip b { display: block; }
        .details .numbers { color: var(--quiet); }
        .details .numbers, .tip .numbers { display: inline-block; margin-right: 1.2em; }
        .waiting { padding: .2rem .75rem .6rem; border-top: 1px solid var(--line); font-size: .9rem; }
        .waiting ul { padding: 0; margin: .2rem 0; list-style: none; max-width: none; }
        .waiting li { display: flex; gap: .6rem; align-items: baseline; margin: .3rem 0; }
        .waiting button { flex: none; }
        .facts { padding: .2rem .75rem .7rem; border-top: 1px solid var(--line); }

        .key { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); gap: .5rem 1.5rem;
          padding: 0; margin: .75rem 0; max-width: none; list-style: none; }
        .key li { display: grid; grid-template-columns: 3.2rem 1fr; gap: .8rem; align-items: start; font-size: .9rem; }
        .swatch { height: 1.1rem; margin-top: .2rem; border-radius: 2px; position: relative; }
        .swatch.mode { background: linear-gradient(90deg, var(--mode0) 50%, var(--mode1) 50%); }
        .swatch.asleep { background: linear-gradient(var(--sleep), var(--sleep)), var(--mode0); }
        .swatch.call { background: linear-gradient(90deg, transparent 30%, var(--mode0) 30% 70%, transparent 70%); }
        .swatch.held { border: 1.5px solid var(--held);
          background: repeating-linear-gradient(135deg, var(--held-back) 0 4px, var(--held) 4px 5.5px); }
        .swatch.pass { border: 1.5px solid var(--quiet); border-radius: 3px; }
        .swatch.pass::after { content: "T S W A"; font: 600 .62rem/1rem ui-monospace, monospace; position: absolute;
          inset: 0; text-align: center; }
        .swatch.asked { text-align: center; line-height: 1.1rem; font-size: .85rem; }
        kbd { font: 600 .8em ui-monospace, "DejaVu Sans Mono", monospace; border: 1px solid var(--line); background: var(--panel);
          border-radius: .25rem; padding: 0 .35em; white-space: nowrap; }
        nav ol { columns: 20rem; column-gap: 2.5rem; padding-left: 1.4rem; max-width: none; } nav li { margin: .2rem 0; break-inside: avoid; }
        section.experiment { border-top: 1px solid var(--line); margin-top: 2.5rem; }
        details > summary { cursor: pointer; font-weight: 600; min-height: 1.75rem; }
        details.answer { margin: .75rem 0; } .outcome { font-weight: 600; }
        svg.plot { width: 100%; max-width: 46rem; height: auto; display: block; }

        @media (max-width: 40rem) {
          .details { min-height: 6.5rem; }
          .waiting li { flex-direction: column; gap: .15rem; align-items: flex-start; }
        }
        @media print {
          html { background: #fff; } body { max-width: none; padding: 0; font-size: 10pt; }
          button, .tip, .controls, .details.hint, fieldset output:empty { display: none !important; }
          figure.timeline, pre, table, .key li { break-inside: avoid; } h2, h3 { break-after: avoid; }
          /* Laid out for the window; on a narrower sheet it shrinks as a whole. */
          .stage canvas { height: auto !important; }
          .details { min-height: 0; } .details:empty { display: none; }
          a { color: inherit; text-decoration: none; }
        }
        """#
}
