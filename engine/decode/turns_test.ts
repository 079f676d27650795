// Which turns stay where a conversation is too long.

import { assertEquals } from "@std/assert";
import { fitTurns, turnsOf } from "./turns.ts";

const say = (roles: string) => roles.split(" ").map((role, at) => ({ role, content: `${at}` }));
const rest = (roles: string, dropped: number) =>
  turnsOf(say(roles)).without(dropped).map(({ role }) => role[0]).join("");

Deno.test("a turn is a user's message with all that answers it, behind the system's messages", () => {
  const roles = "system developer user assistant tool assistant user user assistant";
  assertEquals(turnsOf(say(roles)).count, 3);
  assertEquals([0, 1, 2].map((dropped) => rest(roles, dropped)), ["sduatauua", "sduua", "sdua"]);
  // A greeting in front of the first question is a turn of its own; a later system message belongs to its turn.
  assertEquals(rest("assistant user system user", 1), "usu");
  assertEquals([turnsOf(say("system")).count, turnsOf([]).count], [0, 0]);
});

Deno.test("no more turns are dropped than a free quarter takes, and all but the newest if they must", () => {
  const fit = (length: number, { dropped = 0, newest = 10 } = {}) =>
    fitTurns({
      ...{ dropped, count: length, capacity: 100 },
      length: (left) => newest + 10 * (length - 1 - left),
    });
  assertEquals(fit(9), 0); // 90 of 100
  assertEquals(fit(10), 3); // 100 would leave no room for a token; 70 is the first below 75
  assertEquals(fit(10, { dropped: 1 }), 1); // what is dropped already is enough
  assertEquals(fit(3, { newest: 90 }), 2);
  assertEquals(fit(3, { newest: 100 }), undefined);
  assertEquals(fit(1, { newest: 100 }), undefined);
});
