// What pictures of graphs have in common: Graphviz's preamble, its quotes, and what colours mean.

/** Fill by what is drawn. */
export const COLOURS = {
  input: "#d8ecd8",
  output: "#ecd8ec",
  kernel: "#dbe7f6",
  host: "#f6e3db",
  view: "#ffffff",
} as const;

/** What the colours say, for a legend. */
export const MEANINGS: readonly (readonly [colour: string, meaning: string])[] = [
  [COLOURS.input, "input"],
  [COLOURS.output, "result"],
  [COLOURS.kernel, "computed by a kernel"],
  [COLOURS.host, "computed on the host"],
  [COLOURS.view, "a view: costs nothing"],
];

/** Begins a picture. */
export function opening(name: string): string[] {
  return [
    `digraph ${quote(name)} {`,
    "  rankdir=TB;",
    '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];',
    '  edge [fontname="Helvetica", fontsize=8, color="#777777"];',
  ];
}

/** A text in quotes; names in files may hold anything. */
export function quote(text: string): string {
  return `"${text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")}"`;
}
