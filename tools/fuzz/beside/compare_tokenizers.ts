// Tokenizers beside Hugging Face's: the same ids for the same text. What this reader refuses by name is no difference.

import { TroodonError, UnsupportedError } from "../../../engine/errors.ts";
import { asNode, childNode } from "../../../engine/text/tokenizer_json/fields.ts";
import { readNormalizer } from "../../../engine/text/tokenizer_json/normalizer.ts";
import { type Tokenizer, tokenizerFromJson } from "../../../engine/text/tokenizer.ts";
import { tokenizerFromSentencePiece } from "../../../engine/text/sentencepiece.ts";
import { type Packages, reference } from "./python.ts";
import type { SentencePieceCase } from "./random_sentencepiece.ts";
import { type Opening, readReal } from "./real_vocabularies.ts";
import type { TokenizerCase } from "./random_tokenizer.ts";

/** What the references need. */
export const TOKENIZERS: Packages = {
  tokenizers: "0.23.3",
  sentencepiece: "0.2.3",
  tiktoken: "0.14.0",
};

/** A published vocabulary by its name, and texts. */
export interface RealCase {
  readonly name: string;
  readonly texts: readonly string[];
}

/** Opens a tokenizer there under a name; the reference's reason where it does not. */
export async function openReference(name: string, opening: Opening): Promise<string | undefined> {
  const python = await reference("tokenizer_reference.py", TOKENIZERS);
  return (await python.ask({ open: name, ...opening }) as { error?: string }).error;
}

/**
 * Compares the ids of texts.
 *
 * @throws {Error} At the first text whose ids differ.
 */
export async function compareIds(
  tokenizer: Tokenizer,
  name: string,
  texts: readonly string[],
  { special = true }: { special?: boolean } = {},
): Promise<void> {
  const python = await reference("tokenizer_reference.py", TOKENIZERS);
  const { ids } = await python.ask({ encode: name, texts }) as { ids: (number[] | null)[] };
  texts.forEach((text, i) => {
    const wanted = ids[i];
    if (!wanted) return;
    const actual = encode(tokenizer, text, special);
    if (actual === undefined || actual.join() === wanted.join()) return;
    throw new Error(
      `${JSON.stringify(text)} is ${actual} here and ${wanted} there (${tokenizer.algorithm})`,
    );
  });
}

/** A text without a token for some part of it is refused here, and loses the part there. */
function encode(tokenizer: Tokenizer, text: string, special: boolean): number[] | undefined {
  try {
    return tokenizer.encode(text, { special, addSpecial: false });
  } catch (error) {
    if (error instanceof TroodonError) return undefined;
    throw error;
  }
}

/** Whether the normalizer makes two added tokens alike: the reference's choice changes from run to run. */
function hasTwins(document: TokenizerCase["document"]): boolean {
  const normalize = readNormalizer(
    childNode(asNode(document, { path: "", file: "fuzz" }), "normalizer"),
  );
  const added = document.added_tokens as { content: string; normalized: boolean }[];
  const normal = added.filter(({ normalized }) => normalized).map(({ content }) =>
    normalize(content)
  );
  return new Set(normal).size < normal.length;
}

/** Compares a document and its texts. */
export async function compareTokenizer({ document, texts }: TokenizerCase): Promise<void> {
  let tokenizer: Tokenizer;
  try {
    tokenizer = tokenizerFromJson(document, { tokenizerConfig: undefined, name: "fuzz" });
  } catch (error) {
    if (error instanceof UnsupportedError) return;
    throw error;
  }
  if (hasTwins(document)) return;
  const refusal = await openReference("fuzz", { kind: "tokenizers", document });
  if (refusal !== undefined) throw new Error(`the reference does not read it: ${refusal}`);
  await compareIds(tokenizer, "fuzz", texts);
}

/** Compares a SentencePiece model and its texts. Control tokens are no text there, so they are none here. */
export async function compareSentencePiece({ model, texts }: SentencePieceCase): Promise<void> {
  const bytes = Uint8Array.fromBase64(model);
  const tokenizer = tokenizerFromSentencePiece(bytes, "fuzz", { addBos: false, addEos: false });
  const refusal = await openReference("fuzz", { kind: "sentencepiece", model });
  if (refusal !== undefined) throw new Error(`the reference does not read it: ${refusal}`);
  await compareIds(tokenizer, "fuzz", texts, { special: false });
}

interface Opened {
  readonly tokenizer: Tokenizer;
  /** Of the references only Hugging Face's looks for control tokens in any text. */
  readonly special: boolean;
}

const real = new Map<string, Promise<Opened>>();

/** Compares a vocabulary of a published model and a text. */
export async function compareReal({ name, texts }: RealCase): Promise<void> {
  let opened = real.get(name);
  if (opened === undefined) real.set(name, opened = openReal(name));
  const { tokenizer, special } = await opened;
  await compareIds(tokenizer, name, texts, { special });
}

async function openReal(name: string): Promise<Opened> {
  const { tokenizer, opening } = await readReal(name);
  const refusal = await openReference(name, opening);
  if (refusal !== undefined) throw new Error(`the reference does not read ${name}: ${refusal}`);
  return { tokenizer, special: opening.kind === "tokenizers" };
}
