import { assertEquals } from "@std/assert";
import { readJunit } from "./junit.ts";

Deno.test("readJunit() counts tests, folds steps, and unescapes names", () => {
  const outcomes = readJunit(`<?xml version="1.0"?><testsuites name="deno test" tests="4">
    <testsuite name="./a_test.ts">
      <testcase name="x &lt; y" classname="./a_test.ts" time="0.004" line="2" col="6">
      </testcase>
      <testcase name="ignored" classname="./a_test.ts" time="0.000"><skipped/></testcase>
      <testcase name="z fails" classname="./a_test.ts" time="1.500">
        <failure message="no">Error: no</failure>
      </testcase>
      <testcase name="z fails &gt; a step" classname="./a_test.ts" time="0.000"/>
      <testcase name="z fails &gt; one elsewhere" classname="./b.ts" time="0.000"/>
      <testcase name="x &gt; y holds" classname="./a_test.ts" time="0.001"/>
    </testsuite></testsuites>`);
  assertEquals(
    outcomes.map(({ name, outcome, seconds }) => [name, outcome, seconds]),
    [
      ["x < y", "passed", 0.004],
      ["ignored", "skipped", 0],
      ["z fails", "failed", 1.5],
      ["x > y holds", "passed", 0.001],
    ],
  );
});
