// Colours of code: highlight.js with the languages that people ask models for, put into elements by its tree of
// scopes, not by the markup that it also writes.

import hljs from "highlight.js/lib/core";
import diff from "highlight.js/lib/languages/diff";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import xml from "highlight.js/lib/languages/xml";
import { SMALL_ALIASES, SMALL_LANGUAGES } from "./code_languages.ts";
import { html } from "./dom.ts";

const LANGUAGES = { diff, json, python, xml, ...SMALL_LANGUAGES };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);
for (const [languageName, names] of Object.entries(SMALL_ALIASES)) {
  hljs.registerAliases([...names], { languageName });
}

/** Longer code stays plain: colours of all of it, anew for every piece that comes, would take longer than a frame. */
const MOST_CHARACTERS = 30_000;

/** A node of the tree that the highlighter makes; it is not among its types. */
interface Scope {
  readonly scope?: string;
  readonly children: readonly (Scope | string)[];
}

function nodeOf(part: Scope | string): Node | string {
  if (typeof part === "string") return part;
  // "title.function" is a title first; a language within another one is its own parts.
  const name = part.scope?.startsWith("language:") ? undefined : part.scope?.split(".")[0];
  return html("span", { class: name && `hl-${name}` }, ...part.children.map(nodeOf));
}

/** The parts of a code in elements with a class for each scope; plain where nobody knows the language. */
export function highlighted(code: string, language: string): (Node | string)[] {
  if (!hljs.getLanguage(language) || code.length > MOST_CHARACTERS) return [code];
  const { _emitter } = hljs.highlight(code, { language, ignoreIllegals: true });
  return (_emitter as unknown as { readonly rootNode: Scope }).rootNode.children.map(nodeOf);
}
