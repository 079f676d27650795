// The documents of the example: one frame, and what each page has in it.

const STYLE = `body{font:1rem/1.5 system-ui;max-width:44rem;margin:2rem auto;padding:0 1rem}
textarea{width:100%;min-height:12rem}.user{font-weight:600}.model{white-space:pre-wrap}#state{color:#666}canvas{max-width:100%}`;

const ASK = (label: string) =>
  `<form id="form"><label>${label} <input id="text" size="40" required disabled></label> <button>Go</button></form>`;

const BODIES: Readonly<Record<string, string>> = {
  chat: `<div id="talk" aria-live="polite"></div>${ASK("You")}`,
  search: `<label>Texts, one a line<textarea id="texts">The cat sleeps on the sofa.
Interest rates rose again in March.
A recipe for bread with rye flour.
The striker scored twice in the last minutes.</textarea></label>${
    ASK("Search for")
  }<ol id="found"></ol>`,
  picture: `<label>A picture <input id="file" type="file" accept="image/*" disabled></label>
<p><canvas id="shown" width="1" height="1"></canvas></p><ol id="found"></ol>`,
  transcript: `<label>A sound <input id="file" type="file" accept="audio/*" disabled></label>
<p class="model" id="said" aria-live="polite"></p>`,
  check:
    `<p><button id="wasm">Check the CPU's kernels</button> <button id="gpu">Check the GPU's kernels</button>
<button id="copy">Copy the report</button></p><label>Report<textarea id="report" readonly></textarea></label>`,
};

/** Names of the pages. */
export const PAGES: readonly string[] = Object.keys(BODIES);

/** The document of a page. */
export function documentOf(name: string): string {
  const links = PAGES.map((page) => `<a href="/${page}">${page}</a>`).join(" · ");
  return `<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Troodon: ${name}</title><style>${STYLE}</style>
<nav>${links}</nav><h1>${name}</h1><main>${BODIES[name]}</main><p id="state" role="status"></p>
<script type="module" src="/app/${name}.js"></script></html>`;
}
