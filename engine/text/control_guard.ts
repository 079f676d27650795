// Keeps control tokens that users wrote apart from those that a chat template writes. The texts of
// control tokens are looked for in every string of the messages, and the first character of each is
// replaced by a stand-in: a noncharacter of Unicode that occurs in none of the strings. The template is
// rendered with that, control tokens are looked for in the result (the ones the template wrote, also
// those it puts together, like "<|" + role + "|>"), and the stand-ins become what they stand for in the
// text between them. The parts of one message are searched as one text, since templates join them.
//
// What this does not cover: a template that deletes from the middle of a user's text can bring the
// halves of a control token together.

import type { Tokenizer } from "./tokenizer_types.ts";

/** Hides control tokens before rendering and shows them after. */
export interface Guard {
  /** Copies a value with all control tokens in its texts hidden; objects become maps. */
  readonly protect: (value: unknown) => unknown;
  /** Puts the hidden characters of a text back. */
  readonly restore: (text: string) => string;
}

const MAX_DEPTH = 64;

/** Copies a value with its texts changed, keys of objects too; objects become maps. */
export function mapTexts(
  value: unknown,
  { change, depth = 0 }: {
    readonly change: (text: string) => string;
    readonly depth?: number | undefined;
  },
): unknown {
  // What nests deeper is refused when it is rendered.
  if (depth > MAX_DEPTH) return value;
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) {
    return value.map((item) => mapTexts(item, { change, depth: depth + 1 }));
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = value instanceof Map ? [...value.entries()] : Object.entries(value);
  return new Map(
    entries.map((
      [key, item],
    ) => [mapTexts(key, { change, depth }), mapTexts(item, { change, depth: depth + 1 })]),
  );
}

/** Hides nothing: the texts are the caller's own. */
export const NO_GUARD: Guard = {
  protect: (value) => mapTexts(value, { change: (text) => text }),
  restore: (text) => text,
};

// U+FDD0 to U+FDEF: 32 code points that never stand for a character.
const STAND_IN_FIRST = 0xfdd0;
const STAND_IN_COUNT = 32;

/** Stand-ins that no text uses. */
function freeStandIns(inputs: readonly unknown[]): string[] {
  const used = new Set<string>();
  for (const input of inputs) {
    mapTexts(input, {
      change: (text) => {
        for (const char of text.match(/[\ufdd0-\ufdef]/g) ?? []) used.add(char);
        return text;
      },
    });
  }
  return Array.from(
    { length: STAND_IN_COUNT },
    (_, i) => String.fromCharCode(STAND_IN_FIRST + i),
  ).filter((char) => !used.has(char));
}

/**
 * Makes a guard for some inputs.
 *
 * @throws {RangeError} When a stand-in is needed and the inputs use all of them.
 */
export function createGuard(tokenizer: Tokenizer, inputs: readonly unknown[]): Guard {
  const free = freeStandIns(inputs);
  const hidden = new Map<string, string>();
  const shown = new Map<string, string>();

  function standInFor(char: string): string {
    const known = hidden.get(char);
    if (known !== undefined) return known;
    const standIn = free.pop();
    if (standIn === undefined) {
      throw new RangeError(
        "Cannot keep control tokens out of a message that uses all noncharacters U+FDD0 to U+FDEF",
      );
    }
    hidden.set(char, standIn);
    shown.set(standIn, char);
    return standIn;
  }

  // Hiding one token can leave another that overlaps it, so the search is repeated.
  function hide(text: string): string {
    let units: string[] | undefined;
    let now = text;
    for (let found = tokenizer.findSpecial(now); found.length > 0;) {
      units ??= now.split("");
      for (const start of found) units[start] = standInFor(units[start]);
      now = units.join("");
      found = tokenizer.findSpecial(now);
    }
    return now;
  }

  /** Hides in the text parts of a message as if they were one text. */
  function hideInParts(parts: readonly unknown[]): unknown[] {
    const texts = parts.map((part) =>
      typeof part === "object" && part !== null && "text" in part && typeof part.text === "string"
        ? part.text
        : ""
    );
    const joined = hide(texts.join(""));
    let at = 0;
    return parts.map((part, i) => {
      const text = joined.slice(at, at += texts[i].length);
      return texts[i] === "" ? part : { ...(part as Record<string, unknown>), text };
    });
  }

  return {
    protect(value) {
      const content = typeof value === "object" && value !== null && "content" in value
        ? value.content
        : undefined;
      const joined = Array.isArray(content)
        ? { ...(value as Record<string, unknown>), content: hideInParts(content) }
        : value;
      return mapTexts(joined, { change: hide });
    },
    restore: (text) =>
      shown.size === 0 ? text : text.replace(/[\ufdd0-\ufdef]/g, (char) => shown.get(char) ?? char),
  };
}
