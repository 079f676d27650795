// Functions of single whole numbers, in 64 bits, and of float64, by their numbers, from the tables in functions/.

import { BINARY, BINARY_NAMES, BINARY_NUMBERS } from "../../functions/binary.ts";
import { UNARY, UNARY_NAMES, UNARY_NUMBERS } from "../../functions/unary.ts";

/** A number and an expression a function. */
type Choices = readonly (readonly [kind: number, expression: string | undefined])[];

function choose(signature: string, choices: Choices): string {
  return [
    `@inline export function ${signature} {`,
    "switch (kind) {",
    ...choices.map(([kind, expression]) => expression ? `case ${kind}: return ${expression};` : ""),
    "}",
    "return 0;",
    "}",
  ].join("\n");
}

/** Module `generated/typed_functions`. */
export function typedFunctions(): string {
  const maps = (form: "i64" | "f64"): Choices =>
    UNARY_NAMES.map((name) => [UNARY_NUMBERS[name], UNARY[name][form]]);
  const combines = (form: "i64" | "f64", tests: boolean): Choices =>
    BINARY_NAMES.filter((name) => form === "i64" || tests === (BINARY[name].test ?? false))
      .map((name) => [BINARY_NUMBERS[name], BINARY[name][form]]);
  return [
    'import { floorMod, quotient, remainder } from "../tensor/typed";',
    choose("mapInteger(kind: u32, x: i64): i64", maps("i64")),
    choose("mapDouble(kind: u32, x: f64): f64", maps("f64")),
    "/** `sign` turns the order of bits into that of the numbers. */",
    choose(
      "combineIntegers(kind: u32, type: u32, sign: i64, a: i64, b: i64): i64",
      combines("i64", false),
    ),
    choose("combineDoubles(kind: u32, a: f64, b: f64): f64", combines("f64", false)),
    choose("testDoubles(kind: u32, a: f64, b: f64): bool", combines("f64", true)),
    "",
  ].join("\n");
}
