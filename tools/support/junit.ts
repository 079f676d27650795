// Reads the JUnit report that `deno test --junit-path` writes. The counts of the gate come from here and
// not from the printed lines, which change with terminal and reporter.

/** Outcome of one test (steps are not counted on their own). */
export interface TestOutcome {
  readonly file: string;
  readonly name: string;
  readonly seconds: number;
  readonly outcome: "passed" | "failed" | "skipped";
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&apos;": "'",
};

function unescape(text: string): string {
  return text
    .replace(
      /&#(x?)([0-9a-fA-F]+);/g,
      (_, x, code) => String.fromCodePoint(parseInt(code, x ? 16 : 10)),
    )
    .replace(/&(amp|lt|gt|quot|apos);/g, (entity) => ENTITIES[entity] ?? entity);
}

function attribute(tag: string, name: string): string {
  return unescape(new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1] ?? "");
}

/** Tests of a report, in its order. Steps (`test > step`) are folded into their test. */
export function readJunit(xml: string): TestOutcome[] {
  const outcomes: TestOutcome[] = [];
  const names = new Set<string>();
  for (
    const [, open, body = ""] of xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)
  ) {
    const file = attribute(open!, "classname");
    const name = attribute(open!, "name");
    // A step may stand in another file than its test, so the name alone tells.
    const parent = [...name.matchAll(/ > /g)].some(({ index }) => names.has(name.slice(0, index)));
    names.add(name);
    const outcome = /<(failure|error)\b/.test(body)
      ? "failed"
      : /<skipped\b/.test(body)
      ? "skipped"
      : "passed";
    if (!parent) outcomes.push({ file, name, seconds: Number(attribute(open!, "time")), outcome });
  }
  return outcomes;
}
