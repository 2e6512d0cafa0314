internal import RondoTrace

/// The parts of which pages consist.
enum PageParts {
    /// A whole page, which needs no network, no other file and no build step.
    ///
    /// - Parameter body: HTML.
    static func page(title: String, body: String) -> String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="generator" content="rondo lab">
        <meta http-equiv="Content-Security-Policy"
          content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
        <title>\(HTML.escaped(title))</title>
        <style>
        \(PageStyle.text)
        </style>
        </head>
        <body>
        \(body)
        <script>
        (() => {
        'use strict';
        \(PageScriptModel.text)
        \(PageScriptDrawing.text)
        \(PageScriptControls.text)
        })();
        </script>
        </body>
        </html>

        """
    }

    /// The figure of a recording, with its data.
    ///
    /// - Parameter id: Unique in the page; letters and digits.
    static func timeline(_ recording: Recording, id: String, title: String) -> String {
        let events = TextFormats.grouped(recording.records.count)
        let older =
            recording.dropped > 0 ? ", \(TextFormats.grouped(recording.dropped)) older ones dropped" : ""
        return """
            <figure class="timeline" data-recording="\(id)">
            <figcaption>
            <span class="title">\(HTML.escaped(title))
              <span class="quiet">\(events) events\(older)</span></span>
            <span class="controls">
            <button type="button" data-do="left" aria-label="Move to earlier">←</button>
            <button type="button" data-do="right" aria-label="Move to later">→</button>
            <button type="button" data-do="in" aria-label="Zoom in">+</button>
            <button type="button" data-do="out" aria-label="Zoom out">−</button>
            <button type="button" data-do="fit">All</button>
            <button type="button" data-do="held">Next that waits</button>
            </span>
            <ul class="modes" aria-label="Modes that ran"></ul>
            </figcaption>
            <div class="stage">
            <canvas tabindex="0" role="application" aria-label="Timeline: \(HTML.escaped(title))"></canvas>
            <div class="tip" hidden></div>
            </div>
            <output class="details" aria-live="polite"></output>
            <div class="waiting"><b>Waiting, and not deliverable</b><ul></ul></div>
            <details class="facts"><summary>The loops in figures</summary>
            <div class="scroll"><table><thead><tr><th>run loop</th><th>ran in</th><th class="numbers">asleep</th>
            <th class="numbers">passes</th><th class="numbers">call-outs</th><th class="numbers">longest</th></tr></thead>
            <tbody></tbody></table></div>
            </details>
            <noscript><p>The timeline is drawn by a script in this page.</p></noscript>
            </figure>
            <script type="application/json" id="\(id)">\(recording.pageData)</script>

            """
    }

    /// The legend, which explains the marks of the figure.
    static let key = #"""
        <ul class="key">
        <li><span class="swatch mode"></span><span><b>Mode.</b> A run loop runs in one mode at a time: blue is
          default, orange tracking, where a program is while the user scrolls. Every callback below has the colour of
          the mode that it was made in.</span></li>
        <li><span class="swatch call"></span><span><b>A lane</b> has the label of its object, then the kind. Performed
          blocks are closures handed over with perform, or jobs of an actor or task that lives on the loop; other
          objects without a label are called by their kind. Set <code>label</code> to name them.</span></li>
        <li><span class="swatch asleep"></span><span><b>Asleep.</b> Paler: nothing of this mode was ready, so the
          thread slept. What is ready in another mode does not wake it.</span></li>
        <li><span class="swatch held"></span><span><b>Waiting, and not deliverable.</b> It was ready, but is
          scheduled in a mode that did not run. Nothing is lost: it comes as soon as its mode runs.</span></li>
        <li><span class="swatch call"></span><span><b>A callback.</b> As long as it took. The loop does nothing else
          meanwhile, unless the callback runs the loop itself.</span></li>
        <li><span class="swatch pass"></span><span><b>A pass.</b> One turn of the loop. Zoom in and read what
          observers hear: <b>T</b> beforeTimers, <b>S</b> beforeSources, <b>W</b> beforeWaiting, <b>A</b>
          afterWaiting.</span></li>
        <li><span class="swatch asked">■ ▲ ● ◆ +</span><span><b>Asked of it,</b> from any thread: stop, wakeUp, a
          block to perform, a source signalled, something added. Nothing of this is a callback yet.</span></li>
        </ul>
        """#

    static let keys = #"""
        <p class="quiet">With the keyboard: <kbd>Tab</kbd> to a timeline, then <kbd>←</kbd> <kbd>→</kbd> from event to
        event, <kbd>↑</kbd> <kbd>↓</kbd> between lanes, <kbd>Enter</kbd> zooms to what is selected, <kbd>+</kbd>
        <kbd>−</kbd> <kbd>0</kbd> zoom, <kbd>Shift</kbd> with <kbd>←</kbd> <kbd>→</kbd> moves, <kbd>H</kbd> goes to the
        next span that waits. With the pointer: drag to move, double click or <kbd>Ctrl</kbd> with the wheel to zoom.</p>
        """#
}
