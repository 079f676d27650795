import { assertEquals } from "@std/assert";
import { calledIn, inBrackets } from "./early.ts";

/** All functions of a text, as coverage has them. */
function everyFunction(text: string, functions: readonly string[]) {
  return new Set(functions.map((own) => {
    const begin = text.indexOf(own);
    return `${begin}-${begin + own.length}`;
  }));
}

Deno.test("called functions stand in brackets, others as they were", () => {
  const functions = [
    "function a(n){return b(n)}",
    "async function b(n){function c(n){return n+1}return c(n)}",
    "function c(n){return n+1}",
    "()=>2",
    "m(n){return n}",
    "async*n(){yield 1}",
    "function(){}",
    "s(){return super.s}",
    "k(){}",
  ];
  const text =
    `import"./x.js";export{a};let z=a(1);${functions[0]}${functions[1]}let q=[()=>2,()=>3],` +
    "o={m(n){return n},async*n(){yield 1},other(){},f:function(){},g:(function(){}),s(){return super.s}};" +
    "class K{k(){}}if(z){function d(){}}";
  assertEquals(
    inBrackets(text, everyFunction(text, functions)),
    "var a=(function(n){return b(n)});" +
      "var b=(async function(n){var c=(function(n){return n+1});return c(n)});" +
      'import"./x.js";export{a};let z=a(1);let q=[(()=>2),()=>3],' +
      "o={m:(function(n){return n}),n:(async function*(){yield 1}),other(){},f:(function(){}),g:(function(){})," +
      "s(){return super.s}};class K{k(){}}if(z){function d(){}}",
  );
  assertEquals(inBrackets(text, new Set()), text);
});

Deno.test("a module in brackets does what it did", async () => {
  const text = `
    export const first = later(3) + inner().join();
    function later(n) { return n > 0 ? n + later(n - 1) : 0 }
    function inner() {
      const list = [one(), two` + "`x${one()}`" + `];
      return list.concat({ three() { return [this.four, arguments.length] }, four: 4 }.three(5, 6));
      function one() { return 1 }
      function two(parts, value) { return parts.join("-") + value + later.name }
    }
    export default async function* given() { yield* [1, 2].map((x) => x * x) }`;
  const folder = await Deno.makeTempDir(), cover = `${folder}/cover`;
  const run = async (name: string, source: string, flags: readonly string[]) => {
    await Deno.writeTextFile(`${folder}/${name}.js`, source);
    const main = `${folder}/main_${name}.js`;
    await Deno.writeTextFile(
      main,
      `import given, { first } from "./${name}.js"; console.log(first, await Array.fromAsync(given()));`,
    );
    const args = ["run", "--no-config", ...flags, main];
    const { stdout } = await new Deno.Command(Deno.execPath(), { args }).output();
    return new TextDecoder().decode(stdout);
  };
  const before = await run("plain", text, [`--coverage=${cover}`]);
  const [, called] = [...calledIn(cover)].find(([url]) => url.endsWith("/plain.js"))!;
  const made = inBrackets(text, called);
  assertEquals(before, "61,x-1later,4,2 [ 1, 4 ]\n");
  assertEquals(await run("made", made, []), before);
  assertEquals(made.match(/=\((async )?function|\(\(x\) =>|three:\(function/g)!.length, 6);
  await Deno.remove(folder, { recursive: true });
});
