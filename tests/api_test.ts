// What the package exports is what api.txt says: a line a name, its members or parameters (`?`: may be left out), and a
// digest of its types. A change in it is a change for users: it belongs into CHANGELOG.md, and docs/stability.md says what
// may change when. To write it anew: deno test -A tests/api_test.ts -- --update
// What `deno doc` says of it is complete: each export in its group, each function with an example that a reader can run.

import { assertEquals } from "@std/assert";
import DENO_JSON from "../deno.json" with { type: "json" };
import { ROOT } from "../tools/support/task.ts";
import { runWell } from "./support/npm.ts";

const SNAPSHOT = `${ROOT}/tests/api.txt`;

interface Named {
  readonly name?: string;
  readonly kind?: string;
  readonly optional?: boolean;
  readonly left?: Named;
}

interface Definition {
  readonly properties?: readonly Named[];
  readonly methods?: readonly Named[];
  readonly params?: readonly Named[];
}

interface Declaration {
  readonly kind: string;
  /** `private`: an exported type speaks of it. */
  readonly declarationKind: string;
  readonly def?: Definition;
  readonly jsDoc?: { readonly tags?: readonly { readonly kind: string; readonly doc?: string }[] };
}

interface Documentation {
  readonly nodes: Readonly<
    Record<
      string,
      {
        readonly symbols: readonly {
          readonly name: string;
          readonly declarations: readonly Declaration[];
        }[];
      }
    >
  >;
}

/** What says nothing about a type: where it stands, and what is written about it. */
const ASIDE = new Set(["location", "jsDoc", "resolution", "declarationKind"]);

function textOf({ name = "…", kind, optional, left }: Named): string {
  if (kind === "assign" && left) return `${left.name ?? "{}"}?`;
  return `${kind === "object" ? "{}" : name}${optional ? "?" : ""}`;
}

async function digestOf(declarations: readonly Declaration[]): Promise<string> {
  const text = JSON.stringify(
    declarations,
    (key, value) => ASIDE.has(key) ? undefined : value,
  );
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return new Uint8Array(bytes).toHex().slice(0, 8);
}

async function lineOf(name: string, declarations: readonly Declaration[]): Promise<string> {
  // Defined where another entry is.
  if (declarations.every(({ kind }) => kind === "reference")) return name;
  const parts = declarations.flatMap(({ def = {} }) => {
    const members = [...def.properties ?? [], ...def.methods ?? []].map(textOf).sort();
    return [...new Set(members), ...(def.params ?? []).map(textOf)];
  });
  const kinds = [...new Set(declarations.map(({ kind }) => kind))].join("+");
  return [kinds, name, ...parts, `#${await digestOf(declarations)}`].join(" ");
}

const paths = Object.entries(DENO_JSON.exports);
const BROWSER = "./engine/platform/browser/mod.ts";
const text = await runWell(
  Deno.execPath(),
  ["doc", "--json", ...paths.map(([, path]) => path), BROWSER],
  { cwd: ROOT },
);
const nodes = Object.fromEntries(
  Object.entries((JSON.parse(text) as Documentation).nodes).map(([path, { symbols }]) => [
    path,
    symbols.filter(({ declarations }) =>
      declarations.some(({ declarationKind }) => declarationKind === "export")
    ),
  ]),
);

async function exported(): Promise<string> {
  const main = new Set<string>();
  const sections = await Promise.all(paths.map(async ([entry, path]) => {
    const symbols = nodes[new URL(path, `file://${ROOT}/`).href]!;
    const lines = await Promise.all(
      symbols.map(async ({ name, declarations }) => [name, await lineOf(name, declarations)]),
    );
    if (entry === ".") { for (const [, line] of lines) main.add(line!); }
    // What the main entry has as well is named only.
    const shown = lines.map(([name, line]) => entry !== "." && main.has(line!) ? name! : line!);
    return `## ${entry}\n${shown.sort().join("\n")}\n`;
  }));
  return sections.join("\n");
}

Deno.test("the exported API is that of api.txt (to write it: -- --update)", async () => {
  const found = await exported();
  if (Deno.args.includes("--update")) await Deno.writeTextFile(SNAPSHOT, found);
  const lines = (text: string) => text.split("\n");
  assertEquals(lines(found), lines(await Deno.readTextFile(SNAPSHOT)));
});

Deno.test("every export is in a group, every function has an example, and none opens a file of the tests", () => {
  const symbols = Object.values(nodes).flat()
    .map(({ name, declarations }) => ({
      name,
      kinds: declarations.map(({ kind }) => kind),
      tags: declarations.flatMap(({ jsDoc }) => jsDoc?.tags ?? []),
    })).filter(({ kinds }) => kinds.some((kind) => kind !== "reference"));
  const without = (wanted: string, list: typeof symbols) =>
    list.filter(({ tags }) => tags.every(({ kind }) => kind !== wanted)).map(({ name }) => name);
  assertEquals(without("category", symbols), []);
  assertEquals(without("example", symbols.filter(({ kinds }) => kinds.includes("function"))), []);
  const opens = symbols.filter(({ tags }) => tags.some(({ doc }) => doc?.includes("tests/")));
  assertEquals(opens.map(({ name }) => name), []);
});

Deno.test("what each entry exports is documented, with every type that it speaks of", async () => {
  await Promise.all(
    [...paths.map(([, path]) => path), BROWSER].map((path) =>
      runWell(Deno.execPath(), ["doc", "--lint", "--quiet", path], { cwd: ROOT })
    ),
  );
});
