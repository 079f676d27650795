// Templates beside Jinja: the same text, or both refuse. What this interpreter leaves out by name is allowed to be
// refused where Jinja renders; nothing else is.

import { TemplateFailure } from "../../../engine/text/jinja/failure.ts";
import { parseTemplate } from "../../../engine/text/jinja/parse_template.ts";
import { renderTemplate } from "../../../engine/text/jinja/render.ts";
import { type Packages, reference } from "./python.ts";

/** What the reference needs. */
export const JINJA: Packages = { jinja2: "3.1.6" };

/** Names that every template may use. */
export const CONTEXT: Readonly<Record<string, unknown>> = {
  s: "Hello, World",
  u: "naïve 👋 ☃",
  n: 5,
  f: 1.5,
  z: 0,
  l: [3, 1, 2],
  names: ["b", "A", "c"],
  d: { b: 1, a: 2, C: 3 },
  o: [{ n: "x", v: 2, t: "p" }, { n: "y", v: 1, t: "q" }, { n: "z", v: 3, t: "p" }],
  t: true,
  e: [],
  ml: "a\nb\n\n c\n",
  nested: { k: { v: [1, { w: "deep" }] } },
  m: [{ role: "user", content: "hi <there>" }, { role: "assistant", content: null }],
};

/**
 * Refusals that say what is left out. Slicing what cannot be is among them: Jinja refuses it too, but where it folds
 * a whole output, as in `{{ 1[2:] }}`.
 */
const LEFT_OUT =
  /is not supported|prints an address|does not take marked text|too large|cannot be a key|steps and characters|is more than|cannot be sliced/;

interface Answer {
  readonly rendered?: string;
  readonly error?: string;
}

function render(template: string): Answer {
  try {
    const body = parseTemplate(template);
    return { rendered: renderTemplate(body, CONTEXT, { budget: 1e6, now: new Date(0) }) };
  } catch (error) {
    if (!(error instanceof TemplateFailure)) throw error;
    return { error: error.message };
  }
}

/**
 * Renders a template here and there.
 *
 * @throws {Error} If the two differ. @throws {ResourceError} If there is no reference.
 */
export async function compareTemplate(template: string): Promise<void> {
  const ours = render(template);
  const { error = "" } = ours;
  if (LEFT_OUT.test(error)) return;
  const jinja = await reference("jinja_reference.py", JINJA);
  const theirs = await jinja.ask({ template, context: CONTEXT }) as Answer;
  const isSame = ours.rendered === theirs.rendered && ("error" in ours) === ("error" in theirs);
  // A generator over nothing that can be gone through shows its address, where ours is refused as it is made.
  const isAddress = /gone through/.test(error) && / at 0x/.test(theirs.rendered ?? "");
  if (isSame || isAddress) return;
  throw new Error(
    `${template}\n  ours  ${JSON.stringify(ours)}\n  jinja ${JSON.stringify(theirs)}`,
  );
}
