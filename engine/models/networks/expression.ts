// What specs of networks compute from a config: sizes, counts, conditions. They are written as expressions of Jinja
// ("block_out_channels[i] // 2", "'CrossAttn' in down_block_types[i]"), the language that models bring their chat
// templates in, so that there is one reader of expressions, with its bounds.

import { FormatError } from "../../errors.ts";
import { createBudget } from "../../text/jinja/budget.ts";
import { evaluate } from "../../text/jinja/evaluate.ts";
import { TemplateFailure } from "../../text/jinja/failure.ts";
import { tokenize } from "../../text/jinja/lexer.ts";
import { parseExpression } from "../../text/jinja/parse_expression.ts";
import type { Expression } from "../../text/jinja/syntax.ts";
import { createTokenReader } from "../../text/jinja/token_reader.ts";
import { fromJavaScript, isNumber, isUndefined, plainNumber } from "../../text/jinja/values.ts";

/** A value of an expression; a list keeps the kinds of its items. */
export type Known = number | string | boolean | null | readonly Known[];

/** Names that expressions may use. */
export type Names = Readonly<Record<string, unknown>>;

const BUDGET = 10_000;
const parsed = new Map<string, Expression>();

function parse(text: string): Expression {
  const known = parsed.get(text);
  if (known) return known;
  const reader = createTokenReader(tokenize(`{{ ${text} }}`));
  reader.expect("outputBegin");
  const expression = parseExpression(reader);
  reader.expect("outputEnd");
  parsed.set(text, expression);
  return expression;
}

/**
 * The value of an expression.
 *
 * @param place Where it stands, for messages.
 * @throws {FormatError} If it cannot be read, or a name in it is missing.
 */
export function valueOf(text: string, { names, place }: { names: Names; place: string }): Known {
  // Most are names by themselves.
  const own = Object.hasOwn(names, text) ? names[text] : undefined;
  if (own !== undefined) return own as Known;
  try {
    const values = new Map(
      Object.entries(names).map(([name, value]) => [name, fromJavaScript(value)]),
    );
    const scope = { values, outer: undefined, budget: createBudget(BUDGET) };
    return plain(evaluate(parse(text), scope), text);
  } catch (error) {
    if (!(error instanceof TemplateFailure)) throw error;
    throw new FormatError(`cannot be computed from "${text}": ${error.message}`, { place });
  }
}

function plain(value: unknown, text: string): Known {
  const given = value as Parameters<typeof isNumber>[0];
  if (typeof value === "boolean" || typeof value === "string" || value === null) return value;
  if (isNumber(given)) return plainNumber(given);
  if (Array.isArray(value)) return value.map((item) => plain(item, text));
  const why = isUndefined(given) ? "a name in it is not there" : "it is no number, text or list";
  throw new TemplateFailure(`${why}: ${text}`);
}

/** Text with `{expressions}` in it: names of tensors. */
export function filledIn(text: string, context: { names: Names; place: string }): string {
  return text.replace(/\{([^}]*)\}/g, (_, inner) => String(valueOf(inner, context)));
}
