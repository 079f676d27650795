// Which functions of the package are compiled with the file that they stand in. V8 compiles a function when it is called
// first, in every process anew; one in brackets it compiles with its file, and what is compiled with a file is in the code
// that Deno keeps from one process to the next. So whatever is called on the way to a first token gets brackets:
// bench/results/gpu-h200.md has what that saves.

import ts from "typescript";

/** Functions of a file, each by `BEGIN-END`, the units of UTF-16 between which it stands. */
export type Called = ReadonlySet<string>;

/** A script of which something was called, as V8 counts it. */
interface Coverage {
  readonly url: string;
  readonly functions: readonly {
    readonly ranges: readonly [
      { readonly startOffset: number; readonly endOffset: number; readonly count: number },
    ];
  }[];
}

/** Functions that were called, by the URL of their file, of all runs that wrote their coverage into a folder. */
export function calledIn(folder: string): Map<string, Called> {
  const all = new Map<string, Set<string>>();
  for (const { name } of Deno.readDirSync(folder)) {
    const { url, functions }: Coverage = JSON.parse(Deno.readTextFileSync(`${folder}/${name}`));
    const called = all.get(url) ?? new Set();
    all.set(url, called);
    for (const { ranges: [{ startOffset, endOffset, count }] } of functions) {
      if (count > 0) called.add(`${startOffset}-${endOffset}`);
    }
  }
  return all;
}

/**
 * The module with called functions in brackets. Declared ones become variables at the beginning of the body that they stand
 * in, where they are whatever calls them; methods of objects become properties. Members of classes stay.
 */
export function inBrackets(text: string, called: Called): string {
  const tree = ts.createSourceFile("m.js", text, ts.ScriptTarget.ESNext, true, ts.ScriptKind.JS);
  const declared = new Map<ts.Node, string>();

  function write(node: ts.Node): string {
    let own = "", at = node === tree ? 0 : node.getStart(tree);
    ts.forEachChild(node, (child) => {
      own += text.slice(at, child.getStart(tree)) + write(child);
      at = child.end;
    });
    own += text.slice(at, node.end);
    const first = declared.get(node);
    if (first) own = ts.isBlock(node) ? `{${first}${own.slice(1)}` : first + own;
    // A file is a function that is called, too.
    const isCalled = node !== tree && called.has(`${node.getStart(tree)}-${node.end}`);
    return isCalled ? bracketed(node, own) : own;
  }

  function bracketed(node: ts.Node, own: string): string {
    const { parent } = node;
    if (ts.isArrowFunction(node) || ts.isFunctionExpression(node)) {
      return ts.isParenthesizedExpression(parent) ? own : `(${own})`;
    }
    if (ts.isMethodDeclaration(node) && ts.isObjectLiteralExpression(parent)) {
      const [head, async = "", star, name] = /^(async\b *)?(\*?)([\w$]+)(?=\()/.exec(own) ?? [];
      // A home for `super` only methods have.
      if (head === undefined || /\bsuper\b/.test(own)) return own;
      return `${name}:(${async && "async "}function${star}${own.slice(head.length)})`;
    }
    const isBody = ts.isBlock(parent) ? ts.isFunctionLike(parent.parent) : parent === tree;
    if (ts.isFunctionDeclaration(node) && isBody) {
      const [head, kind, name] = /^((?:async )?function\*?) *([\w$]+)/.exec(own) ?? [];
      if (head === undefined) return own;
      const variable = `var ${name}=(${kind}${own.slice(head.length)});`;
      declared.set(parent, (declared.get(parent) ?? "") + variable);
      return "";
    }
    return own;
  }

  return write(tree);
}
